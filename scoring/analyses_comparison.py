"""Which of several alternatives is better over paired cells, and whether the paired test supports it (SALT G.1, G.6).

A cell is one (model, task, method); alternatives are confidence functions, calibration maps, granularities or runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from scoring.scored_units import FloatArray
from scoring.value import Value, undefined

SIGNIFICANCE_LEVEL = 0.05
ROUNDING = 1e-12
LARGEST_EXACT = 50

NO_CELLS = "no cells"
NO_WINNER = "no alternative is significantly better than another"
BASE_IS_ZERO = "the base is 0"

CellValues = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every alternative against every other one.

    Attributes:
        names: the alternatives.
        p_values: ``p_values[i][j]``: one-sided p that i is better than j; None on the diagonal and without a shared
            cell.
        cells: ``cells[i][j]``: number of cells where both are defined.
        medians: each alternative's median over its cells.
        winners: those that are significantly better than some other and not significantly worse than any.
        best: the winner with the best median (the first of equal ones), None without a winner.
        reason: why there is no winner.
    """

    names: tuple[str, ...]
    p_values: tuple[tuple[float | None, ...], ...]
    cells: tuple[tuple[int, ...], ...]
    medians: dict[str, Value]
    winners: tuple[str, ...]
    best: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class MapChoice:
    """A calibration map with the confidence function that suits it best; the mean is over cells, each equal."""

    map: str
    function: str
    mean: Value
    cells: int


@dataclass(frozen=True, slots=True)
class MapComparison:
    """Every map at its best, and the paired comparison of these."""

    choices: tuple[MapChoice, ...]
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class PairedMeans:
    """Two alternatives over the cells where both are defined.

    Attributes:
        first: mean over these cells.
        second: mean over these cells.
        pairs: number of these cells.
        p_second_better: one-sided p that the second is better; undefined without a pair.
        p_first_better: the same for the first.
    """

    first: Value
    second: Value
    pairs: int
    p_second_better: Value
    p_first_better: Value


@dataclass(frozen=True, slots=True)
class GranularityComparison:
    """Two granularities over all cells, and task by task."""

    overall: PairedMeans
    tasks: dict[str, PairedMeans]


@dataclass(frozen=True, slots=True)
class PairedChange:
    """Relative change from one run to its pair in every cell, positive where the second is better.

    Attributes:
        cells: (second − base) / |base| per cell, its sign turned where lower is better.
        median: over the cells that have one.
        p_better: one-sided p that the second run is better; undefined without a pair.
        p_worse: one-sided p that it is worse.
    """

    cells: dict[str, Value]
    median: Value
    p_better: Value
    p_worse: Value


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


def compare(values: Mapping[str, CellValues], *, higher_is_better: bool) -> Comparison:
    """Return which alternative wins (SALT figures 7, 30 to 32 for confidence functions).

    One-sided paired Wilcoxon tests at p < 0.05 over the cells where both are defined, uncorrected for their number,
    as in the paper.  Several winners: the best median.  Fewer than five cells can never be significant.

    Args:
        values: per alternative one metric value per cell, None where undefined; all in the same order of cells.
        higher_is_better: the direction of the metric.

    Raises:
        ValueError: for different numbers of cells.
    """
    names = tuple(values)
    columns = _columns(values)
    sign = 1.0 if higher_is_better else -1.0
    p_values: list[tuple[float | None, ...]] = []
    cells: list[tuple[int, ...]] = []
    for first in names:
        shared = {other: _shared(columns[first], columns[other]) for other in names}
        cells.append(tuple(len(pair) for pair in shared.values()))
        p_values.append(
            tuple(
                None if other == first or not len(pair) else one_sided_wilcoxon(sign * _differences(pair))
                for other, pair in shared.items()
            )
        )
    better = np.array([[p is not None and p < SIGNIFICANCE_LEVEL for p in row] for row in p_values], dtype=bool)
    better = better.reshape(len(names), len(names))
    winners = tuple(name for i, name in enumerate(names) if better[i].any() and not better[:, i].any())
    medians = {name: _median(columns[name]) for name in names}
    best = max(winners, key=lambda name: sign * (medians[name].value or 0.0)) if winners else None
    reason = None if winners else (NO_WINNER if any(map(any, cells)) else NO_CELLS)
    return Comparison(names, tuple(p_values), tuple(cells), medians, winners, best, reason)


