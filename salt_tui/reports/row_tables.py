"""The tables of chosen rows, of a slice, and of a single row with every metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from salt_tui.measure.rows import ReportRow
from salt_tui.reports.cells import (
    direction,
    fitted_per_fold_note,
    inside_answers_note,
    interval_notes,
    left_out_text,
    map_name,
    mean_cell,
    range_text,
    reason_text,
    undefined_note,
)
from salt_tui.reports.text_tables import TextTable, interval_text, value_text
from salt_tui.visible_text import visible
from scoring.metrics import METRICS

_HEADS = {
    "auroc": f"{'AUROC ↑':<18}",
    "brier": f"{'Brier ↓':<18}",
    "ece": "ECE ↓",
    "auroc_micro": "micro ↑",
    "nll": "NLL ↓",
    "smooth_ece": "smooth ↓",
    "mce": "MCE ↓",
    "ace": "ACE ↓",
    "auprc": "AUPRC ↑",
    "prr": "PRR ↑",
    "aurc": "AURC ↓",
    "euro_auc": "EURO ↑",
}
_WITH_INTERVAL = ("auroc", "brier")
_EXTRA = ("aurc", "auprc", "ace", "mce", "smooth_ece", "euro_auc", "prr", "nll", "auroc_micro", "brier")


def row_tables(rows: Sequence[ReportRow], by: str | None) -> list[TextTable]:
    """Return chosen rows: one table per map, of functions; of a single function the maps; or of a slice the parts."""
    if len(rows) == 1 and by is None:
        return [single_row_table(rows[0])]
    if by is not None:
        head, label = by, lambda row: visible(row.part or "", 22)
    elif len({row.function for row in rows}) == 1:
        head, label = "map", map_name
    else:
        head, label = "function", lambda row: row.function
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        names = [] if head == "function" else [row.function]
        names.extend([] if head == "map" else [map_name(row)])
        groups.setdefault(" · ".join([f"{row.granularity}s", *names]), []).append(row)
    return [_table(title, group, head, label) for title, group in groups.items()]


def _table(title: str, rows: Sequence[ReportRow], head: str, label: Callable[[ReportRow], str]) -> TextTable:
    cells = tuple(
        (
            label(row),
            str(row.n),
            mean_cell(row.values["accuracy"]),
            *(mean_cell(row.values[name], row.intervals.get(name), interval=name in _WITH_INTERVAL) for name in _HEADS),
        )
        for row in rows
    )
    notes = [
        undefined_note(rows, ("accuracy", *_HEADS)),
        left_out_text(rows),
        fitted_per_fold_note(rows),
        *interval_notes(row.intervals.get(name) for row in rows for name in _WITH_INTERVAL),
    ]
    return TextTable(
        title,
        (head, "n", "right", *_HEADS.values()),
        cells,
        notes=tuple(dict.fromkeys(filter(None, notes))),
        extra=tuple(_HEADS[name] for name in _EXTRA),
    )


def single_row_table(row: ReportRow) -> TextTable:
    """Return every metric of a single row, one per line."""
    rows = tuple(
        (
            METRICS[name].title,
            value_text(mean.mean),
            interval_text(row.intervals.get(name)),
            direction(METRICS[name]),
            range_text(METRICS[name]),
            reason_text(mean.mean.reason, mean.left_out),
        )
        for name, mean in row.values.items()
    )
    title = f"{row.granularity}s · {row.function} · {map_name(row)} · n {row.n} in {row.answers} answers"
    notes = [
        left_out_text([row]),
        fitted_per_fold_note([row]),
        *inside_answers_note(row),
        *interval_notes(row.intervals.values()),
        *row.notes,
    ]
    return TextTable(
        title,
        ("metric", "value", "95 %", "", "range", ""),
        rows,
        left=6,
        notes=tuple(dict.fromkeys(filter(None, notes))),
    )
