"""CSV with Unix line ends that every reader splits into the rows that were written."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_QUOTED_ENDS = "\r\n"


def write_csv(file: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    r"""Write rows, each ended by ``\n``; a cell is quoted where it must be, None is an empty cell.

    Args:
        file: open for text, without translation of line ends.
        rows: the header is the first.
    """
    csv.writer(_UnixEnds(file), lineterminator=_QUOTED_ENDS).writerows(rows)


class _UnixEnds:
    r"""Takes whole rows with ``\r\n`` behind them and writes them with ``\n``.

    Until Python 3.13 `csv.writer` quotes only those line ends that are its own, and readers end a row at every other.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        """Write one row."""
        self._file.write(row.removesuffix(_QUOTED_ENDS) + "\n")
