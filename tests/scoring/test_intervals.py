"""Bootstrap intervals: generations are drawn, draws are reproducible, and coverage is near the level."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.bootstrap import bootstrap_intervals
from scoring.metrics import METRICS
from scoring.scored_units import RowError, SortedColumns
from scoring.value import INFINITE_IN_DRAWS, ONE_ANSWER
from tests.scoring.measured import evaluate_metrics


def _table(seed: int, generations: int = 40, units: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    confidence = generator.integers(1, 19, generations * units) / 20
    return confidence, generator.random(confidence.size) < confidence, np.repeat(np.arange(generations), units)


@pytest.mark.parametrize("name", METRICS)
def test_a_draw_is_the_table_with_its_generations_repeated(name: str) -> None:
    """Reweighted counts give what the repeated rows would, for every metric; a repeated generation stays two."""
    confidence, correct, groups = _table(1)
    drawn = np.bincount(np.random.default_rng(2).integers(0, 40, 40), minlength=40)
    rows = np.repeat(np.arange(confidence.size), drawn[groups])
    copies = np.concatenate([np.arange(drawn[group]) for group in groups])
    repeated = evaluate_metrics(confidence[rows], correct[rows], groups[rows] * 100 + copies)[name]
    weighted = METRICS[name].function(SortedColumns.from_columns(confidence, correct, groups).units(drawn))
    assert weighted.value == pytest.approx(repeated.value, abs=1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_a_draw_may_leave_out_what_had_the_lowest_confidences(name: str) -> None:
    """Continuous confidences and few generations: thresholds without a unit lie at both ends."""
    confidence, groups = np.array([0.01, 0.02, 0.5, 0.6, 0.7, 0.99]), np.array([0, 0, 1, 1, 1, 2])
    correct = np.array([0, 1, 1, 0, 1, 1])
    weighted = METRICS[name].function(
        SortedColumns.from_columns(confidence, correct, groups).units(np.array([0, 2, 0]))
    )
    rows = np.array([2, 3, 4, 2, 3, 4])
    repeated = evaluate_metrics(confidence[rows], correct[rows], np.array([1, 1, 1, 2, 2, 2]))[name]
    assert weighted.value == pytest.approx(repeated.value, abs=1e-9)


def test_intervals_hold_the_point_estimate_and_repeat_with_the_seed() -> None:
    """All metrics of a table, twice with one seed and once with another."""
    table = _table(3)
    point = evaluate_metrics(*table)
    first, again, other = (bootstrap_intervals(*table, np.random.default_rng(seed), draws=60) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    for name in set(METRICS) - {"ece", "mce", "ace", "smooth_ece", "brier_reliability"}:
        low, high, value = first[name].low, first[name].high, point[name].value
        assert low is not None
        assert high is not None
        assert value is not None
        assert low < value < high
        assert (first[name].draws, first[name].left_out) == (0 if name == "accuracy" else 60, 0)


def test_generations_are_drawn_not_units() -> None:
    """Units that repeat their generation's outcome carry the information of one: the interval is as wide."""
    generator = np.random.default_rng(4)
    outcomes = generator.random(60) < 0.5
    confidence = np.full(600, 0.5)
    correct, groups = np.repeat(outcomes, 10), np.repeat(np.arange(60), 10)
    by_generation = bootstrap_intervals(confidence, correct, groups, np.random.default_rng(5), ["accuracy"], draws=400)
    by_row = bootstrap_intervals(confidence, correct, None, np.random.default_rng(5), ["accuracy"], draws=400)
    wide, narrow = by_generation["accuracy"], by_row["accuracy"]
    assert (wide.high or 0) - (wide.low or 0) > 2 * ((narrow.high or 0) - (narrow.low or 0))
    assert (wide.high or 0) - (wide.low or 0) == pytest.approx(3.92 * (0.25 / 60) ** 0.5, rel=0.2)


def test_coverage_is_near_the_level() -> None:
    """Accuracy 0.7 in 100 tables: between 82 and 98 % of the 90 % intervals hold it."""
    held = 0
    for seed in range(100):
        generator = np.random.default_rng(1000 + seed)
        correct = generator.random(120) < 0.7
        found = bootstrap_intervals(np.full(120, 0.5), correct, None, generator, ["accuracy"], draws=100, level=0.9)
        held += (found["accuracy"].low or 0.0) <= 0.7 <= (found["accuracy"].high or 0.0)
    assert 82 <= held <= 98


def test_undefined_draws_are_left_out_and_counted() -> None:
    """Two wrong units in five: some draws have one class; a sure mistake has no finite end."""
    confidence, correct = [0.9, 0.8, 0.3, 0.2, 0.1], [1, 1, 0, 1, 0]
    found = bootstrap_intervals(confidence, correct, list("abcde"), np.random.default_rng(6), ["auroc"], draws=300)
    assert found["auroc"].left_out > 0
    assert found["auroc"].low is not None
    assert found["auroc"].draws + found["auroc"].left_out == 300
    sure = bootstrap_intervals([1.0, 1.0], [0, 0], ["a", "b"], np.random.default_rng(6), ["nll"], draws=20)["nll"]
    assert (sure.low, sure.high, sure.draws, sure.left_out, sure.reason) == (None, None, 20, 0, INFINITE_IN_DRAWS)


@pytest.mark.parametrize(("confidence", "groups"), [([], None), ([0.5], None), ([0.5, 0.6], ["a", "a"])])
def test_one_generation_has_no_interval(confidence: list[float], groups: list[str] | None) -> None:
    """Nothing can be said about the spread between generations."""
    found = bootstrap_intervals(confidence, [1, 0][: len(confidence)], groups, np.random.default_rng(7))
    assert {interval.reason for interval in found.values()} == {ONE_ANSWER}
    assert set(found) == set(METRICS)


def test_bad_input_is_refused() -> None:
    """Rows as in the point metrics, and settings that mean nothing."""
    generator = np.random.default_rng(8)
    with pytest.raises(RowError, match="row 1"):
        bootstrap_intervals([0.5, 1.5], [1, 0], None, generator)
    with pytest.raises(ValueError, match="draws is at least 1"):
        bootstrap_intervals([0.5, 0.5], [1, 0], None, generator, draws=0)
    with pytest.raises(ValueError, match="level inside"):
        bootstrap_intervals([0.5, 0.5], [1, 0], None, generator, level=1.0)
