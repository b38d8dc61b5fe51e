"""Atoms: one row each with the columns of ``atom_view``, then one column per signal that there is about atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan

from salt_tui.exports.tables import Column, Table, typed
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work
from salt_tui.store.results import SignalName
from salt_tui.store.schema import CONFIDENCE_COLUMNS, LEFT_OUT_STATUSES

_TYPES = {
    column.name: column
    for column in (
        *typed("model task content_id difficulty method answer_status text reference status statistics", "text"),
        *typed("run position generation index line correct token_start token_end byte_start byte_end", "integer"),
        *typed(" ".join(CONFIDENCE_COLUMNS), "real"),
    )
}


def atom_table(queries: Queries, work: Work) -> Table:
    """Return the atoms of a run; NULL and an undefined signal are None."""
    names, rows = queries.atom_rows(work.run)
    signals = [signal for signal in queries.signal_names(work.run) if "atom" in signal.kinds]
    added = (Column(_column(signal, names), "real") for signal in signals)
    return Table(
        (*(_TYPES[name] for name in names), *added),
        _rows(queries, work.run, rows, names.index("answer_status"), [signal.shown for signal in signals]),
    )


def _rows(
    queries: Queries, run: int, rows: Iterator[tuple[object, ...]], status: int, signals: Sequence[str]
) -> Iterator[Sequence[object]]:
    # The values that policies and reports use, in the order of the rows; those leave out answers that count nowhere.
    units = queries.unit_columns(run, "atom", signals)
    values = zip(*(units.confidences[signal].tolist() for signal in signals), strict=True)
    nothing = [None] * len(signals)
    for row in rows:
        counts = row[status] is not None and row[status] not in LEFT_OUT_STATUSES
        found = next(values, nothing) if counts else nothing
        yield [*row, *(None if value is None or isnan(value) else value for value in found)]


def _column(signal: SignalName, columns: Sequence[str]) -> str:
    return signal.shown if signal.shown not in columns else f"{signal.name}@{signal.work}"
