"""The product of two integer matrices (SALT section 4.2, table 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import ClassVar, TypeAlias, cast

from tasks.draws import draw_integer, draw_item
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
    quoted,
)

Matrix: TypeAlias = list[list[int]]
"""Rows of equal length, at least one entry."""

_ENTRY = re.compile(r"[+-]?[0-9]{1,18}")


def matrix_shapes(size: int) -> list[tuple[int, int]]:
    """Return every (rows, columns) with ``rows * columns == size`` and both at least 2, by rising number of rows.

    Empty for a prime and for anything below 4.
    """
    return [(rows, size // rows) for rows in range(2, size // 2 + 1) if size % rows == 0]


class MatrixMultiplication(Task):
    """Multiply A (m x k) by B (k x n); the atoms are the ``m * n`` entries of the product, the lines its rows.

    The size L = m * n is drawn from the composite numbers of the range ``size``, then its factorisation.  Table 3 of
    the paper also allows k = 1; spec 1 does not, because a product of one column and one row is a Kronecker product.
    """

    name = "matrix_multiplication"
    title = "Matrix multiplication"
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
        left = _draw_matrix(random, rows, inner, entries)
        right = _draw_matrix(random, inner, columns, entries)
        return f"A=\n{_write_matrix(left)}\nB=\n{_write_matrix(right)}", _write_matrix(_multiply(left, right))

    def solve(self, text: str) -> str:
        """Multiply the two matrices of a text ``A=``, rows, ``B=``, rows.

        Raises:
            ProblemTextError: if a heading is missing, an entry is no integer of at most 18 digits, rows differ in
                length, or the shapes do not fit.
        """
        left, right = _read_matrices(text)
        return _write_matrix(_multiply(left, right))

    def instructions(self) -> str:
        """Say what is asked."""
        return (
            "Compute the matrix product A·B. Write the result one row per line, with the entries of a row separated by "
            "single spaces."
        )

    def explain(self, problem: Problem) -> str:
        """Write out every sum of products."""
        left, right = _read_matrices(problem.text)
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


def _draw_matrix(random: Random, rows: int, columns: int, entries: IntegerRange) -> Matrix:
    return [[draw_integer(random, entries.low, entries.high) for _ in range(columns)] for _ in range(rows)]


def _multiply(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def _write_matrix(matrix: Matrix) -> str:
    return "\n".join(" ".join(str(entry) for entry in row) for row in matrix)


def _bracketed(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def _read_matrices(text: str) -> tuple[Matrix, Matrix]:
    found: dict[str, Matrix] = {}
    current: Matrix | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        heading = "".join(words)
        if heading in ("A=", "B="):
            expected = ("A=", "B=")[len(found)] if len(found) < 2 else None
            if heading != expected:
                raise ProblemTextError(f"matrix_multiplication: line {number}: unexpected {heading!r}")
            current = found[heading] = []
            continue
        if current is None:
            raise ProblemTextError(f"matrix_multiplication: line {number}: 'A=' expected, found {quoted(line.strip())}")
        for word in words:
            if not _ENTRY.fullmatch(word):
                raise ProblemTextError(
                    f"matrix_multiplication: line {number}: {quoted(word)} is not an integer of at most 18 digits"
                )
        row = [int(word) for word in words]
        if current and len(row) != len(current[0]):
            raise ProblemTextError(
                f"matrix_multiplication: line {number}: {len(row)} entries where the row above has {len(current[0])}"
            )
        current.append(row)
    for heading in ("A=", "B="):
        if not found.get(heading):
            raise ProblemTextError(f"matrix_multiplication: no rows under {heading!r}")
    left, right = found["A="], found["B="]
    if len(left[0]) != len(right):
        raise ProblemTextError(
            f"matrix_multiplication: A has {len(left[0])} columns and B {len(right)} rows; they must be equal"
        )
    return left, right
