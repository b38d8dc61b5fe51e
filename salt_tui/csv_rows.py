"""CSV with Unix line ends that every reader splits into the rows that were written."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_QUOTED_ENDS = "\r\n"


_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a text that a spreadsheet may take for a formula."""


def write_csv(file: TextIO, rows: Iterable[Sequence[Any]], *, excel_safe: bool = False) -> None:
    r"""Write rows, each ended by ``\n``; a cell is quoted where it must be, None is an empty cell.

    Args:
        file: open for text, without translation of line ends.
        rows: the header is the first.
        excel_safe: put an apostrophe before texts that a spreadsheet may take for formulas; numbers stay.
    """
    if excel_safe:
        rows = ([_safe(cell) for cell in row] for row in rows)
    csv.writer(_UnixEnds(file), lineterminator=_QUOTED_ENDS).writerows(rows)


def _safe(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_RUN_BY_SPREADSHEETS) else cell


class _UnixEnds:
    r"""Takes whole rows with ``\r\n`` behind them and writes them with ``\n``.

    Until Python 3.13 `csv.writer` quotes only those line ends that are its own, and readers end a row at every other.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        """Write one row."""
        self._file.write(row.removesuffix(_QUOTED_ENDS) + "\n")
