"""What whole answers show, task by task: precision against recall, redundancy, the effect of alignment (SALT A, H)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.correctness import TaskMean, UnitCounts, mean_over_tasks
from scoring.value import Value, undefined

TOO_FEW_ANSWERS = "fewer than two answers"
CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class ByTask:
    """One number per task and their mean, each task equal."""

    tasks: dict[str, Value]
    mean: TaskMean


@dataclass(frozen=True, slots=True)
class PrecisionRecallCorrelation:
    """Pearson's r between precision and recall, in [−1, 1].

    Attributes:
        by_task: r of every task and the mean.
        left_out: rows without a precision or a recall.
    """

    by_task: ByTask
    left_out: int


@dataclass(frozen=True, slots=True)
class AlignmentEffect:
    """What labelling by alignment instead of by index changes.

    Attributes:
        strict: precision by index.
        aligned: precision by alignment.
        change: aligned minus strict, in [−1, 1].
    """

    strict: ByTask
    aligned: ByTask
    change: ByTask


def precision_recall_correlation(
    precision: Sequence[float | None], recall: Sequence[float | None], tasks: Sequence[str]
) -> PrecisionRecallCorrelation:
    """Return how far precision and recall say the same (SALT table 2).

    Args:
        precision: one row per answer (or per model, where there are several), None where nothing was generated.
        recall: the same rows.
        tasks: the task of each row.

    Returns:
        Pearson's r per task; undefined with fewer than two rows, or where precision or recall is constant.

    Raises:
        ValueError: for columns of different lengths.
    """
    pairs: dict[str, list[tuple[float, float]]] = {}
    left_out = 0
    for first, second, task in zip(precision, recall, tasks, strict=True):
        rows = pairs.setdefault(task, [])
        if first is None or second is None:
            left_out += 1
        else:
            rows.append((first, second))
    correlations = {task: _pearson(rows) for task, rows in pairs.items()}
    return PrecisionRecallCorrelation(ByTask(correlations, mean_over_tasks(correlations)), left_out)


def redundancy_by_task(counts: Mapping[str, UnitCounts]) -> ByTask:
    """Return the share of generated units that have no reference unit (SALT figure 17), in [0, 1], lower is better.

    Args:
        counts: the pooled counts of every task.
    """
    return _by_task({task: pooled.redundancy for task, pooled in counts.items()})


def alignment_effect(strict: Mapping[str, Value], aligned: Mapping[str, Value]) -> AlignmentEffect:
    """Return what alignment does to the precision of every task (SALT figure 41).

    Args:
        strict: each task's precision by index.
        aligned: each task's precision by alignment.

    Returns:
        Both and their difference, undefined where either is.

    Raises:
        ValueError: for different tasks.
    """
    if strict.keys() != aligned.keys():
        raise ValueError(f"both precisions are of the same tasks, not {sorted(strict)} and {sorted(aligned)}")
    change = {task: _difference(aligned[task], value) for task, value in strict.items()}
    return AlignmentEffect(_by_task(strict), _by_task(aligned), _by_task(change))


def _by_task(values: Mapping[str, Value]) -> ByTask:
    return ByTask(dict(values), mean_over_tasks(values))


def _difference(new: Value, old: Value) -> Value:
    if new.value is None or old.value is None:
        return old if old.value is None else new
    return Value(new.value - old.value)


def _pearson(rows: list[tuple[float, float]]) -> Value:
    if len(rows) < 2:
        return undefined(TOO_FEW_ANSWERS)
    columns = np.array(rows)
    if (columns.min(axis=0) == columns.max(axis=0)).any():
        return undefined(CONSTANT)
    from scipy.stats import pearsonr

    return Value(float(pearsonr(columns[:, 0], columns[:, 1]).statistic))
