"""The runs that are open: the one that is shown and the one that is computed here, from beginning to end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from salt_tui.app.run_session import RunSession
from salt_tui.measure.two_runs import RunName
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.request import RunRequest
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work

A_STUDY, A_REPLAY = "a study", "a replay"


class BusyError(Exception):
    """Something else is computed here already."""

    def __init__(self, what: str, way: str) -> None:
        super().__init__(f"{what} computes already: stop it first ({way})")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the run is that is computed here.

    Attributes:
        run: its number, None before it has one.
        share: of its answers that are done, 0..1; None before it has begun.
        seconds: estimate of what is left; None where there is none.
        state: ``loading``, ``running``, ``paused`` or ``stopping``; ``elsewhere`` where another program computes it.
    """

    run: int | None
    share: float | None
    seconds: float | None
    state: str


class OpenRuns:
    """Begins, resumes, shows and closes runs.

    Attributes:
        shown: the run on the screen, None while there is none.
        computed: the run that was computed here last, or is; None while there was none.
        answer: number of the answer to look at next, and one of its atoms; None once a screen has taken it.
        answer_from: name of the screen that an answer was opened from.
        compared: the two runs to compare next; None once the screen has taken them.
        studied: number of the run whose studies are to be shown; None while none was asked for.
        beside: what is computed besides runs, by what it is: ``a study`` or ``a replay``; ended ones stay.
        interrupted: names of the runs and studies that were stopped because the app ends, with what they are.

    Args:
        database: the file of runs.
        keeper: of an engine whose memory a run needs.
    """

    def __init__(self, database: Path, keeper: EngineKeeper) -> None:
        self.database = database
        self._keeper = keeper
        self.shown: RunSession | None = None
        self.computed: RunSession | None = None
        self.answer: tuple[int, int] | None = None
        self.answer_from = "live"
        self.compared: tuple[RunName, RunName] | None = None
        self.studied: int | None = None
        self.beside: dict[str, BackgroundRun] = {}
        self.interrupted: list[Work] = []
        self._paused_for_suspension = False
        self._run_stopped = False
        self._stopped: list[BackgroundRun] = []

    @property
    def is_computing(self) -> bool:
        """Whether a thread or a child is still at work."""
        return self.computed is not None and self.computed.computing

    @property
    def working(self) -> str:
        """What is at work: ``a run``, ``a study`` or ``a replay``; empty where nothing is."""
        if self.is_computing:
            return "a run"
        return next((what for what, work in self.beside.items() if work.alive), "")

    def begin(self, request: RunRequest) -> None:
        """Begin a run and show it; raises `BusyError`."""
        self._refuse_while_computing()
        self.show(RunSession.begin(request, self.database, self._keeper.make_room), computed=True)

    def resume(self, run: int, *, allow_environment_change: bool = False) -> str | None:
        """Go on with a stored run and show it; a finished one is only shown, and the line returned says so.

        Raises:
            BusyError: another run is computed here.
            StoreError: there is no such run, or it cannot be read.
        """
        self._refuse_while_computing()
        with open_queries(self.database) as queries:
            stored = queries.run_record(run)
        if stored.state == "finished":
            self.open(run)
            return f"run {run} is finished: nothing is left to do"
        session = RunSession.resume(
            stored, self.database, self._keeper.make_room, allow_environment_change=allow_environment_change
        )
        self.show(session, computed=True)
        return None

    def open(self, run: int, database: Path | None = None) -> None:
        """Show a stored run, or the one that is computed here; of another file where one is given."""
        if database is not None:
            self.show(RunSession.stored(run, database, foreign=True), computed=False)
        elif not self.show_computed(run):
            self.show(RunSession.stored(run, self.database), computed=False)

    def show_computed(self, run: int | None = None) -> bool:
        """Show the run that is computed here; return whether there is one, with that number where one is given."""
        computed = self.computed
        if computed is None or not computed.computing or run not in {None, computed.run}:
            return False
        self.show(computed, computed=True)
        return True

    def show(self, session: RunSession, *, computed: bool) -> None:
        """Show a run from now on, and close those that are neither shown nor at work."""
        before = {self.shown, self.computed} - {session}
        if session is not self.shown:
            self.answer = None
        self.shown = session
        if computed:
            self.computed = session
        for left in before:
            if left is not None and not left.computing:
                left.close()

    def forget(self, run: int) -> None:
        """Stop showing a run that was deleted."""
        if self.shown is not None and self.shown.run == run and not self.shown.foreign:
            self.shown.close()
            self.shown = None

    def progress(self) -> Progress | None:
        """Return how far the run is that is computed here; None without one."""
        session = self.computed
        if session is None or not session.computing:
            return None
        view = session.state.view
        done = sum(task.done for task in view.tasks.values())
        total = sum(task.total for task in view.tasks.values())
        return Progress(session.run, done / total if total else None, view.remaining_seconds(), session.state.phase)

    def followed(self) -> Progress | None:
        """Return how far the run on the screen is that another program computes; None where none does."""
        session = self.shown
        if session is None or session.state.phase != "elsewhere":
            return None
        tasks = session.state.view.tasks.values()
        total = sum(task.total for task in tasks)
        return Progress(session.run, sum(task.done for task in tasks) / total if total else None, None, "elsewhere")

    # --- the end of the process and its suspension ---------------------------------------------------------------

    def suspend(self) -> None:
        """Stop the child of a running computation: the terminal's stop signal does not reach it."""
        session = self.computed
        if session is not None and session.computing and session.state.phase == "running":
            self._paused_for_suspension = session.toggle_pause()

    def wake(self) -> None:
        """Let a computation go on that `suspend` stopped."""
        paused, self._paused_for_suspension = self._paused_for_suspension, False
        if paused and self.computed is not None and self.computed.state.phase == "paused":
            self.computed.toggle_pause()

    def stop(self) -> None:
        """Ask all that computes to stop; it stays resumable."""
        self._stopped = [work for work in self.beside.values() if work.alive]
        for work in self._stopped:
            work.stop()
        self._run_stopped = self.is_computing
        if self.computed is not None and self.computed.computing:
            self.computed.stop()

    def note_interrupted(self) -> None:
        """Take note of what was stopped before it had come to its end."""
        if self.computed is not None and self._run_stopped:
            self.computed.pull()
            if self.computed.state.phase != "finished" and self.computed.run is not None:
                self.interrupted.append(Work(self.computed.run))
        for work in self._stopped:
            if work.work is not None and work.state != "finished":
                self.interrupted.append(work.work)

    def close(self) -> None:
        """Stop reading and give the file back."""
        for session in {self.shown, self.computed}:
            if session is not None:
                session.close()

    def _refuse_while_computing(self) -> None:
        if self.is_computing:
            raise BusyError("a run", "2, then X")
        study = self.beside.get(A_STUDY)
        if study is not None and study.alive:
            raise BusyError(A_STUDY, "X in Studies, which S in the list of runs opens")
