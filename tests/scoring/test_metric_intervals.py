"""Intervals from resamples: by hand, at the edges, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.benchmark_intervals import draw_generations, resampled_metrics
from scoring.intervals import AnswerClasses, ResampledMetric, mean_interval, metric_interval
from scoring.quantiles import student_quantile
from scoring.value import (
    INFINITE_IN_DRAWS,
    NO_SPREAD,
    NO_TASKS,
    ONE_ANSWER,
    ONE_CLASS,
    TOO_FEW_ANSWERS_OF_A_CLASS,
    TOO_FEW_ANSWERS_OF_BOTH,
    Value,
    undefined,
)

MANY = AnswerClasses(10, 10, 10, 10)


def metric(name: str, value: float, draws: list[float], classes: AnswerClasses = MANY) -> ResampledMetric:
    return ResampledMetric(name, Value(value), np.array(draws), classes)


def test_estimate_plus_and_minus_t_times_the_spread() -> None:
    found = metric_interval(metric("brier", 0.2, [0.1, 0.3] * 5))
    reach = student_quantile(0.975, 9) * 0.1
    assert (found.low, found.high) == pytest.approx((0.0, 0.2 + reach))
    assert found.low == 0.0  # 0.2 − 0.226 is cut at the end of the range
    assert (found.draws, found.left_out, found.bias) == (10, 0, None)


def test_the_mean_of_tasks_has_satterthwaites_degrees_of_freedom() -> None:
    """Variances .01 and .0004 with 9 and 4 degrees: (.0104)²/(.0001/9 + .00000016/4) = 9.70."""
    few = AnswerClasses(5, 5, 5, 5)
    found = mean_interval([metric("auroc", 0.6, [0.5, 0.7]), metric("auroc", 0.7, [0.68, 0.72, np.nan], few)])
    reach = student_quantile(0.975, 0.0104**2 / (0.01**2 / 9 + 0.0004**2 / 4)) * 0.0104**0.5 / 2
    assert (found.low, found.high) == pytest.approx((0.65 - reach, 0.65 + reach))
    assert found.left_out == 1


def test_the_interval_of_an_error_reaches_down_by_its_bias_and_holds_the_error() -> None:
    """Error .3, resamples .3 and .5: bias .1, spread .1; the error itself is inside."""
    found = metric_interval(metric("ece", 0.3, [0.3, 0.5] * 5))
    reach = student_quantile(0.975, 9) * 0.1
    assert (found.low, found.high) == pytest.approx((max(0.0, 0.2 - reach), 0.3 + reach))
    assert found.bias == pytest.approx(0.1)
    assert metric_interval(metric("mce", 0.3, [0.1, 0.2] * 5)).low == pytest.approx(0.3 - reach / 2)


def test_ranking_has_an_interval_from_two_answers_of_each_class_on() -> None:
    lonely = AnswerClasses(10, 10, 1, 1)
    assert metric_interval(metric("auroc", 0.9, [0.8, 1.0], lonely)).reason == TOO_FEW_ANSWERS_OF_A_CLASS
    assert metric_interval(metric("prr", 0.9, [0.8, 1.0], lonely)).reason == TOO_FEW_ANSWERS_OF_A_CLASS
    assert metric_interval(metric("auroc_micro", 0.9, [0.8, 1.0], lonely)).reason == TOO_FEW_ANSWERS_OF_BOTH
    assert metric_interval(metric("brier", 0.9, [0.8, 1.0], lonely)).low is not None
    two = mean_interval([metric("auroc", 0.9, [0.8, 1.0]), metric("auroc", 0.9, [0.8, 1.0], lonely)])
    assert two.reason == f"in 1 of 2 tasks: {TOO_FEW_ANSWERS_OF_A_CLASS}"


def test_a_perfect_ranking_has_a_bound_like_a_share_that_always_holds() -> None:
    classes = AnswerClasses(10, 8, 4, 2)
    found = metric_interval(metric("auroc", 1.0, [1.0] * 9, classes))
    assert (found.low, found.high) == pytest.approx((0.025**0.25, 1.0))
    worst = metric_interval(metric("auroc", 0.0, [0.0] * 9, classes))
    assert (worst.low, worst.high) == pytest.approx((0.0, 1 - 0.025**0.25))
    twice = metric_interval(metric("prr", 1.0, [1.0] * 9, classes))
    assert (twice.low, twice.high) == pytest.approx((2 * 0.025**0.25 - 1, 1.0))


def test_without_spread_or_with_infinity_there_is_no_interval() -> None:
    assert metric_interval(metric("auroc", 0.5, [0.5] * 9)).reason == NO_SPREAD
    assert metric_interval(metric("nll", np.inf, [np.inf, 0.3])).reason == INFINITE_IN_DRAWS
    assert metric_interval(metric("brier", 0.2, [0.2], AnswerClasses(1, 1, 1, 1))).reason == ONE_ANSWER
    assert mean_interval([]).reason == NO_TASKS
    nothing = ResampledMetric("auroc", undefined(ONE_CLASS), np.full(3, np.nan), MANY)
    assert metric_interval(nothing).reason == ONE_CLASS
    assert mean_interval([nothing, metric("auroc", 0.6, [0.5, 0.7])]).low is not None


def test_classes_of_answers_are_counted() -> None:
    assert AnswerClasses.of([1, 0, 1, 1, 0], [7, 7, 8, 8, 9]) == AnswerClasses(3, 2, 2, 1)
    assert AnswerClasses.of([], []) == AnswerClasses(0, 0, 0, 0)


NAMES = ("brier", "nll", "auroc", "auroc_micro", "ece")


def answers_of(count: int, rate: float, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overconfident units of answers that differ in rate and in confidence."""
    generation = np.repeat(np.arange(count), 30)
    of_answers = np.clip(draw.beta(4 * rate + 0.2, 4.2 - 4 * rate, size=count), 0.02, 0.98)
    correct = draw.random(generation.size) < of_answers[generation]
    logit = 0.8 * correct + draw.normal(0.5, 0.7, count)[generation] + draw.normal(size=generation.size)
    return 1 / (1 + np.exp(-logit)), correct, generation


