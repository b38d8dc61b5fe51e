"""Interventions: one row per replayed prefix with every column that the regressions need."""

from __future__ import annotations

import json

from salt_tui.exports.tables import Column, Table, typed
from salt_tui.measure.interventions import branch_rows
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work

_TEXTS = typed("study model task problem direction edits name reason caveat", "text")
_INTEGERS = typed(
    "position answer generation target variant length outcome parent branch chunked",
    "integer",
)
_TYPES = {column.name: column for column in (*_TEXTS, *_INTEGERS)}


def branch_table(queries: Queries, study: Work) -> Table:
    """Return the branches of a study; undefined is None, edits are a JSON array of atom and text."""
    records = [row.columns() for row in branch_rows(queries, study)]
    names = list(records[0]) if records else []
    columns = tuple(_TYPES.get(name, Column(name, "real")) for name in names)
    rows = ({**record, "edits": json.dumps(record["edits"], ensure_ascii=False)} for record in records)
    return Table(columns, ([row[name] for name in names] for row in rows))
