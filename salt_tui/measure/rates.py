"""Precision, recall and redundancy of every task and of their mean, with intervals that hold for few answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.correctness import TaskMean, UnitCounts, mean_over_tasks
from scoring.intervals import Interval
from scoring.rate_intervals import Rate, mean_rate_interval, rate

RATES = ("precision", "recall", "redundancy")

_NUMERATORS = {"precision": "correct", "recall": "correct", "redundancy": "redundant"}
_NOT_IN_DENOMINATOR = {"precision": "missing", "recall": "redundant", "redundancy": "missing"}


@dataclass(frozen=True, slots=True)
class TaskRates:
    """The rates of one task's units, pooled over the answers that count.

    Attributes:
        counts: units by status.
        answers: answers that hold a unit, generated or missing.
        rates: by name of `RATES`.
    """

    counts: UnitCounts
    answers: int
    rates: Mapping[str, Rate]


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a run.

    Attributes:
        tasks: by name.
        means: of `RATES`, each task equal.
        intervals: of the means.
    """

    tasks: Mapping[str, TaskRates]
    means: Mapping[str, TaskMean]
    intervals: Mapping[str, Interval]

    def interval(self, name: str, task: str | None) -> Interval | None:
        """Return the interval of a rate in a task, or (None) of its mean; None for a task without units."""
        if task is None:
            return self.intervals[name]
        return self.tasks[task].rates[name].interval if task in self.tasks else None


def measure_rates(columns: UnitColumns) -> Rates:
    """Count the units of every task of one granularity, answer by answer."""
    tasks = {}
    for code, task in enumerate(columns.task_names):
        here = columns.task == code
        by_answer = _counts_by_answer(columns.generation[here], columns.status[here])
        counts = UnitCounts(**dict(zip(UNIT_STATUSES, by_answer.sum(axis=0).tolist(), strict=True)))
        tasks[task] = TaskRates(counts, len(by_answer), {name: _rate(name, by_answer) for name in RATES})
    means = {
        name: mean_over_tasks({task: getattr(found.counts, name) for task, found in tasks.items()}) for name in RATES
    }
    return Rates(
        tasks, means, {name: mean_rate_interval([found.rates[name] for found in tasks.values()]) for name in RATES}
    )


def _counts_by_answer(generation: NDArray[np.int64], status: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the units of every answer by status, shape ``(answers, statuses)``."""
    numbers, answer = np.unique(generation, return_inverse=True)
    size = len(UNIT_STATUSES)
    return np.bincount(answer * size + status, minlength=numbers.size * size).reshape(numbers.size, size)


def _rate(name: str, by_answer: NDArray[np.int64]) -> Rate:
    right = by_answer[:, UNIT_STATUSES.index(_NUMERATORS[name])]
    return rate(right, by_answer.sum(axis=1) - by_answer[:, UNIT_STATUSES.index(_NOT_IN_DENOMINATOR[name])])
