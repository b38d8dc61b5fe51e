"""The registry of export formats: a new one is a line here and a file beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from salt_tui.exports.answers_jsonl import write_answers, write_generations
from salt_tui.exports.atoms_csv import write_atoms
from salt_tui.exports.branches_csv import write_branches
from salt_tui.exports.signals_csv import write_signals
from salt_tui.store.copying import copy_run, copy_study
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format.

    Attributes:
        suffix: of the file name, with its dot.
        content: what the file holds, in a few words.
        write: writes a run of a database to a new file.
        write_study: writes a study to a new file.
        database: whether the file is a database, beside which no journal of another may lie.
        spreadsheet: whether spreadsheets open it; writers then take ``excel_safe``.
    """

    suffix: str
    content: str
    write: Callable[..., None]
    write_study: Callable[..., None]
    database: bool = False
    spreadsheet: bool = False


def _write_study_rows(queries: Queries, study: Work, path: Path, *, excel_safe: bool = False) -> None:
    """Write what a study is about: replayed texts of interventions, the signals of every other kind."""
    kind = queries.study_record(study).record.kind
    (write_branches if kind in {"interventions", "manual"} else write_signals)(
        queries, study, path, excel_safe=excel_safe
    )


EXPORT_FORMATS: dict[str, ExportFormat] = {
    entry.suffix: entry
    for entry in (
        ExportFormat(
            ".csv", "one row per atom with the columns of atom_view", write_atoms, _write_study_rows, spreadsheet=True
        ),
        ExportFormat(".jsonl", "one answer per line with its units and tokens", write_answers, write_generations),
        ExportFormat(
            ".db", "a database with only this run, which every command can open", copy_run, copy_study, database=True
        ),
    )
}
"""By suffix."""
