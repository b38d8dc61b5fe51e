"""Precision against recall, redundancy and alignment, task by task."""

import pytest

from scoring.analyses_answers import alignment_effect, precision_recall_correlation, redundancy_by_task
from scoring.correctness import UnitCounts
from scoring.value import Value, undefined


def test_correlation_per_task_and_the_mean_with_each_task_equal():
    found = precision_recall_correlation(
        [0.1, 0.5, 0.9, 0.2, 0.4, None], [0.2, 0.6, 1.0, 0.4, 0.2, 0.0], ["a", "a", "a", "b", "b", "b"]
    )
    assert found.by_task.tasks["a"].value == pytest.approx(1.0)
    assert found.by_task.tasks["b"].value == pytest.approx(-1.0)
    assert found.by_task.mean.mean.value == pytest.approx(0.0)
    assert found.left_out == 1


def test_correlation_by_hand():
    """Deviations (−1, 0, 1) and (−2/3, 1/3, 1/3): 1 / √(2 · 2/3) = √3/2."""
    found = precision_recall_correlation([0.0, 0.5, 1.0], [0.0, 1.0, 1.0], ["a"] * 3)
    assert found.by_task.tasks["a"].value == pytest.approx(3**0.5 / 2, abs=1e-12)


def test_correlation_is_undefined_with_the_reason():
    found = precision_recall_correlation([0.5, 0.1, 0.1, None], [0.5, 0.2, 0.4, 0.0], ["one", "flat", "flat", "none"])
    reasons = {task: value.reason for task, value in found.by_task.tasks.items()}
    assert reasons == {"one": "fewer than two answers", "flat": "constant", "none": "fewer than two answers"}
    assert found.by_task.mean.mean == undefined("no tasks")
    assert set(found.by_task.mean.left_out) == {"one", "flat", "none"}


def test_redundancy_two_of_ten_is_a_fifth():
    found = redundancy_by_task({"a": UnitCounts(correct=8, redundant=2), "b": UnitCounts(correct=5), "c": UnitCounts()})
    assert found.tasks["a"].value == 0.2
    assert found.mean.mean.value == pytest.approx(0.1)
    assert found.mean.left_out == {"c": "nothing generated"}


def test_alignment_effect():
    """The paper's example: reference 1 1 1 1 3, answer 1 3: 1/2 by index, 2/5 aligned."""
    found = alignment_effect(
        {"a": Value(0.5), "b": Value(0.25), "c": undefined("nothing generated")},
        {"a": Value(0.4), "b": Value(0.75), "c": undefined("nothing generated")},
    )
    assert found.change.tasks["a"].value == pytest.approx(-0.1)
    assert found.change.mean.mean.value == pytest.approx(0.2)
    assert found.change.mean.left_out == {"c": "nothing generated"}
    assert found.strict.mean.mean.value == pytest.approx(0.375)
    with pytest.raises(ValueError, match="same tasks"):
        alignment_effect({"a": Value(0.5)}, {"b": Value(0.5)})
