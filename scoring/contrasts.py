"""One share of right units against another in the same answers: the end against the beginning, after errors or not.

Both sides are of the same tasks.  Without that, tasks with short answers, which have no first tenth, made the beginning
of an answer look better than its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoring.intervals import LEVEL, Interval, student_reach
from scoring.scored_units import FloatArray, Groups, IntArray, group_codes
from scoring.value import NO_SPREAD, NO_TASKS, ONE_ANSWER, Value, undefined

FEWEST_ANSWERS = 5
FEWEST_UNITS = 10

NO_FIRST = "no unit on the first side"
NO_SECOND = "no unit on the second side"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a contrast.

    Attributes:
        value: share of right units, mean over the tasks that have both sides.
        units: number of units in these tasks.
        answers: number of answers they come from.
    """

    value: Value
    units: int
    answers: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two shares of right units over the same tasks.

    Attributes:
        first: such as the beginning of the answers.
        second: such as their end.
        difference: second minus first, mean over tasks, each task equal.
        interval: of the difference.
        tasks: the tasks that have units on both sides.
        tasks_left_out: the other tasks, with the reason.
    """

    first: Side
    second: Side
    difference: Value
    interval: Interval
    tasks: tuple[str, ...]
    tasks_left_out: Mapping[str, str]

    @property
    def enough(self) -> bool:
        """Whether a sentence may be made of it: five answers and ten units on each side."""
        return all(side.answers >= FEWEST_ANSWERS and side.units >= FEWEST_UNITS for side in (self.first, self.second))

    @property
    def told_apart(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        low, high = self.interval.low, self.interval.high
        return low is not None and high is not None and not low <= 0.0 <= high


def contrast(
    correct: ArrayLike,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    generations: Groups,
    tasks: Groups,
    level: float = LEVEL,
) -> Contrast:
    """Compare the share of right units on two sides of the same answers.

    The interval is difference ± t·se.  In a task, se² = n/(n−1)·Σ d², where d is what each of its n answers adds to the
    difference: (E₂ − p₂T₂)/ΣT₂ − (E₁ − p₁T₁)/ΣT₁ with right units E of T.  Over tasks, degrees of freedom are those of
    Satterthwaite.

    Args:
        correct: shape ``(n,)``; leave redundant units out, which are wrong by construction.
        first: which units are on the first side, shape ``(n,)``.
        second: which are on the second, none of both, shape ``(n,)``.
        generations: the answer of each unit, shape ``(n,)``.
        tasks: shape ``(n,)``.
        level: coverage aimed at, in (0, 1).

    Raises:
        ValueError: for a unit on both sides or columns of different lengths.
    """
    outcomes = np.asarray(correct, dtype=np.float64)
    answers, codes = group_codes(generations), group_codes(tasks)
    if len({outcomes.size, first.size, second.size, answers.size, codes.size}) > 1:
        raise ValueError("correct, both sides, generations and tasks are columns of one length")
    if bool((first & second).any()):
        raise ValueError("a unit is on one side")
    names = [str(tasks[int(np.flatnonzero(codes == code)[0])]) for code in range(int(codes.max(initial=-1)) + 1)]
    used, left_out, rates, variances, freedoms = [], {}, [], [], []
    for code, name in enumerate(names):
        sides = (first & (codes == code), second & (codes == code))
        if not sides[0].any() or not sides[1].any():
            left_out[name] = NO_FIRST if not sides[0].any() else NO_SECOND
            continue
        pair, variance, count = _task(outcomes, answers, sides)
        used.append(name)
        rates.append(pair)
        variances.append(variance)
        freedoms.append(count - 1)
    if not used:
        nothing = Side(undefined(NO_TASKS), 0, 0)
        return Contrast(
            nothing, nothing, undefined(NO_TASKS), Interval(None, None, level, reason=NO_TASKS), (), left_out
        )
    kept = np.isin(codes, [names.index(name) for name in used])
    means = np.mean(rates, axis=0)
    found = [
        Side(Value(float(mean)), int((side & kept).sum()), int(np.unique(answers[side & kept]).size))
        for mean, side in zip(means, (first, second), strict=True)
    ]
    difference = float(means[1] - means[0])
    interval = _interval(difference, np.array(variances), np.array(freedoms, dtype=np.float64), level)
    return Contrast(found[0], found[1], Value(difference), interval, tuple(used), left_out)


def _task(
    outcomes: FloatArray, answers: IntArray, sides: tuple[NDArray[np.bool_], NDArray[np.bool_]]
) -> tuple[tuple[float, float], float, int]:
    """Return both shares of one task, the variance of their difference, and the number of answers."""
    numbers = np.unique(answers[sides[0] | sides[1]])
    shares, parts = [], []
    for side in sides:
        place = np.searchsorted(numbers, answers[side])
        units = np.bincount(place, minlength=numbers.size)
        right = np.bincount(place, weights=outcomes[side], minlength=numbers.size)
        share = float(right.sum() / units.sum())
        shares.append(share)
        parts.append((right - share * units) / units.sum())
    spread = float(((parts[1] - parts[0]) ** 2).sum())
    count = int(numbers.size)
    return (shares[0], shares[1]), spread * count / max(count - 1, 1), count


def _interval(difference: float, variances: FloatArray, freedoms: FloatArray, level: float) -> Interval:
    if (freedoms < 1).any():
        return Interval(None, None, level, reason=f"in {int((freedoms < 1).sum())} tasks: {ONE_ANSWER}")
    if not variances.any():
        return Interval(None, None, level, reason=NO_SPREAD)
    reach = student_reach(variances, freedoms, level)
    return Interval(max(difference - reach, -1.0), min(difference + reach, 1.0), level)
