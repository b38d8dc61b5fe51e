"""Text cut and broken for a width in cells, in which a wide character takes two."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

_BETWEEN_WORDS = re.compile(r" (?![%k](?:\W|$))")
"""Not between a number and the thousands or the percent sign that belong to it."""


def fit(text: str, cells: int) -> str:
    """Return a text in at most so many cells, ending in … where it was longer."""
    if cell_len(text) <= cells:
        return text
    return f"{set_cell_size(text, cells - 1).rstrip()}…" if cells > 0 else ""


def broken(text: str, width: int, rows: int | None = None, indent: str = "") -> str:
    """Return a text broken between words; a word longer than a row is broken where the row ends.

    Args:
        text: one line.
        width: cells of a row, 1 or more.
        rows: the most there may be; the last one then ends in …. None for as many as it takes.
        indent: blanks before every row but the first.
    """
    words = _BETWEEN_WORDS.split(text)
    found: list[str] = []
    row = words.pop(0)
    while words or cell_len(row) > width:
        if rows is not None and len(found) == rows - 1:
            return "\n".join([*found, fit(" ".join([row, *words]), width)])
        if cell_len(row) > width:
            head = set_cell_size(row, width).rstrip()
            found.append(head)
            row = indent + row[len(head) :]
        elif cell_len(f"{row} {words[0]}") <= width:
            row = f"{row} {words.pop(0)}"
        else:
            found.append(row)
            row = indent + words.pop(0)
    return "\n".join([*found, row])


def broken_lines(text: str, width: int) -> str:
    """Return a text of several lines broken for a width; what follows in a line is indented by two more than it."""
    lines = []
    for line in text.split("\n"):
        words = line.lstrip(" ")
        blanks = min(len(line) - len(words), width // 2)
        rows = broken(words, width - blanks, indent="  ").split("\n")
        lines += [" " * blanks + row for row in rows]
    return "\n".join(lines)
