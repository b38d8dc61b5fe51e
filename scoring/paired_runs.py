"""Two runs on the same problems beside each other: what changed, how sure that is, and how many problems would tell.

SALT compares models, methods and settings on the same problems (section 5.2, appendix G.6, figures 6 and 38 to 40).
Problems are the unit: a problem's answers, all samples of it in both runs, are drawn and swapped together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from scoring.benchmark_intervals import draw_generations, resampled_metrics
from scoring.intervals import LEVEL, Interval, student_reach
from scoring.pair_counts import pair_table
from scoring.scored_units import FloatArray, IntArray
from scoring.value import NO_SPREAD, NO_TASKS, NO_UNITS, NOT_A_PROBABILITY, ONE_CLASS, Value, undefined

DRAWS = 1000
SWAPS = 10_000
LARGEST_EXACT = 16
"""Problems that differ up to which all swaps are counted, 65,536 of them."""

BATCH = 4096
"""Swaps held in memory at a time."""

FEWEST_DIFFERING = 6
"""With five, the smallest two-sided p is 2/32."""

DETECTABLE = 2.80
"""Standard errors of a difference that is found with power 80 % at 95 %: 1.96 + 0.84."""

ROUNDING = 1e-12
TOO_SMALL = 0.02
TOO_SMALL_FOR_BRIER = 0.01

RATES: tuple[str, ...] = ("precision", "recall")
CONFIDENCE_METRICS: tuple[str, ...] = ("brier", "auroc", "ece")
COMPARED: tuple[str, ...] = (*RATES, *CONFIDENCE_METRICS)

TOO_FEW_DIFFERING = f"fewer than {FEWEST_DIFFERING} problems differ"
ONE_PROBLEM = "a single problem"
BASE_IS_ZERO = "the first run's mean is 0"
NO_DIFFERENCE = "no difference"
NOT_FOR_ERRORS = "not for calibration errors, which shrink with the number of units"


@dataclass(frozen=True, slots=True)
class RunOnTask:
    """One run on the problems of one task that both runs hold.

    Attributes:
        right: right units of each problem, over all its answers, shape ``(problems,)``.
        generated: units written for it, shape ``(problems,)``.
        reference: units of its reference, once per answer, shape ``(problems,)``.
        correct: outcome of each unit that has a confidence, shape ``(n,)``.
        confidence: its confidence, higher is more confident, shape ``(n,)``.
        problem: 0-based number of its problem, the same in both runs, shape ``(n,)``.
    """

    right: FloatArray
    generated: FloatArray
    reference: FloatArray
    correct: NDArray[np.bool_]
    confidence: FloatArray
    problem: IntArray

    @property
    def problems(self) -> int:
        """Number of problems that both runs hold."""
        return int(self.right.size)


@dataclass(frozen=True, slots=True)
class PairedTask:
    """One task in both runs, problem by problem."""

    task: str
    first: RunOnTask
    second: RunOnTask

    def __post_init__(self) -> None:
        """Refuse runs with different problems.

        Raises:
            ValueError: for different numbers of problems.
        """
        if self.first.problems != self.second.problems:
            raise ValueError(f"{self.task}: both runs have the same problems, matched by content")


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """One number in both runs.

    Attributes:
        first: in the first run.
        second: in the second.
        difference: second minus first.
        interval: of the difference, over problems.
        problems: how many there are.
        detectable: the difference that so many problems would show in four of five comparisons, 2.80 · se.
        problems_needed: problems a task that would show this difference so often, if it is the true one.
        too_small: whether the whole interval lies within ±.02 (Brier: ±.01).
        clear: whether it differs from 0 by more than chance would let it in one of twenty comparisons: for the mean by
            its interval and by the swap test, for a task by the interval corrected for the number of tasks
            (Bonferroni).
    """

    first: Value
    second: Value
    difference: Value
    interval: Interval
    problems: int
    detectable: Value
    problems_needed: Value
    too_small: bool
    clear: bool = False


@dataclass(frozen=True, slots=True)
class PairedMetric:
    """One metric of two runs.

    Attributes:
        name: one of `COMPARED`.
        tasks: every task.
        mean: over the tasks in which both runs have a value, each task equal.
        tasks_in_mean: these tasks.
        relative_change: (second − first)/first of the means as in SALT figures 6 and 38, its sign turned for errors,
            so that positive is better.
        p_value: two-sided, by swapping the runs of problems.
        exact: whether all swaps were counted, not a sample of them.
        differing: number of problems in which the runs differ in what the metric reads.
    """

    name: str
    tasks: Mapping[str, PairedDifference]
    mean: PairedDifference
    tasks_in_mean: tuple[str, ...]
    relative_change: Value
    p_value: Value
    exact: bool
    differing: int


def compare_runs(
    tasks: Sequence[PairedTask],
    generator: np.random.Generator,
    *,
    metrics: Sequence[str] = COMPARED,
    probability: bool = True,
    draws: int = DRAWS,
    swaps: int = SWAPS,
) -> dict[str, PairedMetric]:
    """Compare two runs in each metric.

    Intervals are difference ± t·se over resamples of n − 1 of a task's n problems, both runs together; a task's
    difference is clear where its interval at 1 − .05/tasks leaves 0 out.  The test swaps
    a problem's two runs and recomputes the mean over tasks: p is the share of swaps with |T*| ≥ |T|, over all swaps
    where at most 16 problems differ, else (1 + k)/(1 + B) over B seeded ones.  It is refused below six problems that
    differ.

    Args:
        tasks: the problems that both runs hold.
        generator: the only source of chance.
        metrics: some of `COMPARED`.
        probability: whether confidences mean probabilities; without, ``brier`` and ``ece`` are undefined.
        draws: resamples.
        swaps: B.

    Raises:
        ValueError: for another metric.
    """
    compared = metrics_one_by_one(tasks, generator, metrics=metrics, probability=probability, draws=draws, swaps=swaps)
    return {metric.name: metric for metric in compared}


def metrics_one_by_one(
    tasks: Sequence[PairedTask],
    generator: np.random.Generator,
    *,
    metrics: Sequence[str] = COMPARED,
    probability: bool = True,
    without: str | None = None,
    draws: int = DRAWS,
    swaps: int = SWAPS,
) -> Iterator[PairedMetric]:
    """Yield what `compare_runs` returns, each metric as soon as it is there.

    Args:
        tasks: as there, as are all others but the next.
        generator: the only source of chance.
        metrics: some of `COMPARED`.
        probability: whether confidences mean probabilities.
        draws: resamples.
        swaps: B.
        without: why no confidence of one of the runs is known; the `CONFIDENCE_METRICS` are then undefined for that
            reason.  None where both are known.

    Raises:
        ValueError: for another metric, before the first is yielded.
    """
    unknown = [name for name in metrics if name not in COMPARED]
    if unknown:
        raise ValueError(f"runs are compared in {', '.join(COMPARED)}, not in {unknown[0]}")
    weights = [draw_generations(t.first.problems, draws, generator, max(t.first.problems - 1, 1)) for t in tasks]
    swapped = generator.spawn(1)[0]
    for name in metrics:
        if without is not None and name in CONFIDENCE_METRICS:
            yield _undefined(name, tasks, without)
        elif not probability and name in ("brier", "ece"):
            yield _undefined(name, tasks, NOT_A_PROBABILITY)
        else:
            yield _compare(name, tasks, weights, swapped, swaps)


Measure = Callable[[FloatArray], FloatArray]
"""From weights of all problems in the first and then in the second run, shape ``(rows, 2 · problems)``, to values."""


def _measure(name: str, task: PairedTask) -> Measure:
    first, second = task.first, task.second
    if name in RATES:
        hits = np.concatenate([first.right, second.right])
        totals = [run.generated if name == "precision" else run.reference for run in (first, second)]
        whole = np.concatenate(totals)

        def of_rate(weights: FloatArray) -> FloatArray:
            below = weights @ whole
            share: FloatArray = np.divide(weights @ hits, below, out=np.full(below.shape, np.nan), where=below > 0)
            return share

        return of_rate
    confidence = np.concatenate([first.confidence, second.confidence])
    correct = np.concatenate([first.correct, second.correct])
    owner = np.concatenate([first.problem, second.problem + first.problems])
    if name == "auroc":
        # Counted once for eleven thousand resamples and swaps: 8 x 12,500 units took 475 s and take 6.
        return pair_table(confidence, correct.astype(np.float64), owner, 2 * first.problems).auroc

    def of_units(weights: FloatArray) -> FloatArray:
        return resampled_metrics(confidence, correct, owner, weights, names=(name,))[name]

    return of_units


def _compare(
    name: str, tasks: Sequence[PairedTask], weights: Sequence[FloatArray], generator: np.random.Generator, swaps: int
) -> PairedMetric:
    found: dict[str, PairedDifference] = {}
    variances, freedoms, used = [], [], []
    for task, drawn in zip(tasks, weights, strict=True):
        measure = _measure(name, task)
        count = task.first.problems
        both = _both(measure, np.concatenate([np.ones((1, count)), drawn]))
        gaps = both[1] - both[0]
        resamples = gaps[1:][~np.isnan(gaps[1:])]
        if np.isnan(gaps[0]):
            found[task.task] = _missing(name, both[:, 0], count)
            continue
        variance = float(((resamples - gaps[0]) ** 2).mean()) if resamples.size and count > 1 else np.nan
        found[task.task] = _difference(
            name, both[:, 0], np.array([variance]), np.array([count - 1.0]), count, np.array([count])
        )
        variances.append(variance)
        freedoms.append(count - 1.0)
        used.append(task)
    if not used:
        return _undefined(name, tasks, NO_TASKS, found)
    for task, variance, freedom in zip(used, variances, freedoms, strict=True):
        known = found[task.task]
        found[task.task] = replace(known, clear=_is_clear(known, variance, freedom, len(used)))
    means = [float(np.mean([getattr(found[task.task], side).value for task in used])) for side in ("first", "second")]
    counts = np.array([task.first.problems for task in used])
    mean = _difference(name, np.array(means), np.array(variances), np.array(freedoms), int(counts.sum()), counts)
    differing = [_differing(name, task) for task in used]
    p_value, exact = _swap_test(name, used, differing, means[1] - means[0], generator, swaps)
    # A task whose few problems all differ alike adds no variance, so the interval alone can be too narrow.
    shown = mean.clear and p_value.value is not None and p_value.value <= 1.0 - LEVEL
    mean = replace(mean, clear=shown)
    sign = -1.0 if name in ("brier", "ece") else 1.0
    change = undefined(BASE_IS_ZERO) if means[0] == 0.0 else Value(sign * (means[1] - means[0]) / means[0])
    return PairedMetric(
        name, found, mean, tuple(task.task for task in used), change, p_value, exact, sum(map(np.sum, differing))
    )


def _is_clear(found: PairedDifference, variance: float, freedom: float, tasks: int) -> bool:
    """Say whether a task's difference is more than chance, corrected for the number of tasks."""
    if found.difference.value is None or found.interval.low is None:
        return False
    reach = student_reach(np.array([variance]), np.array([freedom]), 1.0 - (1.0 - LEVEL) / tasks)
    return abs(found.difference.value) > reach


