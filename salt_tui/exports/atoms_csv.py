"""``.csv``: one row per atom with the columns of ``atom_view``."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from salt_tui.csv_rows import write_csv
from salt_tui.store.queries import Queries


def write_atoms(queries: Queries, run: int, path: Path, *, excel_safe: bool = False) -> None:
    """Write the atoms of a run; NULL is an empty cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        columns, rows = queries.atom_rows(run)
        write_csv(file, chain([columns], rows), excel_safe=excel_safe)
