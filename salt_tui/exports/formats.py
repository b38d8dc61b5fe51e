"""The registry of export formats: a new one is a line here and a file beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from salt_tui.exports.answers_jsonl import write_answers, write_generations
from salt_tui.exports.atom_table import atom_table
from salt_tui.exports.branch_table import branch_table
from salt_tui.exports.csv_file import write_csv_file
from salt_tui.exports.parquet_file import write_parquet_file
from salt_tui.exports.signal_table import signal_table
from salt_tui.exports.tables import Table
from salt_tui.exports.token_table import token_table
from salt_tui.store.copying import copy_run, copy_study
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What may be asked of an export.

    Attributes:
        excel_safe: keep spreadsheets from running texts as formulas.
        tokens: a row per token, in place of atoms or of what a study is about.
    """

    excel_safe: bool = False
    tokens: bool = False


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One format.

    Attributes:
        suffix: of the file name, with its dot.
        content: what the file holds, in a few words.
        write: writes a run or study of a database to a new file.
        database: whether the file is a database, beside which no journal of another may lie.
        spreadsheet: whether spreadsheets open it; it takes ``excel_safe``.
        table: whether it is a table; it takes ``tokens``.
        readable: whether it can be read on a terminal.
    """

    suffix: str
    content: str
    write: Callable[[Queries, Work, Path, ExportOptions], None]
    database: bool = False
    spreadsheet: bool = False
    table: bool = False
    readable: bool = False


def _table(queries: Queries, work: Work, options: ExportOptions) -> Table:
    """Return what a run or study is about: atoms, replayed texts of interventions, signals of every other kind."""
    if options.tokens:
        return token_table(queries, work)
    if work.study is None:
        return atom_table(queries, work)
    kind = queries.study_record(work).record.kind
    return (branch_table if kind in {"interventions", "manual"} else signal_table)(queries, work)


def _write_csv(queries: Queries, work: Work, path: Path, options: ExportOptions) -> None:
    write_csv_file(_table(queries, work, options), path, excel_safe=options.excel_safe)


def _write_parquet(queries: Queries, work: Work, path: Path, options: ExportOptions) -> None:
    write_parquet_file(_table(queries, work, options), path)


def _write_jsonl(queries: Queries, work: Work, path: Path, options: ExportOptions) -> None:
    if work.study is None:
        write_answers(queries, work.run, path)
    else:
        write_generations(queries, work, path)


def _write_database(queries: Queries, work: Work, path: Path, options: ExportOptions) -> None:
    if work.study is None:
        copy_run(queries, work.run, path)
    else:
        copy_study(queries, work, path)


EXPORT_FORMATS: dict[str, ExportFormat] = {
    entry.suffix: entry
    for entry in (
        ExportFormat(
            ".csv",
            "one row per atom with the columns of atom_view",
            _write_csv,
            spreadsheet=True,
            table=True,
            readable=True,
        ),
        ExportFormat(".jsonl", "one answer per line with its units and tokens", _write_jsonl, readable=True),
        ExportFormat(".parquet", "the rows of .csv with types", _write_parquet, table=True),
        ExportFormat(
            ".db", "a database with only this run, which every command can open", _write_database, database=True
        ),
    )
}
"""By suffix."""