def _both(measure: Measure, weights: FloatArray) -> FloatArray:
    """Return the metric of both runs with their problems weighted alike, shape ``(2, rows)``."""
    nothing = np.zeros_like(weights)
    return np.stack([measure(np.hstack([weights, nothing])), measure(np.hstack([nothing, weights]))])


def _difference(
    name: str,
    values: FloatArray,
    variances: FloatArray,
    freedoms: FloatArray,
    problems: int,
    counts: IntArray,
) -> PairedDifference:
    difference = float(values[1] - values[0])
    first, second = Value(float(values[0])), Value(float(values[1]))
    if np.isnan(variances).any() or not variances.any():
        reason = ONE_PROBLEM if np.isnan(variances).any() else NO_SPREAD
        unknown = undefined(reason)
        interval = Interval(None, None, reason=reason)
        return PairedDifference(first, second, Value(difference), interval, problems, unknown, unknown, False)
    reach = student_reach(variances, freedoms, LEVEL)
    error = float(np.sqrt(variances.sum())) / variances.size
    low, high = max(difference - reach, -1.0), min(difference + reach, 1.0)
    margin = TOO_SMALL_FOR_BRIER if name == "brier" else TOO_SMALL
    if name == "ece":
        needed = undefined(NOT_FOR_ERRORS)
    elif difference == 0.0:
        needed = undefined(NO_DIFFERENCE)
    else:
        needed = Value(float(ceil(float(counts.mean()) * (DETECTABLE * error / abs(difference)) ** 2)))
    return PairedDifference(
        first=first,
        second=second,
        difference=Value(difference),
        interval=Interval(low, high),
        problems=problems,
        detectable=Value(DETECTABLE * error),
        problems_needed=needed,
        too_small=-margin <= low and high <= margin,
        clear=low > 0.0 or high < 0.0,
    )


