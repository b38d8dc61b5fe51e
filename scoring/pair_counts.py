"""AUROC in many resamples of answers at once, from counts of the pairs of every two answers.

AUROC is a ratio of two sums over pairs of units.  Counted once per pair of answers, a thousand resamples are one
product of matrices; no library offers that.
"""

from __future__ import annotations

import numpy as np

from scoring.scored_units import FloatArray, IntArray

LARGEST_PAIR_TABLE = 4_000_000
MOST_PAIRED_GENERATIONS = 250
"""Units times generations, and generations, up to which units are paired by generation; beyond, draws are summed.

1,000 draws of 12,500 units in 250 generations: 0.13 s paired, 0.36 s by draws.
"""

BATCH_CELLS = 4_000_000
"""Draws times units held in memory at a time beyond that."""


def auroc_in_draws(
    confidence: FloatArray, right: FloatArray, generation: IntArray, draws: FloatArray, fold: IntArray | None = None
) -> FloatArray:
    """Return the macro AUROC of each resample, shape ``(draws,)``, NaN without a pair of a right and a wrong unit.

    Args:
        confidence: finite, higher is more confident, shape ``(n,)``.
        right: 1.0 for right and 0.0 for wrong units, shape ``(n,)``.
        generation: 0-based code of each unit's generation, shape ``(n,)``.
        draws: how often each generation counts in each resample, shape ``(draws, generations)``.
        fold: of each unit, shape ``(n,)``; only pairs inside a fold count then.  None: all pairs count.
    """
    ordered, pairs = pairs_in_draws(confidence, right, generation, draws, fold)
    area = np.full(pairs.shape, np.nan)
    np.divide(ordered, pairs, out=area, where=pairs > 0.0)
    return area


def pairs_in_draws(
    confidence: FloatArray, right: FloatArray, generation: IntArray, draws: FloatArray, fold: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the rightly ordered pairs (a tie is half) and all pairs of each resample; see `auroc_in_draws`."""
    parts = [np.arange(right.size)] if fold is None else [np.flatnonzero(fold == code) for code in np.unique(fold)]
    ordered, pairs = np.zeros(draws.shape[0]), np.zeros(draws.shape[0])
    for rows in parts:
        # A fold holds few of the generations; the table of pairs grows with their square.
        held, owner = np.unique(generation[rows], return_inverse=True)
        found, rights, wrongs = _counted(confidence[rows], right[rows], owner, draws[:, held])
        ordered += found
        pairs += rights * wrongs
    return ordered, pairs


def _counted(
    confidence: FloatArray, right: FloatArray, owner: IntArray, draws: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rightly ordered pairs, right units and wrong units of each resample."""
    if not confidence.size:
        nothing = np.zeros(draws.shape[0])
        return nothing, nothing, nothing
    order = np.argsort(confidence, kind="stable")
    scores, right, owner = confidence[order], right[order], owner[order]
    starts = np.flatnonzero(np.concatenate(([True], scores[1:] != scores[:-1])))
    if draws.shape[1] <= MOST_PAIRED_GENERATIONS and scores.size * draws.shape[1] <= LARGEST_PAIR_TABLE:
        return _by_pairs(right, owner, starts, draws)
    return _by_draws(right, owner, starts, draws)


def _by_pairs(
    right: FloatArray, owner: IntArray, starts: IntArray, draws: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count from the pairs of every two generations."""
    count = draws.shape[1]
    tie = np.zeros(right.size, dtype=np.int64)
    tie[starts[1:]] = 1
    place = np.cumsum(tie) * count + owner
    rights = np.bincount(place, weights=right, minlength=starts.size * count).reshape(starts.size, count)
    wrongs = np.bincount(place, weights=1.0 - right, minlength=starts.size * count).reshape(starts.size, count)
    pairs = rights.T @ (np.cumsum(wrongs, axis=0) - 0.5 * wrongs)
    ordered: FloatArray = ((draws @ pairs) * draws).sum(axis=1)
    return ordered, draws @ rights.sum(axis=0), draws @ wrongs.sum(axis=0)


def _by_draws(
    right: FloatArray, owner: IntArray, starts: IntArray, draws: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count by going through the sorted units of each resample."""
    step = max(1, BATCH_CELLS // right.size)
    parts = []
    for first in range(0, draws.shape[0], step):
        weights = draws[first : first + step][:, owner]
        rights = np.add.reduceat(weights * right, starts, axis=1)
        wrongs = np.add.reduceat(weights * (1.0 - right), starts, axis=1)
        below = np.cumsum(wrongs, axis=1) - 0.5 * wrongs
        parts.append(((rights * below).sum(axis=1), rights.sum(axis=1), wrongs.sum(axis=1)))
    ordered, right_units, wrong_units = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ordered, right_units, wrong_units
