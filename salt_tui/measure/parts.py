"""Units finer than an atom, its tokens and characters, as columns like those of atoms (SALT appendix J)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitRecord
from salt_tui.store.results import StoredAnswer, StoredToken, UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.analyses_granularity import character_spans, correct_parts
from scoring.answer_status import LEFT_OUT
from scoring.confidence import HEADLINE_FUNCTION

PARTS = ("token", "character")

_STATUS = {True: UNIT_STATUSES.index("correct"), False: UNIT_STATUSES.index("wrong")}


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of all atoms of a run.

    Attributes:
        columns: by name of `PARTS`; the confidence of a part, under `HEADLINE_FUNCTION`, is the probability of its
            token (of the token that holds most of a character that several share, the first of equal ones).
        left_out: atoms whose text is not the bytes of the reply, because inner white space was folded, or that have
            no tokens.
    """

    columns: Mapping[str, UnitColumns]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Part:
    task: int
    generation: int
    position: int
    index: int
    correct: bool
    confidence: float


def read_parts(queries: Queries, run: int) -> Parts:
    """Read the tokens of a run's atoms and compare each part with the reference atom at the same place."""
    found: dict[str, list[_Part]] = {kind: [] for kind in PARTS}
    tasks: dict[str, int] = {}
    left_out = 0
    for answer in queries.answers(run):
        if answer.generation is None or answer.answer_status is None or answer.answer_status in LEFT_OUT:
            continue
        task = tasks.setdefault(answer.problem.task, len(tasks))
        tokens = queries.tokens(answer.generation)
        for unit in queries.units(answer.generation, "atom"):
            if unit.text is None or unit.status == "abstained":
                continue
            parts = _parts_of_atom(answer, unit, tokens)
            if parts is None:
                left_out += 1
                continue
            for kind, entries in parts.items():
                found[kind].extend(
                    _Part(task, answer.generation, answer.problem.position, len(found[kind]) + place, right, confidence)
                    for place, (right, confidence) in enumerate(entries)
                )
    names = tuple(tasks)
    return Parts({kind: _columns(kind, names, entries) for kind, entries in found.items()}, left_out)


def _parts_of_atom(
    answer: StoredAnswer, unit: UnitRecord, tokens: Sequence[StoredToken]
) -> dict[str, list[tuple[bool, float]]] | None:
    """Return whether each token and character of an atom is right, with its probability; None where that is unknown."""
    text = (unit.text or "").encode("utf-8", "surrogatepass")
    start, end = unit.byte_start, unit.byte_end
    if start is None or end is None or answer.reply is None or answer.reply[start:end] != text or not text:
        return None
    spans = list(_token_spans(tokens, start, end))
    if not spans or sum(last - first for first, last, _ in spans) != end - start:
        return None
    characters = character_spans(unit.text or "")
    of_tokens = correct_parts(unit.text or "", unit.reference, [(first, last) for first, last, _ in spans])
    of_characters = correct_parts(unit.text or "", unit.reference, characters)
    confidences = [_holder(spans, first, last) for first, last in characters]
    return {
        "token": [(right, confidence) for right, (_, _, confidence) in zip(of_tokens, spans, strict=True)],
        "character": list(zip(of_characters, confidences, strict=True)),
    }


def _token_spans(tokens: Sequence[StoredToken], start: int, end: int) -> Iterator[tuple[int, int, float]]:
    """Yield the part of the atom that each of its tokens covers, from its beginning, and the token's probability."""
    for token in tokens:
        record = token.record
        first, last = max(record.start, start), min(record.end, end)
        if first < last and record.log_probability is not None:
            yield first - start, last - start, math.exp(min(record.log_probability, 0.0))


def _holder(spans: Sequence[tuple[int, int, float]], first: int, last: int) -> float:
    """Return the probability of the token that covers most bytes of a character."""
    return max(spans, key=lambda span: min(span[1], last) - max(span[0], first))[2]


def _columns(kind: str, names: tuple[str, ...], parts: Sequence[_Part]) -> UnitColumns:
    def column(values: Iterator[int]) -> np.ndarray:
        return np.fromiter(values, dtype=np.int64, count=len(parts))

    return UnitColumns(
        kind=kind,
        task_names=names,
        task=column(part.task for part in parts),
        generation=column(part.generation for part in parts),
        position=column(part.position for part in parts),
        index=column(part.index for part in parts),
        line=np.full(len(parts), -1, dtype=np.int64),
        status=column(_STATUS[part.correct] for part in parts),
        confidences={
            HEADLINE_FUNCTION: np.fromiter((part.confidence for part in parts), dtype=np.float64, count=len(parts))
        },
    )
