"""Two integer matrices as the text of a problem: ``A=``, rows, ``B=``, rows."""

from __future__ import annotations

import re
from random import Random
from typing import TypeAlias

from tasks.draws import draw_integer
from tasks.task import IntegerRange, ProblemTextError, quoted

Matrix: TypeAlias = list[list[int]]
"""Rows of equal length, at least one entry."""

_ENTRY = re.compile(r"[+-]?[0-9]{1,18}")
_HEADINGS = ("A=", "B=")


def draw_matrix(random: Random, rows: int, columns: int, entries: IntegerRange) -> Matrix:
    """Draw every entry uniformly."""
    return [[draw_integer(random, entries.low, entries.high) for _ in range(columns)] for _ in range(rows)]


def format_matrix(matrix: Matrix) -> str:
    """Return one row per line, entries separated by a space."""
    return "\n".join(" ".join(map(str, row)) for row in matrix)


def format_matrices(left: Matrix, right: Matrix) -> str:
    """Return the text of a problem."""
    return f"A=\n{format_matrix(left)}\nB=\n{format_matrix(right)}"


def read_matrices(task: str, text: str) -> tuple[Matrix, Matrix]:
    """Return the two matrices of a text; blanks and empty lines count for nothing.

    Args:
        task: its name, for messages.
        text: of a problem.

    Raises:
        ProblemTextError: if a heading is missing, comes twice or in another order, an entry is no integer of at most 18
            digits, or rows differ in length.
    """
    found: dict[str, Matrix] = {}
    current: Matrix | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        heading = "".join(words)
        if heading in _HEADINGS:
            if [*found, heading] != list(_HEADINGS[: len(found) + 1]):
                raise ProblemTextError(f"{task}: line {number}: unexpected {heading!r}")
            current = found[heading] = []
            continue
        if current is None:
            raise ProblemTextError(f"{task}: line {number}: 'A=' expected, found {quoted(line.strip())}")
        for word in words:
            if not _ENTRY.fullmatch(word):
                raise ProblemTextError(f"{task}: line {number}: {quoted(word)} is not an integer of at most 18 digits")
        row = [int(word) for word in words]
        if current and len(row) != len(current[0]):
            raise ProblemTextError(
                f"{task}: line {number}: {len(row)} entries where the row above has {len(current[0])}"
            )
        current.append(row)
    for heading in _HEADINGS:
        if not found.get(heading):
            raise ProblemTextError(f"{task}: no rows under {heading!r}")
    return found["A="], found["B="]