def _missing(name: str, values: FloatArray, problems: int) -> PairedDifference:
    reason = ONE_CLASS if name == "auroc" else NO_UNITS
    first, second = (undefined(reason) if np.isnan(value) else Value(float(value)) for value in values)
    unknown = undefined(reason)
    interval = Interval(None, None, reason=reason)
    return PairedDifference(first, second, unknown, interval, problems, unknown, unknown, False)


def _undefined(
    name: str, tasks: Sequence[PairedTask], reason: str, found: Mapping[str, PairedDifference] | None = None
) -> PairedMetric:
    unknown = undefined(reason)
    nothing = PairedDifference(
        unknown, unknown, unknown, Interval(None, None, reason=reason), 0, unknown, unknown, False
    )
    known = {task.task: nothing for task in tasks} if found is None else found
    return PairedMetric(name, known, nothing, (), unknown, unknown, False, 0)


def _differing(name: str, task: PairedTask) -> NDArray[np.bool_]:
    """Return in which problems the runs differ in what the metric reads, shape ``(problems,)``."""
    first, second = task.first, task.second
    if name in RATES:
        totals = [run.generated if name == "precision" else run.reference for run in (first, second)]
        different: NDArray[np.bool_] = (first.right != second.right) | (totals[0] != totals[1])
        return different
    units = [_units_by_problem(run) for run in (first, second)]
    return np.array([not np.array_equal(one, other) for one, other in zip(*units, strict=True)], dtype=bool)


