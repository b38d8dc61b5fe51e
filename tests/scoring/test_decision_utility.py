"""EURO: the estimators of the paper, the closed form against counting, and the user's own rewards."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from scoring.decision_utility import RISK_CUTS, Rewards, euro, euro_areas, euro_curve, expected_utility
from scoring.scored_units import ScoredUnits
from scoring.value import NO_UNITS, ONE_CLASS, undefined
from scoring.yardsticks import YARDSTICK_METRICS, yardsticks

PAPER = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["euro_paper"]
tables = st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=12)


def _units(table: list[tuple[float, bool]]) -> ScoredUnits:
    return ScoredUnits.from_columns([row[0] for row in table], [row[1] for row in table])


def test_the_estimators_of_the_paper() -> None:
    """Accuracy one half: the oracle 1, the probabilistic oracle 0.9375, the base rate 0.75 (ACUTE section 2.2)."""
    half = [1] * 50 + [0] * 50
    oracle = ScoredUnits.from_columns(np.array(half, dtype=float), half)
    probabilistic = ScoredUnits.from_columns(np.where(half, 0.75, 0.25), half)
    base_rate = ScoredUnits.from_columns([0.5] * 100, half)
    areas = [euro_areas(units) for units in (oracle, probabilistic, base_rate)]
    expected = [PAPER["oracle"]["auc"], PAPER["probabilistic_oracle_.75_.25"]["auc"], PAPER["baserate_.5"]["auc"]]
    assert [area and area.all for area in areas] == pytest.approx(expected, abs=1e-9)
    high, medium = euro(probabilistic, 0.9).value, euro(probabilistic, 0.5).value
    assert high == pytest.approx(PAPER["probabilistic_oracle_.75_.25"]["at_.9"], abs=1e-9)
    assert medium == pytest.approx(PAPER["probabilistic_oracle_.75_.25"]["at_.5"], abs=1e-9)


def _counted_area(table: list[tuple[float, bool]], low: float, high: float) -> float:
    """Integrate by Gauss–Legendre between all breakpoints; EURO is smooth there."""
    right, wrong = sum(correct for _, correct in table), sum(not correct for _, correct in table)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    breaks = sorted({low, high, *(value for value, _ in table if low < value < high)})
    area = 0.0
    for start, end in pairwise(breaks):
        if end - start < 1e-12:
            continue
        for node, weight in zip(nodes, weights, strict=True):
            u = (start + end) / 2 + (end - start) / 2 * node
            trusted = sum(correct for value, correct in table if value > u)
            abstained = sum(not correct for value, correct in table if value <= u)
            area += weight * (end - start) / 2 * ((1 - u) * trusted + u * abstained) / ((1 - u) * right + u * wrong)
    return area / (high - low)


@given(tables)
def test_the_closed_form_is_the_area_of_the_counted_curve(table: list[tuple[float, bool]]) -> None:
    """Over all four ranges, for any class balance, one class included."""
    areas = euro_areas(_units(table))
    assert areas is not None
    first, second = RISK_CUTS
    ranges = ((0.0, 1.0), (0.0, first), (first, second), (second, 1.0))
    counted = [_counted_area(table, low, high) for low, high in ranges]
    assert [areas.all, areas.low, areas.medium, areas.high] == pytest.approx(counted, abs=2e-6)


@pytest.mark.parametrize("right", [1, 4_940, 4_949, 4_950, 4_951, 4_999, 5_000, 5_001, 5_051, 9_999])
def test_both_branches_of_the_antiderivative_agree_with_counting(right: int) -> None:
    """Near balance the series takes over; the area of a constant confidence is known by hand."""
    counts = (right, 10_000 - right)
    units = ScoredUnits.from_columns([0.3] * 10_000, [1] * right + [0] * counts[1])

    def curve(u: float) -> float:
        gain = (1 - u) * counts[0] if u < 0.3 else u * counts[1]
        return gain / ((1 - u) * counts[0] + u * counts[1])

    total = sum(quad(curve, *ends, epsabs=1e-13, epsrel=1e-13, limit=200)[0] for ends in ((0.0, 0.3), (0.3, 1.0)))
    areas = euro_areas(units)
    assert areas is not None
    assert areas.all == pytest.approx(total, abs=1e-9)


def test_one_class_is_undefined_only_where_nothing_can_be_won() -> None:
    """Without a right unit, u = 0 rewards nothing; without a wrong one, u = 1."""
    wrong, right = ScoredUnits.from_columns([0.5], [0]), ScoredUnits.from_columns([0.5], [1])
    assert euro(wrong, 0.0) == euro(right, 1.0) == undefined(ONE_CLASS)
    assert (euro(wrong, 0.4).value, euro(wrong, 0.5).value) == (0.0, 1.0)
    assert (euro(right, 0.4).value, euro(right, 0.5).value) == (1.0, 0.0)
    assert euro(ScoredUnits.from_columns([], []), 0.5) == undefined(NO_UNITS)


@pytest.mark.parametrize("utility", [-0.1, 1.1, float("nan")])
def test_a_utility_outside_the_unit_interval_is_refused(utility: float) -> None:
    """It is a normalised utility."""
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        euro(ScoredUnits.from_columns([0.5], [1]), utility)


def test_rewards_set_the_threshold_and_the_utility() -> None:
    """Rewards 1, −3, 0, 1: τ = 4/5; of four units one right is trusted and two wrong are not, by hand."""
    units = ScoredUnits.from_columns([0.9, 0.8, 0.3, 0.5], [1, 1, 0, 0])
    utility = expected_utility(units, Rewards(1.0, -3.0, 0.0, 1.0))
    assert utility.threshold == pytest.approx(0.8)
    assert (utility.trusted, utility.trusted_right) == (1, 1)
    assert utility.mean.value == pytest.approx((1 + 0 + 1 + 1) / 4)
    assert utility.oracle.value == pytest.approx(1.0)
    assert utility.euro == euro(units, utility.threshold)
    assert expected_utility(ScoredUnits.from_columns([], []), Rewards(1, 0, 0, 1)).mean == undefined(NO_UNITS)


@given(tables, st.tuples(*[st.floats(-5.0, 5.0)] * 4))
def test_euro_ranks_deciders_as_their_utility_does(
    table: list[tuple[float, bool]], numbers: tuple[float, float, float, float]
) -> None:
    """Utility is an increasing linear function of EURO at the threshold (ACUTE section 2.3, equations 4 and 5)."""
    low, high, low_wrong, high_wrong = *sorted(numbers[:2]), *sorted(numbers[2:])
    rewards = Rewards(high + 0.1, low_wrong, low, high_wrong + 0.1)
    units = _units(table)
    utility = expected_utility(units, rewards)
    worst = (rewards.abstained_right * units.total_correct + rewards.trusted_wrong * units.total_wrong) / units.n
    assert utility.mean.value is not None
    assert utility.oracle.value is not None
    assert utility.euro.value is not None
    expected = worst + utility.euro.value * (utility.oracle.value - worst)
    assert utility.mean.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "rewards", [(0, 0, 0, 1), (1, 1, 0, 1), (1, 0, 0, float("inf")), (1, 0, 0, float("nan")), (1e308, 0, -1e308, 1)]
)
def test_rewards_that_pay_for_mistakes_are_refused(rewards: tuple[float, float, float, float]) -> None:
    """As are rewards that no threshold can be computed from."""
    with pytest.raises(ValueError, match=r"pay more|finite|differ"):
        Rewards(*rewards)


def test_yardsticks_by_hand() -> None:
    """Three of four right: oracle perfect; base rate Brier 3/16 and its entropy as NLL."""
    found = yardsticks(ScoredUnits.from_columns([0.2, 0.9, 0.9, 0.1], [1, 1, 1, 0]))
    assert tuple(found) == YARDSTICK_METRICS
    oracle = [found[name].oracle.value for name in YARDSTICK_METRICS]
    assert oracle == pytest.approx([0.0, 0.0, 1.0, 1.0, 1.0, 1.0], abs=1e-12)
    assert found["brier"].base_rate.value == pytest.approx(3 / 16)
    assert found["nll"].base_rate.value == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25))
    nothing = yardsticks(ScoredUnits.from_columns([], []))
    assert {value for entry in nothing.values() for value in (entry.oracle, entry.base_rate)} == {undefined(NO_UNITS)}


@given(tables)
def test_the_curve_is_euro_at_each_utility(table: list[tuple[float, bool]]) -> None:
    units = _units(table)
    utilities = np.array([0.0, 0.2, 0.5, table[0][0], 1.0])
    expected = [euro(units, utility).value for utility in utilities]
    found = euro_curve(units, utilities).tolist()
    assert [None if np.isnan(value) else value for value in found] == expected
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        euro_curve(units, np.array([1.1]))
    assert np.isnan(euro_curve(ScoredUnits.from_columns([], []), utilities)).all()
