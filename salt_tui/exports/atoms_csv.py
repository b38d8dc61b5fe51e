"""``.csv``: one row per atom with the columns of ``atom_view``, then one per signal that there is about atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path

from salt_tui.csv_rows import write_csv
from salt_tui.store.queries import Queries
from salt_tui.store.results import SignalName
from salt_tui.store.schema import LEFT_OUT_STATUSES


def write_atoms(queries: Queries, run: int, path: Path, *, excel_safe: bool = False) -> None:
    """Write the atoms of a run; NULL and an undefined signal are empty cells."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, _rows(queries, run), excel_safe=excel_safe)


def _rows(queries: Queries, run: int) -> Iterator[Sequence[object]]:
    columns, rows = queries.atom_rows(run)
    signals = [signal for signal in queries.signal_names(run) if "atom" in signal.kinds]
    # The values that policies and reports use, in the order of the rows; those leave out answers that count nowhere.
    units = queries.unit_columns(run, "atom", [signal.shown for signal in signals])
    values = zip(*(units.confidences[signal.shown].tolist() for signal in signals), strict=True)
    yield [*columns, *(_column(signal, columns) for signal in signals)]
    status = columns.index("answer_status")
    nothing = [None] * len(signals)
    for row in rows:
        counts = row[status] is not None and row[status] not in LEFT_OUT_STATUSES
        found = next(values, nothing) if counts else nothing
        yield [*row, *(None if value is None or isnan(value) else value for value in found)]


def _column(signal: SignalName, columns: Sequence[str]) -> str:
    return signal.shown if signal.shown not in columns else f"{signal.name}@{signal.work}"
