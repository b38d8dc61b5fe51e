"""``.csv`` of interventions: one row per replayed prefix with every column that the regressions need."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.csv_rows import write_csv
from salt_tui.measure.interventions import branch_rows
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work


def write_branches(queries: Queries, study: Work, path: Path, *, excel_safe: bool = False) -> None:
    """Write the branches of a study; undefined is an empty cell, edits are a JSON array of atom and text."""
    records = [row.columns() for row in branch_rows(queries, study)]
    names = list(records[0]) if records else []
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = ({**record, "edits": json.dumps(record["edits"], ensure_ascii=False)} for record in records)
        cells = [names, *([row[name] for name in names] for row in rows)]
        write_csv(file, cells, excel_safe=excel_safe)
