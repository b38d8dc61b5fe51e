"""The state a live display draws, built from the events of a run; no drawing here."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    AnswerStarted,
    AtomScored,
    ModelLoading,
    NoProgress,
    Notice,
    PromptEvaluated,
    RunEnded,
    RunEvent,
    RunStarted,
    TokenArrived,
    UnitsWithdrawn,
)
from salt_tui.runner.time_left import TimeLeft
from scoring.confidence import HEADLINE_FUNCTION

RATE_SECONDS = 10.0
"""The token rate is a mean over this window."""

KEPT_ANSWERS = 64
KEPT_NOTICES = 4


@dataclass(slots=True)
class AnswerView:
    """One answer: its atoms by line, each a status and its confidence."""

    generation: int
    task: str
    position: int
    lines: dict[int, list[tuple[str, float | None]]] = field(default_factory=dict)
    prompt_done: int = 0
    prompt_total: int = 0
    tokens: int = 0
    status: str = "waiting"
    correct: int = 0
    generated: int = 0


@dataclass(slots=True)
class TaskView:
    """Progress of one task and its running counts."""

    name: str
    done: int
    total: int
    correct: int = 0
    generated: int = 0


class RunView:
    """Follows a run.

    Args:
        clock: seconds, monotonic; injected by tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.loading: tuple[str, float] | None = None
        self.started: RunStarted | None = None
        self.ended: RunEnded | None = None
        self.tasks: dict[str, TaskView] = {}
        self.answers: dict[int, AnswerView] = {}
        self.notices: deque[str] = deque(maxlen=KEPT_NOTICES)
        self._finished_order: deque[int] = deque()
        self._arrivals: deque[float] = deque()
        self._time_left = TimeLeft(clock)
        self._began: float | None = None
        self._silence: tuple[str, float] | None = None
        """What is waited for, and since when."""

    @property
    def silence(self) -> str | None:
        """What is waited for and for how long by now; None while there is progress."""
        if self._silence is None:
            return None
        waiting_for, since = self._silence
        return NoProgress(waiting_for, self._clock() - since).text

    def apply(self, event: RunEvent) -> None:
        """Take one event."""
        self._time_left.apply(event)
        if isinstance(event, NoProgress):
            self._silence = event.waiting_for, self._clock() - event.seconds
        elif not isinstance(event, Notice):
            self._silence = None
        match event:
            case ModelLoading():
                self.loading = (event.model, event.fraction)
            case RunStarted():
                self.loading = None
                self.started = event
                self._began = self._clock()
                self.tasks = {task.task: TaskView(task.task, task.done, task.total) for task in event.tasks}
                self.notices.extend(event.warnings)
            case AnswerStarted():
                self.answers[event.generation] = AnswerView(event.generation, event.task, event.position)
            case PromptEvaluated():
                answer = self.answers[event.generation]
                answer.status = "prompt"
                answer.prompt_done, answer.prompt_total = event.done, event.total
            case TokenArrived():
                answer = self.answers[event.generation]
                answer.status = "streaming"
                answer.tokens += 1
                self._arrivals.append(self._clock())
            case AtomScored():
                self._add_atom(event)
            case UnitsWithdrawn() | AnswerRetried():
                self.answers[event.generation].lines.clear()
            case AnswerFinished():
                self._finish(event)
            case Notice():
                self.notices.append(event.text)
            case RunEnded():
                self.ended = event

    def tokens_per_second(self) -> float | None:
        """Mean rate of the last `RATE_SECONDS`; None before there is one."""
        now = self._clock()
        while self._arrivals and now - self._arrivals[0] > RATE_SECONDS:
            self._arrivals.popleft()
        if self._began is None or len(self._arrivals) < 2:
            return None
        span = min(RATE_SECONDS, now - self._began)
        return len(self._arrivals) / span if span > 0 else None

    def remaining_seconds(self) -> float | None:
        """Estimate of what is left; None before two answers ended."""
        return self._time_left.seconds()

    def recent_answers(self, count: int) -> list[AnswerView]:
        """Return the last ``count`` answers that have begun, oldest first."""
        begun = [answer for answer in self.answers.values() if answer.status != "waiting"]
        return begun[-count:]

    def _add_atom(self, event: AtomScored) -> None:
        if event.kind != "atom":
            return
        confidence = event.confidences.get(HEADLINE_FUNCTION)
        self.answers[event.generation].lines.setdefault(event.line, []).append((event.status, confidence))

    def _finish(self, event: AnswerFinished) -> None:
        answer = self.answers[event.generation]
        answer.status = event.answer_status
        answer.correct, answer.generated = event.correct, event.generated
        task = self.tasks[event.task]
        task.done += 1
        task.correct += event.correct
        task.generated += event.generated
        self._finished_order.append(event.generation)
        while len(self._finished_order) > KEPT_ANSWERS:
            self.answers.pop(self._finished_order.popleft(), None)


def clock(seconds: float | None) -> str:
    """Return minutes and seconds, hours where there are any; a dash for None."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
