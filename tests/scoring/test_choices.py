"""Metrics of all letters of multiple-choice problems, by hand, by law, and where something is degenerate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from scoring.calibrators_fitted import Unfitted
from scoring.choices import (
    CHOICE_METRICS,
    ChoiceTable,
    ScaledChoices,
    at_temperature,
    classwise_ece,
    cross_fit_temperature,
    fit_temperature,
    multiclass_brier,
    multiclass_nll,
)
from scoring.metrics import METRICS
from scoring.proper_scores import brier_score
from scoring.scored_units import ScoredUnits
from scoring.value import NO_UNITS, TOO_FEW_GENERATIONS, Value
from tests.examples import examples

pytestmark = pytest.mark.quick

NAN = math.nan


def fitted(table: ChoiceTable) -> tuple[float, str | None]:
    found = fit_temperature(table)
    assert not isinstance(found, Unfitted)
    return found.temperature, found.note


def test_two_problems_by_hand() -> None:
    table = ChoiceTable.of([[0.8, 0.2], [0.6, 0.4]], [0, 1])
    assert multiclass_brier(table).value == pytest.approx((0.08 + 0.72) / 2)
    # A: .8 is right and .6 is not, two bins: (.2 + .6)/2.  B: .2 is not and .4 is: (.2 + .6)/2.
    assert classwise_ece(table).value == pytest.approx(0.4)
    assert multiclass_nll(table).value == pytest.approx(-(math.log(0.8) + math.log(0.4)) / 2)


def test_letters_count_over_the_problems_that_offer_them() -> None:
    table = ChoiceTable.of([[0.7, 0.3, NAN, NAN], [0.5, 0.25, 0.25, NAN]], [0, 2])
    assert multiclass_brier(table).value == pytest.approx(((0.3**2 + 0.3**2) + (0.25 + 0.0625 + 0.5625)) / 2)
    # A: |.7 − 1|/2 + |.5 − 0|/2; B: .3/2 + .25/2, never right; C: |.25 − 1| over the one that offers it; D: nobody.
    assert classwise_ece(table).value == pytest.approx((0.4 + 0.275 + 0.75) / 3)


def test_the_guides_example_of_a_temperature() -> None:
    weights = np.exp([10.0, 5.0, 1.0])
    table = ChoiceTable.of([weights / weights.sum()], [0])
    assert table.probability[0] == pytest.approx([0.9932, 0.0067, 0.0001], abs=5e-5)
    assert at_temperature(table, 2.0).probability[0] == pytest.approx([0.9148, 0.0751, 0.0101], abs=1e-4)


def test_a_temperature_by_hand() -> None:
    """All say .9, three of four are right: σ(ln 9 / T) = 3/4, so T = ln 9 / ln 3 = 2."""
    table = ChoiceTable.of([[0.9, 0.1]] * 4, [0, 0, 0, 1])
    assert fitted(table) == (pytest.approx(2.0, abs=1e-9), None)
    assert at_temperature(table, 2.0).probability[0] == pytest.approx([0.75, 0.25])


ROWS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3), min_size=n, max_size=n),
        st.lists(st.integers(0, 2), min_size=n, max_size=n),
    )
)


def of_weights(rows: tuple[list[list[float]], list[int]]) -> ChoiceTable:
    weights = np.array(rows[0])
    return ChoiceTable.of(weights / weights.sum(axis=1, keepdims=True), rows[1])


@settings(max_examples=examples(30))
@given(ROWS)
def test_the_temperature_has_the_least_loss(rows: tuple[list[list[float]], list[int]]) -> None:
    table = of_weights(rows)
    temperature, _ = fitted(table)

    def loss(logarithm: float) -> float:
        return multiclass_nll(at_temperature(table, math.exp(logarithm))).value or 0.0

    other = minimize_scalar(loss, bounds=(math.log(0.01), math.log(100)), method="bounded", options={"xatol": 1e-10})
    assert loss(math.log(temperature)) <= float(other.fun) + 1e-9


@settings(max_examples=examples(30))
@given(ROWS, st.floats(0.05, 20.0))
def test_scaling_keeps_sums_and_order_and_every_metric_in_its_range(
    rows: tuple[list[list[float]], list[int]], temperature: float
) -> None:
    table = of_weights(rows)
    scaled = at_temperature(table, temperature)
    assert scaled.probability.sum(axis=1) == pytest.approx(1.0)
    assert (np.diff(np.take_along_axis(scaled.probability, table.probability.argsort(axis=1), axis=1)) >= -1e-15).all()
    for metric in CHOICE_METRICS.values():
        assert 0.0 <= (metric.function(scaled).value or 0.0) <= metric.maximum


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=20))
def test_two_letters_are_twice_the_score_of_one(rows: list[tuple[float, bool]]) -> None:
    first = np.array([p for p, _ in rows])
    table = ChoiceTable.of(np.stack([first, 1.0 - first], axis=1), [0 if right else 1 for _, right in rows])
    alone = brier_score(ScoredUnits.from_columns(first, [right for _, right in rows]))
    assert multiclass_brier(table).value == pytest.approx(2.0 * (alone.value or 0.0))


def test_a_row_is_scaled_by_the_other_rows() -> None:
    random = np.random.default_rng(3)
    weights = random.dirichlet([1.0, 1.0, 1.0], size=40) ** 2
    probability = weights / weights.sum(axis=1, keepdims=True)
    right = [int(random.choice(3, p=np.sqrt(row) / np.sqrt(row).sum())) for row in probability]
    table = ChoiceTable.of(probability, right)
    scaled = cross_fit_temperature(table)
    assert isinstance(scaled, ScaledChoices)
    changed = ChoiceTable.of(probability, [(right[0] + 1) % 3, *right[1:]])
    again = cross_fit_temperature(changed)
    assert isinstance(again, ScaledChoices)
    assert again.table.probability[0].tolist() == scaled.table.probability[0].tolist()
    assert again.table.probability[1:].tolist() != scaled.table.probability[1:].tolist()
    assert (multiclass_nll(scaled.table).value or 0.0) < (multiclass_nll(table).value or 0.0)


def test_what_is_degenerate_has_a_value_or_a_reason() -> None:
    nothing = ChoiceTable.of(np.zeros((0, 2)), [])
    assert [metric.function(nothing) for metric in CHOICE_METRICS.values()] == [Value(None, NO_UNITS)] * 3
    assert fit_temperature(nothing) == Unfitted("temperature", NO_UNITS)
    one = ChoiceTable.of([[0.9, 0.1]], [0])
    assert cross_fit_temperature(one) == Unfitted("temperature", TOO_FEW_GENERATIONS)
    certain = ChoiceTable.of([[0.0, 1.0]] * 2, [0, 0])
    assert multiclass_brier(certain).value == 2.0
    assert multiclass_nll(certain).value == math.inf
    assert fit_temperature(certain) == Unfitted("temperature", "the right letter has probability 0 in every answer")
    # One impossible right letter: infinite at every temperature, so the others alone decide.
    mixed = ChoiceTable.of([[0.9, 0.1]] * 4 + [[0.0, 1.0]], [0, 0, 0, 1, 0])
    temperature, note = fitted(mixed)
    assert temperature == pytest.approx(2.0, abs=1e-9)
    assert note == "1 of 5 answers not used in the fit: the right letter has probability 0"
    assert multiclass_nll(at_temperature(mixed, temperature)).value == math.inf
    assert at_temperature(mixed, temperature).probability[4].tolist() == [0.0, 1.0]
    # One class: the right letter is always A.
    assert fitted(ChoiceTable.of([[0.9, 0.1]] * 3, [0, 0, 0]))[1] is not None
    for flat in ([[0.5, 0.5]] * 2, [[1.0, 0.0]] * 2):
        assert fitted(ChoiceTable.of(flat, [0, 0])) == (
            1.0,
            "every answer gives its letters equal probability, or all of it to one",
        )
    assert fitted(ChoiceTable.of([[0.9, 0.1]] * 2, [1, 1]))[0] == 100.0


def test_rows_that_are_no_probabilities_are_refused() -> None:
    for probability, right in (
        ([[0.5, 0.4]], [0]), ([[1.2, -0.2]], [0]), ([[1.0, NAN]], [1]), ([[0.5, 0.5]], [2]), ([0.5, 0.5], [0]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"sum to 1|outside|not offered|none of the columns|rows of letters"):
            ChoiceTable.of(probability, right)
    with pytest.raises(ValueError, match="above 0"):
        at_temperature(ChoiceTable.of([[0.5, 0.5]], [0]), 0.0)
    assert not set(CHOICE_METRICS) & set(METRICS)
