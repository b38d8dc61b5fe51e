"""A maze with the way that was said in it, and the right one where that was not taken.  No drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TASK = "maze"
"""Whose problems are drawn so."""

CELLS = 2
"""Columns of a place make it about square."""

WALL, FREE = "#", "."
RIGHT_WAY = "o"
_MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


@dataclass(frozen=True, slots=True)
class MazePlace:
    """One place of a maze.

    Attributes:
        mark: `WALL`, `FREE`, ``S``, ``G``, or `RIGHT_WAY` where the right way leads.
        atom: index of the last atom that leads there, None where none does.
    """

    mark: str
    atom: int | None = None


@dataclass(frozen=True, slots=True)
class Maze:
    """A maze as it was asked.

    Attributes:
        grid: its rows, all of one width.
        start: row and column of S.
        right: the places of the right way, without S.
    """

    grid: tuple[str, ...]
    start: tuple[int, int]
    right: frozenset[tuple[int, int]]

    @property
    def height(self) -> int:
        """Rows."""
        return len(self.grid)

    @property
    def width(self) -> int:
        """Cells of a row on a screen."""
        return CELLS * len(self.grid[0])

    def places(self, moves: Sequence[str | None]) -> list[tuple[MazePlace, ...]]:
        """Return every row with the way that was said, as far as it stays on the grid; it may lead through walls.

        Args:
            moves: text of each atom, None for one that was not said.
        """
        last = {place: atom for atom, place in enumerate(_way(self.start, moves))}
        rows = []
        for y, line in enumerate(self.grid):
            marks = [RIGHT_WAY if mark == FREE and (y, x) in self.right else mark for x, mark in enumerate(line)]
            rows.append(tuple(MazePlace(mark, last.get((y, x))) for x, mark in enumerate(marks)))
        return rows


def read_maze(text: str, reference: str) -> Maze | None:
    """Return the maze of a problem; None where its text is none.

    Args:
        text: the problem as it was asked.
        reference: the right moves.
    """
    grid = tuple(line.strip() for line in text.split("\n") if line.strip())
    start = next(((y, line.index("S")) for y, line in enumerate(grid) if "S" in line), None)
    if start is None or len({len(line) for line in grid}) != 1 or not set("".join(grid)) <= {WALL, FREE, "S", "G"}:
        return None
    height, width = len(grid), len(grid[0])
    right = [(y, x) for y, x in _way(start, reference.split()) if 0 <= y < height and 0 <= x < width]
    return Maze(grid, start, frozenset(right))


def _way(start: tuple[int, int], moves: Sequence[str | None]) -> list[tuple[int, int]]:
    """Return the places that moves lead to, up to the first text that is no move."""
    y, x = start
    way = []
    for move in moves:
        if move is None or move not in _MOVES:
            break
        y, x = y + _MOVES[move][0], x + _MOVES[move][1]
        way.append((y, x))
    return way
