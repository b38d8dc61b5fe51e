"""Running metrics equal batch metrics after every event, withdrawals included."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.correctness import UnitCounts
from scoring.labels import CONFIDENCE_STATUSES, UNIT_STATUSES, UnitStatus
from scoring.metrics import METRICS
from scoring.ranking import micro_auroc
from scoring.scored_units import ScoredUnits
from scoring.streaming import RunningMetrics
from scoring.value import NOTHING_GENERATED, Value

Unit = tuple[int, UnitStatus, float | None]

units = st.tuples(
    st.integers(0, 3),
    st.sampled_from(UNIT_STATUSES),
    st.one_of(st.none(), st.floats(0.0, 1.0), st.sampled_from([0.0, 0.2, 7 / 15, 0.5, 1.0])),
)
events = st.lists(st.one_of(units, st.integers(0, 3)), max_size=40)


def _same(first: Value, second: Value) -> bool:
    if first.value is None or second.value is None:
        return first == second
    return math.isclose(first.value, second.value, rel_tol=1e-12, abs_tol=1e-12)


@settings(max_examples=60)
@given(events)
def test_streaming_equals_batch_after_every_event(stream: list[Unit | int]) -> None:
    """Units arrive in any order; a bare number withdraws that generation."""
    running, kept = RunningMetrics(), list[Unit]()
    for event in stream:
        if isinstance(event, int):
            running.withdraw(event)
            kept = [unit for unit in kept if unit[0] != event]
        else:
            running.add(*event)
            kept.append(event)
        now = running.read()
        scored = [unit for unit in kept if unit[1] in CONFIDENCE_STATUSES and unit[2] is not None]
        batch = ScoredUnits.from_columns(
            [float(unit[2] or 0.0) for unit in scored],
            [unit[1] == "correct" for unit in scored],
            [unit[0] for unit in scored],
        )
        assert now.counts == UnitCounts.of(unit[1] for unit in kept)
        assert now.precision == now.counts.precision
        assert _same(now.ece, METRICS["ece"].function(batch))
        assert _same(now.auroc_macro, METRICS["auroc"].function(batch))
        micro = micro_auroc(batch)
        assert _same(now.auroc_micro, micro.mean)
        assert now.micro_left_out == micro.left_out


def test_bin_edges_fall_as_in_the_batch() -> None:
    """All edges j/15 and their neighbours, beside a right unit in the bin below and one in the bin above."""
    for j in range(1, 15):
        for confidence in (math.nextafter(j / 15, 0.0), j / 15, math.nextafter(j / 15, 1.0)):
            running, column = RunningMetrics(), [confidence, j / 15 - 0.01, j / 15 + 0.02]
            running.add(0, "wrong", column[0])
            running.add(0, "correct", column[1])
            running.add(0, "correct", column[2])
            batch = ScoredUnits.from_columns(column, [0, 1, 1])
            assert _same(running.read().ece, METRICS["ece"].function(batch))


def test_before_the_first_unit_everything_is_undefined() -> None:
    """With a reason each."""
    start = RunningMetrics().read()
    assert start.precision.reason == NOTHING_GENERATED
    assert {start.ece.value, start.auroc_macro.value, start.auroc_micro.value} == {None}


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf])
def test_what_is_no_probability_is_refused_and_changes_nothing(confidence: float) -> None:
    """The error comes before any count."""
    running = RunningMetrics()
    with pytest.raises(ValueError, match=r"needs confidences in \[0, 1\]"):
        running.add(0, "correct", confidence)
    assert running.read().counts == UnitCounts()
