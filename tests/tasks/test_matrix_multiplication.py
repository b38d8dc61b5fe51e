"""Matrix multiplication: shapes, the second solver (numpy), the release, and texts that are no problem."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.matrix_multiplication import MatrixMultiplication, matrix_shapes
from tasks.task import DIFFICULTIES, IntegerRange, ParameterError, Problem, ProblemTextError
from tests.tasks import drawing
from tests.tasks.drawing import PROBLEMS

TASK = MatrixMultiplication()
RELEASE = Path(__file__).parents[3] / "shared" / "data" / "salt_reproduction" / "matrix_multiplication.jsonl"

draw = partial(drawing.draw, TASK)


def multiply_by_numpy(text: str) -> str:
    left_text, right_text = text.removeprefix("A=\n").split("\nB=\n")
    left, right = (np.loadtxt(part.splitlines(), dtype=np.int64, ndmin=2) for part in (left_text, right_text))
    return "\n".join(" ".join(map(str, row)) for row in (left @ right).tolist())


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_numpy_agrees_and_sizes_are_in_the_ranges_of_the_level(level: str) -> None:
    size, inner, entries = (TASK.levels[level][name] for name in ("size", "inner", "entries"))
    assert isinstance(size, IntegerRange)
    assert isinstance(inner, IntegerRange)
    assert isinstance(entries, IntegerRange)
    for index in range(PROBLEMS):
        problem = draw(level, index)
        assert problem.reference == multiply_by_numpy(problem.text) == TASK.solve(problem.text)
        rows = [row.split() for row in problem.reference.splitlines()]
        assert len(rows) >= 2
        assert {len(row) for row in rows} == {len(rows[0])}
        assert len(rows[0]) >= 2
        assert size.low <= len(rows) * len(rows[0]) <= size.high
        given_rows = problem.text.splitlines()
        assert inner.low <= len(given_rows[1].split()) <= inner.high
        numbers = [int(word) for line in given_rows if "=" not in line for word in line.split()]
        assert min(numbers) >= entries.low
        assert max(numbers) <= entries.high


def test_the_paper_level_reaches_the_sizes_of_the_release() -> None:
    sizes = {len(draw("paper", index).reference.split()) for index in range(500)}
    assert (min(sizes), max(sizes)) == (6, 64)
    assert 7 not in sizes


def test_every_reference_of_the_release_is_reproduced() -> None:
    if not RELEASE.exists():
        pytest.skip("the release's problems are not here: ../shared/data/salt_reproduction is absent")
    rows = [json.loads(line) for line in RELEASE.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 200
    for row in rows:
        assert TASK.solve(row["input"]) == row["reference"].strip()


@given(st.integers(0, 300))
def test_shapes_are_all_factorisations_without_a_one(size: int) -> None:
    shapes = matrix_shapes(size)
    assert shapes == [(m, n) for m in range(2, size + 1) for n in range(2, size + 1) if m * n == size]


def test_a_range_without_a_factorisation_is_refused() -> None:
    parameters = {**TASK.levels["paper"], "size": IntegerRange(7, 7)}
    with pytest.raises(ParameterError, match="no number in size=7 is a product"):
        TASK.generate(Random(0), parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows under 'A='"),
        ("A=\n1 2\n3 4", "no rows under 'B='"),
        ("A=\nB=\n1 2", "no rows under 'A='"),
        ("1 2\nA=\n1 2\nB=\n1\n2", "line 1: 'A=' expected, found '1 2'"),
        ("B=\n1 2\nA=\n1\n2", "line 1: unexpected 'B='"),
        ("A=\n1 2\nB=\n1\n2\nB=\n1\n2", "line 6: unexpected 'B='"),
        ("A=\n1 x\nB=\n1\n2", "line 2: 'x' is not an integer"),
        ("A=\n1 1.5\nB=\n1\n2", "line 2: '1.5' is not an integer"),
        ("A=\n1 " + "9" * 5000 + "\nB=\n1\n2", "line 2: '9{40}'… is not an integer of at most 18 digits"),
        ("A=\n1 2\n3\nB=\n1\n2", "line 3: 1 entries where the row above has 2"),
        ("A=\n1 2\nB=\n1 2 3", "A has 2 columns and B 1 rows"),
    ],
)
def test_a_text_that_is_no_problem_says_what_and_where(text: str, message: str) -> None:
    with pytest.raises(ProblemTextError, match=f"^matrix_multiplication: .*{message}"):
        TASK.solve(text)


def test_wrong_atoms_are_other_integers_of_the_same_size() -> None:
    random = Random(5)
    for index in range(50):
        problem = draw("easy", index)
        entries = problem.reference.split()
        for position, right in enumerate(entries):
            wrong = TASK.wrong_atom(random, problem, position)
            assert wrong != right
            assert str(int(wrong)) == wrong
            assert min(map(int, entries)) - 1 <= int(wrong) <= max(map(int, entries)) + 1


def test_a_wrong_atom_exists_when_all_entries_are_equal() -> None:
    problem = Problem(TASK.name, "", "3 3\n3 3", "trivial", 0)
    drawn = {TASK.wrong_atom(Random(seed), problem, 0) for seed in range(50)}
    assert drawn == {"2", "4"}


def test_the_explanation_shows_the_sums_and_no_asterisk() -> None:
    text = "A=\n-6 7\n3 6\nB=\n3 8\n-8 6"
    explanation = TASK.explain(Problem(TASK.name, text, TASK.solve(text), "easy", 0))
    assert "Row 1, column 1: (-6)×3 + 7×(-8) = (-18) + (-56) = -74" in explanation
    assert "*" not in explanation
