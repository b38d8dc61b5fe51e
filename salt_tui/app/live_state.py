"""What the Live screen knows of a run, computing or stored; built from events and from the store, no drawing here."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from salt_tui.app.answer_cells import FUNCTIONS, KINDS, AnswerCells, UnitCells
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.maze_drawing import TASK as MAZE
from salt_tui.app.maze_drawing import Maze, read_maze
from salt_tui.app.signal_reader import SignalNames, SignalValues
from salt_tui.display.run_view import RunView
from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    AnswerStarted,
    AtomScored,
    NoProgress,
    Notice,
    PromptEvaluated,
    RunEnded,
    RunEvent,
    RunStarted,
    TokenArrived,
    UnitsWithdrawn,
)
from salt_tui.store.unit_stream import AnswerUnits
from scoring.confidence import HEADLINE_FUNCTION

KEPT_LOG_LINES = 500

MAZE_ROWS, MAZE_WIDTH = 8, 32
"""Of the largest maze that is drawn on a map: more would leave room for one answer only."""

Phase = Literal[
    "loading",
    "running",
    "paused",
    "stopping",
    "finished",
    "interrupted",
    "failed",
    "reading",
    "elsewhere",
    "unreadable",
]
"""The last three are of stored runs: being read, computed by another process when it was read, and not readable."""

_PHASES_AFTER: dict[str, Phase] = {"finished": "finished", "failed": "failed", "running": "elsewhere"}


@dataclass(slots=True)
class Changes:
    """What applying events changed.

    Attributes:
        generations: answers whose cells or status are new.
        messages: lines for the user.
        progress: counts or phases are new.
        counted: answers without a unit to show of which only the number of tokens is new.
        shades: every cell may have another shade.
    """

    generations: set[int] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    progress: bool = False
    counted: set[int] = field(default_factory=set)
    shades: bool = False


class PausableClock:
    """Seconds of a monotonic clock, without the time in which it was paused.

    Args:
        clock: monotonic seconds; injected by tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lost = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        """Return the seconds."""
        return (self._clock() if self._since is None else self._since) - self._lost

    def pause(self) -> None:
        """Stand still."""
        if self._since is None:
            self._since = self._clock()

    def go_on(self) -> None:
        """Run again."""
        if self._since is not None:
            self._lost += self._clock() - self._since
            self._since = None


def _maze(task: str, question: str, reference: str) -> Maze | None:
    """Return the maze that a problem is, where it is small enough to be drawn on a map."""
    maze = read_maze(question, reference) if task == MAZE else None
    return maze if maze is not None and maze.height <= MAZE_ROWS and maze.width <= MAZE_WIDTH else None


