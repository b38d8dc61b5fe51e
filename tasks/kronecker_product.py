"""Kronecker Product: every entry of A times the whole of B (SALT section 4.2, table 3, appendix K)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import ClassVar, TypeAlias

from tasks.draws import draw_item
from tasks.matrix_text import Matrix, draw_matrix, format_matrices, format_matrix, read_matrices
from tasks.parameters import integer_range
from tasks.task import (
    Dependence,
    IntegerRange,
    Parameter,
    ParameterError,
    Parameters,
    Problem,
    RangeParameter,
    Task,
)

_Shapes: TypeAlias = tuple[tuple[int, int, int, int], ...]

_DIGITS = IntegerRange(-9, 9)


class KroneckerProduct(Task):
    """A (m×n) ⊗ B (p×q) with mn·pq = L, neither matrix a scalar."""

    name: ClassVar[str] = "kronecker_product"
    title: ClassVar[str] = "Kronecker Product"
    answer_is_grid = True
    description: ClassVar[str] = "compute the Kronecker product of two integer matrices"
    prompt_version: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        RangeParameter("size", 4, 1000, "entries of the product, L = mn·pq; prime numbers are passed over"),
        RangeParameter("entries", -9, 9, "entries of the two matrices"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": {"size": IntegerRange(4, 4), "entries": IntegerRange(0, 3)},
        "easy": {"size": IntegerRange(8, 16), "entries": IntegerRange(0, 9)},
        "medium": {"size": IntegerRange(16, 36), "entries": _DIGITS},
        "hard": {"size": IntegerRange(40, 100), "entries": _DIGITS},
        "paper": {"size": IntegerRange(40, 290), "entries": _DIGITS},
    }
    release_names: ClassVar[tuple[str, ...]] = ("KroneckerProductProblem", "Kronecker Product")
    dependence: ClassVar[Dependence] = Dependence(
        inputs="One entry of A and one entry of B.",
        earlier_atoms="",
        intervention_caveat="",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw L among the composite numbers of the range, then one of its shapes, then the entries, all uniformly.

        Raises:
            ParameterError: if the range of ``size`` holds prime numbers only.
        """
        size = integer_range(parameters, "size")
        sizes = [number for number in range(size.low, size.high + 1) if _shapes(number)]
        if not sizes:
            raise ParameterError(f"{self.name}: size={size} is prime, so one matrix would be a scalar")
        rows, columns, inner_rows, inner_columns = draw_item(random, _shapes(draw_item(random, sizes)))
        entries = integer_range(parameters, "entries")
        left = draw_matrix(random, rows, columns, entries)
        right = draw_matrix(random, inner_rows, inner_columns, entries)
        return format_matrices(left, right), format_matrix(_product(left, right))

    def solve(self, text: str) -> str:
        """Return the product, one row per line."""
        return format_matrix(_product(*read_matrices(self.name, text)))

    def instructions(self) -> str:
        """Say what the product is and how it is laid out."""
        return (
            "Compute the Kronecker product of the matrices A and B: replace every entry of A by that entry times the "
            "whole matrix B. Write one row of the product per line, entries separated by spaces."
        )

    def explain(self, problem: Problem) -> str:
        """Show for every row of the product which entries of A multiply which row of B."""
        left, right = read_matrices(self.name, problem.text)
        rows = problem.reference.split("\n")
        steps = [
            f"A is {len(left)}×{len(left[0])} and B is {len(right)}×{len(right[0])}, "
            f"so the product is {len(rows)}×{len(left[0]) * len(right[0])}."
        ]
        for index, row in enumerate(rows):
            outer, inner = divmod(index, len(right))
            parts = ", ".join(f"{factor} times ({format_matrix([right[inner]])})" for factor in left[outer])
            steps.append(f"Row {index + 1}: {parts} gives {row}.")
        return "\n".join(steps)

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw a wrong product of two numbers between the smallest and the largest entry of the problem.

        Where no such product is wrong (all entries equal), it is drawn from the products of -9..9.
        """
        right = int(problem.reference.split()[index])
        entries = [entry for matrix in read_matrices(self.name, problem.text) for row in matrix for entry in row]
        for low, high in ((min(entries), max(entries)), (_DIGITS.low, _DIGITS.high)):
            numbers = range(low, high + 1)
            wrong = sorted({one * other for one in numbers for other in numbers} - {right})
            if wrong:
                break
        return str(draw_item(random, wrong))


@cache
def _shapes(size: int) -> _Shapes:
    """All (m, n, p, q) with mn·pq = size and mn, pq > 1."""
    return tuple(
        (rows, outer // rows, inner_rows, size // outer // inner_rows)
        for outer in range(2, size // 2 + 1)
        if size % outer == 0
        for rows in range(1, outer + 1)
        if outer % rows == 0
        for inner_rows in range(1, size // outer + 1)
        if size // outer % inner_rows == 0
    )


def _product(left: Matrix, right: Matrix) -> Matrix:
    return [[one * other for one in outer for other in inner] for outer in left for inner in right]
