"""Wilcoxon's signed-rank test over cells of several pairs of runs, as the paper tests them (SALT appendices G.1, G.6).

A cell is one pair of runs on one task.  Within a run there is nothing to pair; `scoring.conclusions` decides there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from scoring.scored_units import FloatArray
from scoring.value import Value, undefined

ROUNDING = 1e-12
LARGEST_EXACT = 50

FEWEST_CELLS = 20
TOO_FEW_CELLS = f"fewer than {FEWEST_CELLS} cells of pair and task"


@dataclass(frozen=True, slots=True)
class SignedRankTest:
    """The paper's test of one metric over several pairs of runs.

    Attributes:
        cells: differences that were tested, one per pair and task.
        p_better: one-sided p that the second runs are better, not corrected for the number of metrics.
        p_worse: the same for worse.
        corrected_better: after Holm's correction for the number of metrics that were tested.
        corrected_worse: the same for worse.
    """

    cells: int
    p_better: Value
    p_worse: Value
    corrected_better: Value
    corrected_worse: Value


def signed_rank_tests(gains: Mapping[str, ArrayLike]) -> dict[str, SignedRankTest]:
    """Test several metrics over cells of pair and task, with Holm's correction beside the paper's p-values.

    Args:
        gains: per metric the finite differences second − first of its cells, shape ``(cells,)``, signs turned for
            errors so that positive is better.

    Returns:
        Undefined p-values for a metric with fewer than 20 cells; it is not counted in the correction.

    Raises:
        ValueError: for NaN.
    """
    columns = {name: np.asarray(column, dtype=np.float64) for name, column in gains.items()}
    tested = [name for name, column in columns.items() if column.size >= FEWEST_CELLS]
    better = [one_sided_wilcoxon(columns[name]) for name in tested]
    worse = [one_sided_wilcoxon(-columns[name]) for name in tested]
    rows = dict(zip(tested, zip(better, worse, holm(better), holm(worse), strict=True), strict=True))
    unknown = undefined(TOO_FEW_CELLS)
    return {
        name: SignedRankTest(column.size, *(Value(float(p)) for p in rows[name]))
        if name in rows
        else SignedRankTest(column.size, unknown, unknown, unknown, unknown)
        for name, column in columns.items()
    }


def one_sided_wilcoxon(differences: ArrayLike) -> float:
    """Return the one-sided p of Wilcoxon's signed-rank test that differences lie above 0.

    Differences within 1e-12 of 0 are rounding and dropped; none left: p = 1.  Sizes within 1e-12 of each other are
    tied.  Up to 50 differences the distribution is exact, given the ties, which scipy's is not; above, it is scipy's
    normal one with tie correction and no continuity correction.

    Args:
        differences: shape ``(n,)``; infinite ones rank highest and tie.

    Raises:
        ValueError: for NaN.
    """
    column = np.asarray(differences, dtype=np.float64)
    if np.isnan(column).any():
        raise ValueError("differences are numbers, not NaN")
    column = column[np.abs(column) > ROUNDING]
    if not column.size:
        return 1.0
    if column.size <= LARGEST_EXACT:
        return _exact_p_value(column.tolist())
    from scipy.stats import wilcoxon

    signed = np.sign(column) * _tie_groups(np.abs(column))
    return float(wilcoxon(signed, alternative="greater", correction=False, method="asymptotic").pvalue)


def _tie_groups(magnitudes: FloatArray) -> FloatArray:
    """Return 1, 2, … for the magnitudes in ascending order; those within rounding of the one below share a number."""
    order = np.argsort(magnitudes)
    ascending = magnitudes[order]
    with np.errstate(invalid="ignore"):  # two infinite ones tie
        apart = np.diff(ascending) > ROUNDING * np.maximum(ascending[:-1], 1.0)
    groups = np.empty(magnitudes.size)
    groups[order] = np.concatenate(([1.0], 1.0 + np.cumsum(apart)))
    return groups


def _exact_p_value(differences: list[float]) -> float:
    """Rank in plain Python: for the few cells of a report 10 µs instead of 80, and a report asks 100,000 times."""
    order = sorted(range(len(differences)), key=lambda number: abs(differences[number]))
    twice_ranks = [0] * len(order)
    start = 0
    for place in range(1, len(order) + 1):
        below = abs(differences[order[place - 1]])
        # Not above: two infinite ones have no difference and tie.
        if place < len(order) and not abs(differences[order[place]]) - below > ROUNDING * max(below, 1.0):
            continue
        for number in order[start:place]:
            twice_ranks[number] = start + place + 1
        start = place
    positive = sum(rank for rank, difference in zip(twice_ranks, differences, strict=True) if difference > 0.0)
    return _exact_tail(tuple(sorted(twice_ranks)), positive)


@lru_cache(maxsize=65_536)
def _exact_tail(twice_ranks: tuple[int, ...], twice_positive: int) -> float:
    """P(sum of the ranks with random signs ≥ the observed one), by adding one rank after the other."""
    probability = np.zeros(sum(twice_ranks) + 1)
    probability[0] = 1.0
    for rank in twice_ranks:
        shifted = np.zeros_like(probability)
        shifted[rank:] = probability[:-rank]
        probability = 0.5 * (probability + shifted)
    return min(1.0, float(probability[twice_positive:].sum()))


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values corrected for their number by Holm's step-down method, in [0, 1], in the same order.

    Args:
        p_values: in [0, 1], shape ``(n,)``.

    Raises:
        ValueError: for a value outside [0, 1].
    """
    column = np.asarray(p_values, dtype=np.float64)
    if not bool(((column >= 0.0) & (column <= 1.0)).all()):
        raise ValueError("p-values are in [0, 1]")
    order = np.argsort(column, kind="stable")
    steps = np.maximum.accumulate(column[order] * np.arange(column.size, 0, -1))
    corrected = np.empty_like(column)
    corrected[order] = np.minimum(steps, 1.0)
    return corrected
