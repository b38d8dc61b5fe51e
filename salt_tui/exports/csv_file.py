"""``.csv``: a table as comma-separated values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salt_tui.csv_rows import write_csv
from salt_tui.exports.tables import Table


def write_csv_file(table: Table, path: Path, *, excel_safe: bool = False) -> None:
    """Write a table with its header; None is an empty cell, bytes are hexadecimal."""
    places = [place for place, column in enumerate(table.columns) if column.type == "bytes"]
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, [[column.name for column in table.columns]], excel_safe=excel_safe)
        write_csv(file, (_in_hexadecimal(row, places) for row in table.rows), excel_safe=excel_safe)


def _in_hexadecimal(row: Sequence[object], places: Sequence[int]) -> Sequence[object]:
    if not places:
        return row
    cells = list(row)
    for place in places:
        cell = cells[place]
        cells[place] = cell.hex() if isinstance(cell, bytes) else cell
    return cells
