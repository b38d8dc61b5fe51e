"""Laws that every registered metric obeys: a new entry is tested by being registered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.metrics import METRICS, Metric
from scoring.scored_units import ScoredUnits
from scoring.value import NOT_A_PROBABILITY, Value
from tests.examples import examples
from tests.scoring.measured import evaluate_metrics

Rows = list[tuple[float, bool, int]]

confidences = st.one_of(
    st.floats(0.0, 1.0, allow_subnormal=False), st.sampled_from([0.0, 1 / 15, 0.2, 0.5, 7 / 15, 0.6, 1.0])
)
rows = st.lists(st.tuples(confidences, st.booleans(), st.integers(0, 3)), min_size=1, max_size=30)
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def _value(metric: Metric, table: Rows) -> Value:
    confidence, correct, groups = zip(*table, strict=True)
    return metric.function(ScoredUnits.from_columns(confidence, correct, groups))


def _same(first: Value, second: Value) -> bool:
    if first.value is None or second.value is None:
        return first == second
    return math.isclose(first.value, second.value, rel_tol=1e-9, abs_tol=1e-9)


def _worse(metric: Metric, value: Value, than: Value) -> bool:
    assert metric.higher_is_better is not None
    if value.value is None or than.value is None:
        return False
    difference = value.value - than.value
    return (difference < -1e-9) if metric.higher_is_better else (difference > 1e-9)


@every_metric
def test_an_entry_is_complete(metric: Metric) -> None:
    """Every field that definitions and screens print is there."""
    assert metric.title
    assert metric.formula
    assert metric.degenerate
    assert metric.source
    assert metric.minimum < metric.maximum
    assert not (metric.ranks_only and metric.needs_probability)


@every_metric
@settings(max_examples=examples(30))
@given(table=rows)
def test_values_stay_in_range(metric: Metric, table: Rows) -> None:
    """A value lies in the range that the registry states, or is undefined with a reason."""
    value = _value(metric, table)
    if value.value is None:
        assert value.reason
    else:
        assert metric.minimum <= value.value <= metric.maximum


@every_metric
@settings(max_examples=examples(30))
@given(table=rows, data=st.data())
def test_the_order_of_rows_does_not_matter(metric: Metric, table: Rows, data: st.DataObject) -> None:
    """Any permutation gives the same value, also with ties."""
    assert _same(_value(metric, table), _value(metric, data.draw(st.permutations(table))))


@every_metric
@settings(max_examples=examples(30))
@given(table=rows)
def test_doubling_every_row_changes_nothing(metric: Metric, table: Rows) -> None:
    """Every metric is a mean or a share; a doubled row is a tie that must not count as information.

    AURC is the exception by definition: its expectation within a tie group depends on the group's size.
    """
    doubled = _value(metric, table + table)
    if metric.name == "aurc":
        assert doubled.value is not None
    else:
        assert _same(_value(metric, table), doubled)


@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.ranks_only], ids=lambda m: m.name)
@settings(max_examples=examples(30))
@given(table=rows)
def test_a_strictly_rising_map_leaves_ranking_alone(metric: Metric, table: Rows) -> None:
    """Only the order of confidences counts, and they need not be probabilities."""
    ranks = np.unique([row[0] for row in table], return_inverse=True)[1]
    mapped = [(math.exp(rank) - 7.0, correct, group) for rank, (_, correct, group) in zip(ranks, table, strict=True)]
    assert _same(_value(metric, table), _value(metric, mapped))


@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.rewards_approach], ids=lambda m: m.name)
@settings(max_examples=examples(50))
@given(table=rows, index=st.integers(0, 29), share=st.floats(0.0, 1.0))
def test_a_worse_confidence_never_scores_better(metric: Metric, table: Rows, index: int, share: float) -> None:
    """Moving one confidence away from its outcome never makes the value better."""
    confidence, correct, group = table[index % len(table)]
    target = 0.0 if correct else 1.0
    moved = confidence + share * (target - confidence)
    worse = [*table]
    worse[index % len(table)] = (min(max(moved, 0.0), 1.0), correct, group)
    assert not _worse(metric, _value(metric, table), than=_value(metric, worse))


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.higher_is_better is not None], ids=lambda m: m.name
)
@settings(max_examples=examples(30))
@given(table=rows)
def test_nothing_beats_the_oracle(metric: Metric, table: Rows) -> None:
    """Confidence 1 for right and 0 for wrong units is as good as it gets; the inverse never wins."""
    perfect: Rows = [(float(correct), correct, group) for _, correct, group in table]
    inverted: Rows = [(float(not correct), correct, group) for _, correct, group in table]
    value = _value(metric, table)
    assert not _worse(metric, _value(metric, perfect), than=value)
    assert not _worse(metric, _value(metric, perfect), than=_value(metric, inverted))


@settings(max_examples=examples(100))
@given(table=rows)
def test_prr_is_twice_auroc_minus_one(table: Rows) -> None:
    """Exactly, ties included, although the two are computed from different curves."""
    auroc, prr = _value(METRICS["auroc"], table), _value(METRICS["prr"], table)
    if auroc.value is None or prr.value is None:
        assert auroc == prr
    else:
        assert prr.value == pytest.approx(2.0 * auroc.value - 1.0, abs=1e-12)


@settings(max_examples=examples(100))
@given(table=rows)
def test_the_brier_decomposition_is_exact(table: Rows) -> None:
    """Reliability − resolution + uncertainty + remainder is the Brier score."""
    parts = ("brier", "brier_reliability", "brier_resolution", "brier_uncertainty", "brier_remainder")
    brier, reliability, resolution, uncertainty, remainder = (
        _value(METRICS[name], table).value or 0.0 for name in parts
    )
    assert reliability - resolution + uncertainty + remainder == pytest.approx(brier, abs=1e-12)


@settings(max_examples=examples(30))
@given(table=rows)
def test_scores_that_are_no_probabilities_keep_their_ranking_metrics(table: Rows) -> None:
    """Without the claim of being probabilities, the others are undefined with that reason."""
    confidence, correct, groups = zip(*table, strict=True)
    values = evaluate_metrics(-3.0 - np.array(confidence), correct, groups, probability=False)
    assert list(values) == list(METRICS)
    for name, value in values.items():
        assert (value.reason == NOT_A_PROBABILITY) == METRICS[name].needs_probability
