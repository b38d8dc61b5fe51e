"""What a run reports while it works: frozen events, produced by the runner, drawn by the CLI and the app.

Displays pull them from a mailbox and may skip drawing, never reading.  Every atom is in the store before or within
250 ms of its event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from salt_tui.store.records import Role, Statistics


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How many of a task's answers are done.

    Attributes:
        task: its name.
        done, total: answers.
        planned_tokens: the most that one answer should take, above 0; only its ratio to that of other tasks counts.
        prompt_tokens: to evaluate for one of the answers that are left, on average: its own, and its share of what the
            prompts of the task have in common; 0 where that is not known.
    """

    task: str
    done: int
    total: int
    planned_tokens: int = 1
    prompt_tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """The model is being loaded; ``fraction`` is 0..1."""

    model: str
    fraction: float


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Everything is ready and decoding begins (or, on resume, goes on).

    Attributes:
        run: the run's number.
        study: K of the study RUN.K that is computed, None for the run itself.
        device: where it computes, in words.
        exact: result of the exactness check, None when not checked.
        tasks: progress at the start, in the order of the plan; of a study, of its jobs.
        statistics: what the numbers of tokens rest on.
    """

    run: int
    model: str
    device: str
    width: int
    difficulty: str
    exact: bool | None
    tasks: tuple[TaskProgress, ...]
    warnings: tuple[str, ...]
    study: int | None = None
    statistics: Statistics = "vocabulary"

    @property
    def title(self) -> str:
        """What it is, with its name: ``run 17`` or ``study 17.2``."""
        return title_of(self.run, self.study)


@dataclass(frozen=True, slots=True)
class AnswerStarted:
    """An answer was handed to the engine; ``generation`` is its number in the store.

    Attributes:
        role, number: ``answer`` of a run, or what a study generates and which one of it, from 0.
    """

    generation: int
    task: str
    position: int
    attempt: int
    reference_lines: tuple[int, ...]
    """Atoms on each line of the reference."""
    role: Role = "answer"
    number: int = 0
    question: str = ""
    """Text of the problem, of an answer to one."""
    reference: str = ""
    """The right answer to it."""


@dataclass(frozen=True, slots=True)
class PromptEvaluated:
    """Progress of the prompt, in tokens."""

    generation: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class TokenArrived:
    """One more answer token; for the token rate and the streaming mark."""

    generation: int
    position: int


@dataclass(frozen=True, slots=True)
class TextWritten:
    """The model chose one more token behind an edit; its bytes may end inside a character.  Untrusted."""

    generation: int
    text: bytes


@dataclass(frozen=True, slots=True)
class AtomScored:
    """An atom (or line) is complete and labelled.

    Attributes:
        kind: ``atom`` or ``line``.
        text: as generated; None for a missing unit.  Untrusted.
        reference: None for a redundant unit.
        confidences: name of confidence function to value; empty for a missing unit.
    """

    generation: int
    task: str
    kind: str
    index: int
    line: int
    text: str | None
    reference: str | None
    status: str
    confidences: dict[str, float]


@dataclass(frozen=True, slots=True)
class UnitsWithdrawn:
    """A later region began to hold text: all units of the answer so far are void."""

    generation: int
    revision: int


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """An answer is over and stored; what was replayed up to its target only has the status ``replayed``."""

    generation: int
    task: str
    position: int
    answer_status: str
    correct: int
    generated: int
    reference: int
    tokens: int
    role: Role = "answer"
    number: int = 0


@dataclass(frozen=True, slots=True)
class AnswerRetried:
    """The engine died in mid-answer and the answer is tried again; all its units are void."""

    generation: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Notice:
    """One line the user must see."""

    text: str


@dataclass(frozen=True, slots=True)
class NoProgress:
    """The engine is alive and nothing has come from it for a while; said again each time the silence has doubled.

    Attributes:
        waiting_for: what should come next, in words.
        seconds: how long nothing has come.
    """

    waiting_for: str
    seconds: float

    @property
    def text(self) -> str:
        """One line the user must see."""
        return f"no progress for {self.seconds:.0f} s, waiting for {self.waiting_for}"


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run stopped: ``finished``, ``interrupted`` (resumable) or ``failed`` (resumable, message says why)."""

    run: int
    state: str
    message: str | None
    study: int | None = None

    @property
    def title(self) -> str:
        """What ended, with its name: ``run 17`` or ``study 17.2``."""
        return title_of(self.run, self.study)


def title_of(run: int, study: int | None) -> str:
    """Return what to call a run, or the study K of it: ``run 17`` or ``study 17.2``."""
    return f"run {run}" if study is None else f"study {run}.{study}"


RunEvent: TypeAlias = (
    ModelLoading
    | RunStarted
    | AnswerStarted
    | PromptEvaluated
    | TextWritten
    | TokenArrived
    | AtomScored
    | UnitsWithdrawn
    | AnswerFinished
    | AnswerRetried
    | Notice
    | NoProgress
    | RunEnded
)
