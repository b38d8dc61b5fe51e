"""Kronecker Product: numpy as second solver, shapes, texts that are no problem."""

from __future__ import annotations

from functools import partial
from random import Random

import numpy as np
import pytest

from tasks.kronecker_product import KroneckerProduct
from tasks.parameters import integer_range
from tasks.task import DIFFICULTIES, IntegerRange, ParameterError, Problem, ProblemTextError
from tests.tasks import drawing
from tests.tasks.drawing import PROBLEMS

TASK = KroneckerProduct()

draw = partial(drawing.draw, TASK)


def read(text: str) -> tuple[np.ndarray, np.ndarray]:
    left, right = text.removeprefix("A=\n").split("\nB=\n")
    return np.loadtxt(left.splitlines(), int, ndmin=2), np.loadtxt(right.splitlines(), int, ndmin=2)


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_numpy_agrees_and_shapes_are_those_of_table_3(level: str) -> None:
    size, entries = (integer_range(TASK.levels[level], name) for name in ("size", "entries"))
    for index in range(PROBLEMS):
        problem = draw(level, index)
        left, right = read(problem.text)
        product = np.kron(left, right)
        assert problem.reference == "\n".join(" ".join(map(str, row)) for row in product.tolist())
        assert TASK.solve(problem.text) == problem.reference
        assert left.size > 1
        assert right.size > 1
        assert size.low <= product.size <= size.high
        assert entries.low <= min(left.min(), right.min()) <= max(left.max(), right.max()) <= entries.high


def test_every_shape_of_a_size_is_drawn() -> None:
    shapes = set()
    for seed in range(400):
        text, _ = TASK.generate(Random(seed), {"size": IntegerRange(6, 6), "entries": IntegerRange(1, 9)})
        left, right = read(text)
        shapes.add((left.shape, right.shape))
    vectors = {2: [(1, 2), (2, 1)], 3: [(1, 3), (3, 1)]}
    assert shapes == {(a, b) for one, other in ((2, 3), (3, 2)) for a in vectors[one] for b in vectors[other]}


def test_prime_sizes_are_refused_and_passed_over() -> None:
    with pytest.raises(ParameterError, match="size=7 is prime"):
        TASK.generate(Random(1), {"size": IntegerRange(7, 7), "entries": IntegerRange(0, 9)})
    _, reference = TASK.generate(Random(1), {"size": IntegerRange(7, 8), "entries": IntegerRange(0, 9)})
    assert len(reference.split()) == 8


def test_a_worked_explanation_shows_every_row() -> None:
    problem = Problem(TASK.name, "A=\n2 -1\nB=\n3 0\n1 5", "6 0 -3 0\n2 10 -1 -5", "trivial", 0)
    assert TASK.solve(problem.text) == problem.reference
    assert TASK.explain(problem) == (
        "A is 1×2 and B is 2×2, so the product is 2×4.\n"
        "Row 1: 2 times (3 0), -1 times (3 0) gives 6 0 -3 0.\n"
        "Row 2: 2 times (1 5), -1 times (1 5) gives 2 10 -1 -5."
    )


def test_wrong_atoms_are_products_within_the_range_of_the_problem() -> None:
    problem = Problem(TASK.name, "A=\n0 3\nB=\n1 2", "0 0 3 6", "trivial", 0)
    random = Random(1)
    assert {TASK.wrong_atom(random, problem, 2) for _ in range(300)} == {"0", "1", "2", "4", "6", "9"}
    zeros = Problem(TASK.name, "A=\n0 0\nB=\n0 0", "0 0 0 0", "trivial", 0)
    assert TASK.wrong_atom(random, zeros, 0) != "0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows under 'A='"),
        ("A=\n1 2", "no rows under 'B='"),
        ("A=\n1 2\nB=\n", "no rows under 'B='"),
        ("A=\n1 x\nB=\n1", "line 2: 'x' is not an integer"),
        ("A=\n1 2\n3\nB=\n1", "line 3"),
        ("1 2\nA=\n1\nB=\n1", "line 1"),
        ("A=\n1\nA=\n1\nB=\n1", "line 3"),
        ("B=\n1\nA=\n1", "line 1: unexpected 'B='"),
    ],
)
def test_texts_that_are_no_problem(text: str, message: str) -> None:
    with pytest.raises(ProblemTextError, match=f"^kronecker_product: .*{message}"):
        TASK.solve(text)
