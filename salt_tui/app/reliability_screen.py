"""Reliability: does it know when it is wrong, and by which signal?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from salt_tui.app import reliability_lines as lines
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import TextToRead
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.messages import OpenAnswer, ShowScreen
from salt_tui.app.option_cursor import VisibleCursorList
from salt_tui.app.reliability_export import figure_name, suggested_name, write_view
from salt_tui.app.reliability_pictures import Kind, Picture, cursor_place, picture_of
from salt_tui.app.reliability_plot import ConfidencePlot
from salt_tui.app.reliability_state import ReliabilityState
from salt_tui.app.reliability_windows import BinWindow, SliceWindow, ViewFileWindow
from salt_tui.app.run_session import RunSession
from salt_tui.app.text_rows import broken
from salt_tui.app.worker_failures import failures_told
from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice
from salt_tui.measure.parts import PARTS
from salt_tui.measure.rows import MAPS
from salt_tui.measure.run_views import ListedUnit, RunViews, SignalNumbers, ordered_by_auroc

LOOK_EVERY_SECONDS = 3.0
"""A run that computes here is read again so often, where answers were finished since."""

SAY_AFTER_SECONDS = 0.2
"""After so long it is said that a view is being measured."""

NO_RUN = "No run is open.  3 lists the stored ones: enter opens one, and 4 leads back here.  1 sets one up."
READING = "reading …"


class Cancelled(Exception):
    """The work is not wanted any more."""


def stop_if_cancelled() -> None:
    """Stop the worker that was cancelled, by raising."""
    if get_current_worker().is_cancelled:
        raise Cancelled


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


class ReliabilityScreen(FramedScreen):
    """Shows how confidence and correctness go together in the run that Live shows."""

    NAME = "reliability"
    WIDGETS = (ReliabilityList, BinList)
    AUTO_FOCUS = "#bins"
    HELP = "Does the model know when it is wrong, and by which signal?"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "kind(1)", "Curves", tooltip="Draw the next: risk, EURO, densities, …", id="reliability.curves"),
        Binding("f", "function(1)", "Signal", tooltip="Next confidence function", id="reliability.function"),
        Binding("F", "function(-1)", "Previous confidence function", id="reliability.function_back"),
        Binding("m", "map(1)", "Map", tooltip="Next calibration map", id="reliability.map"),
        Binding("M", "map(-1)", "Previous calibration map", id="reliability.map_back"),
        Binding("g", "unit", "Unit", tooltip="Atoms, lines, answers, tokens, characters", id="reliability.unit"),
        Binding("t", "task(1)", "Task", tooltip="Next task, or all", id="reliability.task"),
        Binding("T", "task(-1)", "Previous task", id="reliability.task_back"),
        Binding("s", "slice", "Slice", tooltip="Slice by a column", id="reliability.slice"),
        Binding("full_stop", "part(1)", "Part", tooltip="Next part of the slice", id="reliability.part"),
        Binding("comma", "part(-1)", "Previous part of the slice", id="reliability.part_back"),
        Binding("b", "bins", "Bins", tooltip="Another number of bins", id="reliability.bins"),
        Binding("right", "threshold(1)", "Threshold", tooltip="Trust more", id="reliability.threshold"),
        Binding("left", "threshold(-1)", "Trust fewer", id="reliability.threshold_back"),
        Binding("z", "larger", "Larger", tooltip="Leave all the room to what is drawn", id="reliability.larger"),
        Binding("o", "words", "Words", tooltip="All that is concluded, whole", id="reliability.words"),
        Binding("e", "export", "Export", tooltip="Write this view to a file", id="reliability.export"),
        Binding("escape", "back", "Back", tooltip="Back to the run", id="reliability.back"),
    ]
    FOOTER = (
        "reliability.curves", "reliability.units", "reliability.threshold", "reliability.function", "reliability.map",
        "reliability.task", "reliability.part", "reliability.unit", "reliability.words", "reliability.slice",
        "reliability.bins", "reliability.larger", "reliability.export", "reliability.back",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        desk.load()
        self.state = ReliabilityState()
        self._session: RunSession | None = None
        self._views: RunViews | None = None
        self._view: ConfidenceView | None = None
        self._signals: dict[str, SignalNumbers] = {}
        self._shown_signals: tuple[str, ...] = ()
        self._signals_of: tuple[object, ...] = ()
        self._read_answers = -1
        self._was_computing = False
        self._picture = Picture((), "")
        self._drawn_kind = Kind.DIAGRAM
        self._larger = False

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

    def on_mount(self) -> None:
        """Begin to look whether the run has more answers."""
        self.set_interval(LOOK_EVERY_SECONDS, self._look)
        self._draw()

    # --- the run ------------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Take the run that Live shows."""
        super().on_screen_resume()
        session = self.desk.runs.shown
        if session is not self._session:
            self._session, self._views, self._view = session, None, None
            self._signals, self._read_answers = {}, -1
            self.state.leave_slice()
            self.state.coverage = None
            self._draw()
        elif self._views is not None and not self._was_computing:
            self.look_again(self._views)
        self._look()

    @work(thread=True, exclusive=True, group="reliability-again", exit_on_error=False)
    def look_again(self, views: RunViews) -> None:
        """Read the run again where a study or somebody else gave it signals since, or it was computed further."""
        with failures_told(self.app, self._take_failure):
            if not views.is_current() and not get_current_worker().is_cancelled:
                self.app.call_from_thread(self.read, views.run)

    def _look(self) -> None:
        """Read the run where it was not, or where more of its answers are finished."""
        session = self._session
        if session is None or session.run is None or not self.is_active:
            return
        done = sum(task.done for task in session.state.view.tasks.values()) if session.computing else 0
        ended = self._was_computing and not session.computing
        self._was_computing = session.computing
        if self._read_answers < 0 or ended or (session.computing and done > self._read_answers):
            self._read_answers = done
            self.read(session.database, session.run)

    @work(thread=True, exclusive=True, group="reliability-read", exit_on_error=False)
    def read(self, database: Path, run: int) -> None:
        """Read the run beside the screen, what every unit has first."""
        with failures_told(self.app, self._take_failure):
            views = RunViews(database, run)
            views.read("atom")
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, views)
            views.read_signals()
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, views)

    def _take(self, views: RunViews) -> None:
        self._views = views
        self._signals_of = ()
        self._measure()

    def _take_failure(self, line: str) -> None:
        self._view = None
        self.query_one("#reliability-title", Static).update(f" {line}")
        self.say_error(line)

    # --- measuring ----------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Show the chosen view at once where it was measured before; else measure it beside the screen."""
        views = self._views
        if views is None:
            return
        self.state.keep_known(views.functions(self.state.unit), views.tasks)
        choice, kind = self.state.choice, self.state.kind
        known = views.known_view(choice)
        if known is not None and kind not in {Kind.PARTS, Kind.POSITION, Kind.HISTORY}:
            self._show(views, known, kind, picture_of(kind, known))
        else:
            self.measure(views, choice, kind)
            self.set_timer(SAY_AFTER_SECONDS, self._say_measuring)

    def _say_measuring(self) -> None:
        """Say that what is on the screen is not what is chosen, where that takes a while."""
        if self._view is None or (self._view.choice, self._drawn_kind) != (self.state.choice, self.state.kind):
            self._set("#threshold", "measuring …")

    @work(thread=True, exclusive=True, group="reliability-view", exit_on_error=False)
    def measure(self, views: RunViews, choice: ViewChoice, kind: Kind) -> None:
        """Measure a view and what is drawn of it beside the screen."""
        with failures_told(self.app, self.say_error):
            view = views.view(choice)
            parts = views.side_by_side(choice) if kind is Kind.PARTS else ()
            course = views.course() if kind in {Kind.POSITION, Kind.HISTORY} else None
            picture = picture_of(kind, view, parts, course)
            if kind is Kind.PARTS:
                picture = replace(picture, left_out=views.count_side_by_side(choice) - len(parts))
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._show, views, view, kind, picture)

    def _show(self, views: RunViews, view: ConfidenceView, kind: Kind, picture: Picture) -> None:
        """Show what was measured, unless something else was chosen meanwhile."""
        if views is not self._views or view.choice != self.state.choice or kind is not self.state.kind:
            return
        self._view, self._picture, self._drawn_kind = view, picture, kind
        self._draw()
        wanted = (views, views.signals_read, self.state.unit, self.state.after, self.state.task, self.state.part)
        if wanted != self._signals_of:
            self._signals_of = wanted
            self._signals = {}
            self.measure_signals(views, view.choice, self.state.after)

    @work(thread=True, exclusive=True, group="reliability-signals", exit_on_error=False)
    def measure_signals(self, views: RunViews, choice: ViewChoice, after: str) -> None:
        """Measure every signal; then what takes longer: intervals, what can be promised, and what is concluded."""
        with failures_told(self.app, self.say_error):
            functions = views.functions(choice.unit)
            for function in functions:
                stop_if_cancelled()
                self.app.call_from_thread(self._take_signal, views.signal_numbers(choice, function, after))
            # So that the next map and the course of an answer are there at once: the slowest map takes half a second of
            # 100,000 atoms.
            for name in MAPS:
                stop_if_cancelled()
                views.view(replace(choice, calibrator=name))
            stop_if_cancelled()
            views.course()
            for function in functions:
                stop_if_cancelled()
                views.measure_interval(choice, function)
                self.app.call_from_thread(self._take_signal, views.signal_numbers(choice, function, after))
            stop_if_cancelled()
            if views.signals_read and choice.unit not in PARTS:
                views.policy(choice.unit)
                self.app.call_from_thread(self._draw_found)
            if views.signals_read:
                views.conclude(stop_if_cancelled)
                self.app.call_from_thread(self._draw_found)
                self.app.call_from_thread(self._draw_signals)

    def _take_signal(self, numbers: SignalNumbers) -> None:
        self._signals[numbers.function] = numbers
        self._draw_signals()

    # --- drawing ------------------------------------------------------------------------------------------------

    def look_changed(self) -> None:
        """Draw the curves with another look."""
        self._draw_plot()

    def on_resize(self) -> None:
        """Cut rows and curves to the new size."""
        self.call_after_refresh(self._draw)

    @property
    def _width(self) -> int:
        return max(10, self.size.width - 2)

    def _set(self, name: str, text: str) -> None:
        self.query_one(name, Static).update(text)

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        views, view = self._views, self._view
        there = view is not None and views is not None
        for name in ("#plot-title", "#plot-row", "#threshold"):
            self.query_one(name).display = there
        for name in ("#signal-heads", "#signals", "#reliability-found"):
            self.query_one(name).display = there and not self._larger
        self.refresh_bindings()
        if view is None or views is None:
            waiting = self._session is not None
            self._set("#reliability-title", f" {READING}" if waiting else " no run")
            self._set("#verdict", "" if waiting else broken(NO_RUN, self._width))
            return
        title = self.state.title(views.run, len(views.tasks), view, self._progress(), self._width)
        self._set("#reliability-title", f" {title}")
        self._set("#verdict", broken(view.sentence, self._width))
        self._draw_signals()
        self._draw_found()
        self._draw_bins()
        self._draw_plot()

    def _progress(self) -> str:
        session = self._session
        if session is None or not session.computing:
            return ""
        total = sum(task.total for task in session.state.view.tasks.values())
        return f"so far, {self._read_answers} of {total} answers"

    def _draw_signals(self) -> None:
        views = self._views
        if views is None:
            return
        self._set("#signal-heads", lines.signal_heads(self.state.after, self._width))
        concluded = views.concluded()
        # Nothing is marked of which the report does not conclude.
        best = concluded.functions.best if concluded is not None and lines.is_whole(self.state.choice) else ()
        ordered = ordered_by_auroc(list(self._signals.values()))
        rows = [Text(lines.signal_row(found, found.function in best, self._width)) for found in ordered]
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

    def _draw_found(self) -> None:
        views = self._views
        if views is not None:
            waiting = "measuring …"
            policy = views.known_policy(self.state.unit)
            found = lines.found_lines(views.concluded(), policy, self.state.choice, waiting, self._width)
            self._set("#reliability-found", "\n".join(found))

    def _draw_bins(self) -> None:
        view = self._view
        part = self.query_one("#bins-part")
        part.display = self.state.kind is Kind.DIAGRAM and view is not None and view.bins is not None
        if view is None or not part.display:
            return
        width = max(1, part.size.width or 40)
        self._set("#bin-heads", lines.bin_head(width))
        listed = self.query_one(BinList)
        before = listed.highlighted
        listed.clear_options()
        listed.add_options([Option(Text(row)) for row in lines.bin_rows(view, width)])
        if listed.option_count:
            listed.highlighted = min(before or 0, listed.option_count - 1)

    def _draw_plot(self) -> None:
        views, view = self._views, self._view
        if view is None or views is None:
            return
        plot = self.query_one(ConfidencePlot)
        trusted = self.state.trusted(view)
        place = None if trusted is None else cursor_place(self._picture, trusted.threshold, trusted.coverage)
        plot.show(self._picture, place, self.desk.look)
        hidden = plot.hidden_panels + self._picture.left_out
        legend = f"{hidden} more have no room" if hidden else self._picture.legend
        self._set("#plot-title", self.state.plot_title(legend, self._picture.axes, len(views.tasks), self.size.width))
        self._set("#threshold", self.state.threshold_line(view, self._width))

    # --- what is chosen -----------------------------------------------------------------------------------------

    def action_kind(self, step: int) -> None:
        """Draw the next thing."""
        self.state.next_kind(step)
        self._measure()
        if self.state.kind is not Kind.DIAGRAM:
            self.query_one(SignalList).focus()
        else:
            self.query_one(BinList).focus()

    def action_function(self, step: int) -> None:
        """Look at the next signal, in the order of the list."""
        if self._views is not None:
            functions = self._shown_signals or self._views.functions(self.state.unit)
            self.state.next_function(functions, step)
            self._measure()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Look at the signal under the cursor."""
        if event.option_list.id == "signals" and event.option_index < len(self._shown_signals):
            function = self._shown_signals[event.option_index]
            if function != self.state.function:
                self.state.function = function
                self._measure()

    def action_map(self, step: int) -> None:
        """Look through the next calibration map."""
        self.state.next_map(step)
        self._measure()

    def action_unit(self) -> None:
        """Look at the next kind of unit."""
        self.state.next_unit()
        self._measure()

    def action_task(self, step: int) -> None:
        """Look at the next task."""
        if self._views is not None:
            self.state.next_task(self._views.tasks, step)
            self._measure()

    def action_bins(self) -> None:
        """Cut into another number of bins."""
        self.state.next_bins()
        self._measure()

    def action_part(self, step: int) -> None:
        """Look at the next part of the slice."""
        self.state.next_part(step)
        self._measure()

    def action_slice(self) -> None:
        """Ask for the column to slice by."""
        views = self._views
        if views is None:
            return

        def chosen(place: int | None) -> None:
            if place == 0:
                self.state.leave_slice()
                self._measure()
            elif place is not None:
                self.read_parts(views, self.state.unit, views.slice_names[place - 1])

        self.app.push_screen(SliceWindow(views.slice_names), chosen)

    @work(thread=True, exclusive=True, group="reliability-parts", exit_on_error=False)
    def read_parts(self, views: RunViews, unit: str, column: str) -> None:
        """Cut the units by a column beside the screen."""
        with failures_told(self.app, self.say_error):
            labels = [str(part.label) for part in views.parts(unit, column)]
            self.app.call_from_thread(self._take_parts, views, unit, column, labels)

    def _take_parts(self, views: RunViews, unit: str, column: str, labels: list[str]) -> None:
        if views is self._views and unit == self.state.unit and labels:
            self.state.take_slice(column, labels)
            self._measure()

    def action_threshold(self, step: int) -> None:
        """Trust more units, or fewer."""
        if self._view is not None:
            self.state.move_threshold(self._view, step)
            self._draw_plot()

    def on_confidence_plot_clicked(self, message: ConfidencePlot.Clicked) -> None:
        """Put the threshold where the plot was clicked, or look at the task or part of the panel."""
        view = self._view
        if view is None:
            return
        if message.panel:
            self.state.kind = Kind.DIAGRAM
            if self.state.slice is None:
                self.state.task = message.panel
            else:
                self.state.part = message.panel
            self._measure()
        elif self._picture.horizontal == "coverage":
            self.state.coverage = message.x
            self._draw_plot()
        elif self._picture.horizontal == "confidence":
            self.state.put_threshold(view, message.x)
            self._draw_plot()

    # --- further ------------------------------------------------------------------------------------------------

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """List what is in the bin that was chosen."""
        view, views = self._view, self._views
        if event.option_list.id == "bins" and view is not None and views is not None:
            self.list_units(views, view, lines.place_of_row(view, event.option_index))

    @work(thread=True, exclusive=True, group="reliability-units", exit_on_error=False)
    def list_units(self, views: RunViews, view: ConfidenceView, place: int) -> None:
        """Read the units of a bin beside the screen."""
        with failures_told(self.app, self.say_error):
            listed = views.listed(view, place)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._show_units, view, place, listed)

    def _show_units(self, view: ConfidenceView, place: int, listed: tuple[ListedUnit, ...]) -> None:
        def chosen(row: int | None) -> None:
            if row is not None:
                self.post_message(OpenAnswer(listed[row].generation, listed[row].atom, self.NAME))

        if self.is_current:
            self.app.push_screen(BinWindow(view, place, listed), chosen)

    def action_larger(self) -> None:
        """Leave the room of signals and conclusions to what is drawn, or give it back."""
        self._larger = not self._larger
        self._draw()
        if self._larger and self.query_one("#bins-part").display:
            self.query_one(BinList).focus()

    def action_words(self) -> None:
        """Show everything that is concluded, whole."""
        if self._view is not None and self._views is not None:
            policy = self._views.known_policy(self.state.unit)
            text = lines.words(self._view, self._views.concluded(), policy, "measuring …")
            self.app.push_screen(TextToRead("Reliability", text))

    def action_export(self) -> None:
        """Ask for a file and write the view to it."""
        views, state = self._views, self.state
        if views is None or self._view is None:
            return
        frozen = ReliabilityState(
            state.unit, state.function, state.calibrator, state.task, state.slice, state.part, state.bins, state.kind
        )

        def write(target: Path, overwrite: bool) -> None:
            write_view(views, frozen, target)

        def written(line: str | None) -> None:
            if line:
                self.say(line)

        window = ViewFileWindow(suggested_name(views, state.kind), figure_name(frozen) is not None, write)
        self.app.push_screen(window, written)

    def action_back(self) -> None:
        """Go back to the run."""
        self.post_message(ShowScreen("live"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what can do nothing now."""
        if not self.is_mounted or action == "back":
            return True
        there = self._view is not None
        if action == "part":
            return there and self.state.slice is not None
        if action in {
            "kind",
            "function",
            "map",
            "unit",
            "task",
            "slice",
            "bins",
            "words",
            "export",
            "threshold",
            "larger",
        }:
            return there
        return True
