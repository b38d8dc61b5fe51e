"""How wide text for people is printed, and lists and sentences broken into such lines."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator

from salt_tui.reports.text_tables import WIDEST as WIDEST_TABLE

WIDEST = 100
"""Columns of text at most; longer lines are hard to read."""

_NARROWEST, _UNKNOWN = 20, 80


def line_width() -> int:
    """Return the columns of a line on stdout: those of the terminal, where it is one and narrower than `WIDEST`."""
    return min(shutil.get_terminal_size().columns, WIDEST) if sys.stdout.isatty() else WIDEST


def terminal_width() -> int:
    """Return the columns that a table may take: those of the terminal, 80 where it is unknown."""
    return max(_NARROWEST, min(shutil.get_terminal_size((_UNKNOWN, 24)).columns, WIDEST_TABLE))


def broken_lines(text: str, width: int, indent: str) -> Iterator[str]:
    """Yield lines of at most ``width`` columns, broken behind blanks and commas; a longer word stays whole.

    Args:
        text: one line.
        width: columns.
        indent: begins every line but the first.
    """
    line = ""
    for word in re.findall(r"[^ ,]*[ ,]*", text):
        if line.strip() and len(line) + len(word.rstrip()) > width:
            yield line.rstrip()
            line = indent
        line += word
    yield line.rstrip()
