"""Agreement and cluster entropy against examples worked by hand, and the laws they obey."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.agreement import (
    AnswerTexts,
    aligned_agreement,
    answer_agreement,
    cluster_entropy,
    majority_units,
    unit_agreement,
    unit_cluster_entropy,
)

UNITS = st.lists(st.sampled_from("abc"), max_size=6).map(tuple)
SAMPLES = st.lists(UNITS, min_size=1, max_size=6)


def test_agreement_by_hand() -> None:
    samples = [("a", "b"), ("a", "c"), ("a",), ()]
    assert unit_agreement(("a", "b", "d"), samples) == (0.75, 0.25, 0.0)
    assert unit_agreement((), samples) == ()


def test_a_skipped_unit_costs_that_unit_alone_when_aligned() -> None:
    # One sample leaves out the first unit: by index nothing agrees, aligned all that it has does.
    answer = ("a", "b", "c")
    assert unit_agreement(answer, [("b", "c")]) == (0.0, 0.0, 0.0)
    assert aligned_agreement(answer, [("b", "c")]) == (0.0, 1.0, 1.0)
    assert aligned_agreement(answer, [("b", "c"), ("a", "b", "c")]) == (0.5, 1.0, 1.0)


def test_a_whole_answer_agrees_in_all_units_or_not() -> None:
    answer = AnswerTexts(("1", "2"), ("1 2",), "1 2")
    other_lines = AnswerTexts(("1", "2"), ("1", "2"), "1 2")
    nothing = AnswerTexts((), (), None)
    assert answer_agreement(answer, [answer, other_lines, nothing, answer]) == 0.5
    assert answer_agreement(AnswerTexts((), (), ""), [nothing]) == 0.0


def test_cluster_entropy_by_hand() -> None:
    assert cluster_entropy(["x"]) == 0.0
    assert math.copysign(1, cluster_entropy(["x", "x"])) == 1
    assert cluster_entropy(["x", "y"]) == pytest.approx(math.log(2))
    # p = 1/2, 1/4, 1/4
    assert cluster_entropy(["x", None, "x", "y"]) == pytest.approx(1.5 * math.log(2))
    assert unit_cluster_entropy(("x", "z"), [("x", "y"), ("x",)]) == (0.0, pytest.approx(math.log(2)))


def test_the_majority_is_taken_by_index_and_ties_go_to_what_was_seen_first() -> None:
    assert majority_units([("a", "b"), ("c", "b"), ("c", "d")]) == ("c", "b")
    assert majority_units([("a",), ("b", "c")]) == ("a",)
    assert majority_units([("b", "c"), ("a",)]) == ("b", "c")
    assert majority_units([(), ("a",), ()]) == ()


def test_an_answer_may_leave_a_unit_out_in_its_middle() -> None:
    units, samples = ("a", None, "c"), [("a", "b", "c"), ("a", None, "d"), ("c",)]
    assert unit_agreement(units, samples) == (2 / 3, None, 1 / 3)
    assert aligned_agreement(units, samples) == (2 / 3, None, 2 / 3)
    assert unit_cluster_entropy(units, samples)[1] is None
    assert majority_units(samples) == ("a", "b", "c")
    assert majority_units([("a", None), ("a", None)]) == ("a", None)


def test_without_samples_there_is_no_agreement() -> None:
    for call in (lambda: unit_agreement(("a",), []), lambda: cluster_entropy([]), lambda: majority_units([])):
        with pytest.raises(ValueError, match="at least one sample"):
            call()


@given(UNITS, SAMPLES)
def test_laws(units: tuple[str, ...], samples: list[tuple[str, ...]]) -> None:
    by_index, aligned = unit_agreement(units, samples), aligned_agreement(units, samples)
    assert len(by_index) == len(aligned) == len(units)
    shares = [value for value in by_index if value is not None]
    aligned_shares = [value for value in aligned if value is not None]
    assert len(shares) == len(aligned_shares) == len(units)
    assert all(0 <= value <= 1 for value in (*shares, *aligned_shares))
    assert sum(aligned_shares) >= sum(shares) - 1e-9
    assert unit_agreement(units, [units] * 3) == aligned_agreement(units, [units] * 3) == (1.0,) * len(units)
    # The order of the samples does not matter but for ties of the majority.
    assert unit_agreement(units, samples[::-1]) == by_index
    assert majority_units([*samples, *[units] * len(samples) * 2]) == units
    entropies = unit_cluster_entropy(units, samples)
    assert all(value is not None and 0 <= value <= math.log(len(samples)) + 1e-9 for value in entropies)
    # All agree with a unit: there is one cluster.
    assert all(entropy == 0 for entropy, share in zip(entropies, by_index, strict=True) if share == 1)
