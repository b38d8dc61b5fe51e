"""Tables as data, and the two ways they are printed: aligned text and Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isinf

from scoring.intervals import Interval
from scoring.value import Value

BEST = "▲"
WINNER = "△"
UNDEFINED = "–"


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table to print.

    Attributes:
        title: one line; empty for none.
        heads: of the columns.
        rows: cells, as many as heads.
        left: number of columns that are aligned to the left; the others to the right.
        notes: lines below.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    notes: tuple[str, ...] = ()

    def as_text(self) -> Iterable[str]:
        """Yield the lines without the notes, columns one space apart."""
        if self.title:
            yield self.title
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        for cells in (self.heads, *self.rows):
            yield " ".join(
                cell.ljust(width) if number < self.left else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ).rstrip()

    def as_markdown(self) -> Iterable[str]:
        """Yield the lines; a bar in a cell is escaped."""
        if self.title:
            yield from (f"### {self.title}", "")
        aligned = [":---" if number < self.left else "---:" for number in range(len(self.heads))]
        for cells in (self.heads, aligned, *self.rows):
            escaped = [cell.strip().replace("|", "\\|") for cell in cells]
            yield f"| {' | '.join(escaped)} |"
        for note in self.notes:
            yield from ("", note)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number without its leading zero: ``.753``, ``-.120``, ``1.000``, ``∞``; a dash for None."""
    if value is None:
        return UNDEFINED
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def value_text(value: Value) -> str:
    """Return the number of a value, a dash where it is undefined."""
    return number(value.value)


def interval_text(interval: Interval | None) -> str:
    """Return ``[.71 .80]``; nothing where there is none."""
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"[{number(interval.low, 2)} {number(interval.high, 2)}]"


def with_interval(value: Value, interval: Interval | None) -> str:
    """Return a number and its interval in sixteen places, so that numbers stand below each other."""
    return f"{value_text(value)} {interval_text(interval):<10}"
