"""The parts of Reliability: what stands in each line for the view that is shown.  No keys and no measuring here."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from salt_tui.app import reliability_lines as lines
from salt_tui.app.desk import Desk
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.option_cursor import VisibleCursorList
from salt_tui.app.reliability_pictures import Kind, Picture, cursor_place
from salt_tui.app.reliability_plot import ConfidencePlot
from salt_tui.app.reliability_state import ReliabilityState
from salt_tui.app.run_session import RunSession
from salt_tui.app.text_rows import broken
from salt_tui.measure.confidence_view import ConfidenceView
from salt_tui.measure.run_views import RunViews, ordered_by_auroc

NO_RUN = "No run is open.  3 lists the stored ones: enter opens one, and 4 leads back here.  1 sets one up."
READING = "reading …"
MEASURING = "measuring …"


class ReliabilityList(VisibleCursorList, inherit_bindings=False):
    """A list of which the keys to the left and right are free for the threshold."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor_up", "Row up", id="reliability.row_up"),
        Binding("down", "cursor_down", "Row down", id="reliability.row_down"),
        Binding("pageup", "page_up", "Page up", id="reliability.page_up"),
        Binding("pagedown", "page_down", "Page down", id="reliability.page_down"),
        Binding("home", "first", "First row", id="reliability.first"),
        Binding("end", "last", "Last row", id="reliability.last"),
    ]


class SignalList(ReliabilityList):
    """The confidence functions and signals, the best for ranking first."""


class BinList(ReliabilityList):
    """The bins, the surest first; enter lists what is in one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Atoms", tooltip="List what is in the bin", id="reliability.units"),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what needs a bin while there is none."""
        return None if action == "select" and not self.option_count else True


