"""Where the rows of one answer break, what stands between its units, and which units share a number.

The lines of a grid begin a row each, so that the rows of a matrix stand under each other.  In another answer a line of
up to `SHORT` units lets the next one follow in the same row, after `LINE_END`; between lines of one unit stands
nothing.  A blank follows every `GROUP` units of a line.  `RUN` or more missing units in a row are one number, ``−9``.

The place of a unit depends on the units before it alone, so drawn units never move while an answer is written.  A unit
that comes late for an early line, as missing ones do, begins a line of its own.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from salt_tui.palette import GROUP
from scoring.labels import UNIT_STATUSES

SHORT = 4
"""Units of a line that shares its row.  While an answer grows, a line begins only where so many have room."""

RUN = 4
"""So many missing units in a row are told by their number."""

LINE_END = "│"
GOES_ON = "»"
CURSOR_ROW = ">"

_MISSING = UNIT_STATUSES.index("missing")
_RUNS = re.compile(b"%b{%d,}" % (re.escape(bytes([_MISSING])), RUN))


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One row of an answer.

    Attributes:
        units: index of the unit in each cell; the cells of a run of missing units have its first one.
        offsets: where each cell stands, from 0.
        gaps: what stands before each cell: nothing, a blank or `LINE_END`.
        texts: what a cell shows instead of the mark of its verdict, None for the mark.
        goes_on: whether the row goes on with the line of the row above.
    """

    units: Sequence[int]
    offsets: Sequence[int]
    gaps: Sequence[str]
    texts: Sequence[str | None]
    goes_on: bool


class Flow:
    """The units of an answer broken into rows of a width.

    Attributes:
        starts: first cell of every row; empty without units.
        last_width: cells of the last row.

    Args:
        lengths: units of each line, 1 or more, in the order in which they were said.
        statuses: code of each unit.
        width: cells of a row, `GROUP` or more.
        grid: whether every line begins a row.
        merged: whether lines follow each other as if they were one.
        growing: whether units may still be added; a group that has begun then has room for all it may become.
    """

    __slots__ = ("_joined", "_lengths", "_runs", "last_width", "starts")

    def __init__(
        self,
        lengths: Sequence[int],
        statuses: bytes | bytearray,
        width: int,
        *,
        grid: bool,
        merged: bool,
        growing: bool,
    ) -> None:
        if merged and len(lengths) > 1:
            lengths = [sum(lengths)]
        self._runs = [match.span() for match in _RUNS.finditer(statuses)]
        self._lengths, self._joined = (lengths, frozenset[int]()) if not self._runs else _with_runs(lengths, self._runs)
        self.starts, self.last_width = row_starts(self._lengths, width, grid=grid, growing=growing, joined=self._joined)

    def run_of(self, unit: int) -> tuple[int, int] | None:
        """Return first unit and end of the run of missing units that holds a unit; None where none does."""
        return next(((start, stop) for start, stop in self._runs if start <= unit < stop), None)

    def shown(self, unit: int) -> int:
        """Return the unit that stands for a unit: the first of its run, or itself."""
        run = self.run_of(unit)
        return unit if run is None else run[0]

    def rows(self) -> list[FlowRow]:
        """Return all rows."""
        count = sum(self._lengths)
        units: Sequence[int] = range(count)
        texts: Sequence[str | None] = [None] * count
        if self._runs:
            units, texts = self._cells()
        before = gaps(self._lengths, self.starts, self._joined)
        firsts = set(accumulate(self._lengths, initial=0))
        rows = []
        for start, stop in pairwise([*self.starts, count]):
            of_row = before[start:stop]
            offsets = tuple(end - 1 for end in accumulate(len(gap) + 1 for gap in of_row))
            rows.append(FlowRow(units[start:stop], offsets, of_row, texts[start:stop], start not in firsts))
        return rows

    def _cells(self) -> tuple[list[int], list[str | None]]:
        units: list[int] = []
        texts: list[str | None] = []
        unit = 0
        for start, stop in self._runs:
            units += range(unit, start)
            texts += [None] * (start - unit)
            number = run_text(stop - start)
            units += [start] * len(number)
            texts += number
            unit = stop
        left = sum(self._lengths) - len(units)
        return [*units, *range(unit, unit + left)], [*texts, *[None] * left]


def run_text(count: int) -> str:
    """Say how many units in a row are missing."""
    return f"−{count}"


def _with_runs(lengths: Sequence[int], runs: Sequence[tuple[int, int]]) -> tuple[list[int], frozenset[int]]:
    """Return lengths in cells, with each run of missing units as a piece of its own.

    Returns:
        The lengths, and which pieces follow the one before in the same line: after a blank, not after `LINE_END`.
    """
    pieces: list[int] = []
    joined: set[int] = set()
    left = list(reversed(runs))
    unit = 0
    for length in lengths:
        end = unit + length
        first = True
        while unit < end:
            run = left[-1] if left else None
            if run is not None and run[0] <= unit:
                # A run over several lines is one piece, at its beginning.
                if run[0] == unit:
                    if not first:
                        joined.add(len(pieces))
                    pieces.append(len(run_text(run[1] - run[0])))
                    first = False
                unit = min(end, run[1])
                if unit == run[1]:
                    left.pop()
            else:
                stop = end if run is None else min(end, run[0])
                if not first:
                    joined.add(len(pieces))
                pieces.append(stop - unit)
                first = False
                unit = stop
    return pieces, frozenset(joined)


def row_starts(
    lengths: Sequence[int],
    width: int,
    *,
    grid: bool = False,
    growing: bool = True,
    joined: frozenset[int] = frozenset(),
) -> tuple[array[int], int]:
    """Return the first cell of every row, and the width of the last row.

    Args:
        lengths: cells of each piece.
        width: cells of a row, `GROUP` or more.
        grid: whether every line begins a row.
        growing: whether the last piece may become longer, or another may follow.
        joined: pieces that follow the one before where they have room.
    """
    starts = array("I")
    cell = used = 0
    shares = False
    for number, length in enumerate(lengths):
        if (number in joined and used + 1 + length <= width) or (
            shares and not grid and number not in joined and used + 1 + (SHORT if growing else length) <= width
        ):
            used += 1
        else:
            starts.append(cell)
            used = 0
        first = min(length, GROUP)
        if used + first > width:
            starts.append(cell + width - used)
            used += first - width
        else:
            used += first
        for place in range(GROUP, length, GROUP):
            group = min(GROUP, length - place)
            if used + 1 + (GROUP if growing else group) > width:
                starts.append(cell + place)
                used = group
            else:
                used += 1 + group
        cell += length
        shares = length <= SHORT
    return starts, used


def gaps(lengths: Sequence[int], starts: Sequence[int], joined: frozenset[int] = frozenset()) -> list[str]:
    """Return what stands before every cell: nothing, a blank or `LINE_END`."""
    before = [
        (" " if number in joined else LINE_END) if place == 0 else " " if place % GROUP == 0 else ""
        for number, length in enumerate(lengths)
        for place in range(length)
    ]
    for start in starts:
        before[start] = ""
    return before
