"""What a row of the map holds: parts of answers from left to right, and which unit stands in which cell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.app.maze_drawing import CELLS, MazePlace
from salt_tui.app.row_flow import FlowRow


@dataclass(frozen=True, slots=True)
class Place:
    """A unit: number of the answer in the map, index of the unit in the answer.

    In an answer without units, index 0 stands for the answer itself.
    """

    answer: int
    unit: int


@dataclass(frozen=True, slots=True)
class RowPart:
    """What one row of the map shows of one answer.

    Attributes:
        answer: its number.
        x: where its label begins.
        units_x: where its units begin.
        row: its units, None where the row has none.
        words: what stands after the units, or instead of them.
        first: whether it is the first row of the answer.
        maze: a row of its maze that stands in place of units; empty for none.
    """

    answer: int
    x: int
    units_x: int
    row: FlowRow | None
    words: str
    first: bool
    maze: Sequence[MazePlace] = ()

    def cell_of(self, unit: int) -> int | None:
        """Return where a unit stands in the row of the map; None where it does not."""
        if self.row is None or unit not in self.row.units:
            return None
        return self.units_x + self.row.offsets[self.row.units.index(unit)]

    def unit_at(self, x: int) -> int | None:
        """Return the unit in a cell of the row of the map; None between units."""
        if self.maze:
            place = (x - self.units_x) // CELLS
            return self.maze[place].atom if 0 <= place < len(self.maze) else None
        if self.row is None or x - self.units_x not in self.row.offsets:
            return None
        return self.row.units[self.row.offsets.index(x - self.units_x)]

    def nearest(self, x: int) -> int:
        """Return the unit in a cell, or the last before it; 0 without units."""
        if self.row is None or not self.row.units:
            return 0
        return self.row.units[max(0, bisect_right(self.row.offsets, x - self.units_x) - 1)]


@dataclass(frozen=True, slots=True)
class MapRow:
    """One row of the map: a heading, or parts of answers from left to right."""

    heading: str | None
    parts: Sequence[RowPart]

    def part_at(self, x: int) -> RowPart:
        """Return the part that holds a cell, or the last before it."""
        return next((part for part in reversed(self.parts) if part.x <= x), self.parts[0])
