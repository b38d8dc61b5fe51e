"""Alignment: the paper's example, the release's answers, optimality against brute force, and speed."""

from __future__ import annotations

import json
import re
import time
import tracemalloc
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scoring.alignment as alignment_module
from scoring.alignment import RELEASE_SCORES, Alignment, AlignmentTooLargeError, align
from scoring.correctness import UnitCounts
from scoring.labels import label_units
from scoring.value import NO_REFERENCE, NOTHING_GENERATED, Value, undefined

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
sequences = st.lists(st.sampled_from("abc"), max_size=7)
scores = st.sampled_from([(1, 0, 0), (2, -1, -1), (1, -2, -1)])


def test_the_example_of_the_paper() -> None:
    """Reference 1 1 1 1 3, answer 1 3: 2/5 and 2/5 aligned, 1/2 and 1/5 by index."""
    paper = GOLDEN["alignment_paper"]
    aligned = align(paper["response"], paper["reference"])
    assert aligned.statuses == ("missing", "missing", "missing", "correct", "correct")
    assert aligned.precision.value == pytest.approx(paper["aligned"]["precision"], abs=1e-9)
    assert aligned.recall.value == pytest.approx(paper["aligned"]["recall"], abs=1e-9)
    strict = UnitCounts.of(label_units(paper["response"], paper["reference"]))
    assert strict.precision == Value(paper["strict"]["precision"])
    assert strict.recall == Value(paper["strict"]["recall"])


def _units(text: str, unit: str, task: str) -> list[str]:
    if unit == "generation":
        return [" ".join(text.split())]
    by_line = unit == "line" or task == "first_order_logic"
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()] if by_line else text.split()


@pytest.mark.parametrize("case", GOLDEN["answers"]["cases"])
def test_the_release_labels_its_answers_the_same(case: dict[str, object]) -> None:
    """Statuses, precision, recall and counts of every stored answer, by index and aligned."""
    regions = re.split(r"\*{4,}", str(case["response"]))[1::2]
    region = [text for text in regions if text.strip()][-1]
    generated = _units(region, str(case["unit"]), str(case["task"]))
    reference = _units(str(case["reference"]), str(case["unit"]), str(case["task"]))
    if case["aligned"]:
        aligned = align(generated, reference, **RELEASE_SCORES)
        statuses, precision, recall = aligned.statuses, aligned.precision, aligned.recall
    else:
        statuses = label_units(generated, reference)
        precision, recall = UnitCounts.of(statuses).precision, UnitCounts.of(statuses).recall
    assert list(statuses) == case["statuses"]
    assert precision.value == pytest.approx(case["precision"], abs=1e-9)
    assert recall.value == pytest.approx(case["recall"], abs=1e-9)
    assert statuses.count("redundant") == case["redundant"]
    assert statuses.count("missing") == case["missing"]


def _total(alignment: Alignment, generated: list[str], reference: list[str], rule: tuple[int, int, int]) -> int:
    match, mismatch, gap = rule
    return sum(
        gap
        if unit.generated is None or unit.reference is None
        else match
        if generated[unit.generated] == reference[unit.reference]
        else mismatch
        for unit in alignment.units
    )


def _best(generated: list[str], reference: list[str], rule: tuple[int, int, int]) -> int:
    match, mismatch, gap = rule

    @cache
    def best(row: int, column: int) -> int:
        if not row or not column:
            return gap * (row + column)
        step = match if generated[row - 1] == reference[column - 1] else mismatch
        return max(best(row - 1, column - 1) + step, best(row, column - 1) + gap, best(row - 1, column) + gap)

    return best(len(generated), len(reference))


@given(sequences, sequences, scores)
def test_an_alignment_is_complete_ordered_and_optimal(
    generated: list[str], reference: list[str], rule: tuple[int, int, int]
) -> None:
    """Every unit stands in one column, in order, and no alignment scores more."""
    alignment = align(generated, reference, *rule)
    assert [unit.generated for unit in alignment.units if unit.generated is not None] == list(range(len(generated)))
    assert [unit.reference for unit in alignment.units if unit.reference is not None] == list(range(len(reference)))
    assert _total(alignment, generated, reference, rule) == _best(generated, reference, rule)


def test_empty_sides() -> None:
    """Nothing generated has no precision, nothing asked for no recall."""
    assert align([], ["a"]).statuses == ("missing",)
    assert align([], ["a"]).precision == undefined(NOTHING_GENERATED)
    assert align(["a"], []).statuses == ("redundant",)
    assert align(["a"], []).recall == undefined(NO_REFERENCE)
    assert align([], []).units == ()


def test_an_abstention_in_place_of_a_unit_abstains() -> None:
    """DK pairs with the unit it stands for and is neither right nor wrong."""
    assert align(["a", "DK", "c"], ["a", "b", "c"]).statuses == ("correct", "abstained", "correct")


def test_long_answers_align_fast() -> None:
    """2,000 against 2,000 units: 0.09 s measured, 0.2 s asked for; the limit leaves room for a busy machine."""
    random = Random(5)
    generated, reference = ([str(int(random.random() * 20)) for _ in range(2000)] for _ in range(2))
    start = time.process_time()
    alignment = align(generated, reference)
    assert time.process_time() - start < 0.6
    assert alignment.generated == alignment.reference == 2000


@pytest.mark.parametrize("cells", [1, 12, 40])
@given(sequences, sequences, scores)
def test_alignment_in_bands_is_that_in_one_piece(
    cells: int, generated: list[str], reference: list[str], rule: tuple[int, int, int]
) -> None:
    """Long answers are traced back through scores that are computed a second time, band by band."""
    whole = align(generated, reference, *rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment_module, "_BAND_CELLS", cells)
        assert align(generated, reference, *rule) == whole


def test_memory_does_not_grow_with_the_number_of_pairs() -> None:
    """5,000 by 5,000 scores would take 100 MB in one piece."""
    units = ["a", "b", "c", "d", "e"] * 1000
    tracemalloc.start()
    try:
        alignment = align(units, units[1:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert alignment.correct == 4999
    assert peak < 90e6


def test_too_many_pairs_are_refused_at_once() -> None:
    """A file with two answers of 300,000 atoms must not take 335 GiB, nor hours."""
    with pytest.raises(AlignmentTooLargeError, match="300,000 generated against 300,000 reference units"):
        align(["a"] * 300_000, ["a"] * 300_000)
    assert align(["a"] * 3, []).generated == 3
