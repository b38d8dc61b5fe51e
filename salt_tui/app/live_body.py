"""The parts of Live around and with the map: what stands in each line for the run that is shown.  No keys here."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from salt_tui.app import live_lines
from salt_tui.app.answer_filter_field import AnswerFilterField
from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.atom_sentence import heading, sentence
from salt_tui.app.desk import Desk
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.live_parts import Legend, TaskLines
from salt_tui.app.run_session import RunSession
from salt_tui.app.scrubber import Scrubber
from salt_tui.app.text_rows import broken, fit
from salt_tui.measure.running import Measured
from salt_tui.visible_text import visible

TASK_ROWS = 3
TALL_TASK_ROWS = 8
TALL = 30
LOG_ROWS = 5
TALL_LOG_ROWS = 11
LOW_LOG_ROWS = 2
LOW = 22
"""Below so many rows a whole log would leave nothing of the map."""
NO_RUN = "No run is open.  1 sets one up, 3 lists the stored ones."


class LiveBody(FramedScreen):
    """Draws a `RunSession`; a subclass pulls its events and has the keys."""

    GROWING = frozenset({"tasks"})

    def __init__(self, desk: Desk) -> None:
        """Start without a run."""
        super().__init__(desk)
        desk.load()
        self._session: RunSession | None = None
        self._sentence = ""
        self._can: tuple[object, ...] = ()
        self._drawn: Measured | None = None

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(id="title", markup=False)
        yield TaskLines(id="tasks", markup=False)
        yield Legend()
        yield AtomHeatmap(AtomMap(), self.desk.look, id="map")
        yield Scrubber(id="unit", markup=False)
        yield Static(id="sentence", markup=False)
        yield Static(id="log", markup=False)
        yield Static(id="metrics", markup=False)
        yield AnswerFilterField(self.desk.database, self.say_error, id="map-filter")

    @property
    def heatmap(self) -> AtomHeatmap:
        """The drawn map."""
        return self.query_one("#map", AtomHeatmap)

    @property
    def filter_field(self) -> AnswerFilterField:
        """The words of the filter."""
        return self.query_one("#map-filter", AnswerFilterField)

    @property
    def is_in_view(self) -> bool:
        """Whether it is in front, or behind a window only, beside which it goes on."""
        return self in self.app.screen_stack

    @property
    def played(self) -> bool:
        """Whether the run arrives again, so that the line of the cursor says how much has."""
        return False

    def draw_all(self) -> None:
        """Draw every line."""
        if self._session is None:
            for name in ("title", "tasks", "unit", "metrics"):
                self.set_text(name, "")
            self._sentence = ""
            self._say_words(NO_RUN)
            self.draw_legend()
            self._can = ()
            self.refresh_bindings()
            return
        self.draw_title()
        self.draw_legend()
        self._draw_numbers()
        self.draw_sentence()

    def draw_measured(self) -> None:
        """Draw what says a number that was measured."""
        self.draw_title()
        self._draw_numbers()
        self.draw_sentence()

    def draw_title(self) -> None:
        """Say which run it is and where it and its tasks stand."""
        session = self._session
        if session is None:
            return
        self._refresh_keys(session)
        self.set_text("title", live_lines.title_line(session, self.size.width))
        self.draw_tasks(session)

    def _refresh_keys(self, session: RunSession) -> None:
        """Let the last row show what can be done now, where that is something else."""
        state = session.state
        shown = (self.heatmap.has_units, self.heatmap.has_begun, bool(state.map.answers), bool(self._sentence))
        can = (state.phase, session.computing, session.reading, session.resumable, *shown)
        if can != self._can:
            self._can = can
            self.refresh_bindings()

    def draw_tasks(self, session: RunSession) -> None:
        """Say how far each task is, and mark that of the cursor."""
        cursor = self.heatmap.cursor
        marked = session.state.map.task
        if marked is None and cursor is not None:
            marked = session.state.map.answers[cursor.answer].task
        lines = live_lines.task_lines(session.state, session.task_numbers, marked, self._task_rows, self.size.width)
        self.set_text("tasks", "\n".join(lines))

    @property
    def _task_rows(self) -> int:
        return TALL_TASK_ROWS if self.size.height >= TALL else TASK_ROWS

    def task_at(self, line: int, column: int) -> str | None:
        """Return the task that stands at a place in the lines of the tasks; None where there is none."""
        session = self._session
        if session is None:
            return None
        return live_lines.task_at(session.state, session.task_numbers, self._task_rows, self.size.width, line, column)

    def draw_legend(self) -> None:
        """Say what cells show."""
        session = self._session
        legend = self.query_one(Legend)
        before = legend.words, legend.look
        legend.look = self.desk.look
        legend.words = (
            ("", "")
            if session is None
            else live_lines.legend_words(
                session.state, self.heatmap.following, session.reading or session.reads_signal, legend.room
            )
        )
        if before != (legend.words, legend.look):
            legend.refresh()

    def _draw_numbers(self) -> None:
        session = self._session
        if session is not None:
            self._drawn = session.measured
            self.set_text("metrics", "\n".join(live_lines.metric_lines(session, self.size.width)))

    def draw_sentence(self) -> None:
        """Say what is under the cursor."""
        session, cursor = self._session, self.heatmap.cursor
        if session is None or self.played:
            return
        if cursor is None:
            self._sentence = ""
            self.set_text("unit", live_lines.rule("", self.size.width))
            self._say_words(live_lines.instead_of_a_unit(session.state))
            return
        answer = session.state.map.answers[cursor.answer]
        if self.heatmap.following and session.state.phase == "failed" and session.state.log:
            title, words = "why the run ended", visible(session.state.log[-1], 400)
        elif len(session.state.map.cells(cursor.answer)):
            unit = session.describe_unit(cursor)
            title, words = heading(unit), sentence(unit, self.heatmap.surest_rank)
        else:
            title, words = live_lines.answer_heading(answer), live_lines.answer_sentence(answer, session.state.map.kind)
        self._sentence = f"{title}: {words}"
        self._refresh_keys(session)
        self.set_text("unit", live_lines.rule(title, self.size.width))
        self._say_words(words)

    def _say_words(self, words: str) -> None:
        self.set_text("sentence", broken(words, max(1, self.size.width - 2), 2))

    def draw_log(self) -> None:
        """Show what was said, where the log is open."""
        session, log = self._session, self.query_one("#log")
        if log.display:
            height = self.size.height
            rows = TALL_LOG_ROWS if height >= TALL else LOG_ROWS if height >= LOW else LOW_LOG_ROWS
            log.styles.height = rows + 1
            path = None if session is None else session.log_path
            log.border_title = Content("" if path is None else visible(str(path)))
            lines = [] if session is None else live_lines.log_lines(session, rows)
            self.set_text("log", "\n".join(f" {fit(line, self.size.width - 2)}" for line in lines))

    def cursor_moved(self) -> None:
        """Say what is under the cursor now."""
        self.draw_sentence()
        self.draw_legend()
        if self._session is not None:
            self.draw_tasks(self._session)

    def on_resize(self) -> None:
        """Cut the lines to the new width."""
        self.draw_all()
