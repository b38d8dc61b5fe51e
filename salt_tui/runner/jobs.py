"""What a job is: one sequence for the engine, from its request to what its end writes.

Answering a problem is the first kind of job (`salt_tui.runner.answering`), studies bring others
(`salt_tui.runner.studies`).  The loop (`salt_tui.runner.loop`) knows nothing but these protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from salt_tui.engine.events import Reading, StopReason, Token
from salt_tui.engine.requests import Generate
from salt_tui.runner.events import RunEvent
from salt_tui.runner.prompting import EncodedProblem
from salt_tui.store.records import GenerationKey, Role, Work
from salt_tui.store.store import Store

Emit: TypeAlias = Callable[[RunEvent], None]
"""Takes every event of a run; must be quick and must not raise."""

ReplyEvent: TypeAlias = Token | Reading
"""What the engine says of a sequence while it computes it, progress of its prompt apart."""


@dataclass(frozen=True, slots=True)
class JobName:
    """What a job is about, for displays and for the store.

    Attributes:
        problem: row of the problem.
        task: its task.
        position: its place in the task, from 0.
        role: what its generation is.
        parent: the generation that it goes on from or asks about; None where there is none.
        number: which one of those of its role and parent it is, from 0.
    """

    problem: int
    task: str
    position: int
    role: Role = "answer"
    parent: int | None = None
    number: int = 0

    @property
    def key(self) -> GenerationKey:
        """What tells its generation apart from the others of its run or study."""
        return self.problem, self.parent, self.role, self.number

    def in_words(self) -> str:
        """Name the job as screens do, where answers are counted from 1."""
        answer = f"answer {self.position + 1} of {self.task}"
        return answer if self.role == "answer" else f"{self.role} {self.number + 1} of {answer}"


@dataclass(frozen=True, slots=True)
class Output:
    """Where an attempt writes: rows go to the store under the number of its generation, events to the displays."""

    work: Work
    store: Store
    emit: Emit
    generation: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a sequence ended.

    Attributes:
        stop_reason: as the engine said, or ``failed`` for a job that is given up.
        message: the cause of a failure, one line.
        prompt_seconds: from the first work on the prompt to the first token, at least 0.
        decode_seconds: from the first token to the end, at least 0.
    """

    stop_reason: StopReason
    message: str | None
    prompt_seconds: float
    decode_seconds: float


class Attempt(Protocol):
    """One try of a job.  What the engine reports goes in, rows and events come out."""

    def take(self, event: ReplyEvent) -> None:
        """Take the next event of the reply."""
        ...

    def end(self, ending: Ending) -> None:
        """Write what the end gives, the generation's own end included; called once, nothing follows."""
        ...


class Job(Protocol):
    """One sequence to compute.  It is frozen: each try is an `Attempt` of its own."""

    @property
    def name(self) -> JobName:
        """What the job is about."""
        ...

    @property
    def prompt(self) -> EncodedProblem:
        """The ids of its prompt."""
        ...

    def request(self, key: int) -> Generate:
        """Return what the engine is asked.

        Args:
            key: number of the generation.
        """
        ...

    def begin(self, output: Output, attempt: int) -> Attempt:
        """Begin an attempt and announce it."""
        ...
