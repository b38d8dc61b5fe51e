"""Puzzles of grids as text: how the prompt shows them and how they are read back."""

from __future__ import annotations

import re

import numpy as np

from tasks.arc_families import LARGEST_SIDE
from tasks.arc_rules import Grids
from tasks.arc_search import GridPair
from tasks.task import ProblemTextError, quoted

_HEADER = re.compile(r"(?:Input|Output) [0-9]{1,9}:|Test input:")
_ROW = re.compile(r"[0-9]( [0-9])*")


def format_grid(grid: Grids) -> str:
    """Write rows as lines with a space between the cells."""
    return "\n".join(" ".join(map(str, row)) for row in grid.tolist())


def puzzle_text(pairs: list[GridPair], test: Grids) -> str:
    """Write a puzzle as the prompt shows it and as `read_puzzle` reads it."""
    parts = [
        f"Input {number}:\n{format_grid(pair.input)}\nOutput {number}:\n{format_grid(pair.output)}\n"
        for number, pair in enumerate(pairs, start=1)
    ]
    return "\n".join([*parts, f"Test input:\n{format_grid(test)}"])


def read_puzzle(text: str) -> tuple[list[GridPair], Grids]:
    """Return the pairs and the test grid of a problem text.

    Raises:
        ProblemTextError: naming the line that is wrong.
    """
    grids: list[tuple[str, list[list[int]]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped:
            continue
        if _HEADER.fullmatch(stripped):
            grids.append((stripped, []))
            continue
        if not grids:
            raise ProblemTextError(f"line {number}: an ARC problem starts with 'Input 1:', not {quoted(stripped)}")
        if not _ROW.fullmatch(stripped):
            raise ProblemTextError(f"line {number}: not a row of digits with single spaces: {quoted(stripped)}")
        row = [int(cell) for cell in stripped.split()]
        if grids[-1][1] and len(row) != len(grids[-1][1][0]):
            raise ProblemTextError(f"line {number}: {len(row)} cells where the row above has {len(grids[-1][1][0])}")
        grids[-1][1].append(row)
    count = (len(grids) - 1) // 2
    expected = [f"{kind} {number}:" for number in range(1, count + 1) for kind in ("Input", "Output")]
    if count < 1 or [header for header, _ in grids] != [*expected, "Test input:"]:
        raise ProblemTextError("an ARC problem has 'Input 1:', 'Output 1:' and so on, and 'Test input:' at the end")
    for header, rows in grids:
        if not 1 <= len(rows) <= LARGEST_SIDE or len(rows[0]) > LARGEST_SIDE:
            raise ProblemTextError(f"{header} a grid has 1 to {LARGEST_SIDE} rows and columns")
    arrays = [np.array(rows, dtype=np.uint8) for _, rows in grids]
    return [GridPair(arrays[2 * i], arrays[2 * i + 1]) for i in range(count)], arrays[-1]
