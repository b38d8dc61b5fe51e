"""Correctness and calibration along an answer, on answers small enough to count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.analyses_position import calibration_by_position, correctness_by_history, correctness_by_position


def test_unit_60_of_100_stands_at_0_6():
    correct = np.zeros(100, dtype=bool)
    correct[59] = True
    found = correctness_by_position(
        correct, np.zeros(100, bool), np.arange(100), np.full(100, 100), ["x"] * 100, ["dna"] * 100
    )
    assert found.rate.mean == tuple([0.0] * 5 + [0.1] + [0.0] * 4)
    assert found.density.mean[5] == 10.0
    assert found.rate.tasks["dna"].units == (10,) * 10
    assert found.rate.tasks["dna"].answers == (1,) * 10
    assert found.rate.edges[:2] == (0.0, 0.1)
    assert {interval.reason for interval in found.rate.intervals} == {"the units of a single answer"}


def test_every_task_counts_the_same_and_empty_bins_are_undefined():
    """Task a: two units, right then wrong; b: one unit, right, so it stands at 1 only."""
    found = correctness_by_position(
        [1, 0, 1], [0, 0, 0], [0, 1, 0], [2, 2, 1], ["x", "x", "y"], ["a", "a", "b"], bins=2
    )
    assert found.rate.mean == (1.0, 0.5)
    assert found.rate.deviation == (None, 0.5)
    assert found.rate.tasks_without == (1, 0)
    assert found.rate.tasks["b"].value == (None, 1.0)
    assert found.density.tasks["a"].value == (2.0, 0.0)
    assert found.density.tasks["b"].value == (0.0, 2.0)


def test_no_right_unit_has_no_density_and_no_units_no_curve():
    none_right = correctness_by_position([0], [0], [0], [1], ["x"], ["a"], bins=2)
    assert none_right.density.mean == (None, None)
    assert none_right.rate.mean == (None, 0.0)
    empty = correctness_by_position(*[np.zeros(0, bool)] * 2, *[np.zeros(0, int)] * 2, [], [])
    assert empty.rate.mean == (None,) * 10


def test_redundant_units_stand_apart():
    """Four units, the last two redundant: the end holds no unit with a reference, and redundant ones alone."""
    found = correctness_by_position([1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3], [4] * 4, ["x"] * 4, ["a"] * 4, bins=2)
    assert found.rate.mean == (0.5, None)
    assert found.redundancy.mean == (0.0, 1.0)
    assert found.rate.tasks["a"].units == (2, 0)


def test_bins_have_intervals_over_answers():
    """Two answers of two units, all right at the beginning, one of two at the end."""
    found = correctness_by_position(
        [1, 1, 1, 0], [0] * 4, [0, 1, 0, 1], [2] * 4, ["x", "x", "y", "y"], ["a"] * 4, bins=2
    )
    assert (found.rate.intervals[0].low, found.rate.intervals[0].high) == (pytest.approx(0.025**0.5), 1.0)
    assert found.rate.intervals[1].low == pytest.approx(0.0, abs=0.1)


def test_history_counts_the_units_before():
    """Answer x: 1 1 0 1, histories –, 1, 1, 2/3; answer y, rows shuffled in: 0 1, histories –, 0."""
    curve = correctness_by_history([0, 1, 1, 1, 0, 1], [0] * 6, [2, 0, 1, 3, 0, 1], list("xxxxyy"), ["t"] * 6, bins=3)
    assert curve.mean == (1.0, 1.0, 0.5)
    assert curve.tasks["t"].units == (1, 1, 2)
    assert curve.tasks["t"].answers == (1, 1, 1)


def test_redundant_units_are_history_and_nothing_else():
    """Answer right, redundant, wrong: only the third is an outcome, after one of two."""
    curve = correctness_by_history([1, 0, 0], [0, 1, 0], [0, 1, 2], ["x"] * 3, ["t"] * 3, bins=2)
    assert curve.tasks["t"].units == (1, 0)


def test_history_needs_every_unit_of_an_answer():
    with pytest.raises(ValueError, match="without gaps"):
        correctness_by_history([1, 0], [0, 0], [0, 2], ["x", "x"], ["t", "t"])
    with pytest.raises(ValueError, match="without gaps"):
        correctness_by_history([1, 0], [0, 0], [0, 0], ["x", "x"], ["t", "t"])
    assert correctness_by_history(np.zeros(0), np.zeros(0), np.zeros(0, int), [], []).mean == (None,) * 20


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=6), st.integers(1, 7))
def test_history_agrees_with_counting_one_by_one(answers, bins):
    rows = [(right, i, g) for g, answer in enumerate(answers) for i, right in enumerate(answer)]
    expected: dict[int, list[bool]] = {number: [] for number in range(bins)}
    for answer in answers:
        for i in range(1, len(answer)):
            before = sum(answer[:i])
            number = next(j for j in range(bins) if before * bins <= (j + 1) * i)
            expected[number].append(answer[i])
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = [rows[i] for i in order]
    correct, index, generation = zip(*shuffled, strict=True)
    curve = correctness_by_history(correct, [0] * len(rows), index, generation, ["t"] * len(rows), bins=bins)
    if not any(expected.values()):
        assert curve.mean == (None,) * bins
    else:
        assert curve.mean == pytest.approx([np.mean(v) if v else None for v in expected.values()])


def test_calibration_by_position():
    """First half: confidence 0.9, one of two right: 0.4; second half: confidence 0.5 right: 0.5."""
    curve = calibration_by_position([0.9, 0.9, 0.5], [1, 0, 1], [0, 0, 1], [2, 2, 2], ["x"] * 3, ["a"] * 3, bins=2)
    assert curve.mean == pytest.approx((0.4, 0.5))
    with pytest.raises(ValueError, match="outside"):
        calibration_by_position([1.5], [1], [0], [1], ["x"], ["a"])


@pytest.mark.parametrize(
    ("index", "length", "tasks", "bins", "message"),
    [
        ([1], [1], ["a"], 2, "index 1 is outside an answer of 1 units"),
        ([-1], [1], ["a"], 2, "index -1 is outside"),
        ([0], [1, 2], ["a"], 2, "length has shape"),
        ([0.5], [1], ["a"], 2, "whole numbers"),
        ([0], [1], ["a", "b"], 2, "tasks has 2 rows"),
        ([0], [1], ["a"], 0, "bins is at least 1"),
    ],
)
def test_refusals(index, length, tasks, bins, message):
    with pytest.raises(ValueError, match=message):
        correctness_by_position([1], [0], index, length, ["x"], tasks, bins=bins)
