"""A run on the screen: its state, where its events come from, and what can be done to it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from salt_tui.app.atom_sentence import DescribedUnit
from salt_tui.app.followed_run import FollowedRun
from salt_tui.app.live_columns import live_columns
from salt_tui.app.live_state import Changes, LiveState
from salt_tui.app.map_rows import Place
from salt_tui.app.maze_drawing import TASK as MAZE
from salt_tui.app.said import Said, read_said
from salt_tui.app.signal_reader import SignalNames, SignalReader, SignalValues
from salt_tui.commands.failures import describe_failure
from salt_tui.engine.model_registry import usable_registry
from salt_tui.engine.process import read_log_tail
from salt_tui.measure.running import Choice, Measured, RunningMeasurement, RunningUnits, TaskNumbers
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.errors import EnvironmentChangedError
from salt_tui.runner.events import RunEnded, RunStarted
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.resumption import prepare_resume
from salt_tui.runner.stored_run import ReadingEnded, StoredRunReader
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import RESUMABLE, UnitKind
from salt_tui.store.results import StoredRun
from salt_tui.store.unit_stream import AnswerUnits
from salt_tui.visible_text import visible
from scoring.labels import CONFIDENCE_STATUSES

PULL_SECONDS = 0.008
"""Longest time that one pull spends on stored answers, so that 30 pulls a second leave room for keys."""

CANCELLABLE = frozenset({"prompt", "streaming"})
"""Statuses of an answer that is being written."""


def _nothing() -> None:
    """Nothing is in the way."""


def describe(error: BaseException) -> str:
    """Return one line about an exception; what the command line calls an option is a question here."""
    return str(error) if isinstance(error, EnvironmentChangedError) else describe_failure(error)[0]


class RunSession:
    """One run, computing or stored.

    Attributes:
        state: what is shown.
        run: its number, None before it has one.
        log_path: what its child prints goes there, None for a stored run.
        task: the task whose numbers are shown, None for the mean over all.
        foreign: whether it is of another file than the app's, and so is only looked at.
    """

    def __init__(self, database: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Make one without events; use `begin`, `resume` or `stored`."""
        self.database = database
        self.state = LiveState(clock)
        self.run: int | None = None
        self.log_path: Path | None = None
        self.reading = False
        self.foreign = False
        self._read_answers = 0
        self._background: BackgroundRun | None = None
        self._reader: StoredRunReader | None = None
        self._signals: SignalReader | None = None
        self._asked_signals: set[str] = set()
        self._refusal_taken = False
        self._failure_said: str | None = None
        self._measurement = RunningMeasurement(clock)
        self._queries: Queries | None = None
        self._followed: FollowedRun | None = None
        self._closed = False
        self._last_said: tuple[tuple[int, str, int, int | Said], Said] | None = None

    @classmethod
    def begin(cls, request: RunRequest, database: Path, make_room: Callable[[], object] = _nothing) -> RunSession:
        """Begin a new run in the background; beside a damaged ``models.toml`` of the user with the shipped models.

        Args:
            request: what to compute.
            database: the file.
            make_room: called in the background before the model is loaded.
        """
        session = cls(database)
        log = session.log_path = new_engine_log_path()
        registry, _ = usable_registry()

        def prepare(emit: Emit) -> ReadyWork:
            make_room()
            return prepare_run(request, database, emit, log, registry)

        session._compute(BackgroundRun(prepare, describe))
        return session

    @classmethod
    def resume(
        cls,
        stored: StoredRun,
        database: Path,
        make_room: Callable[[], object] = _nothing,
        *,
        allow_environment_change: bool = False,
    ) -> RunSession:
        """Go on with a stored run in the background; its finished answers are read from the store."""
        session = cls(database)
        session.run = stored.run
        log = session.log_path = new_engine_log_path()

        def prepare(emit: Emit) -> ReadyWork:
            make_room()
            return prepare_resume(
                stored, database, emit, allow_environment_change=allow_environment_change, threads=None, log=log
            )

        session._compute(BackgroundRun(prepare, describe))
        session._read(finished_only=True)
        return session

    @classmethod
    def stored(cls, run: int, database: Path, *, foreign: bool = False) -> RunSession:
        """Read a run from the store."""
        session = cls(database)
        session.run = run
        session.foreign = foreign
        session.state.phase = "reading"
        session._read(finished_only=False)
        return session

    def _compute(self, background: BackgroundRun) -> None:
        self._background = background
        background.start()

    def _read(self, *, finished_only: bool) -> None:
        if self.run is not None:
            self._reader = StoredRunReader(
                self.database, self.run, describe, finished_only=finished_only, spelled={MAZE}
            )
            self.reading = True
            self._reader.start()

    # --- events -------------------------------------------------------------------------------------------------

    def pull(self) -> Changes:
        """Take what has come since the last pull; 30 times a second."""
        changes = Changes()
        if self._background is not None:
            changes = self.state.apply(self._background.mailbox)
            started = self.state.view.started
            ended = self.state.view.ended
            number = started.run if started is not None else ended.run if ended is not None else 0
            if self.run is None and number:
                self.run = number
        if self.reading:
            self._pull_stored(changes)
        elsewhere = self.state.phase == "elsewhere" and not self.reading and not self._closed
        if elsewhere and self._followed is None and self.run is not None:
            finished = (answer.generation for answer in self.state.map.answers if answer.status != "open")
            self._followed = FollowedRun(self.database, self.run, finished, describe)
            self._followed.start()
        if self._followed is not None and not self._closed:
            self._pull_followed(self._followed, changes)
        if self._signals is not None:
            self._pull_signals(self._signals, changes)
        failure = self._measurement.failure
        if failure is not None and failure != self._failure_said:
            changes.messages.append(f"the numbers could not be measured: {failure}")
        self._failure_said = failure
        return changes

    def _pull_stored(self, changes: Changes) -> None:
        reader = self._reader
        if reader is None:
            return
        deadline = time.monotonic() + PULL_SECONDS
        while reader.mailbox and time.monotonic() < deadline:
            piece = reader.mailbox.popleft()
            if isinstance(piece, AnswerUnits):
                self._read_answers += 1
                # What was cancelled is computed anew by a run that goes on, under another number.
                if self._background is None or piece.status != "cancelled":
                    self.state.add_stored(piece)
                    changes.generations.add(piece.generation)
            elif isinstance(piece, ReadingEnded):
                self.reading = False
                if piece.message:
                    if self._background is None:
                        self.state.phase = "unreadable"
                    changes.messages.append(piece.message)
                    self.state.log.append(piece.message)
            elif isinstance(piece, RunStarted | RunEnded):
                # What a stored run said was told when it was computed, and stands in the log.
                self.state.apply(deque([piece]))
                if isinstance(piece, RunStarted):
                    self.state.phase = "reading"
            changes.progress = True

    def _pull_followed(self, followed: FollowedRun, changes: Changes) -> None:
        deadline = time.monotonic() + PULL_SECONDS
        while followed.mailbox and time.monotonic() < deadline:
            piece = followed.mailbox.popleft()
            if isinstance(piece, AnswerUnits):
                self.state.follow_stored(piece)
                changes.generations.add(piece.generation)
            elif isinstance(piece, RunEnded):
                ended = self.state.follow_end(piece)
                changes.generations |= ended.generations
                changes.messages += ended.messages
                self._followed = None
            else:
                changes.messages.append(piece)
            changes.progress = True

    # --- signals ------------------------------------------------------------------------------------------------

    def look_for_signals(self) -> None:
        """Begin to read which signals the run has; of one that is being computed or read nothing is asked."""
        if self.run is not None and not self.computing and not self.reading:
            self._signals = self._signals or SignalReader(self.database, self.run, describe)
            self._asked_signals.clear()
            self._signals.look_for_names()

    def need_signal(self) -> None:
        """Begin to read the values behind the shades where they are those of a signal and are not there."""
        name = self.state.map.function
        if self._signals is not None and name in self.state.unread_signals - self._asked_signals:
            self._asked_signals.add(name)
            self._signals.read(name)

    @property
    def reads_signal(self) -> bool:
        """Whether the values behind the shades are not there yet."""
        return self.state.map.function in self.state.unread_signals

    def _pull_signals(self, reader: SignalReader, changes: Changes) -> None:
        while reader.mailbox:
            piece = reader.mailbox.popleft()
            if isinstance(piece, SignalNames):
                self.state.take_signal_names(piece)
                self.need_signal()
            elif isinstance(piece, SignalValues):
                self.state.take_signal(piece)
            else:
                changes.messages.append(f"the signals cannot be read: {piece.message}")
            changes.progress = changes.shades = True

    # --- what can be done ---------------------------------------------------------------------------------------

    @property
    def computing(self) -> bool:
        """Whether a thread or a child of this run is still at work."""
        return self._background is not None and self._background.alive

    @property
    def resumable(self) -> bool:
        """Whether the run can go on: it stopped before its end, is still stored, and no known process computes it."""
        stopped = self.run is not None and not self.computing and self.state.phase in RESUMABLE
        return stopped and not self.foreign and self.database.exists()

    def take_refusal(self) -> tuple[str, ...]:
        """Return, once, what differs from the environment in which the run was computed; empty unless it refused."""
        failure = None if self._background is None else self._background.failure
        if self._refusal_taken or self.computing or not isinstance(failure, EnvironmentChangedError):
            return ()
        self._refusal_taken = True
        return failure.differences

    def toggle_pause(self) -> bool:
        """Suspend or wake the child; return whether the run is paused now."""
        if self._background is None or not self.computing:
            return False
        if self.state.phase == "paused":
            self._background.go_on()
            self.state.go_on()
        elif self.state.phase == "running" and self._background.pause():
            self.state.pause()
        return self.state.phase == "paused"

    def stop(self) -> None:
        """Stop in order; the run stays resumable."""
        if self._background is not None and self.computing and self.state.computing:
            self._background.stop()
            self.state.clock.go_on()
            self.state.phase = "stopping"

    def cancel_answer(self, generation: int) -> bool:
        """Cancel an answer that is being written; return whether it is one."""
        number = self.state.map.number_of(generation)
        if self._background is None or number is None:
            return False
        if self.state.map.answers[number].status not in CANCELLABLE:
            return False
        self._background.cancel_answer(generation)
        return True

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the computation; return whether it came."""
        return self._background is None or self._background.join(timeout)

    def close(self) -> None:
        """Stop reading and give the file back; what others compute is not followed, as another session may do that."""
        self._closed = True
        if self._reader is not None:
            self._reader.stop()
        if self._followed is not None:
            self._followed.stop()
        if self._queries is not None:
            self._queries.close()
            self._queries = None

    # --- numbers and words --------------------------------------------------------------------------------------

    @property
    def choice(self) -> Choice:
        """What the numbers under the map are about."""
        return Choice(self.state.map.kind, self.state.map.function, self.state.map.task)

    def next_task(self) -> str | None:
        """Show the numbers of the next task, after the last the mean over all; return its name."""
        names: list[str | None] = [None, *self.state.view.tasks]
        task = self.state.map.task
        self.state.map.task = names[(names.index(task) + 1) % len(names)] if task in names else None
        return self.state.map.task

    def measure(self) -> None:
        """Begin to measure when it is time; a stored run is measured when all of it was read."""
        if not self.reading and not self.reads_signal:
            atom_map = self.state.map
            answers = list(atom_map.answers)

            def read(choice: Choice) -> RunningUnits:
                return live_columns(answers, choice.kind, choice.function)

            self._measurement.update(
                read, atom_map.version, self.choice, rest=self.computing or self.state.phase == "elsewhere"
            )

    @property
    def measured(self) -> Measured | None:
        """The last numbers of the present choice."""
        return self._measurement.result(self.choice)

    @property
    def task_numbers(self) -> Mapping[str, TaskNumbers]:
        """The last numbers of every task, at the present granularity and by the present function."""
        return self._measurement.tasks(self.state.map.kind, self.state.map.function)

    @property
    def waiting_for(self) -> str:
        """What must end before the numbers are those of all that is shown; empty while answers are being written."""
        if self.reading:
            started = self.state.view.started
            total = 0 if started is None else sum(task.done for task in started.tasks)
            return f"reading {min(self._read_answers, total)}/{total} answers …" if total else "reading …"
        if self.reads_signal:
            return f"reading {visible(self.state.map.function, 40)} …"
        if self._measurement.failure is not None:
            return "not measured"
        newest = self._measurement.is_newest(self.state.map.version, self.choice)
        if newest or (self.measured is not None and self.state.phase in {"running", "stopping", "elsewhere"}):
            return ""
        return "measuring …"

    def wait_for_measurement(self, timeout: float) -> None:
        """Wait for a measurement at work."""
        self._measurement.wait(timeout)

    def describe_unit(self, place: Place) -> DescribedUnit:
        """Collect what there is to say about a unit; its texts come from the store when the answer is finished."""
        atom_map = self.state.map
        answer, cells = atom_map.answers[place.answer], atom_map.cells(place.answer)
        said = self._said(place)
        line = cells.lines[place.unit]
        value = cells.value(place.unit, atom_map.function)
        status = cells.status(place.unit)
        measured = self.measured if status in CONFIDENCE_STATUSES else None
        return DescribedUnit(
            task=answer.task,
            answer=answer.position,
            kind=atom_map.kind,
            index=place.unit,
            line=line,
            column=cells.lines[: place.unit].count(line),
            text=said.text,
            reference=said.reference,
            status=status,
            function=atom_map.function,
            value=value,
            surer_than=None
            if measured is None or value is None
            else measured.surer_than(answer.task, value, atom_map.function),
            parting=said.parting,
        )

    def _said(self, place: Place) -> Said:
        """Return what was said: of an answer that is being written from its events, and from the store what it has."""
        answer, cells = self.state.map.answers[place.answer], self.state.map.cells(place.answer)
        told: Said | None = None
        if cells.texts is not None and place.unit < len(cells.texts):
            told = Said(*cells.texts[place.unit])
            if place.unit == len(cells) - 1:
                return told  # the newest may not be stored yet, and changes with every frame
        kind: UnitKind = "line" if self.state.map.kind == "line" else "atom"
        key = (answer.generation, kind, place.unit, len(cells) if told is None else told)
        if self._last_said is None or self._last_said[0] != key:
            try:
                if self._queries is None:
                    self._queries = open_queries(self.database)
                found = read_said(self._queries, answer.generation, kind, place.unit)
            except StoreError:
                return told or Said()
            if told is not None and (found.text, found.reference) != (told.text, told.reference):
                return told
            self._last_said = key, found
        return self._last_said[1]

    def engine_log(self) -> tuple[str, ...]:
        """Return the last lines that the child of this run printed; none for a stored run."""
        return () if self.log_path is None else read_log_tail(self.log_path)