class LiveState:
    """A run as it is shown.

    Attributes:
        view: progress, pace and notices, as the headless display has them.
        map: every unit.
        log: what was said, oldest first.
        phase: where the run stands.
        signals: names of what else than the confidence functions can shade the map.
        unread_signals: those of them whose values are not on the map.

    Args:
        clock: monotonic seconds; injected by tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = PausableClock(clock)
        self.view = RunView(self.clock)
        self.map = AtomMap()
        self.log: deque[str] = deque(maxlen=KEPT_LOG_LINES)
        self.phase: Phase = "loading"
        self.signals: tuple[str, ...] = ()
        self.unread_signals: set[str] = set()

    # --- from the runner ----------------------------------------------------------------------------------------

    def apply(self, events: deque[RunEvent], limit: int = 5_000) -> Changes:
        """Take up to ``limit`` events out of a mailbox."""
        changes = Changes()
        for _ in range(min(limit, len(events))):
            self._apply(events.popleft(), changes)
        for generation in changes.generations:
            self.map.changed(generation)
        return changes

    def _apply(self, event: RunEvent, changes: Changes) -> None:
        self.view.apply(event)
        match event:
            case AtomScored():
                self._add_unit(event, changes)
            case TokenArrived() | PromptEvaluated() | AnswerFinished():
                self._follow(event, changes)
            case UnitsWithdrawn() | AnswerRetried():
                self._answer(event.generation).clear()
                changes.generations.add(event.generation)
            case AnswerStarted():
                answer = AnswerCells(
                    event.generation, event.task, event.position, reference_lines=event.reference_lines
                )
                answer.maze = _maze(event.task, event.question, event.reference)
                answer.keep_texts()
                self.map.add(answer)
            case RunStarted():
                self.phase = "running"
                self._say(event.warnings, changes)
            case Notice() | NoProgress():
                self._say((event.text,), changes)
            case RunEnded():
                self._end(event, changes)
            case _:
                changes.progress = True

    def _add_unit(self, event: AtomScored, changes: Changes) -> None:
        answer = self._answer(event.generation)
        cells = answer.units[event.kind]
        cells.add(event.status, event.line, [event.confidences.get(name) for name in FUNCTIONS])
        if cells.texts is not None:
            cells.texts.append((event.text, event.reference))
        if answer.maze is not None and event.kind == "atom":
            answer.moves.append(event.text)
        changes.generations.add(event.generation)

    def _follow(self, event: TokenArrived | PromptEvaluated | AnswerFinished, changes: Changes) -> None:
        answer = self._answer(event.generation)
        if isinstance(event, TokenArrived):
            answer.tokens += 1
            if answer.status == "streaming":
                # A row without units says how many tokens came; nothing that is measured is new.
                if not answer.units[self.map.kind]:
                    changes.counted.add(event.generation)
                return
            answer.status = "streaming"
        elif isinstance(event, PromptEvaluated):
            answer.status, answer.prompt_done, answer.prompt_total = "prompt", event.done, event.total
        else:
            answer.status = event.answer_status
            answer.drop_texts()
            changes.progress = True
        changes.generations.add(event.generation)

    def _end(self, event: RunEnded, changes: Changes) -> None:
        self.phase = _PHASES_AFTER.get(event.state, "interrupted")
        # Answers in flight are dropped by the runner and begin anew on resume.
        for answer in self.map.answers:
            if answer.status in {"waiting", "prompt", "streaming"}:
                answer.status = "open"
                changes.generations.add(answer.generation)
        if event.message and event.message not in changes.messages:
            self._say((event.message,), changes)
        changes.progress = True

    def _say(self, lines: tuple[str, ...], changes: Changes) -> None:
        for line in lines:
            self.log.append(line)
            changes.messages.append(line)
        changes.progress = True

    def _answer(self, generation: int) -> AnswerCells:
        number = self.map.number_of(generation)
        if number is None:
            raise KeyError(generation)
        return self.map.answers[number]

    # --- from the store -----------------------------------------------------------------------------------------

    def add_stored(self, stored: AnswerUnits) -> None:
        """Show an answer of the store, unless it is being written at this moment."""
        if self.map.number_of(stored.generation) is None:
            self._add_stored(stored, stored.status or "open")

    def follow_stored(self, stored: AnswerUnits) -> None:
        """Show an answer as another program has stored it by now, in place of what is shown of it."""
        number = self.map.number_of(stored.generation)
        status = stored.status or "streaming"
        if number is None:
            self._add_stored(stored, status)
        else:
            answer = self.map.answers[number]
            answer.status, answer.tokens = status, stored.tokens
            self._fill(answer, stored)
            self.map.changed(stored.generation)
        task = self.view.tasks.get(stored.task)
        if stored.status is not None and task is not None:
            task.done = min(task.total, task.done + 1)

    def follow_end(self, ended: RunEnded) -> Changes:
        """Show that the program that computed the run has ended it."""
        changes = Changes()
        self._apply(ended, changes)
        for generation in changes.generations:
            self.map.changed(generation)
        return changes

    def _add_stored(self, stored: AnswerUnits, status: str) -> None:
        answer = AnswerCells(
            stored.generation,
            stored.task,
            stored.position,
            status,
            tokens=stored.tokens,
        )
        self._fill(answer, stored)
        self.map.add(answer)

    def _fill(self, answer: AnswerCells, stored: AnswerUnits) -> None:
        for kind in KINDS:
            units, cells = stored.units[kind], UnitCells(kind)
            cells.fill(units.statuses, units.lines, units.values)
            # At once: a thread that measures copies either the units before or these.
            answer.units[kind] = cells
        answer.maze = _maze(stored.task, stored.question, stored.reference)
        answer.moves = list(stored.said)

    def take_signal_names(self, found: SignalNames) -> None:
        """Offer these signals; values that may have changed are read anew when they are looked at."""
        known = set(self.signals) - self.unread_signals
        self.signals = found.names
        self.unread_signals = set(found.names) - (known & found.fixed)
        if self.map.function not in FUNCTIONS + found.names:
            self.map.function = HEADLINE_FUNCTION

    def take_signal(self, found: SignalValues) -> None:
        """Put the values of a signal on the map."""
        for answer in self.map.answers:
            for kind, cells in answer.units.items():
                cells.signals[found.name] = found.values.get((answer.generation, kind), np.empty(0))
        self.unread_signals.discard(found.name)
        self.map.version += 1

    # --- the user -----------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Show the run as paused; time and pace stand still."""
        self.clock.pause()
        self.phase = "paused"

    def go_on(self) -> None:
        """Show the run as running again."""
        self.clock.go_on()
        self.phase = "running"

    @property
    def computing(self) -> bool:
        """Whether a child is, or may be, at work."""
        return self.phase in {"loading", "running", "paused", "stopping"}

    def next_function(self, step: int = 1) -> str:
        """Show the next confidence function or signal and return its name."""
        names = FUNCTIONS + self.signals
        place = names.index(self.map.function) if self.map.function in names else -step
        self.map.function = names[(place + step) % len(names)]
        return self.map.function