def _units_by_problem(run: RunOnTask) -> list[FloatArray]:
    order = np.lexsort((run.correct, run.confidence, run.problem))
    rows = np.column_stack([run.confidence, run.correct])[order]
    ends = np.cumsum(np.bincount(run.problem, minlength=run.problems))
    return np.split(rows, ends[:-1]) if run.problems else []


def _swap_test(
    name: str,
    tasks: Sequence[PairedTask],
    differing: Sequence[NDArray[np.bool_]],
    observed: float,
    generator: np.random.Generator,
    swaps: int,
) -> tuple[Value, bool]:
    total = int(sum(mask.sum() for mask in differing))
    if total < FEWEST_DIFFERING:
        return undefined(TOO_FEW_DIFFERING), False
    exact = total <= LARGEST_EXACT
    if exact:
        bits = (np.arange(2**total)[:, None] >> np.arange(total)) & 1
    else:
        bits = generator.integers(0, 2, size=(swaps, total))
    statistic = np.zeros(bits.shape[0])
    start = 0
    for task, mask in zip(tasks, differing, strict=True):
        held = int(mask.sum())
        measure = _measure(name, task)
        for first in range(0, bits.shape[0], BATCH):
            rows = slice(first, first + BATCH)
            swapped = np.zeros((bits[rows].shape[0], mask.size))
            swapped[:, mask] = bits[rows, start : start + held]
            kept = 1.0 - swapped
            statistic[rows] += measure(np.hstack([swapped, kept])) - measure(np.hstack([kept, swapped]))
        start += held
    # A swap that leaves a task without a class counts against a difference.
    extreme = ~(np.abs(statistic / len(tasks)) < abs(observed) - ROUNDING)
    if exact:
        return Value(float(extreme.mean())), True
    return Value((1.0 + float(extreme.sum())) / (1.0 + swaps)), False
