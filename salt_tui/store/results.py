"""What read-only queries return: frozen dataclasses for screens, reports and scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from salt_tui.store.records import (
    InterventionRecord,
    ModelRecord,
    ProblemRecord,
    Role,
    RunRecord,
    RunState,
    SignalKind,
    Statistics,
    StudyKind,
    StudyRecord,
    TokenRecord,
    UnitRecord,
    Work,
)
from salt_tui.store.schema import COMPUTED_SIGNALS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class StudyListing:
    """One line of the list of studies; the attributes are those of `RunListing`."""

    work: Work
    kind: StudyKind
    state: RunState
    message: str | None
    created_at: str
    finished_at: str | None
    exact: bool | None


@dataclass(frozen=True, slots=True)
class RunListing:
    """One line of the list of runs.

    Attributes:
        run: its number.
        model: name of the model as the run knew it.
        tasks: in the order of the plan.
        method: ``regular`` or ``cot``.
        state: as stored, but ``interrupted`` for a ``running`` run whose process is gone.
        created_at, finished_at: ISO 8601, UTC.
        answers_done, answers: finished answers, and all that the plan asks for.
        atoms, correct: generated and correct atoms of the finished answers that count.
        precision: mean over the tasks with an atom of their share of correct atoms, each task equal, as in the
            report; None without an atom.
        exact: result of the exactness check, None when not checked.
        shots, seed, sampling, width: as the plan says: worked examples, seed of the problems, how tokens are chosen,
            sequences decoded at once; None where it says nothing.
        statistics: what the numbers of a token rest on.
        note: the user's, None without one.
        studies: oldest first.
    """

    run: int
    model: str
    tasks: tuple[str, ...]
    difficulty: str
    method: str
    state: RunState
    message: str | None
    created_at: str
    finished_at: str | None
    answers_done: int
    answers: int
    atoms: int
    correct: int
    precision: float | None
    exact: bool | None
    shots: int | None
    seed: int | None
    sampling: Mapping[str, Any] | None
    width: int | None
    statistics: Statistics
    note: str | None
    studies: tuple[StudyListing, ...]
    plan_hash: str
    environment_hash: str


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with everything that ``run`` and ``model`` hold of it; plan and environment are JSON objects."""

    run: int
    state: RunState
    message: str | None
    created_at: str
    finished_at: str | None
    note: str | None
    model: ModelRecord
    record: RunRecord


@dataclass(frozen=True, slots=True)
class StoredStudy:
    """A study with everything that ``study`` and ``model`` hold of it; plan and environment are JSON objects."""

    work: Work
    state: RunState
    message: str | None
    created_at: str
    finished_at: str | None
    model: ModelRecord
    record: StudyRecord


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """A task's answers and the atoms of those that count: finished and not failed, cancelled or context_full.

    Attributes:
        task: its name.
        difficulty, method: as planned.
        answers, done: planned and finished answers.
        left_out: finished answers that do not count.
        atoms: generated atoms, abstained ones included.
        correct, wrong, redundant, abstained, missing: atoms by status; the first four add up to ``atoms``.
        reference_atoms: reference atoms of the answers that count.
        statuses: finished answers by answer status; a status without answers has no key.
    """

    task: str
    difficulty: str
    method: str
    answers: int
    done: int
    left_out: int
    atoms: int
    correct: int
    wrong: int
    redundant: int
    abstained: int
    missing: int
    reference_atoms: int
    statuses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class UnitColumns:
    """The units of a run as arrays of one length, ordered by generation and index, of the answers that count.

    Attributes:
        kind: ``atom``, ``line`` or ``generation``.
        task_names: what the codes in ``task`` stand for, in the order of the plan.
        task: code of the task.
        generation: its number.
        position: of the problem in its task.
        index: of the unit in its answer.
        line: that the unit stands on, -1 where there is none.
        status: code, the place in `schema.UNIT_STATUSES`.
        confidences: values by confidence function, NaN for NULL.
        lower_is_confident: those of them that are from elsewhere and whose lower values are more confident.
        undefined: why a function has no value at all where the engine did not give what it needs.
    """

    kind: str
    task_names: tuple[str, ...]
    task: NDArray[np.int64]
    generation: NDArray[np.int64]
    position: NDArray[np.int64]
    index: NDArray[np.int64]
    line: NDArray[np.int64]
    status: NDArray[np.int64]
    confidences: Mapping[str, NDArray[np.float64]]
    lower_is_confident: frozenset[str] = frozenset()
    undefined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer without its tokens and units; ``generation`` and what follows are None before it is begun.

    Attributes:
        problem_id: the row in ``problem``.
        problem: what was asked.
        generation: its number.
        attempt, revision: of the answer.
        prompt_tokens: length of the prompt, in tokens.
        preamble: how many of them are the part shared by the task.
        tokens: stored answer tokens.
        reply: bytes, None until the answer is finished.
        stop_reason, extraction, answer_status: None until the answer is finished.
    """

    problem_id: int
    problem: ProblemRecord
    generation: int | None
    attempt: int | None
    revision: int | None
    prompt_tokens: int | None
    preamble: int | None
    tokens: int
    reply: bytes | None
    stop_reason: str | None
    extraction: str | None
    answer_status: str | None
    error: str | None
    prompt_seconds: float | None
    decode_seconds: float | None


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A generation that has begun, without its tokens and units.

    Attributes:
        id: its number.
        problem_id: the row in ``problem``.
        task, position: of that problem.
        parent: the generation that it goes on from or asks about, None where there is none.
        number: which sample, branch or question it is.
        reply: bytes, None until it is finished, as are ``stop_reason``, ``extraction`` and ``answer_status``; the
            latter two are None for a question or a walk.
    """

    id: int
    problem_id: int
    task: str
    position: int
    role: Role
    parent: int | None
    number: int
    attempt: int
    revision: int
    preamble: int
    reply: bytes | None
    stop_reason: str | None
    extraction: str | None
    answer_status: str | None
    error: str | None
    prompt_seconds: float | None
    decode_seconds: float | None


