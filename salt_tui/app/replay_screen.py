"""Replay: what if this atom had been right?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import LineOfInput, Question, TextToRead
from salt_tui.app.messages import OpenAnswer, ShowScreen
from salt_tui.app.open_runs import A_REPLAY
from salt_tui.app.replay_body import ReplayBody
from salt_tui.app.replay_state import ReplayState, delete_branch, load_experiment, load_replay, rename_branch
from salt_tui.app.worker_failures import failures_told
from salt_tui.commands.failures import describe_failure
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    ModelLoading,
    Notice,
    PromptEvaluated,
    RunEnded,
    RunStarted,
    TextWritten,
    TokenArrived,
)
from salt_tui.runner.jobs import Emit
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.studies.interventions import INTERVENTIONS
from salt_tui.runner.studies.manual import MANUAL, why_no_branch_name
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.records import Work

TICKS_PER_SECOND = 10


class ReplayScreen(ReplayBody):
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
        Binding("up,k", "show(-1)", "Branch above", id="replay.branch_above"),
        Binding("down,j", "show(1)", "Branch", tooltip="Show the branch below in the list", id="replay.branch_below"),
        Binding("b", "edit_shown", "Edit it", tooltip="Edit the shown branch, or the answer", id="replay.edit_shown"),
        Binding("o", "open", "Open", tooltip="Open the shown branch token by token", id="replay.open"),
        Binding("n", "rename", "Name", tooltip="Rename the shown branch", id="replay.rename"),
        Binding("d", "delete", "Delete", tooltip="Delete the shown branch", id="replay.delete"),
        Binding(
            "x", "experiment", "Experiment", tooltip="Replay many answers, changed at random", id="replay.experiment"
        ),
        Binding("X", "stop", "Stop", tooltip="Stop the replay", id="replay.stop"),
        Binding("escape", "back", "Back", id="replay.back"),
    ]
    FOOTER = (
        "replay.back", "replay.compute", "replay.stop", "replay.next_atom", "replay.fix", "replay.corrupt",
        "replay.write", "replay.undo", "replay.branch_below", "replay.edit_shown", "replay.open", "replay.experiment",
        "replay.fix_before", "replay.corrupt_before", "replay.rename", "replay.delete",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start without an answer."""
        super().__init__(desk)
        self._random = Random()

    def on_mount(self) -> None:
        """Begin to look at what computes."""
        self.set_interval(1 / TICKS_PER_SECOND, self._tick)

    # --- which answer -------------------------------------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Read the answer, or the branch, that was asked for."""
        super().on_screen_resume()
        runs = self.desk.runs
        self.desk.keeper.stay()
        if runs.answer is not None and runs.shown is not None:
            generation, atom = runs.answer
            runs.answer = None
            state = self.state
            if state is None or generation not in (state.generation, state.base):
                self.read(generation, atom, runs.shown.run or 0)
            else:
                state.cursor = min(atom, max(0, len(state.atoms) - 1))
                self.draw_all()

    def on_screen_suspend(self) -> None:
        """Keep the model for a while: people look at another screen and come back."""
        self.desk.keeper.leave()

    @work(thread=True, exclusive=True, group="replay", exit_on_error=False)
    def read(self, generation: int, atom: int | None, run: int) -> None:
        """Read an answer beside the screen; without an atom the edits stay, and the branches are those of now."""
        with failures_told(self.app, self.say_error):
            state = load_replay(self.desk.database, generation, run)
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, state, atom)

    def _take(self, state: ReplayState, atom: int | None) -> None:
        if atom is None and self.state is not None and self.state.generation == state.generation:
            self.state.take(state)
        elif atom is not None:
            self.state = state
            state.move(atom)
        self.draw_all()

    def _read_again(self) -> None:
        if self.state is not None:
            self.read(self.state.generation, None, self.state.run)

    # --- edits --------------------------------------------------------------------------------------------------

    def _edited(self, refusal: str | None) -> None:
        if refusal is not None:
            self.say(refusal)
        self.draw_all()

    def action_move(self, step: int) -> None:
        """Go to another atom."""
        if self.state is not None:
            self.state.move(step)
            self.draw_all()

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

    # --- branches -----------------------------------------------------------------------------------------------

    def action_show(self, step: int) -> None:
        """Show another branch."""
        if self.state is not None:
            self.state.show_beside(step)
            self.draw_all()

    def action_edit_shown(self) -> None:
        """Edit the branch that is shown from now on."""
        if self.state is not None:
            self._edited(self.state.edit_shown())

    def action_open(self) -> None:
        """Open the branch that is shown, or the answer, token by token."""
        state = self.state
        if state is not None:
            self.post_message(OpenAnswer(state.shown or state.generation, state.cursor, "replay"))

    def action_rename(self) -> None:
        """Ask for another name of the branch that is shown."""
        branch = None if self.state is None else self.state.branch(self.state.shown)
        if branch is None:
            return

        def named(name: str | None) -> None:
            if name is None or name.strip() == branch.name:
                return
            if why := why_no_branch_name(name.strip()):
                self.say(why)
            else:
                self.change_branch(partial(rename_branch, name=name.strip()), branch.generation)

        hint = "what to call it; another name than all other branches of the run"
        self.app.push_screen(LineOfInput(f"Branch {branch.name}", branch.name, hint), named)

    def action_delete(self) -> None:
        """Ask, and delete the branch that is shown."""
        state = self.state
        branch = None if state is None else state.branch(state.shown)
        if state is None or branch is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.change_branch(delete_branch, branch.generation)

        below = state.below(branch.generation)
        with_it = {0: "", 1: " and the branch that was edited from it"}.get(
            below, f" and the {below} branches that were edited from it"
        )
        self.app.push_screen(
            Question(f"Delete branch {branch.name}{with_it}?", "Tokens and units go with it. The answer stays."),
            answered,
        )

    @work(thread=True, group="branch", exit_on_error=False)
    def change_branch(self, change: Callable[[Path, Work, int], None], generation: int) -> None:
        """Change a branch in the file beside the screen, and read the branches again."""
        state = self.state
        if state is None or state.study is None:
            return
        with failures_told(self.app, self.say_error):
            change(self.desk.database, state.study, generation)
            self.app.call_from_thread(self._read_again)

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
        self.draw_all()

    def _answered(self, stop: bool | None) -> None:
        session = self.desk.runs.computed
        if stop and session is not None:
            session.stop()
        self._waiting = True
        self.draw_all()

    def _begin(self) -> None:
        state = self.state
        if state is None:
            return
        self._waiting, self._experiment = False, None
        request, keeper = StudyRequest(MANUAL.name, str(state.run), state.options()), self.desk.keeper
        self._start(lambda emit: prepare_study(request, self.desk.database, emit, keeper=keeper), keeper)

    def _start(self, prepare: Callable[[Emit], ReadyWork], keeper: EngineKeeper | None) -> None:
        self._words, self._written = "begins", b""
        self._computing = BackgroundRun(prepare, lambda error: describe_failure(error)[0], keeper)
        self.desk.runs.beside[A_REPLAY] = self._computing
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
                self._start(self._planned(state.run), None)
            else:
                self.read_experiment(state.run)

        self.app.push_screen(
            Question(
                f"Replay up to 20 answers of each task of run {state.run}, changed at random?",
                "It takes minutes and can be stopped and resumed. No: show what the newest experiment found.",
            ),
            answered,
        )

    def _planned(self, run: int) -> Callable[[Emit], ReadyWork]:
        request, desk = StudyRequest(INTERVENTIONS.name, str(run), {}), self.desk

        def prepare(emit: Emit) -> ReadyWork:
            desk.keeper.make_room()
            return prepare_study(request, desk.database, emit)

        return prepare

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
                case TextWritten(text=text):
                    self._written += text
                case TokenArrived(position=position):
                    self._words = f"token {position + 1}"
                case AnswerRetried():
                    self._written = b""
                case RunEnded(state="failed", message=message):
                    self.say_error(message or "the replay failed")
                case RunEnded(state="interrupted") if self.desk.computing:
                    self.say("the replay was stopped because a run began")
                case _:
                    pass
        if not computing.alive and not computing.mailbox:
            self._computing = None
            if self._experiment is not None and self.state is not None:
                self._experiment = None
                self.read_experiment(self.state.run)
            else:
                self._read_again()
        self.draw_all()

    def on_unmount(self) -> None:
        """Let nothing compute that nobody sees."""
        self.action_stop()
        self.desk.keeper.release()

    def action_back(self) -> None:
        """Go back to the answer."""
        if self.state is not None:
            self.desk.runs.answer = self.state.generation, self.state.cursor
        self.post_message(ShowScreen("answer"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what can do nothing now."""
        if action == "stop":
            return self._computing is not None
        if action in {"compute", "experiment"} and self._computing is not None:
            return None
        if action == "undo":
            return True if self.state is not None and self.state.undoable else None
        if action in {"rename", "delete"}:
            return None if self.state is None or self.state.shown is None else True
        if action in {"show", "edit_shown"}:
            return None if self.state is None or not self.state.branches else True
        needs = {
            "move", "compute", "fix", "corrupt", "write", "fix_before", "corrupt_before", "experiment", "open",
        }  # fmt: skip
        return None if action in needs and (self.state is None or not self.state.atoms) else True
