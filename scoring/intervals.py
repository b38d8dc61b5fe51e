"""Percentile bootstrap over generations: atoms of one answer are dependent, so answers are drawn, not atoms."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoring.metrics import METRICS, evaluate_units
from scoring.scored_units import FloatArray, Groups, SortedColumns, require_probability_rows
from scoring.value import INFINITE_IN_DRAWS, TOO_FEW_GENERATIONS, UNDEFINED_IN_EVERY_DRAW, Value

DRAWS = 1000
LEVEL = 0.95

THREADS = 4
"""numpy works outside the interpreter lock; the result does not depend on the number."""

BATCH = 32
"""Draws held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval, or None at both ends with the reason.

    Attributes:
        low: lower end.
        high: upper end.
        level: coverage aimed at, in (0, 1).
        draws: resamples in which the metric was defined.
        left_out: resamples in which it was not.
        reason: why there is no interval; None where there is one.
    """

    low: float | None
    high: float | None
    level: float
    draws: int
    left_out: int
    reason: str | None = None


def bootstrap_intervals(
    confidence: ArrayLike,
    correct: ArrayLike,
    groups: Groups | None,
    generator: np.random.Generator,
    names: Iterable[str] = tuple(METRICS),
    probability: bool = True,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> dict[str, Interval]:
    """Return an interval for each named metric by drawing generations with replacement.

    Args:
        confidence: finite numbers, higher is more confident, shape ``(n,)``.
        correct: booleans or 0 and 1, shape ``(n,)``.
        groups: the generation of each row, shape ``(n,)``; without, each row is drawn by itself.
        generator: the only source of chance.
        names: keys of `scoring.metrics.METRICS`.
        probability: whether the confidences mean probabilities.
        draws: number of resamples, at least 1.
        level: coverage aimed at, in (0, 1); the ends are the linear quantiles (1 ∓ level)/2.

    Returns:
        No interval with fewer than two generations.  Resamples in which a metric is undefined are left out and
        counted; the metric has no interval when it is undefined in all.

    Raises:
        RowError: as `scoring.metrics.evaluate_metrics`.
        ValueError: for columns of different lengths, fewer than one draw or a level outside (0, 1).
    """
    if draws < 1 or not 0.0 < level < 1.0:
        raise ValueError(f"draws is at least 1 and level inside (0, 1), not {draws}, {level}")
    columns = SortedColumns.from_columns(confidence, correct, groups)
    if probability:
        require_probability_rows(confidence)
    wanted = tuple(names)
    count = columns.generations
    if count < 2:
        return dict.fromkeys(wanted, interval_of(np.zeros(0), level, count))
    found: dict[str, list[float]] = {name: [] for name in wanted}
    reasons: dict[str, str] = {}

    def evaluate(drawn: NDArray[np.int64]) -> dict[str, Value]:
        return evaluate_units(columns.units(drawn), wanted, probability)

    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        for start in range(0, draws, BATCH):
            batch = [
                np.bincount(generator.integers(0, count, size=count), minlength=count)
                for _ in range(min(BATCH, draws - start))
            ]
            for values in pool.map(evaluate, batch):
                for name, value in values.items():
                    found[name].append(np.nan if value.value is None else value.value)
                    if value.reason is not None:
                        reasons[name] = value.reason
    return {
        name: interval_of(np.array(values), level, count, reasons.get(name, UNDEFINED_IN_EVERY_DRAW))
        for name, values in found.items()
    }


def interval_of(
    values: FloatArray, level: float = LEVEL, generations: int = 2, reason: str = UNDEFINED_IN_EVERY_DRAW
) -> Interval:
    """Return the percentile interval of a metric's resamples; NaN are left out and counted, infinite ones allow none.

    Args:
        values: shape ``(draws,)``.
        level: coverage aimed at, in (0, 1).
        generations: how many were drawn from; fewer than two give no interval.
        reason: why there is none when the metric is undefined in every resample.
    """
    if generations < 2:
        return Interval(None, None, level, 0, 0, TOO_FEW_GENERATIONS)
    defined = values[~np.isnan(values)]
    if not defined.size:
        return Interval(None, None, level, 0, values.size, reason)
    if np.isinf(defined).any():
        return Interval(None, None, level, int(defined.size), int(values.size - defined.size), INFINITE_IN_DRAWS)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Interval(float(low), float(high), level, int(defined.size), int(values.size - defined.size))
