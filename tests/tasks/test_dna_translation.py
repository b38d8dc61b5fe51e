"""DNA Translation: a second solver, sizes and layout, texts that are no problem."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.dna_translation import DnaTranslation
from tasks.parameters import integer_range
from tasks.task import DIFFICULTIES, IntegerRange, Problem, ProblemTextError
from tests.tasks import drawing
from tests.tasks.drawing import PROBLEMS

TASK = DnaTranslation()
PAIRS = {frozenset("AT"), frozenset("CG")}

draw = partial(drawing.draw, TASK)


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_every_letter_pairs_with_the_one_at_its_place(level: str) -> None:
    codons = integer_range(TASK.levels[level], "codons")
    per_line = integer_range(TASK.levels[level], "codons_per_line").low
    for index in range(PROBLEMS):
        problem = draw(level, index)
        assert len(problem.text) == len(problem.reference)
        for one, other in zip(problem.text, problem.reference, strict=True):
            assert one == other if one.isspace() else frozenset((one, other)) in PAIRS
        rows = [row.split() for row in problem.reference.splitlines()]
        assert codons.low <= sum(map(len, rows)) <= codons.high
        assert all(len(row) == per_line for row in rows[:-1])
        assert TASK.solve(problem.text) == problem.reference


@given(st.lists(st.text("ACGT", min_size=3, max_size=3), min_size=1, max_size=30).map(" ".join))
def test_solving_twice_gives_the_text_back(text: str) -> None:
    assert TASK.solve(TASK.solve(text)) == text
    assert TASK.solve(text) != text


def test_ranges_are_reached() -> None:
    sizes = {len(draw("trivial", index).reference.split()) for index in range(50)}
    assert sizes == {1, 2, 3}


def test_a_worked_explanation_names_every_codon() -> None:
    problem = Problem(TASK.name, "ATC GGA", "TAG CCT", "trivial", 0)
    assert TASK.explain(problem) == (
        "ATC: A becomes T, T becomes A, C becomes G, so TAG.\nGGA: G becomes C, G becomes C, A becomes T, so CCT."
    )


def test_all_63_wrong_codons_are_drawn() -> None:
    problem = Problem(TASK.name, "ATC", "TAG", "trivial", 0)
    random = Random(1)
    wrong = {TASK.wrong_atom(random, problem, 0) for _ in range(2000)}
    assert len(wrong) == 63
    assert "TAG" not in wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no codon"), ("ATC\nGGX", "line 2: 'GGX'"), ("atc", "'atc'"), ("ATCG", "'ATCG'"), ("ATC, GGA", "'ATC,'")],
)
def test_texts_that_are_no_problem(text: str, message: str) -> None:
    with pytest.raises(ProblemTextError, match=message):
        TASK.solve(text)


def test_rows_of_another_width() -> None:
    text, reference = TASK.generate(Random(3), {"codons": IntegerRange(7, 7), "codons_per_line": IntegerRange(3, 3)})
    assert [len(row.split()) for row in text.splitlines()] == [3, 3, 1]
    assert [len(row.split()) for row in reference.splitlines()] == [3, 3, 1]
