"""Intervals of precision and recall: worked out by hand, at the edges, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from scoring.rate_intervals import Rate, mean_rate_interval, rate
from scoring.value import NO_TASKS, NO_UNITS, ONE_ANSWER


def ends(found: Rate) -> tuple[float, float]:
    assert found.interval.low is not None
    assert found.interval.high is not None
    return found.interval.low, found.interval.high


def test_three_answers_worked_out() -> None:
    """E = 1, 2, 3 of T = 4 each: p = .5, v = 1.5·(1 + 0 + 1)/144 = 1/48, n* = 12·(1.959964/4.302653)² = 2.490031."""
    effective = 12 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 2)) ** 2
    assert effective == pytest.approx(2.490031, abs=1e-6)
    found = rate([1, 2, 3], [4, 4, 4])
    assert (found.value, found.units, found.answers) == (0.5, 12, 3)
    low = stats.beta.ppf(0.025, effective / 2, effective / 2 + 1)
    assert ends(found) == pytest.approx((low, 1 - low), abs=1e-9)


def test_one_unit_an_answer_without_clustering_is_nearly_the_exact_binomial_interval() -> None:
    """No more than the number of units; Student's t shrinks it at ten answers."""
    right = [1, 0] * 50
    exact = stats.binomtest(50, 100).proportion_ci(method="exact")
    assert ends(rate(right, [1] * 100)) == pytest.approx((exact.low, exact.high), abs=0.003)


def test_equal_answers_have_as_many_units_as_they_have() -> None:
    """Each half right: nothing says that the units of an answer depend on each other."""
    exact = stats.binomtest(6, 12).proportion_ci(method="exact")
    assert ends(rate([2, 2, 2], [4, 4, 4])) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(("answers", "bound"), [(2, 0.025**0.5), (8, 0.025 ** (1 / 8))])
def test_all_right_and_none_right(answers: int, bound: float) -> None:
    assert ends(rate([5] * answers, [5] * answers)) == pytest.approx((bound, 1.0))
    assert ends(rate([0] * answers, [5] * answers)) == pytest.approx((0.0, 1.0 - bound))


def test_no_units_and_one_answer_have_no_interval() -> None:
    nothing = rate([0, 0], [0, 0])
    assert (nothing.value, nothing.interval.reason, nothing.answers) == (None, NO_UNITS, 0)
    one = rate([2, 0], [4, 0])
    assert (one.value, one.interval.reason, one.answers) == (0.5, ONE_ANSWER, 1)


def test_the_mean_over_tasks() -> None:
    """(.2, .1 to .5) and (.6, .3 to .7): .4 − √(.01 + .09)/2 to .4 + √(.09 + .01)/2."""
    from scoring.intervals import Interval

    tasks = [Rate(0.2, Interval(0.1, 0.5), 9, 9), Rate(0.6, Interval(0.3, 0.7), 9, 9), rate([], [])]
    found = mean_rate_interval(tasks)
    assert (found.low, found.high) == pytest.approx((0.4 - 0.1**0.5 / 2, 0.4 + 0.1**0.5 / 2))
    single = rate([1, 2, 3], [4, 4, 4])
    alone = mean_rate_interval([single])
    assert (alone.low, alone.high) == pytest.approx(ends(single))
    assert mean_rate_interval([]).reason == NO_TASKS
    assert mean_rate_interval([single, rate([1], [2])]).reason == f"in a task: {ONE_ANSWER}"


@pytest.mark.parametrize(("right", "units"), [([3], [2]), ([-1], [2]), ([1, 1], [2])])
def test_impossible_counts_are_refused(right: list[int], units: list[int]) -> None:
    with pytest.raises(ValueError, match="right"):
        rate(right, units)


def coverage(answers: int, mean: float, correlation: float, sets: int, tasks: int = 1) -> float:
    """Share of intervals that hold the truth; the rate of answers is beta distributed."""
    draw = np.random.default_rng([answers, round(100 * mean), round(100 * correlation)])
    size = 1.0 / correlation - 1.0
    held = 0
    for _ in range(sets):
        rates = []
        for _ in range(tasks):
            of_answers = draw.beta(mean * size, (1.0 - mean) * size, answers)
            units = draw.integers(5, 40, answers)
            rates.append(rate(draw.binomial(units, of_answers), units))
        found = mean_rate_interval(rates)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= mean <= found.high
    return held / sets


@pytest.mark.parametrize(("answers", "mean", "correlation"), [(5, 0.5, 0.2), (10, 0.2, 0.2), (20, 0.9, 0.1)])
def test_the_truth_is_covered(answers: int, mean: float, correlation: float) -> None:
    assert coverage(answers, mean, correlation, 300) >= 0.92 - 2 * np.sqrt(0.92 * 0.08 / 300)


def test_the_truth_of_a_mean_is_covered() -> None:
    assert coverage(5, 0.4, 0.2, 150, tasks=8) >= 0.92
