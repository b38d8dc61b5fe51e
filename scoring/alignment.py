"""Labels by Needleman–Wunsch alignment, where one skipped unit costs one unit (SALT appendix H).

Written here because libraries align letters, choose among equally good alignments as they like, and hold the whole
table of scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from scoring.labels import UnitStatus, label_unit
from scoring.value import NO_REFERENCE, NOTHING_GENERATED, Value, undefined

RELEASE_SCORES = {"match": 2, "mismatch": -1, "gap": -1}
"""The scores of the published release, as keyword arguments of `align`."""


MOST_CELLS = 400_000_000
"""Pairs of a generated and a reference unit that are compared at most, 20,000 by 20,000; these take 6 s."""

_BAND_CELLS = 16_000_000
"""Scores that are held at a time, 64 MB."""


class AlignmentTooLargeError(ValueError):
    """An answer and a reference with more pairs of units than `MOST_CELLS`."""


@dataclass(frozen=True, slots=True)
class AlignedUnit:
    """One column of an alignment; a missing unit has no generated index, a redundant one no reference index."""

    generated: int | None
    reference: int | None
    status: UnitStatus


@dataclass(frozen=True, slots=True)
class Alignment:
    """The columns from first to last."""

    units: tuple[AlignedUnit, ...]

    @property
    def statuses(self) -> tuple[UnitStatus, ...]:
        """The status of every column."""
        return tuple(unit.status for unit in self.units)

    @property
    def correct(self) -> int:
        """Number of matched units."""
        return sum(unit.status == "correct" for unit in self.units)

    @property
    def generated(self) -> int:
        """Number of generated units."""
        return sum(unit.generated is not None for unit in self.units)

    @property
    def reference(self) -> int:
        """Number of reference units."""
        return sum(unit.reference is not None for unit in self.units)

    @property
    def skipped(self) -> int:
        """Number of reference units left unmatched before the last generated unit."""
        last = max((index for index, unit in enumerate(self.units) if unit.generated is not None), default=0)
        return sum(unit.generated is None for unit in self.units[:last])

    @property
    def precision(self) -> Value:
        """Correct units per generated or skipped unit, in [0, 1], higher is better; undefined if nothing generated."""
        if not self.generated:
            return undefined(NOTHING_GENERATED)
        return Value(self.correct / (self.generated + self.skipped))

    @property
    def recall(self) -> Value:
        """Correct units per reference unit, in [0, 1], higher is better; undefined without a reference unit."""
        return Value(self.correct / self.reference) if self.reference else undefined(NO_REFERENCE)


def align(
    generated: Sequence[str], reference: Sequence[str], match: int = 1, mismatch: int = 0, gap: int = 0
) -> Alignment:
    """Align an answer with its reference; both are normalised units in order.

    Of the optimal alignments this is the one traced back from the end that prefers a diagonal step (match or
    mismatch), then a missing unit, then a redundant one (our reading of the paper).

    Args:
        generated: generated units.
        reference: reference units.
        match: score of two equal units.
        mismatch: score of two unequal units in one column.
        gap: score of a unit alone in its column.

    Returns:
        All units of both sides.  Time grows with ``len(generated) * len(reference)``; memory does not beyond 64 MB, but
        for ``sqrt(len(generated)) * len(reference)`` numbers.

    Raises:
        AlignmentTooLargeError: for more than `MOST_CELLS` pairs of units.
    """
    if len(generated) * len(reference) > MOST_CELLS:
        raise AlignmentTooLargeError(
            f"{len(generated):,} generated against {len(reference):,} reference units are too many to align; at most"
            f" {MOST_CELLS:,} pairs"
        )
    codes: dict[str, int] = {}
    rows = np.array([codes.setdefault(text, len(codes)) for text in generated], dtype=np.int32)
    columns = np.array([codes.setdefault(text, len(codes)) for text in reference], dtype=np.int32)
    # Only the first row of scores of each band is kept; the others are computed again when the way back is there.
    # 20,000 by 20,000 units need 1.6 GB in one piece.
    band = max(_BAND_CELLS // (len(reference) + 1), isqrt(len(generated)) + 1)
    starts = [gap * np.arange(len(reference) + 1, dtype=np.int32)]
    for first in range(0, len(generated) - band, band):
        starts.append(_score_rows(starts[-1], rows[first : first + band], columns, match, mismatch, gap)[-1].copy())
    units: list[AlignedUnit] = []
    row, column = len(generated), len(reference)
    first, scores = row, starts[0][None]
    while row or column:
        if row == first and row:
            first = (row - 1) // band * band
            scores = _score_rows(starts[first // band], rows[first:row], columns[:column], match, mismatch, gap)
        score = scores[row - first, column]
        if row and column:
            step = match if generated[row - 1] == reference[column - 1] else mismatch
            if score == scores[row - 1 - first, column - 1] + step:
                row, column = row - 1, column - 1
                units.append(AlignedUnit(row, column, label_unit(generated[row], reference[column])))
                continue
        if column and score == scores[row - first, column - 1] + gap:
            column -= 1
            units.append(AlignedUnit(None, column, "missing"))
        else:
            row -= 1
            units.append(AlignedUnit(row, None, "redundant"))
    return Alignment(tuple(reversed(units)))


def _score_rows(
    start: NDArray[np.int32],
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    match: int,
    mismatch: int,
    gap: int,
) -> NDArray[np.int32]:
    """Return the best score of pairs of prefixes, shape ``(len(rows) + 1, len(columns) + 1)``.

    Steps along a row depend on each other only through a running maximum, so a row is a few numpy calls.

    Args:
        start: the scores of the row before, at least ``len(columns) + 1`` of them.
        rows: codes of generated units.
        columns: codes of reference units.
        match: score of two equal units.
        mismatch: score of two unequal units in one column.
        gap: score of a unit alone in its column.
    """
    gaps = gap * np.arange(len(columns) + 1, dtype=np.int32)
    scores = np.empty((len(rows) + 1, len(columns) + 1), dtype=np.int32)
    scores[0] = start[: len(columns) + 1]
    for index, code in enumerate(rows):
        above, current = scores[index], scores[index + 1]
        np.add(above, gap, out=current)
        steps = np.where(columns == code, match, mismatch)
        np.maximum(current[1:], above[:-1] + steps, out=current[1:])
        current -= gaps
        np.maximum.accumulate(current, out=current)
        current += gaps
    return scores
