"""How the answers of a map stand: short ones beside each other as tiles, others one under the other.

All tiles of a task have one width, so that they stand in columns and none moves when another grows.  Tiles beside each
other are a band; a new task begins a band with a heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.row_flow import SHORT
from salt_tui.palette import GROUP
from tasks.registry import TASKS

NUMBER = 4
"""Cells of the number of an answer."""

LEAST_SCORE = 5
"""Cells of right units over those asked for, ``15/20``."""

BETWEEN = 3
"""Cells between two tiles."""

LEAST_CONTENT = 12
"""Cells of the units of a tile, so that a word about an answer without any has room."""

TALLER = 2
"""Rows that a tile may have more than its reference needs; a taller answer gets a band of its own."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the answers of one task are drawn.

    Attributes:
        grid: whether every line begins a row.
        merged: whether every line has one unit, so that lines follow each other as if they were one.
        score: cells for right units over those asked for.
        content: cells for the units of a tile.
        rows: of a tile that holds what the reference asks for, with its maze where one is drawn.
    """

    grid: bool
    merged: bool = True
    score: int = LEAST_SCORE
    content: int = LEAST_CONTENT
    rows: int = 1

    @property
    def label(self) -> int:
        """Cells before the units: a number, a score, blanks, and the mark of the cursor's row."""
        return NUMBER + 1 + self.score + 2

    def columns(self, width: int) -> int:
        """Return how many tiles stand beside each other in ``width`` cells."""
        return max(1, (width + BETWEEN) // (self.label + self.content + BETWEEN))

    def with_answer(self, answer: AnswerCells, kind: str) -> Form:
        """Return the form that has room for what an answer asks for too; the same where it had."""
        lines = answer.asked_lines(kind)
        if not lines:
            return self
        longest, asked = max(lines), sum(lines)
        cells = cells_of(longest) if self.grid else cells_of(asked) + (0 if longest == 1 else len(lines) - 1)
        maze = answer.maze if kind == "atom" else None
        cells = max(cells, 0 if maze is None else maze.width)
        rows = len(lines) if self.grid else 1 + sum(line > SHORT for line in lines[:-1])
        return replace(
            self,
            merged=self.merged and longest == 1,
            score=max(self.score, 2 * len(str(asked)) + 1),
            content=max(self.content, cells),
            rows=max(self.rows, rows + (0 if maze is None else maze.height)),
        )


def cells_of(units: int) -> int:
    """Return the cells of a line of so many units, with a blank after every `GROUP`."""
    return units + max(0, units - 1) // GROUP


def first_form(task: str, kind: str) -> Form:
    """Return the form of a task of which no answer is known."""
    known = TASKS.get(task)
    return Form(grid=kind == "atom" and known is not None and known.answer_is_grid)


@dataclass(frozen=True, slots=True)
class Tile:
    """One answer in a band.

    Attributes:
        answer: its number in the map.
        x: where its label begins.
        content: cells for its units.
        height: rows.
    """

    answer: int
    x: int
    content: int
    height: int


@dataclass(frozen=True, slots=True)
class Band:
    """Answers that stand beside each other.

    Attributes:
        y: first row of the map, that of the heading where there is one.
        heading: name of the task that begins here, None where it goes on.
        tiles: from left to right.
    """

    y: int
    heading: str | None
    tiles: Sequence[Tile]

    @property
    def top(self) -> int:
        """First row of the answers."""
        return self.y + (self.heading is not None)

    @property
    def height(self) -> int:
        """Rows, with the heading."""
        return self.top - self.y + max(tile.height for tile in self.tiles)
