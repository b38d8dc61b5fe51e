"""The rows that cross the border of the store; one frozen dataclass per table, names as in the schema.

None is SQL NULL and means undefined.  Byte ranges are half-open offsets into a generation's ``reply``; token ranges
are half-open indices into its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RunState = Literal["running", "interrupted", "failed", "finished"]
"""Of a run or a study."""
RESUMABLE: frozenset[RunState] = frozenset({"interrupted", "failed"})
"""States of a run or study that can be gone on with."""

UnitKind = Literal["atom", "line", "generation"]
SignalKind = Literal["token", "atom", "line", "generation"]
Role = Literal["answer", "sample", "branch", "question", "walk"]
"""What a generation is: the answer of a run, or a study's further sample, branch of an edited answer, question about an
answer, or walk of its tokens through a model."""
StudyKind = Literal["samples", "verbalised", "interventions", "activations", "second-model", "combine", "manual"]
Statistics = Literal["vocabulary", "top_k", "none"]
"""What the numbers of a token rest on: the whole vocabulary, the most probable tokens only, or nothing."""
AnswerKind = Literal["generated", "choice", "json", "numbers", "words", "lines", "text"]
"""``generated`` by a task of the program; the others come from a file."""

IMPORTED = "imported:"
"""Begins the identity of a model whose answers were imported."""

GenerationKey: TypeAlias = "tuple[int, int | None, Role, int]"
"""Problem, parent, role and number: what tells the generations of a work apart."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is claimed, computed and deleted as one: a run, or a study of a run.

    Attributes:
        run: number of the run.
        study: row of the study in ``study``; None for the run itself.
        number: K in the study's name RUN.K; None for the run itself.
    """

    run: int
    study: int | None = None
    number: int | None = None

    def __str__(self) -> str:
        """Return its name: ``17`` or ``17.2``."""
        return str(self.run) if self.number is None else f"{self.run}.{self.number}"

    @property
    def title(self) -> str:
        """What it is, with its name: ``run 17`` or ``study 17.2``."""
        return f"{'run' if self.study is None else 'study'} {self}"


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model; two with the same identity are one row.

    Attributes:
        identity: hash of the file, or what tells an endpoint's model apart where there is no file.
        sha256: of the file's content; None where there is no file.
        path: of the file, or address of the endpoint.
        entry: the resolved ``models.toml`` entry as canonical JSON.
    """

    identity: str
    sha256: str | None
    name: str
    path: str
    file_bytes: int | None
    description: str
    architecture: str | None
    quantisation: str | None
    parameters: int | None
    vocabulary_size: int | None
    trained_context: int | None
    template: str | None
    entry: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it is created; plan and environment are canonical JSON with the SHA-256 of that JSON."""

    plan: str
    plan_hash: str
    environment: str
    environment_hash: str
    exact: bool | None
    warnings: tuple[str, ...]
    statistics: Statistics = "vocabulary"


@dataclass(frozen=True, slots=True)
class StudyRecord:
    """A study as it is created; plan and environment as those of a run.

    Attributes:
        model: that computes it; None for the run's own.
    """

    kind: StudyKind
    plan: str
    plan_hash: str
    environment: str
    environment_hash: str
    exact: bool | None
    warnings: tuple[str, ...]
    statistics: Statistics = "vocabulary"
    model: ModelRecord | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation that a problem consists of."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ProblemRecord:
    """A problem of a run; ``position`` is its place in the order of the plan, 0-based per task.

    Attributes:
        answer_kind: what is to be answered and how it is split; not called ``kind``, which a unit has as well.
        choices: texts to choose from, in order; empty unless ``answer_kind`` is ``choice``.
        slices: name and value of each column that reports may be cut by.
        messages: the conversation that is asked; empty where ``text`` is.
    """

    task: str
    position: int
    content_id: str
    difficulty: str
    seed: int
    method: str
    text: str
    reference: str
    reference_atoms: int
    reference_lines: int
    answer_kind: AnswerKind = "generated"
    choices: tuple[str, ...] = ()
    slices: tuple[tuple[str, str], ...] = ()
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingProblem:
    """A problem without a finished answer.

    Attributes:
        id: its row in ``problem``.
        generation: its unfinished row in ``generation``, None when it was never begun.
        attempt: of that generation, 0 when it was never begun.
        problem: what was asked.
    """

    id: int
    generation: int | None
    attempt: int
    problem: ProblemRecord


@dataclass(frozen=True, slots=True)
class GenerationStart:
    """What is known when a generation begins.

    Attributes:
        problem: the row in ``problem``.
        prompt_tokens: ids of the whole prompt; None where the engine gives none.
        preamble: how many of them are the shared beginning.
        attempt: 1 for the first.
        role: ``answer`` for a run, another for a study.
        parent: the generation that this one goes on from or asks about; None where there is none.
        number: which sample, branch or question it is, from 0.
    """

    problem: int
    prompt_tokens: tuple[int, ...] | None
    preamble: int
    attempt: int = 1
    role: Role = "answer"
    parent: int | None = None
    number: int = 0

    @property
    def key(self) -> GenerationKey:
        """What tells it apart from the other generations of its work."""
        return self.problem, self.parent, self.role, self.number


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One token of a reply; ``position`` is 0-based in the reply.

    Attributes:
        id: None where the engine gives none; ``piece`` holds its bytes then.
        log_probability: None for bytes of the reply that no token which the engine reported accounts for.
        entropy: None where it is not known over the whole vocabulary.
        alternatives: ids of the most probable tokens, most probable first; bytes where the engine gives no ids.
        piece: bytes of a token without id, else None: the vocabulary has them.
    """

    position: int
    id: int | None
    start: int
    end: int
    log_probability: float | None
    entropy: float | None
    alternatives: tuple[int | bytes, ...]
    alternative_log_probabilities: tuple[float, ...]
    forced: bool
    piece: bytes | None = None


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """One atom, line or generation, generated or missing.

    A missing unit has no text, ranges or confidences; a redundant one has no reference.  ``line`` is the 0-based
    line that an atom stands on.  ``confidences`` holds one value per confidence function, in the order of
    ``schema.CONFIDENCE_COLUMNS``, all None when the unit has no tokens.
    """

    kind: UnitKind
    index: int
    line: int | None
    text: str | None
    reference: str | None
    status: str
    token_start: int | None
    token_end: int | None
    byte_start: int | None
    byte_end: int | None
    confidences: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """What is stored of a finished answer when it is scored again.

    Attributes:
        units: all of them.
        extraction, answer_status: as in `GenerationEnd`.
        other_units: kind and index of those that stand elsewhere or are others than before, or are gone.
    """

    units: tuple[UnitRecord, ...]
    extraction: str
    answer_status: str
    other_units: tuple[tuple[UnitKind, int], ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationEnd:
    """What is known when a generation is over; written in one transaction with its last rows.

    Attributes:
        extraction, answer_status: None for a question or a walk, which hold no answer.
    """

    reply: bytes
    stop_reason: str
    extraction: str | None
    answer_status: str | None
    error: str | None
    prompt_seconds: float | None
    decode_seconds: float | None


@dataclass(frozen=True, slots=True)
class FinishedAnswer:
    """An answer that came complete.

    Attributes:
        problem: what was asked.
        end: the reply and how it ended.
        revision: how often units were withdrawn while it was read.
        tokens: all of them; empty where none are known.
        units: all of them, the missing ones too.
        signals: what came with it about its tokens and units; their generation is filled in.
    """

    problem: ProblemRecord
    end: GenerationEnd
    revision: int
    tokens: tuple[TokenRecord, ...]
    units: tuple[UnitRecord, ...]
    signals: tuple[SignalRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class SignalRecord:
    """A score of a token or unit of an answer, made by a study or brought from elsewhere.

    Attributes:
        generation: the answer that the signal is about.
        index: of the token or unit among those of its kind, from 0.
        value: None where it is undefined; there is a reason then.
        reason: why it is undefined, or a remark about the value; None where there is nothing to say.
    """

    generation: int
    kind: SignalKind
    index: int
    name: str
    value: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ActivationRecord:
    """The activation of one layer for a token or unit of an answer.

    Attributes:
        generation: the answer.
        index: of the token or unit among those of its kind, from 0.
        positions: whether the states that produced the tokens were taken, or those at the tokens themselves.
        vector: shape ``(width,)``; stored as 16-bit floats with a scale, so at a relative precision of 2**-11.
    """

    generation: int
    kind: SignalKind
    index: int
    layer: int
    positions: Literal["producing", "own"]
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class InterventionRecord:
    """The design of one branch: what was changed before the target, and what came of it.

    Attributes:
        generation: the branch.
        answer: the stored answer.  The branch's ``generation.parent`` is what it forks from: it or a branch of it.
        target: index of the atom that is generated again, from 0.
        variant: name of the branch; of a planned experiment direction and number.
        edits: index and new text of each changed atom; empty for a baseline.
        treatment_global, treatment_local: change of the share of right atoms before the target, over all and over the
            last ten, −1 to 1.
        length: number of atoms before the target.
        correct_before, correct_before_local: share of right atoms there in the original, over all and the last ten.
        outcome: whether the atom at the target is right; None where it could not be computed.
        log_probability_reference: of the right atom at the target, natural, at most 0; None where not measured.
        reason: why the outcome is None, or a remark about it.
    """

    generation: int
    answer: int
    target: int
    variant: str
    direction: Literal["baseline", "correction", "corruption", "mixed"]
    edits: tuple[tuple[int, str], ...]
    treatment_global: float | None
    treatment_local: float | None
    length: int
    correct_before: float | None
    correct_before_local: float | None
    outcome: bool | None
    log_probability_reference: float | None
    reason: str | None = None
