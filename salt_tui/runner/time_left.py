"""How long a run will still take: the tokens of the answers that are left, over the recent rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from salt_tui.runner.events import AnswerFinished, AnswerStarted, RunEvent, RunStarted, TaskProgress, TokenArrived

WINDOW = 32
"""Answers over which the rate is taken."""

LEAST_ANSWERS = 2
"""Finished answers from which on there is an estimate."""


class TimeLeft:
    """Follows the events of a run.

    Answers of one task cost hundreds of times those of another, and tasks are computed one after the other, so a mean
    over all answers says nothing of those that are left.  An answer that is left is expected to have the mean
    length of the finished answers of its task plus one pseudo-answer of the planned length.  The planned length is
    scaled by the ratio of finished to planned lengths over all tasks.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tasks: dict[str, TaskProgress] = {}
        self._finished: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._open: dict[int, tuple[str, int]] = {}
        self._arrived = 0
        self._marks: deque[tuple[float, int]] = deque(maxlen=WINDOW + 1)

    def apply(self, event: RunEvent) -> None:
        """Take one event."""
        match event:
            case RunStarted():
                self._tasks = {task.task: task for task in event.tasks}
                self._finished = dict.fromkeys(self._tasks, 0)
                self._tokens = dict.fromkeys(self._tasks, 0)
                self._marks.append((self._clock(), 0))
            case AnswerStarted():
                # Again after a crash: what it had is void.
                self._open[event.generation] = event.task, 0
            case TokenArrived():
                task, tokens = self._open[event.generation]
                self._open[event.generation] = task, tokens + 1
                self._arrived += 1
            case AnswerFinished():
                self._open.pop(event.generation, None)
                self._finished[event.task] += 1
                self._tokens[event.task] += event.tokens
                self._marks.append((self._clock(), self._arrived))
            case _:
                pass

    def seconds(self) -> float | None:
        """Return the estimate, at least 0; None before `LEAST_ANSWERS` answers ended, or without a rate."""
        if sum(self._finished.values()) < LEAST_ANSWERS:
            return None
        planned = sum(self._finished[name] * task.planned_tokens for name, task in self._tasks.items())
        proportion = sum(self._tokens.values()) / planned
        expected = {
            name: (proportion * task.planned_tokens + self._tokens[name]) / (1 + self._finished[name])
            for name, task in self._tasks.items()
        }
        left = sum(
            expected[name] * (task.total - task.done - self._finished[name]) for name, task in self._tasks.items()
        )
        left -= sum(min(tokens, expected[task]) for task, tokens in self._open.values())
        began, before = self._marks[0]
        elapsed, arrived = self._clock() - began, self._arrived - before
        if elapsed <= 0 or arrived == 0:
            return None
        return max(0.0, left) * elapsed / arrived