def coverage(count: int, rate: float, sets: int, tasks: int = 1) -> dict[str, float]:
    draw = np.random.default_rng([count, tasks])
    confidence, correct, generation = answers_of(4000, rate, draw)
    truth = resampled_metrics(confidence, correct, generation, np.ones((1, 4000)), names=NAMES)
    held: dict[str, list[bool]] = {name: [] for name in NAMES}
    for _ in range(sets):
        found: dict[str, list[ResampledMetric]] = {name: [] for name in NAMES}
        for _ in range(tasks):
            confidence, correct, generation = answers_of(count, rate, draw)
            rows = np.concatenate([np.ones((1, count)), draw_generations(count, 300, draw, count - 1)])
            values = resampled_metrics(confidence, correct, generation, rows, names=NAMES)
            classes = AnswerClasses.of(correct, generation)
            for name, column in values.items():
                point = undefined(ONE_CLASS) if np.isnan(column[0]) else Value(float(column[0]))
                found[name].append(ResampledMetric(name, point, column[1:], classes))
        for name, metrics in found.items():
            interval = mean_interval(metrics)
            if interval.low is not None and interval.high is not None:
                held[name].append(interval.low <= truth[name][0] <= interval.high)
    return {name: float(np.mean(inside)) for name, inside in held.items()}


@pytest.mark.parametrize(("count", "tasks", "sets"), [(5, 1, 120), (20, 1, 60), (5, 8, 40)])
def test_the_truth_is_covered(count: int, tasks: int, sets: int) -> None:
    """A small part of the simulations below; three standard errors of room."""
    for name, share in coverage(count, 0.5, sets, tasks).items():
        assert share >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / sets), name
