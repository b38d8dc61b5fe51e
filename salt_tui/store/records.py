"""The rows that cross the border of the store; one frozen dataclass per table, names as in the schema.

None is SQL NULL and means undefined.  Byte ranges are half-open offsets into a generation's ``reply``; token ranges
are half-open indices into its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RunState = Literal["running", "interrupted", "failed", "finished"]
RESUMABLE: frozenset[RunState] = frozenset({"interrupted", "failed"})
"""States of a run that can be gone on with."""

UnitKind = Literal["atom", "line", "generation"]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model file; identified by its hash, so that equal files under two names are one row.

    Attributes:
        sha256: of the file's content.
        entry: the resolved ``models.toml`` entry as canonical JSON.
    """

    sha256: str
    name: str
    path: str
    file_bytes: int
    description: str
    architecture: str
    quantisation: str | None
    parameters: int
    vocabulary_size: int
    trained_context: int
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


@dataclass(frozen=True, slots=True)
class ProblemRecord:
    """A problem of a run; ``position`` is its place in the order of the plan, 0-based per task."""

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
class TokenRecord:
    """One answer token; ``position`` is 0-based in the answer."""

    position: int
    id: int
    start: int
    end: int
    log_probability: float
    entropy: float
    alternatives: tuple[int, ...]
    alternative_log_probabilities: tuple[float, ...]
    forced: bool


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
class GenerationEnd:
    """What is known when an answer is over; written in one transaction with its last tokens and units."""

    reply: bytes
    stop_reason: str
    extraction: str
    answer_status: str
    error: str | None
    prompt_seconds: float | None
    decode_seconds: float | None
