"""The product of two integer matrices (SALT section 4.2, table 3)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import ClassVar, cast

from tasks.draws import draw_integer, draw_item
from tasks.matrix_text import Matrix, draw_matrix, format_matrices, format_matrix, read_matrices
from tasks.task import (
    Dependence,
    IntegerRange,
    Parameter,
    ParameterError,
    Parameters,
    Problem,
    ProblemTextError,
    RangeParameter,
    Task,
)


def matrix_shapes(size: int) -> list[tuple[int, int]]:
    """Return every (rows, columns) with ``rows * columns == size`` and both at least 2, by rising number of rows.

    Empty for a prime and for anything below 4.
    """
    return [(rows, size // rows) for rows in range(2, size // 2 + 1) if size % rows == 0]


class MatrixMultiplication(Task):
    """Multiply A (m x k) by B (k x n); the atoms are the ``m * n`` entries of the product, the lines its rows.

    The size L = m * n is drawn from the composite numbers of the range ``size``, then its factorisation.  Table 3 of
    the paper also allows k = 1; this task does not, because a product of one column and one row is a Kronecker product.
    """

    name = "matrix_multiplication"
    title = "Matrix multiplication"
    answer_is_grid = True
    description = "the product of two integer matrices, row by row"
    prompt_version = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        RangeParameter(
            "size", 4, 1024, "entries of the product; values without a factorisation into 2 or more are skipped"
        ),
        RangeParameter("inner", 2, 3, "columns of A, which are the rows of B"),
        RangeParameter("entries", -99, 99, "values of the entries of A and B"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": {"size": IntegerRange(4, 4), "inner": IntegerRange(2, 2), "entries": IntegerRange(0, 2)},
        "easy": {"size": IntegerRange(4, 6), "inner": IntegerRange(2, 2), "entries": IntegerRange(0, 5)},
        "medium": {"size": IntegerRange(6, 16), "inner": IntegerRange(2, 3), "entries": IntegerRange(-9, 9)},
        "hard": {"size": IntegerRange(16, 36), "inner": IntegerRange(2, 3), "entries": IntegerRange(-9, 9)},
        "paper": {"size": IntegerRange(6, 64), "inner": IntegerRange(2, 3), "entries": IntegerRange(-9, 9)},
    }
    release_names = ("MatrixMultiplicationProblem",)
    dependence = Dependence(
        inputs="the entry's row of A and its column of B",
        earlier_atoms="",
        intervention_caveat="",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw size, shape and entries.

        Raises:
            ParameterError: if no number in the range ``size`` is a product of two factors of at least 2.
        """
        size_range = cast(IntegerRange, parameters["size"])
        inner_range = cast(IntegerRange, parameters["inner"])
        entries = cast(IntegerRange, parameters["entries"])
        sizes = [size for size in range(size_range.low, size_range.high + 1) if matrix_shapes(size)]
        if not sizes:
            raise ParameterError(
                f"{self.name}: no number in size={size_range} is a product of two factors of at least 2; "
                "widen the range, for example to 4..6"
            )
        rows, columns = draw_item(random, matrix_shapes(draw_item(random, sizes)))
        inner = draw_integer(random, inner_range.low, inner_range.high)
        left = draw_matrix(random, rows, inner, entries)
        right = draw_matrix(random, inner, columns, entries)
        return format_matrices(left, right), format_matrix(_multiply(left, right))

    def solve(self, text: str) -> str:
        """Multiply the two matrices of a text ``A=``, rows, ``B=``, rows.

        Raises:
            ProblemTextError: if a heading is missing, an entry is no integer of at most 18 digits, rows differ in
                length, or the shapes do not fit.
        """
        left, right = _read_factors(text)
        return format_matrix(_multiply(left, right))

    def instructions(self) -> str:
        """Say what is asked."""
        return (
            "Compute the matrix product A·B. Write the result one row per line, with the entries of a row separated by "
            "single spaces."
        )

    def explain(self, problem: Problem) -> str:
        """Write out every sum of products."""
        left, right = _read_factors(problem.text)
        steps = ["Each entry is a row of A times a column of B, product by product, added up."]
        for row_number, row in enumerate(left, 1):
            for column_number, column in enumerate(zip(*right, strict=True), 1):
                pairs = list(zip(row, column, strict=True))
                factors = " + ".join(f"{_bracketed(a)}×{_bracketed(b)}" for a, b in pairs)
                products = " + ".join(_bracketed(a * b) for a, b in pairs)
                total = sum(a * b for a, b in pairs)
                steps.append(f"Row {row_number}, column {column_number}: {factors} = {products} = {total}")
        return "\n".join(steps)

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw another integer, uniformly from the smallest to the largest entry of the reference.

        When all entries are equal the range is widened by one on each side.

        Raises:
            IndexError: if the reference has no such atom.
        """
        entries = [int(entry) for entry in problem.reference.split()]
        right = entries[index]
        low, high = min(entries), max(entries)
        if low == high:
            low, high = low - 1, high + 1
        drawn = draw_integer(random, low, high - 1)
        return str(drawn if drawn < right else drawn + 1)


def _multiply(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def _bracketed(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def _read_factors(text: str) -> tuple[Matrix, Matrix]:
    left, right = read_matrices(MatrixMultiplication.name, text)
    if len(left[0]) != len(right):
        raise ProblemTextError(
            f"{MatrixMultiplication.name}: A has {len(left[0])} columns and B {len(right)} rows; they must be equal"
        )
    return left, right
