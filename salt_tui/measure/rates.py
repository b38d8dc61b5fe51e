"""Precision, recall and redundancy of every task and of their mean, with intervals by drawing whole answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.draws import draws_of
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.benchmark_intervals import mean_over_tasks_of_draws
from scoring.correctness import TaskMean, UnitCounts, mean_over_tasks
from scoring.intervals import Interval, interval_of

RATES = ("precision", "recall", "redundancy")

WITH_INTERVAL = ("precision", "recall")


@dataclass(frozen=True, slots=True)
class TaskRates:
    """The rates of one task's units, pooled over the answers that count.

    Attributes:
        counts: units by status.
        answers: answers that hold a unit, generated or missing.
        intervals: of `WITH_INTERVAL`; empty without resamples.
    """

    counts: UnitCounts
    answers: int
    intervals: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a run.

    Attributes:
        tasks: by name.
        means: of `RATES`, each task equal.
        intervals: of the means of `WITH_INTERVAL`, where a task has one.
    """

    tasks: Mapping[str, TaskRates]
    means: Mapping[str, TaskMean]
    intervals: Mapping[str, Interval]


def measure_rates(columns: UnitColumns, draws: int) -> Rates:
    """Count the units of every task of one granularity and draw its answers.

    Args:
        columns: the units.
        draws: bootstrap resamples; 0 for no intervals.
    """
    tasks: dict[str, TaskRates] = {}
    resampled: dict[str, dict[str, NDArray[np.float64]]] = {rate: {} for rate in WITH_INTERVAL}
    for code, task in enumerate(columns.task_names):
        here = columns.task == code
        numbers, answer = np.unique(columns.generation[here], return_inverse=True)
        cells = answer * len(UNIT_STATUSES) + columns.status[here]
        by_answer = np.bincount(cells, minlength=numbers.size * len(UNIT_STATUSES)).reshape(-1, len(UNIT_STATUSES))
        counts = UnitCounts(**dict(zip(UNIT_STATUSES, by_answer.sum(axis=0).tolist(), strict=True)))
        intervals: dict[str, Interval] = {}
        if draws:
            drawn = draws_of(task, numbers.size, draws) @ by_answer.astype(np.float64)
            for rate in WITH_INTERVAL:
                resampled[rate][task] = _drawn_rate(rate, drawn)
                intervals[rate] = interval_of(resampled[rate][task], generations=int(numbers.size))
        tasks[task] = TaskRates(counts, int(numbers.size), intervals)
    means = {
        rate: mean_over_tasks({task: getattr(found.counts, rate) for task, found in tasks.items()}) for rate in RATES
    }
    return Rates(tasks, means, {rate: mean for rate in WITH_INTERVAL if (mean := _mean(resampled[rate], tasks))})


def _drawn_rate(rate: str, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a rate in each resample from the counts by status, shape ``(draws, statuses)``; NaN where undefined."""
    outside = UNIT_STATUSES.index("missing" if rate == "precision" else "redundant")
    whole = drawn.sum(axis=1) - drawn[:, outside]
    right = drawn[:, UNIT_STATUSES.index("correct")]
    shares = np.full(whole.shape, np.nan)
    np.divide(right, whole, out=shares, where=whole > 0.0)
    return shares


def _mean(resampled: Mapping[str, NDArray[np.float64]], tasks: Mapping[str, TaskRates]) -> Interval | None:
    known = {task: values for task, values in resampled.items() if not np.isnan(values).all()}
    if not known:
        return None
    return interval_of(mean_over_tasks_of_draws(known), generations=min(tasks[task].answers for task in known))