@dataclass(frozen=True, slots=True)
class EditedBranch:
    """A branch in which atoms are changed, and where it hangs in the tree of its answer.

    Attributes:
        record: its design and outcome; ``variant`` is its name and ``edits`` are changes of the text it forks from.
        parent: the generation that it forks from, the answer or another branch.
        parent_name: name of that branch; None where it forks from the answer.
        depth: branches between it and the answer.
        unchanged_log_probability: of the right atom at the target behind the text it forks from, unchanged; None where
            not measured.
    """

    record: InterventionRecord
    parent: int
    parent_name: str | None
    depth: int
    unchanged_log_probability: float | None

    @property
    def name(self) -> str:
        """The user's, or b1, b2, …."""
        return self.record.variant

    def edits_in_words(self) -> str:
        """Return the changes as ``--set`` takes them, atoms counted from 1."""
        return ";".join(f"{index + 1}={text}" for index, text in self.record.edits)


@dataclass(frozen=True, slots=True)
class SignalName:
    """A signal that a run or study gives about the answers of a run.

    Attributes:
        work: the run or study that gives it.
        kinds: of what there are values.
        shown: what to call it: ``name``, or ``name@RUN.K`` where the name alone says too little.
        lower_is_confident: whether it is from elsewhere and was added as one whose lower values are more confident.
    """

    name: str
    work: Work
    kinds: tuple[SignalKind, ...]
    shown: str
    lower_is_confident: bool = False

    @property
    def is_of_tokens(self) -> bool:
        """It is a function of the stored tokens, computed when it is read."""
        return self.work.study is None and self.name in COMPUTED_SIGNALS


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token with its bytes and those of its alternatives, from the vocabulary; bytes need not be whole characters."""

    record: TokenRecord
    piece: bytes
    alternative_pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A finished generation with all its rows, to be scored again.

    Attributes:
        generation: its number.
        problem: what was asked.
        role, number: what it is and which one of its role, from 0.
        revision: how often its units were withdrawn.
        prompt_end: bytes of the last tokens of the prompt; empty where the engine gave no ids.
        tokens: in order of position; empty for a text that came without them.
        units: ordered by kind and index.
        faults: what does not fit together among tokens, reply and units, in words.
    """

    generation: int
    problem: ProblemRecord
    role: str
    number: int
    revision: int
    reply: bytes
    stop_reason: str
    extraction: str | None
    answer_status: str | None
    prompt_end: bytes
    tokens: tuple[TokenRecord, ...]
    units: tuple[UnitRecord, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrongAtom:
    """A generated atom that is not correct, with the model's confidence in it."""

    generation: int
    task: str
    position: int
    index: int
    line: int | None
    text: str
    reference: str | None
    status: str
    max_probability: float
