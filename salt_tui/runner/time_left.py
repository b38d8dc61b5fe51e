"""How long a run will still take: the tokens of the answers and prompts that are left, each at its recent pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from salt_tui.runner.events import (
    AnswerFinished,
    AnswerStarted,
    PromptEvaluated,
    RunEvent,
    RunStarted,
    TaskProgress,
    TokenArrived,
)

WINDOW = 32
"""Answers over which the rate is taken."""

LEAST_ANSWERS = 2
"""Finished answers from which on there is an estimate."""


@dataclass(slots=True)
class _Open:
    """An answer that is being written.

    Attributes:
        tokens: that came.
        prompt_left: tokens of its prompt that are still to be evaluated, None before something was said of them.
    """

    task: str
    tokens: int = 0
    prompt_left: int | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where a run stood when an answer ended.

    Attributes:
        at: seconds of the clock.
        arrived: answer tokens.
        prompted: prompt tokens that were evaluated.
        prompting: seconds that this took.
    """

    at: float
    arrived: int = 0
    prompted: int = 0
    prompting: float = 0.0


class TimeLeft:
    """Follows the events of a run.

    Answers of one task cost hundreds of times those of another, and tasks are computed one after the other, so a mean
    over all answers says nothing of those that are left.  An answer that is left is expected to have the mean
    length of the finished answers of its task plus one pseudo-answer of the planned length.  The planned length is
    scaled by the ratio of finished to planned lengths over all tasks.  Prompts are known beforehand.

    While a piece of a prompt is evaluated no answer goes on, so the time before an event is that of its kind.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tasks: dict[str, TaskProgress] = {}
        self._begun: dict[str, int] = {}
        self._finished: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._open: dict[int, _Open] = {}
        self._now = _Mark(0.0)
        self._last = 0.0
        self._marks: deque[_Mark] = deque(maxlen=WINDOW + 1)

    def apply(self, event: RunEvent) -> None:
        """Take one event."""
        now = self._clock()
        match event:
            case RunStarted():
                self._tasks = {task.task: task for task in event.tasks}
                self._begun = dict.fromkeys(self._tasks, 0)
                self._finished = dict.fromkeys(self._tasks, 0)
                self._tokens = dict.fromkeys(self._tasks, 0)
                self._now = _Mark(now)
                self._marks.append(self._now)
            case AnswerStarted():
                # Again after a crash: what it had is void.
                self._begun[event.task] += event.generation not in self._open
                self._open[event.generation] = _Open(event.task)
            case PromptEvaluated():
                self._take_prompt(event, now - self._last)
            case TokenArrived():
                answer = self._open[event.generation]
                answer.tokens += 1
                answer.prompt_left = 0
                self._now = replace(self._now, arrived=self._now.arrived + 1)
            case AnswerFinished():
                self._open.pop(event.generation, None)
                self._finished[event.task] += 1
                self._tokens[event.task] += event.tokens
                self._marks.append(replace(self._now, at=now))
            case _:
                pass
        self._last = now

    def _take_prompt(self, event: PromptEvaluated, seconds: float) -> None:
        answer = self._open.get(event.generation)
        if answer is None:
            return
        left = event.total - event.done
        # What is said first is what was there already: nothing was evaluated for it.
        if answer.prompt_left is not None:
            done = max(0, answer.prompt_left - left)
            self._now = replace(self._now, prompted=self._now.prompted + done, prompting=self._now.prompting + seconds)
        answer.prompt_left = left

    def seconds(self) -> float | None:
        """Return the estimate, at least 0; None before `LEAST_ANSWERS` answers ended, or without a rate."""
        if sum(self._finished.values()) < LEAST_ANSWERS:
            return None
        began, now = self._marks[0], self._now
        prompting, prompted = now.prompting - began.prompting, now.prompted - began.prompted
        decoding, arrived = self._clock() - began.at - prompting, now.arrived - began.arrived
        if decoding <= 0 or arrived == 0:
            return None
        if not prompted:
            prompting, prompted = now.prompting, now.prompted
        a_prompt_token = prompting / prompted if prompted else 0.0
        return max(0.0, self._answer_tokens_left()) * decoding / arrived + self._prompt_tokens_left() * a_prompt_token

    def _answer_tokens_left(self) -> float:
        planned = sum(self._finished[name] * task.planned_tokens for name, task in self._tasks.items())
        proportion = sum(self._tokens.values()) / planned
        expected = {
            name: (proportion * task.planned_tokens + self._tokens[name]) / (1 + self._finished[name])
            for name, task in self._tasks.items()
        }
        left = sum(
            expected[name] * (task.total - task.done - self._finished[name]) for name, task in self._tasks.items()
        )
        return left - sum(min(answer.tokens, expected[answer.task]) for answer in self._open.values())

    def _prompt_tokens_left(self) -> float:
        not_begun = sum(
            task.prompt_tokens * max(0, task.total - task.done - self._begun[name])
            for name, task in self._tasks.items()
        )
        of_open = (
            self._tasks[answer.task].prompt_tokens if answer.prompt_left is None else answer.prompt_left
            for answer in self._open.values()
        )
        return not_begun + sum(of_open)
