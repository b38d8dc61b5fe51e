"""Where the rows of an answer break and what stands between its units.

A line of up to `SHORT` units lets the next line follow in the same row, after `LINE_END`; after a longer line a row
begins, so that the rows of a matrix stand under each other and twelve lines of two moves do not take twelve rows.  A
blank follows every `GROUP` units of a line.

The place of a unit depends on the units before it alone, so drawn units never move while an answer is written.  A unit
that comes late for an early line, as missing ones do, begins a line of its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from salt_tui.palette import GROUP

SHORT = 4
"""Units of a line that shares its row.  A line begins only where so many have room, and is broken if it outgrows it."""

LINE_END = "│"
GOES_ON = "»"
CURSOR_ROW = ">"


def row_starts(lengths: Sequence[int], width: int) -> array[int]:
    """Return the first unit of every row.

    Args:
        lengths: units of each line, 1 or more, in the order in which they were said.
        width: cells of a row, `GROUP` or more.
    """
    starts = array("I")
    unit = used = 0
    shares = False
    for length in lengths:
        if shares and used + 1 + SHORT <= width:
            used += 1
        else:
            starts.append(unit)
            used = 0
        first = min(length, GROUP)
        if used + first > width:
            starts.append(unit + width - used)
            used += first - width
        else:
            used += first
        for place in range(GROUP, length, GROUP):
            group = min(GROUP, length - place)
            # A group that has begun must find room when it grows.
            if used + 1 + GROUP > width:
                starts.append(unit + place)
                used = group
            else:
                used += 1 + group
        unit += length
        shares = length <= SHORT
    return starts


def gaps(lengths: Sequence[int], starts: Sequence[int]) -> list[str]:
    """Return what stands before every unit: nothing, a blank or `LINE_END`."""
    before = [
        LINE_END if place == 0 else " " if place % GROUP == 0 else "" for length in lengths for place in range(length)
    ]
    for start in starts:
        before[start] = ""
    return before
