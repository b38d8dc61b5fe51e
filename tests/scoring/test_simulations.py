"""Full simulations with known truth, for `make soak`; small parts of them are beside what they test."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.calibrators import CALIBRATORS
from scoring.calibrators_fitted import Unfitted
from scoring.conclusions import Alternatives, conclude
from scoring.cross_fitting import cross_fit
from tests.scoring import test_conclusions, test_metric_intervals, test_rate_intervals
from tests.scoring.simulated import noise

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]

SETS = 300
ONE_IN_TWENTY = 0.05 + 3 * np.sqrt(0.05 * 0.95 / SETS)
"""Three standard errors above 5 %."""


@pytest.mark.parametrize("answers", [5, 20])
def test_at_most_one_report_in_twenty_names_a_best_function_on_noise(answers: int) -> None:
    found = test_conclusions.on_noise(answers, SETS)
    assert test_conclusions.share(found) <= 0.05
    assert np.mean([bool(one.excluded) for one in found]) <= ONE_IN_TWENTY


def test_a_function_better_by_a_quarter_of_a_deviation_is_found_alone() -> None:
    assert test_conclusions.share(test_conclusions.better_ones(20, 120), ("better",)) >= 0.8


@pytest.mark.parametrize("rate", [0.15, 0.5])
@pytest.mark.parametrize(
    ("count", "tasks", "sets"), [(5, 1, 600), (10, 1, 600), (20, 1, 600), (5, 8, 200), (20, 8, 200)]
)
def test_intervals_of_metrics_hold_the_truth(rate: float, count: int, tasks: int, sets: int) -> None:
    for name, share in test_metric_intervals.coverage(count, rate, sets, tasks).items():
        assert share >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / sets), name


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("answers", [5, 10, 20])
@pytest.mark.parametrize("correlation", [0.02, 0.2])
def test_intervals_of_shares_hold_the_truth(answers: int, mean: float, correlation: float) -> None:
    sets = 2000
    share = test_rate_intervals.coverage(answers, mean, correlation, sets)
    assert share >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / sets)


def mapped(task: Alternatives) -> Alternatives:
    """Return raw scores and every map that can be fitted, as alternatives."""
    raw = task.scores["max_probability"]
    scores = {"none": raw}
    for name, entry in CALIBRATORS.items():
        fitted = cross_fit(entry, raw, task.correct, task.generation)
        if not isinstance(fitted, Unfitted):
            scores[name] = fitted.values
    return Alternatives(task.task, task.correct, task.generation, scores)


def brier(task: Alternatives) -> dict[str, float]:
    return {name: float(((values - task.correct) ** 2).mean()) for name, values in task.scores.items()}


@pytest.mark.parametrize("answers", [5, 20])
def test_at_most_one_report_in_twenty_names_a_false_best_map_on_noise(answers: int) -> None:
    """Some maps lose less on noise: a winner is false unless its mean loss over 2,000 sets is the least."""
    losses: dict[str, list[float]] = {}
    winners = []
    for seed in range(2000):
        draw = np.random.default_rng(seed)
        tasks = [mapped(noise(str(number), answers, draw)) for number in range(8)]
        for name in tasks[0].scores:
            losses.setdefault(name, []).append(float(np.mean([brier(task)[name] for task in tasks])))
        if seed < SETS:
            winners.append(conclude(tasks, "brier", draw).winner)
    expected = {name: float(np.mean(values)) for name, values in losses.items()}
    least = min(expected.values())
    false = [bool(one) and min(expected[name] for name in one) > least for one in winners]
    assert np.mean(false) <= 0.05
