"""Binned calibration errors, Brier score and risk-coverage, by hand and on the seeds' worked examples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scoring.calibration_error import (
    BIN_COUNTS,
    adaptive_calibration_error,
    equal_mass_bins,
    equal_width_bins,
    error_by_bin_count,
    expected_calibration_error,
    maximum_calibration_error,
)
from scoring.proper_scores import brier_decomposition, brier_score
from scoring.ranking import area_under_risk_coverage, risk_coverage
from scoring.scored_units import ScoredUnits
from scoring.smooth_calibration_error import smooth_calibration_error
from scoring.value import NO_UNITS, undefined

WORKED = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["worked_examples"]


def test_the_worked_example_of_ece() -> None:
    """Three bins of 500, 300 and 200 predictions (calibration guide): 0.08; the largest gap is 0.1."""
    confidence = np.concatenate([np.full(count, stated) for count, stated, _ in WORKED["ece"]["bins"]])
    correct = np.concatenate([np.arange(count) < round(count * rate) for count, _, rate in WORKED["ece"]["bins"]])
    units = ScoredUnits.from_columns(confidence, correct)
    assert expected_calibration_error(units).value == pytest.approx(WORKED["ece"]["value"], abs=1e-4)
    assert maximum_calibration_error(units).value == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("example", WORKED["brier"])
def test_the_worked_examples_of_the_brier_score(example: dict[str, object]) -> None:
    """Calibration guide, Brier score."""
    value = brier_score(ScoredUnits.from_columns(example["p"], example["y"])).value
    assert value == pytest.approx(example["value"], abs=1e-4)


def test_the_worked_example_of_the_decomposition() -> None:
    """Calibration guide, Brier score decomposition: the remainder is 0 since each bin holds one confidence."""
    example = WORKED["brier_decomposition"]
    parts = brier_decomposition(ScoredUnits.from_columns(example["p"], example["y"]))
    assert parts is not None
    found = (parts.reliability, parts.resolution, parts.uncertainty)
    assert found == pytest.approx((example["reliability"], example["resolution"], example["uncertainty"]), abs=1e-9)
    assert parts.remainder == pytest.approx(0.0, abs=1e-12)


def test_an_edge_belongs_to_the_bin_below_and_zero_to_the_first() -> None:
    """Every edge j/15 as a double, its neighbours, and 0."""
    edges = np.arange(16) / 15
    for confidence, expected in (
        [(edge, max(j, 1)) for j, edge in enumerate(edges)]
        + [(np.nextafter(edge, 2.0), j + 1) for j, edge in enumerate(edges[:-1])]
        + [(np.nextafter(edge, -1.0), j) for j, edge in enumerate(edges) if j]
    ):
        bins = equal_width_bins(ScoredUnits.from_columns([confidence], [1]))
        assert bins.upper.tolist() == [expected / 15]
        assert bins.counts.tolist() == [1]


def test_only_bins_with_units_are_given() -> None:
    """Two of fifteen, with their means; the gap is signed."""
    bins = equal_width_bins(ScoredUnits.from_columns([0.61, 0.63, 0.9], [1, 0, 0]))
    assert bins.requested == 15
    assert bins.confidence.tolist() == pytest.approx([0.62, 0.9])
    assert bins.accuracy.tolist() == [0.5, 0.0]
    assert bins.gaps.tolist() == pytest.approx([0.12, 0.9])


def test_equal_mass_bins_keep_ties_together() -> None:
    """Positions 0..3 tied and 4, 5: bins ⌊3(s+e+1)/12⌋ = 1, 2, 2 by hand."""
    units = ScoredUnits.from_columns([0.2] * 4 + [0.4, 0.8], [1, 0, 0, 0, 1, 1])
    bins = equal_mass_bins(units, 3)
    assert bins.counts.tolist() == [4, 2]
    assert (bins.lower.tolist(), bins.upper.tolist()) == ([0.2, 0.4], [0.2, 0.8])
    assert adaptive_calibration_error(units, 3).value == pytest.approx((4 * 0.05 + 2 * 0.4) / 6)


def test_fewer_units_than_bins_are_one_bin_each() -> None:
    """Each distinct unit is alone."""
    bins = equal_mass_bins(ScoredUnits.from_columns([0.3, 0.6, 0.1], [0, 1, 1]))
    assert bins.counts.tolist() == [1, 1, 1]
    assert bins.lower.tolist() == bins.upper.tolist() == [0.1, 0.3, 0.6]


def test_the_number_of_bins_changes_the_error() -> None:
    """One bin hides what many show: two gaps that cancel."""
    units = ScoredUnits.from_columns([0.1] * 10 + [0.9] * 10, [1] * 10 + [0] * 10)
    assert expected_calibration_error(units, 1).value == pytest.approx(0.0, abs=1e-12)
    by_count = error_by_bin_count(units)
    assert tuple(by_count) == BIN_COUNTS
    assert by_count[15].value == pytest.approx(0.9)
    with pytest.raises(ValueError, match="bins is at least 1"):
        expected_calibration_error(units, 0)


def test_no_units_have_no_bins() -> None:
    """Empty arrays and undefined errors."""
    nothing = ScoredUnits.from_columns([], [])
    assert equal_width_bins(nothing).counts.size == equal_mass_bins(nothing).counts.size == 0
    assert expected_calibration_error(nothing) == adaptive_calibration_error(nothing) == undefined(NO_UNITS)
    assert brier_decomposition(nothing) is None
    assert risk_coverage(nothing).coverage.size == 0


@pytest.mark.parametrize("size", [200, 20_000])
def test_smooth_error_sees_a_constant_shift_and_its_absence(size: int) -> None:
    """Outcomes drawn at p − 0.2 give 0.2; outcomes drawn at p give little, less with more units."""
    generator = np.random.default_rng(3)
    confidence = generator.uniform(0.2, 0.8, size)
    shifted = smooth_calibration_error(ScoredUnits.from_columns(confidence, generator.random(size) < confidence - 0.2))
    honest = smooth_calibration_error(ScoredUnits.from_columns(confidence, generator.random(size) < confidence))
    assert shifted.value == pytest.approx(0.2, abs=1.5 / size**0.5)
    assert honest.value is not None
    assert honest.value < 2.0 / size**0.5


def test_risk_coverage_by_hand() -> None:
    """Most confident first; a tie is one point of the curve, and its orders average in the area."""
    units = ScoredUnits.from_columns([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
    curve = risk_coverage(units)
    assert curve.threshold.tolist() == [0.9, 0.5, 0.1]
    assert curve.coverage.tolist() == [0.25, 0.75, 1.0]
    assert curve.risk.tolist() == pytest.approx([0.0, 1 / 3, 0.5])
    expected = (0 + (0 + 1 / 2) / 2 + 1 / 3 + 1 / 2) / 4
    assert area_under_risk_coverage(units).value == pytest.approx(expected, abs=1e-12)
