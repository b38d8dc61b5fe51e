"""Labels by index, the status of an answer, and the counts that follow from both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.answer_status import ANSWER_STATUSES, LEFT_OUT, answer_status
from scoring.correctness import UnitCounts, mean_over_tasks, pool
from scoring.labels import label_unit, label_units
from scoring.value import NO_REFERENCE, NO_TASKS, NOTHING_GENERATED, Value, undefined

units = st.lists(st.sampled_from(["a", "b", "DK", "<DK>"]), max_size=8)
references = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


@pytest.mark.parametrize(
    ("text", "reference", "status"),
    [
        ("135", "135", "correct"),
        ("-135", "135", "wrong"),
        ("13", "135", "wrong"),
        ("DK", "135", "abstained"),
        ("<DK>", "135", "abstained"),
        ("dk", "135", "wrong"),
        ("135", None, "redundant"),
        ("DK", None, "redundant"),
        ("", "", "correct"),
    ],
)
def test_one_unit_is_labelled_by_strict_equality(text: str, reference: str | None, status: str) -> None:
    """The example of SALT section 2.1, abstentions, and units beyond the reference."""
    assert label_unit(text, reference) == status


def test_a_whole_answer_ends_with_its_missing_units() -> None:
    """Missing units follow the generated ones; redundant ones stand where they were written."""
    assert label_units(["1", "x"], ["1", "2", "3"]) == ("correct", "wrong", "missing")
    assert label_units(["1", "2", "3"], ["1"]) == ("correct", "redundant", "redundant")
    assert label_units([], []) == ()


@given(units, references)
def test_statuses_give_back_both_lengths(generated: list[str], reference: list[str]) -> None:
    """Which units were written and which were asked for can be read off the statuses alone."""
    statuses = label_units(generated, reference)
    counts = UnitCounts.of(statuses)
    assert counts.generated == len(generated)
    assert counts.reference == len(reference)


@pytest.mark.parametrize(
    ("stop_reason", "extraction", "status"),
    [
        ("failed", "fenced", "failed"),
        ("cancelled", "none", "cancelled"),
        ("context", "unclosed", "context_full"),
        ("length", "none", "truncated"),
        ("length", "fenced", "truncated"),
        ("end", "none", "no_answer"),
        ("end", "thinking_only", "no_answer"),
        ("end", "unclosed", "unclosed"),
        ("end", "fenced", "complete"),
    ],
)
def test_the_status_of_an_answer_follows_the_precedence(stop_reason: str, extraction: str, status: str) -> None:
    """Decoding that did not end outranks what was extracted."""
    assert answer_status(stop_reason, extraction) == status
    assert status in ANSWER_STATUSES


@pytest.mark.parametrize(("stop_reason", "extraction"), [("stop", "fenced"), ("end", "closed"), ("failed", "")])
def test_an_unknown_word_is_refused(stop_reason: str, extraction: str) -> None:
    """Neither column may hold another word."""
    with pytest.raises(ValueError, match="is one of"):
        answer_status(stop_reason, extraction)


def test_answers_are_pooled_and_left_out_ones_counted() -> None:
    """Precision 3/5, recall 3/6, redundancy 1/5 by hand; the cancelled answer changes nothing."""
    pooled = pool(
        [
            ("complete", UnitCounts(correct=2, wrong=1)),
            ("truncated", UnitCounts(correct=1, redundant=1, missing=2)),
            ("cancelled", UnitCounts(wrong=100)),
            ("no_answer", UnitCounts()),
        ]
    )
    assert (pooled.answers, pooled.left_out) == (3, 1)
    counts = pooled.counts
    assert (counts.precision.value, counts.recall.value, counts.redundancy.value) == (3 / 5, 3 / 6, 1 / 5)


@pytest.mark.parametrize("status", sorted(LEFT_OUT))
def test_statuses_that_say_nothing_about_the_model_are_left_out(status: str) -> None:
    """Each of the three leaves the pool empty and is counted."""
    pooled = pool([(status, UnitCounts(correct=1))])
    assert (pooled.counts, pooled.answers, pooled.left_out) == (UnitCounts(), 0, 1)


def test_ratios_without_a_denominator_are_undefined() -> None:
    """An answer with all units missing has recall 0 and no precision; no units at all give neither."""
    missing = UnitCounts(missing=3)
    assert missing.precision == missing.redundancy == undefined(NOTHING_GENERATED)
    assert missing.recall == Value(0.0)
    assert UnitCounts(redundant=1).recall == undefined(NO_REFERENCE)


def test_the_benchmark_score_weighs_tasks_equally() -> None:
    """An undefined task is left out and named, never counted as 0."""
    result = mean_over_tasks({"a": Value(0.25), "b": Value(0.75), "c": undefined(NOTHING_GENERATED)})
    assert result.mean == Value(0.5)
    assert result.left_out == {"c": NOTHING_GENERATED}
    assert mean_over_tasks({}).mean == undefined(NO_TASKS)


@pytest.mark.parametrize(("number", "reason"), [(None, None), (1.0, "why"), (float("nan"), None)])
def test_a_value_is_a_number_or_a_reason(number: float | None, reason: str | None) -> None:
    """NaN, both and neither are refused; infinity is a number."""
    with pytest.raises(ValueError, match="a value is"):
        Value(number, reason)
    assert Value(float("inf")).value == float("inf")
