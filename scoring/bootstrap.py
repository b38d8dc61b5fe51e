"""Every metric of one table with its interval, by resampling answers; for metrics of any form, draw by draw."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoring.intervals import DRAWS, LEVEL, AnswerClasses, Interval, ResampledMetric, metric_interval
from scoring.metrics import METRICS, evaluate_units
from scoring.rate_intervals import rate
from scoring.scored_units import Groups, SortedColumns, group_codes, require_probability_rows
from scoring.value import ONE_ANSWER, Value

THREADS = 4
"""numpy works outside the interpreter lock; the result does not depend on the number."""

BATCH = 32
"""Draws held in memory at a time."""


def bootstrap_intervals(
    confidence: ArrayLike,
    correct: ArrayLike,
    groups: Groups | None,
    generator: np.random.Generator,
    names: Iterable[str] = tuple(METRICS),
    probability: bool = True,
    draws: int = DRAWS,
    level: float = LEVEL,
    weights: ArrayLike | None = None,
) -> dict[str, Interval]:
    """Return an interval for each named metric by drawing n − 1 of n generations with replacement.

    Args:
        confidence: finite numbers, higher is more confident, shape ``(n,)``.
        correct: booleans or 0 and 1, shape ``(n,)``.
        groups: the generation of each row, shape ``(n,)``; without, each row is drawn by itself.
        generator: the only source of chance.
        names: keys of `scoring.metrics.METRICS`.
        probability: whether the confidences mean probabilities.
        draws: number of resamples, at least 1.
        level: coverage aimed at, in (0, 1).
        weights: how many units each row stands for, shape ``(n,)``; one each by default.

    Returns:
        As `scoring.intervals.metric_interval`; ``accuracy`` as `scoring.rate_intervals.rate`.  Resamples in which a
        metric is undefined are left out and counted.

    Raises:
        RowError: for a row with NaN, infinity, a correctness other than 0 and 1, or, where confidences mean
            probabilities, a confidence outside [0, 1].
        ValueError: for columns of different lengths, fewer than one draw or a level outside (0, 1).
    """
    if draws < 1 or not 0.0 < level < 1.0:
        raise ValueError(f"draws is at least 1 and level inside (0, 1), not {draws}, {level}")
    columns = SortedColumns.from_columns(confidence, correct, groups, weights)
    if probability:
        require_probability_rows(confidence)
    wanted = tuple(names)
    count = columns.generations
    if count < 2:
        return dict.fromkeys(wanted, Interval(None, None, level, reason=ONE_ANSWER))
    found: dict[str, list[float]] = {name: [] for name in wanted}

    def evaluate(drawn: NDArray[np.int64]) -> dict[str, Value]:
        return evaluate_units(columns.units(drawn), wanted, probability)

    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        for start in range(0, draws, BATCH):
            batch = [
                np.bincount(generator.integers(0, count, size=count - 1), minlength=count)
                for _ in range(min(BATCH, draws - start))
            ]
            for values in pool.map(evaluate, batch):
                for name, value in values.items():
                    found[name].append(np.nan if value.value is None else value.value)
    outcomes = np.asarray(correct, dtype=bool)
    owners = np.arange(outcomes.size) if groups is None else group_codes(groups)
    classes = AnswerClasses.of(outcomes, owners)
    measured = evaluate_units(columns.units(), wanted, probability)
    intervals = {
        name: metric_interval(ResampledMetric(name, measured[name], np.array(values), classes), level)
        for name, values in found.items()
    }
    if "accuracy" in intervals and weights is None:
        sizes = np.bincount(owners, minlength=count)
        intervals["accuracy"] = rate(np.bincount(owners, weights=outcomes, minlength=count), sizes, level).interval
    return intervals
