"""Two shares of right units in the same answers of the same tasks."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.contrasts import NO_FIRST, NO_SECOND, Contrast, contrast
from scoring.quantiles import student_quantile
from scoring.value import NO_SPREAD, NO_TASKS


def halves(correct: list[list[int]], task: str = "a") -> Contrast:
    """Compare first and second half of answers of one task."""
    rows = [
        (right, number, 2 * place >= len(answer))
        for number, answer in enumerate(correct)
        for place, right in enumerate(answer)
    ]
    outcomes, answers, late = (np.array(column) for column in zip(*rows, strict=True))
    return contrast(outcomes, ~late, late, answers, [task] * len(rows))


def test_three_answers_worked_out() -> None:
    """Halves of two: 2 1 2 of 2 right at first, 0 1 1 at the end: 5/6 and 2/6.

    An answer adds (E₂ − p₂T₂)/6 − (E₁ − p₁T₁)/6 with p₁T₁ = 5/3 and p₂T₂ = 2/3: (−1, 1, 0)/6.
    """
    found = halves([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]])
    assert found.first.value.value == pytest.approx(5 / 6)
    assert found.second.value.value == pytest.approx(2 / 6)
    error = (1.5 * 2 / 36) ** 0.5
    reach = student_quantile(0.975, 2) * error
    assert found.difference.value == pytest.approx(-0.5)
    assert (found.interval.low, found.interval.high) == pytest.approx((max(-0.5 - reach, -1), min(-0.5 + reach, 1)))
    assert (found.first.units, found.first.answers, found.tasks) == (6, 3, ("a",))
    assert not found.told_apart
    assert not found.enough


def test_only_tasks_with_both_sides_are_compared() -> None:
    """Task b never reaches the first side and c not the second; they would move the means."""
    correct = np.array([1, 0, 1, 0, 0, 0, 1, 1])
    first = np.array([1, 0, 1, 0, 0, 0, 1, 1], dtype=bool)
    second = np.array([0, 1, 0, 1, 1, 1, 0, 0], dtype=bool)
    tasks = ["a"] * 4 + ["b"] * 2 + ["c"] * 2
    found = contrast(correct, first, second, [0, 0, 1, 1, 2, 3, 4, 5], tasks)
    assert found.tasks == ("a",)
    assert found.tasks_left_out == {"b": NO_FIRST, "c": NO_SECOND}
    assert (found.first.value.value, found.second.value.value) == (1.0, 0.0)
    assert (found.first.units, found.second.units) == (2, 2)
    assert found.interval.reason == NO_SPREAD


def test_nothing_to_compare() -> None:
    found = contrast([1], np.array([True]), np.array([False]), [0], ["a"])
    assert found.first.value.reason == found.interval.reason == NO_TASKS
    one = contrast([1, 0], np.array([True, False]), np.array([False, True]), [0, 0], ["a", "a"])
    assert one.difference.value == -1.0
    assert one.interval.low is None
    assert not one.told_apart
    with pytest.raises(ValueError, match="one side"):
        contrast([1], np.array([True]), np.array([True]), [0], ["a"])
    with pytest.raises(ValueError, match="one length"):
        contrast([1], np.array([True]), np.array([True]), [0, 1], ["a"])


def simulated(answers: int, drop: float, tasks: int, draw: np.random.Generator) -> Contrast:
    rows = []
    for task in range(tasks):
        for answer in range(answers):
            rate = draw.beta(4, 4)
            for place in range(20):
                late = place >= 10
                rows.append((draw.random() < max(rate - drop * late, 0.0), late, task * 1000 + answer, task))
    correct, late, answer, task = (np.array(column) for column in zip(*rows, strict=True))
    return contrast(correct, ~late, late, answer, task)


@pytest.mark.parametrize(("answers", "tasks"), [(5, 1), (5, 8), (20, 2)])
def test_no_change_is_covered_and_a_large_one_is_seen(answers: int, tasks: int) -> None:
    draw = np.random.default_rng(answers)
    sets = 120 if tasks == 1 else 40
    held = [(found := simulated(answers, 0.0, tasks, draw)).enough and not found.told_apart for _ in range(sets)]
    assert np.mean(held) >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / sets)
    if tasks > 1:
        assert simulated(answers, 0.3, tasks, draw).told_apart