class ReliabilityBody(FramedScreen):
    """Draws what is chosen at once, and the view of it when it is measured; a subclass measures and has the keys."""

    GROWING = frozenset({"verdict"})

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        desk.load()
        self.state = ReliabilityState()
        self._session: RunSession | None = None
        self._views: RunViews | None = None
        self._view: ConfidenceView | None = None
        self._picture = Picture((), "")
        self._drawn_kind = Kind.DIAGRAM
        self._read_answers = -1
        self._larger = False
        self._shown_signals: tuple[str, ...] = ()
        self._signal_was_chosen = False

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(id="reliability-title", markup=False)
        yield Static(id="verdict", markup=False)
        yield Static(id="signal-heads", markup=False)
        yield SignalList(id="signals", markup=False, compact=True)
        yield Static(id="reliability-found", markup=False)
        yield Static(id="plot-title", markup=False)
        with Horizontal(id="plot-row"):
            yield ConfidencePlot(self.desk.look, id="plot")
            with Vertical(id="bins-part"):
                yield Static(id="bin-heads", markup=False)
                yield BinList(id="bins", markup=False, compact=True)
        yield Static(id="threshold", markup=False)

    def look_changed(self) -> None:
        """Draw the curves with another look."""
        self.draw_plot()

    def on_resize(self) -> None:
        """Cut rows and curves to the new size."""
        self.call_after_refresh(self.draw_all)

    @property
    def is_drawn(self) -> bool:
        """Whether the view on the screen is the chosen one."""
        return self._view is not None and (self._view.choice, self._drawn_kind) == (self.state.choice, self.state.kind)

    def draw_all(self) -> None:
        """Draw every line."""
        if not self.is_mounted:
            return
        there = self._view is not None and self._views is not None
        for name in ("#plot-title", "#plot-row", "#threshold"):
            self.query_one(name).display = there
        for name in ("#signal-heads", "#signals", "#reliability-found"):
            self.query_one(name).display = there and not self._larger
        self.refresh_bindings()
        if not there:
            waiting = self._session is not None
            self.set_text("reliability-title", f" {READING}" if waiting else " no run")
            self.set_text("verdict", "" if waiting else broken(NO_RUN, self.text_width))
            return
        self.draw_choice()
        if self.is_drawn:
            self.draw_view()
        else:
            self.draw_waiting()

    def draw_choice(self) -> None:
        """Say what is chosen, with the numbers of it that are known."""
        views = self._views
        if views is None:
            return
        view = self._view if self.is_drawn else None
        title = self.state.title(views.run, len(views.tasks), view, self._progress(), self.text_width)
        self.set_text("reliability-title", f" {title}")
        self.draw_signals()
        self.draw_found()

    def draw_waiting(self) -> None:
        """Say that what is drawn is not what is chosen."""
        view = self._view
        if view is None or self.is_drawn:
            return
        words = broken(lines.waiting_words(self.state.choice), self.text_width)
        # As many rows as before: the rest of the screen stays where it is.
        rows = self.shown_text("verdict").count("\n") - words.count("\n")
        self.set_text("verdict", words + "\n" * rows)
        self.set_text("plot-title", lines.still_title(view.choice, self._drawn_kind, self.size.width))
        self.set_text("threshold", MEASURING)

    def draw_view(self) -> None:
        """Draw what was measured."""
        view = self._view
        if view is not None:
            self.set_text("verdict", broken(view.sentence, self.text_width))
            self._draw_bins(view)
            self.draw_plot()

    def _progress(self) -> str:
        session = self._session
        if session is None or not session.computing:
            return ""
        total = sum(task.total for task in session.state.view.tasks.values())
        return f"so far, {self._read_answers} of {total} answers"

    def draw_signals(self) -> None:
        """Draw the table of signals: what is measured of each, the best one first."""
        views, choice = self._views, self.state.choice
        if views is None:
            return
        self.set_text("signal-heads", lines.signal_heads(self.state.after, self.text_width))
        concluded = views.concluded()
        # Nothing is marked of which the report does not conclude.
        best = concluded.functions.best if concluded is not None and lines.is_whole(choice) else ()
        known = [views.known_numbers(choice, name, self.state.after) for name in views.functions(choice.unit)]
        ordered = ordered_by_auroc(known)
        rows = [Text(lines.signal_row(found, found.function in best, self.text_width)) for found in ordered]
        names = tuple(found.function for found in ordered)
        listed = self.query_one(SignalList)
        with self.prevent(OptionList.OptionHighlighted):
            if names == self._shown_signals and listed.option_count == len(rows):
                for place, row in enumerate(rows):
                    if listed.get_option_at_index(place).prompt != row:
                        listed.replace_option_prompt_at_index(place, row)
            else:
                self._shown_signals = names
                listed.clear_options()
                listed.add_options([Option(row) for row in rows])
            if self.state.function in names:
                listed.highlighted = names.index(self.state.function)
        if not self._signal_was_chosen:
            self.call_after_refresh(listed.scroll_home, animate=False)

    def draw_found(self) -> None:
        """Draw what the report concludes and what can be promised."""
        views = self._views
        if views is not None:
            policy = views.known_policy(self.state.unit)
            found = lines.found_lines(views.concluded(), policy, self.state.choice, MEASURING, self.text_width)
            self.set_text("reliability-found", "\n".join(found))

    def _draw_bins(self, view: ConfidenceView) -> None:
        part = self.query_one("#bins-part")
        part.display = self.state.kind is Kind.DIAGRAM and view.bins is not None
        if not part.display:
            return
        width = lines.bins_width(self.size.width)
        part.styles.width = width
        self.set_text("bin-heads", lines.bin_head(width))
        listed = self.query_one(BinList)
        before = listed.highlighted
        listed.clear_options()
        listed.add_options([Option(Text(row)) for row in lines.bin_rows(view, width)])
        if listed.option_count:
            listed.highlighted = min(before or 0, listed.option_count - 1)

    def draw_plot(self) -> None:
        """Draw the curves, and say what the threshold covers."""
        views, view = self._views, self._view
        if view is None or views is None or not self.is_drawn:
            return
        plot = self.query_one(ConfidencePlot)
        trusted = self.state.trusted(view)
        place = None if trusted is None else cursor_place(self._picture, trusted.threshold, trusted.coverage)
        plot.show(self._picture, place, self.desk.look)
        hidden = plot.hidden_panels + self._picture.left_out
        legend = f"{hidden} more have no room" if hidden else self._picture.legend
        title = self.state.plot_title(legend, self._picture.axes, len(views.tasks), self.size.width)
        self.set_text("plot-title", title)
        self.set_text("threshold", self.state.threshold_line(view, self.text_width))
