"""Replay: what if this atom had been right?"""

from __future__ import annotations

from random import Random
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static
from textual.worker import get_current_worker

from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import LineOfInput, Question, TextToRead
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.live_lines import progress_bar
from salt_tui.app.messages import ShowScreen
from salt_tui.app.replay_state import ReplayState, load_experiment, load_replay
from salt_tui.app.worker_failures import failures_told
from salt_tui.palette import draw_cell
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import (
    AnswerFinished,
    ModelLoading,
    Notice,
    PromptEvaluated,
    RunEnded,
    RunStarted,
    TokenArrived,
)
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.records import UnitRecord
from salt_tui.visible_text import visible

TICKS_PER_SECOND = 10
NO_ANSWER = "No answer is open.  i in an answer opens it here."


class ReplayScreen(FramedScreen):
    """Edits atoms of the answer that was open and lets the model go on from there."""

    NAME = "replay"
    TAB = "live"
    HELP = "Change atoms of an answer, right or wrong, and see what the model writes then."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h,comma", "move(-1)", "Previous atom", id="replay.previous_atom"),
        Binding("right,l,full_stop", "move(1)", "Atom", tooltip="Next atom", id="replay.next_atom"),
        Binding("enter", "compute", "Replay", tooltip="Let the model go on behind the edits", id="replay.compute"),
        Binding("e", "fix", "Right", tooltip="Make the atom right", id="replay.fix"),
        Binding("c", "corrupt", "Wrong", tooltip="Make the atom wrong, another one each time", id="replay.corrupt"),
        Binding("t", "write", "Type", tooltip="Type the atom", id="replay.write"),
        Binding("F", "fix_before", "Fix before", tooltip="Make all before the atom right", id="replay.fix_before"),
        Binding("C", "corrupt_before", "Corrupt some", tooltip="Make some before it wrong", id="replay.corrupt_before"),
        Binding("backspace", "undo", "Undo", id="replay.undo"),
        Binding(
            "x", "experiment", "Experiment", tooltip="Replay many answers, changed at random", id="replay.experiment"
        ),
        Binding("X", "stop", "Stop", tooltip="Stop the replay", id="replay.stop"),
        Binding("escape", "back", "Back", id="replay.back"),
    ]
    FOOTER = (
        "replay.back", "replay.compute", "replay.stop", "replay.next_atom", "replay.fix", "replay.corrupt",
        "replay.write", "replay.fix_before", "replay.corrupt_before", "replay.undo", "replay.experiment",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without an answer."""
        super().__init__(desk)
        desk.load()
        self.state: ReplayState | None = None
        self._random = Random()
        self._computing: BackgroundRun | None = None
        self._waiting = False
        self._words = ""
        self._experiment: tuple[int, int] | None = None

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(f" {NO_ANSWER}", id="replay-title", markup=False)
        with VerticalScroll(id="replay-texts", can_focus=False):
            yield Static(id="replay-original", markup=False)
            yield Static(id="replay-replayed", markup=False)
        yield Static(id="replay-summary", markup=False)
        yield Static(id="replay-progress", markup=False)

    def on_mount(self) -> None:
        """Begin to look at what computes."""
        self.set_interval(1 / TICKS_PER_SECOND, self._tick)

    # --- which answer -------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Read the answer that was asked for."""
        super().on_screen_resume()
        runs = self.desk.runs
        if runs.answer is not None and runs.shown is not None:
            generation, atom = runs.answer
            runs.answer = None
            if self.state is None or self.state.generation != generation:
                self.read(generation, atom, runs.shown.run or 0)
            else:
                self.state.cursor = min(atom, max(0, len(self.state.atoms) - 1))
                self._draw()

    @work(thread=True, exclusive=True, group="replay", exit_on_error=False)
    def read(self, generation: int, atom: int, run: int) -> None:
        """Read an answer beside the screen; edits that were made stay where it is the same one."""
        with failures_told(self.app, self.say_error):
            state = load_replay(self.desk.database, generation, run)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, state, atom)

    def _take(self, state: ReplayState, atom: int) -> None:
        if self.state is not None and self.state.generation == state.generation:
            self.state.branches = state.branches
        else:
            self.state = state
            state.move(atom)
        self._draw()

    def look_changed(self) -> None:
        """Draw with another look."""
        self._draw()

    # --- drawing ------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        state = self.state
        if state is None or not self.is_mounted:
            return
        self.query_one("#replay-title", Static).update(f" {state.title()}")
        self.query_one("#replay-original", Static).update(self._original(state))
        replayed = Text("")
        if state.branches:
            newest = state.branches[-1]
            replayed = Text(f"{newest.name}\n")
            for unit in newest.atoms:
                replayed.append_text(self._atom(unit, edited=unit.index in newest.edits, cursor=False))
        self.query_one("#replay-replayed", Static).update(replayed)
        self.query_one("#replay-summary", Static).update("\n".join(f" {line}" for line in state.summary()))
        self.query_one("#replay-progress", Static).update(f" {self._progress()}")
        self.refresh_bindings()

    def _original(self, state: ReplayState) -> Text:
        text = Text("original, edits in brackets\n")
        for unit in state.atoms:
            edit = state.edits.get(unit.index)
            if edit is None:
                text.append_text(self._atom(unit, edited=False, cursor=unit.index == state.cursor))
            else:
                text.append(f"[{visible(edit)}]", "bold reverse" if unit.index == state.cursor else "bold")
                text.append(" ")
        return text

    def _atom(self, unit: UnitRecord, *, edited: bool, cursor: bool) -> Text:
        look = self.desk.look
        glyph, style = draw_cell(look, unit.status, look.steps - 1)
        words = visible(unit.text or "") + ("" if unit.status == "correct" else glyph)
        text = Text(f"[{words}]" if edited else words, "reverse" if cursor else style)
        text.append(" ", "")
        return text

    def _progress(self) -> str:
        if self._computing is not None and self._experiment is not None:
            done, total = self._experiment
            words = f"{done}/{total} replays" if total else self._words
            return f"planned experiment {progress_bar(done / total if total else 0.0, 20)} {words}"
        if self._computing is not None:
            return self._words or "begins"
        if self._waiting:
            return "waits for the run that computes; enter again stops waiting"
        state = self.state
        if state is None or not state.edits:
            return ""
        count = "1 edit" if len(state.edits) == 1 else f"{len(state.edits)} edits"
        return f"enter: {count}, the model writes from atom {state.target + 1} on"

    # --- edits --------------------------------------------------------------------------------------------------

    def _edited(self, refusal: str | None) -> None:
        if refusal is not None:
            self.say(refusal)
        self._draw()

    def action_move(self, step: int) -> None:
        """Go to another atom."""
        if self.state is not None:
            self.state.move(step)
            self._draw()

    def action_fix(self) -> None:
        """Make the atom right."""
        if self.state is not None:
            self._edited(self.state.fix())

    def action_corrupt(self) -> None:
        """Make the atom wrong."""
        if self.state is not None:
            self._edited(self.state.corrupt(self._random))

    def action_write(self) -> None:
        """Ask for the atom's text."""
        state = self.state
        if state is None or not state.atoms:
            return

        def written(text: str | None) -> None:
            if text is not None:
                self._edited(state.write(text))

        said = state.edits.get(state.cursor) or state.atoms[state.cursor].text or ""
        self.app.push_screen(LineOfInput(f"Atom {state.cursor + 1}", said, "the text to stand there"), written)

    def action_fix_before(self) -> None:
        """Make all wrong atoms before this one right."""
        if self.state is not None:
            self._edited(self.state.fix_before())

    def action_corrupt_before(self) -> None:
        """Ask how many right atoms before this one to make wrong."""
        state = self.state
        if state is None:
            return

        def chosen(text: str | None) -> None:
            if text is not None:
                count = int(text) if text.strip().isdecimal() else 0
                self._edited(state.corrupt_before(count, self._random))

        self.app.push_screen(LineOfInput("Make atoms wrong", "1", "how many before the cursor"), chosen)

    def action_undo(self) -> None:
        """Take the last change back."""
        if self.state is not None:
            self._edited(self.state.undo())

    # --- computing ----------------------------------------------------------------------------------------------

    def action_compute(self) -> None:
        """Let the model go on; ask what to do where a run computes."""
        state = self.state
        if state is None or self._computing is not None:
            return
        if self._waiting:
            self._waiting = False
        elif not state.edits:
            self.say("nothing is changed yet: e makes the atom right, c wrong, t types it")
        elif self.desk.computing:
            self.app.push_screen(
                Question(
                    "A run computes here. Stop it?", "It can be resumed bit for bit. No: the replay waits for it."
                ),
                self._answered,
            )
        else:
            self._begin()
        self._draw()

    def _answered(self, stop: bool | None) -> None:
        session = self.desk.runs.computed
        if stop and session is not None:
            session.stop()
        self._waiting = True
        self._draw()

    def _begin(self) -> None:
        state = self.state
        if state is None:
            return
        self._waiting, self._experiment = False, None
        self._start(StudyRequest("manual", str(state.run), state.options()))

    def _start(self, request: StudyRequest) -> None:
        self._words = "begins"
        self._computing = BackgroundRun(lambda emit: prepare_study(request, self.desk.database, emit), str)
        self._computing.start()

    def action_experiment(self) -> None:
        """Replay many answers of the run, or show what an experiment found."""
        state = self.state
        if state is None or self._computing is not None:
            return
        if self.desk.computing:
            self.say("a run computes here: the experiment can begin when it has ended")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._experiment = 0, 0
                self._start(StudyRequest("interventions", str(state.run), {}))
            else:
                self.read_experiment(state.run)

        self.app.push_screen(
            Question(
                f"Replay up to 20 answers of each task of run {state.run}, changed at random?",
                "It takes minutes and can be stopped and resumed. No: show what the newest experiment found.",
            ),
            answered,
        )

    @work(thread=True, exclusive=True, group="experiment", exit_on_error=False)
    def read_experiment(self, run: int) -> None:
        """Measure the newest experiment of the run beside the screen, and show it."""
        with failures_told(self.app, self.say_error):
            text = load_experiment(self.desk.database, run, self.size.width - 8)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self.app.push_screen, TextToRead(f"Experiment on run {run}", text))

    def action_stop(self) -> None:
        """Stop the replay."""
        if self._computing is not None:
            self._computing.stop()

    def _tick(self) -> None:
        if self._waiting and not self.desk.computing:
            self._begin()
        computing = self._computing
        if computing is None:
            return
        while computing.mailbox:
            match computing.mailbox.popleft():
                case RunStarted(tasks=tasks) if self._experiment is not None:
                    self._experiment = sum(task.done for task in tasks), sum(task.total for task in tasks)
                case AnswerFinished() if self._experiment is not None:
                    self._experiment = self._experiment[0] + 1, self._experiment[1]
                case Notice(text=text):
                    self.say(text)
                case ModelLoading(fraction=fraction):
                    self._words = f"the model loads {fraction:.0%}"
                case PromptEvaluated(done=done, total=total):
                    self._words = f"the prompt is evaluated {done}/{total}"
                case TokenArrived(position=position):
                    self._words = f"token {position + 1}"
                case RunEnded(state="failed", message=message):
                    self.say_error(message or "the replay failed")
                case _:
                    pass
        if not computing.alive and not computing.mailbox:
            self._computing = None
            if self._experiment is not None and self.state is not None:
                self._experiment = None
                self.read_experiment(self.state.run)
            elif self.state is not None:
                self.read(self.state.generation, self.state.cursor, self.state.run)
        self._draw()

    def on_unmount(self) -> None:
        """Let nothing compute that nobody sees."""
        self.action_stop()

    def action_back(self) -> None:
        """Go back to the answer."""
        if self.state is not None:
            self.desk.runs.answer = self.state.generation, self.state.cursor
        self.post_message(ShowScreen("answer"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what can do nothing now."""
        if action == "stop":
            return self._computing is not None
        if action == "undo":
            return self.state is not None
        needs = {"move", "compute", "fix", "corrupt", "write", "fix_before", "corrupt_before", "experiment"}
        return None if action in needs and (self.state is None or not self.state.atoms) else True