def compare_maps(values: Mapping[str, Mapping[str, CellValues]], *, higher_is_better: bool) -> MapComparison:
    """Return which calibration map wins, each with the confidence function that suits it best (SALT figures 8, 28).

    A map's function is the one with the best mean among those defined in the most cells (the first of equal ones).

    Args:
        values: per map and function one metric value per cell, None where undefined, in the same order of cells.
        higher_is_better: the direction of the metric.

    Raises:
        ValueError: for different numbers of cells.
    """
    sign = 1.0 if higher_is_better else -1.0
    choices: list[MapChoice] = []
    chosen: dict[str, CellValues] = {}
    for name, functions in values.items():
        candidates = []
        for function, column in _columns(functions).items():
            defined = column[~np.isnan(column)]
            if defined.size:
                candidates.append((defined.size, sign * float(defined.mean()), function))
        if not candidates:
            continue
        size, mean, function = max(candidates, key=lambda candidate: candidate[:2])
        choices.append(MapChoice(name, function, Value(sign * mean), size))
        chosen[name] = functions[function]
    return MapComparison(tuple(choices), compare(chosen, higher_is_better=higher_is_better))


def compare_granularities(
    first: CellValues, second: CellValues, tasks: Sequence[str], *, higher_is_better: bool
) -> GranularityComparison:
    """Return one metric at two granularities, such as atoms and lines (SALT figures 5, 15, 16, 43, 45).

    Args:
        first: one value per cell at the first granularity, None where undefined.
        second: the same cells at the second one.
        tasks: the task of each cell.
        higher_is_better: the direction of the metric.

    Raises:
        ValueError: for columns of different lengths.
    """
    rows = list(zip(first, second, tasks, strict=True))
    by_task = {
        task: _paired_means([row[:2] for row in rows if row[2] == task], higher_is_better)
        for task in dict.fromkeys(tasks)
    }
    return GranularityComparison(_paired_means([row[:2] for row in rows], higher_is_better), by_task)


def paired_change(
    base: Mapping[str, float | None], second: Mapping[str, float | None], *, higher_is_better: bool
) -> PairedChange:
    """Return the relative change between two runs that differ in one thing, such as the method (SALT figures 6, 38).

    Args:
        base: one metric value per cell, None where undefined.
        second: of the other run; only cells of both are compared.
        higher_is_better: the direction of the metric.

    Returns:
        A cell without both values, or with a base of 0, is undefined.  The tests are on plain differences, so a base
        of 0 does not leave them.
    """
    sign = 1.0 if higher_is_better else -1.0
    cells: dict[str, Value] = {}
    differences = []
    for cell, old in base.items():
        new = second.get(cell)
        if old is None or new is None:
            if cell in second:
                cells[cell] = undefined("undefined in one of the runs")
            continue
        differences.append(sign * (new - old))
        cells[cell] = Value(sign * (new - old) / abs(old)) if old else undefined(BASE_IS_ZERO)
    changes = np.array([change.value for change in cells.values() if change.value is not None])
    return PairedChange(
        cells=cells,
        median=Value(float(np.median(changes))) if changes.size else undefined(NO_CELLS),
        p_better=_p_value(np.array(differences)),
        p_worse=_p_value(-np.array(differences)),
    )


def _columns(values: Mapping[str, CellValues]) -> dict[str, FloatArray]:
    """Columns with NaN for undefined, for this module only."""
    sizes = {len(column) for column in values.values()}
    if len(sizes) > 1:
        raise ValueError(f"every alternative has one value per cell, not {sorted(sizes)} values")
    return {
        name: np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        for name, column in values.items()
    }


def _shared(first: FloatArray, second: FloatArray) -> FloatArray:
    both = np.column_stack([first, second])
    return both[~np.isnan(both).any(axis=1)]


def _differences(pairs: FloatArray) -> FloatArray:
    """First minus second of each pair; two infinite ones tie."""
    return np.subtract(pairs[:, 0], pairs[:, 1], out=np.zeros(len(pairs)), where=pairs[:, 0] != pairs[:, 1])


def _median(column: FloatArray) -> Value:
    defined = column[~np.isnan(column)]
    # The median of an even number of infinite values would be inf − inf in numpy's mean of the middle two.
    ordered = np.sort(defined)
    middle = ordered[(ordered.size - 1) // 2 : ordered.size // 2 + 1]
    return Value(float(middle.sum() / middle.size)) if defined.size else undefined(NO_CELLS)


def _p_value(differences: FloatArray) -> Value:
    return Value(one_sided_wilcoxon(differences)) if differences.size else undefined(NO_CELLS)


def _paired_means(rows: Sequence[tuple[float | None, float | None]], higher_is_better: bool) -> PairedMeans:
    pairs = np.array([row for row in rows if row[0] is not None and row[1] is not None], dtype=np.float64)
    if not pairs.size:
        missing = undefined(NO_CELLS)
        return PairedMeans(missing, missing, 0, missing, missing)
    gain = _differences(pairs) * (-1.0 if higher_is_better else 1.0)
    first, second = (Value(float(mean)) for mean in pairs.mean(axis=0))
    return PairedMeans(first, second, len(pairs), _p_value(gain), _p_value(-gain))


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
