"""Compare: what changed between these two runs?"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import Worker, get_current_worker

from salt_tui.app import compare_lines
from salt_tui.app.compare_export import CompareExport
from salt_tui.app.compare_state import CompareState, read_both
from salt_tui.app.compare_view import CompareView
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import LineOfInput
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.live_parts import TaskLines
from salt_tui.app.messages import OpenAnswer, ShowScreen
from salt_tui.app.runs_state import is_same_file, named_run
from salt_tui.app.text_rows import broken, broken_lines
from salt_tui.app.worker_failures import failures_told
from salt_tui.measure.two_runs import RunName, RunPair
from salt_tui.store.errors import StoreError
from scoring.paired_runs import PairedMetric

NO_RUNS = """ No two runs are chosen.
 In the list of runs (3) space marks a run and c compares two that are marked; here a and b choose one each."""
BESIDE_TABLE = 14
"""Rows of the screen for everything but the table, six of answers among them."""


class CompareScreen(FramedScreen):
    """Two runs: a table of differences over the answers that both gave."""

    NAME = "compare"
    WIDGETS = (CompareView,)
    AUTO_FOCUS = "#pairs"
    GROWING = frozenset({"compare-head", "compare-table"})
    HELP = "Two runs on the problems that both answered: what differs, how sure that is, and which atoms flipped."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric(1)", "Metric", tooltip="Next metric", id="compare.metric"),
        Binding("M", "metric(-1)", "Previous metric", id="compare.metric_back"),
        Binding("f", "function", "Signal", tooltip="Another confidence function that both know", id="compare.function"),
        Binding("S", "swap", "Swap", tooltip="Swap A and B", id="compare.swap"),
        Binding("a", "choose(0)", "Choose A", tooltip="Choose run A: a number or FILE.db:N", id="compare.choose_a"),
        Binding("b", "choose(1)", "Choose B", tooltip="Choose run B: a number or FILE.db:N", id="compare.choose_b"),
        Binding("e", "export", "Export", id="compare.export"),
        Binding("r", "read_again", "Read again", tooltip="Read both runs again", id="compare.read_again"),
        Binding("X", "stop", "Stop", tooltip="Stop comparing", id="compare.stop"),
        Binding("escape", "back", "Back", tooltip="Back to the list of runs", id="compare.back"),
    ]
    FOOTER = (
        "compare.stop", "pairs.next_flip", "pairs.open", "pairs.task", "compare.metric", "compare.swap",
        "compare.choose_a", "compare.choose_b", "compare.export", "compare.function", "compare.read_again",
        "pairs.previous_answer", "compare.back",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without runs."""
        super().__init__(desk)
        desk.load()
        self._state: CompareState | None = None
        self._chosen: list[RunName | None] = [None, None]
        self._worker: Worker[None] | None = None
        self._tasks: list[str | None] = []

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(NO_RUNS, id="compare-head", markup=False)
        yield TaskLines(id="compare-table", markup=False)
        yield Static(id="compare-flips", markup=False)
        yield CompareView(self.desk.look, id="pairs")
        yield Static(id="compare-sentence", markup=False)

    @property
    def view(self) -> CompareView:
        """The answers."""
        return self.query_one(CompareView)

    # --- which runs ---------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Compare the runs that were asked for."""
        super().on_screen_resume()
        asked = self.desk.runs.compared
        if asked is not None:
            self.desk.runs.compared = None
            self._begin(asked)

    def _begin(self, names: tuple[RunName, RunName]) -> None:
        metric = {} if self._state is None else {"metric": self._state.metric}
        if self._state is not None:
            self._state.close()
        self._chosen = list(names)
        self._state = CompareState(names, **metric)
        self.view.show(None, self.desk.look)
        self._draw()
        self._worker = self.read(self._state)

    @work(thread=True, exclusive=True, group="compare", exit_on_error=False)
    def read(self, state: CompareState) -> None:
        """Read both runs and measure metric by metric, beside the screen."""
        worker = get_current_worker()
        with failures_told(self.app, self._take_failure):
            pair = read_both(state.names)
            if worker.is_cancelled:
                return
            self.app.call_from_thread(self._take_pair, state, pair)
            self._measure(state, pair)

    # Without a description Textual prints the arguments for one: four seconds for two runs of 100,000 atoms.
    @work(thread=True, exclusive=True, group="compare", exit_on_error=False, description="metrics")
    def measure(self, state: CompareState, pair: RunPair) -> None:
        """Measure metric by metric, beside the screen."""
        with failures_told(self.app, self._take_failure):
            self._measure(state, pair)

    def _measure(self, state: CompareState, pair: RunPair) -> None:
        worker, function = get_current_worker(), state.function
        if pair.too_few is not None:
            return
        for metric in pair.measured(function):
            if worker.is_cancelled:
                return
            self.app.call_from_thread(self._take_metric, state, function, metric)

    def _take_pair(self, state: CompareState, pair: RunPair) -> None:
        if state is self._state:
            state.take_pair(pair)
            self.view.show(state, self.desk.look)
            self._draw()

    def _take_metric(self, state: CompareState, function: str, metric: PairedMetric) -> None:
        state.take_metric(function, metric)
        if state is self._state:
            self._draw()

    def _take_failure(self, line: str) -> None:
        if self._state is not None:
            self._state.problem = line
            self._draw()

    def on_worker_state_changed(self) -> None:
        """Let the last row show what can be done now."""
        self.refresh_bindings()

    # --- drawing ------------------------------------------------------------------------------------------------

    def look_changed(self) -> None:
        """Draw the cells with another look."""
        self.view.show(self._state, self.desk.look)

    def on_resize(self) -> None:
        """Cut the lines to the new width."""
        self._draw()

    def _draw(self) -> None:
        state = self._state
        if not self.is_mounted:
            return
        width = self.size.width
        if state is None:
            self.set_text("compare-head", broken_lines(NO_RUNS, max(1, width - 1)))
            return
        head = compare_lines.head_lines(state, self.desk.database, width)
        self.set_text("compare-head", "\n".join(head))
        table: list[tuple[str, str | None]] = []
        if state.pair is not None or state.problem is not None:
            table = compare_lines.table_lines(state, max(3, self.size.height - BESIDE_TABLE), width)
        self._tasks = [task for _, task in table]
        words = Text("\n".join(line for line, _ in table))
        if table and state.problem is None:
            words.stylize("bold", 0, len(table[0][0]))
        self.set_text("compare-table", words)
        self.set_text("compare-flips", compare_lines.flips_line(state, width))
        self._draw_sentence()

    def _draw_sentence(self) -> None:
        state = self._state
        if state is None:
            return
        try:
            words = compare_lines.sentence(state)
        except StoreError as error:
            words = str(error)
        self.set_text("compare-sentence", broken(words, self.text_width, 2))
        self.refresh_bindings()

    def on_compare_view_moved(self) -> None:
        """Say what is under the cursor, and mark its task."""
        self._draw()

    def on_compare_view_no_flip(self, message: CompareView.NoFlip) -> None:
        """Say that there is no further flip."""
        if not message.flips:
            self.say("no atom became right or wrong")
        else:
            self.say("that was the last flip" if message.step > 0 else "that was the first flip")

    def on_task_lines_chosen(self, message: TaskLines.Chosen) -> None:
        """Go to the task whose line was clicked."""
        task = self._tasks[message.line] if message.line < len(self._tasks) else None
        if task is not None and self._state is not None:
            self._state.go_to_task(task)
            self.view.show_cursor()

    # --- actions ------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what can do nothing now."""
        state = self._state
        if action == "stop":
            return self._is_waiting
        if action == "function":
            return state is not None and len(state.functions) > 1
        if action == "export":
            return True if state is not None and state.compared is not None else None
        if action in {"metric", "swap", "read_again"}:
            return True if state is not None else None
        return True

    @property
    def _is_waiting(self) -> bool:
        return self._worker is not None and not self._worker.is_finished and not self._worker.is_cancelled

    def action_metric(self, step: int) -> None:
        """Show the next metric."""
        if self._state is not None:
            self._state.next_metric(step)
            self._draw()

    def action_function(self) -> None:
        """Compare by another confidence function."""
        state = self._state
        if state is not None and state.pair is not None and state.next_function():
            self.view.show(state, self.desk.look)
            self._draw()
            if state.compared is None:
                self._worker = self.measure(state, state.pair)

    def action_swap(self) -> None:
        """Let A be B and B be A."""
        if self._state is not None:
            first, second = self._state.names
            self._begin((second, first))

    def action_read_again(self) -> None:
        """Read both runs again; one that goes on holds more answers."""
        if self._state is not None:
            self._begin(self._state.names)

    def action_choose(self, side: int) -> None:
        """Ask for one of the runs."""

        def answered(text: str | None) -> None:
            if text is not None:
                self.find_run(side, text)

        known = self._chosen[side]
        letter = "AB"[side]
        hint = "a number, latest, or FILE.db:N for a run of another file"
        self.app.push_screen(LineOfInput(f"Run {letter}", "" if known is None else self._shown(known), hint), answered)

    def _shown(self, name: RunName) -> str:
        return name.run if is_same_file(name.database, self.desk.database) else str(name)

    @work(thread=True, exclusive=True, group="find", exit_on_error=False)
    def find_run(self, side: int, text: str) -> None:
        """Find a run that was typed, beside the screen."""
        with failures_told(self.app, self.say_error):
            name = named_run(text, self.desk.database)
            self.app.call_from_thread(self._choose, side, name)

    def _choose(self, side: int, name: RunName) -> None:
        self._chosen[side] = name
        first, second = self._chosen
        if first is not None and second is not None:
            self._begin((first, second))
        else:
            letter = "BA"[side]
            self.say(f"now choose run {letter}: {letter.lower()}")

    def action_export(self) -> None:
        """Ask for a file, and write the comparison or its figure to it."""
        state = self._state
        compared = None if state is None else state.compared
        if state is None or compared is None:
            return

        def exported(line: str | None) -> None:
            if line:
                self.say(line)

        self.app.push_screen(CompareExport(compared, state.names, self.desk.database), exported)

    def action_stop(self) -> None:
        """Stop reading or measuring; what is there stays."""
        if self._worker is not None and self._is_waiting:
            self._worker.cancel()
            if self._state is not None and self._state.pair is None:
                self._state.problem = "reading was stopped; r reads again"
            self._draw()
            self.say("stopped; r compares again")

    def on_compare_view_opened(self) -> None:
        """Open the answer under the cursor."""
        state = self._state
        if state is None or state.spot is None:
            return
        answer, run = state.answer_at(state.spot), state.run_of(state.spot.side)
        if answer is None or run is None:
            return
        name = state.names[state.spot.side]
        other: Path | None = None if is_same_file(name.database, self.desk.database) else name.database
        self.post_message(OpenAnswer(answer.generation, state.spot.atom, self.NAME, run=run.stored.run, database=other))

    def action_back(self) -> None:
        """Go back to the list of runs."""
        self.post_message(ShowScreen("runs"))

    def on_unmount(self) -> None:
        """Give the files back."""
        if self._state is not None:
            self._state.close()
