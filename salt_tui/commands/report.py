"""``salt-tui report`` and the summary that ends a run."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.exports.csv_rows import write_csv
from salt_tui.measure.row_selection import RowSelection
from salt_tui.measure.rows import ReportRow
from salt_tui.measure.run_report import RunReport, report_analyses, report_digest, report_rows, report_run
from salt_tui.paths import database_path
from salt_tui.reports.json_report import report_data, row_record
from salt_tui.reports.sentences import sentences
from salt_tui.reports.tables import (
    digest_tables,
    left_out_notes,
    row_table,
    rows_tables,
    summary_notes,
    summary_table,
    title_of,
)
from salt_tui.reports.text_tables import TextTable
from salt_tui.visible_text import visible

MANY_ATOMS = 200_000
"""1,000 draws of the usual rows of more atoms than this take longer than a minute."""

_LINE = 80
"""Columns that a line takes at most, and where the terminal's width is unknown."""


def print_report(name: str, database: Path | None, output: str, selection: RowSelection, *, chosen: bool) -> int:
    """Print a stored run in one of the formats ``table json csv md``.

    Args:
        name: number of the run or ``latest``.
        database: the file; None for the usual one.
        output: the format.
        selection: the rows of ``json`` and ``csv``, and of the others where they were chosen.
        chosen: whether the user named rows or a slice; otherwise ``table`` and ``md`` answer the usual questions.
    """
    path = database or database_path()
    report = report_run(path, name)
    atoms = sum(task.atoms for task in report.tasks)
    if selection.rows.draws and atoms > MANY_ATOMS:
        say(f"{atoms:,} atoms: intervals may take minutes, --draws 0 leaves them out")
    if output in {"table", "md"} and not chosen:
        digest = report_digest(path, report, selection.rows.draws)
        tables = digest_tables(digest)
        notes = [*left_out_notes(digest.report, brief=True), *_warnings(digest.report)]
        _print_tables(title_of(digest.report), tables, notes, sentences(digest), output)
        return DONE
    rows = report_rows(path, report.run.run, selection)
    if output == "json":
        analyses = report_analyses(path, report.run.run, selection.rows.draws)
        print(json.dumps(report_data(report, rows, selection, analyses), ensure_ascii=False, allow_nan=False))
    elif output == "csv":
        _print_csv(rows)
    else:
        tables = [row_table(rows[0])] if len(rows) == 1 and selection.by is None else rows_tables(rows, selection.by)
        _print_tables(title_of(report), tables, _warnings(report), [], output)
    return DONE


def print_summary(report: RunReport) -> None:
    """Print what a run found: a table of tasks, what was left out, and why values are missing."""
    _print_lines(_wrapped([title_of(report)]))
    _print_lines(summary_table(report).as_text())
    _print_lines(_wrapped(summary_notes(report)))


def _print_tables(
    title: str, tables: Sequence[TextTable], notes: Sequence[str], answers: Sequence[str], output: str
) -> None:
    markdown = output == "md"
    _print_lines([f"## {title}"] if markdown else _wrapped([title]))
    for table in tables:
        print()
        if markdown:
            _print_lines(table.as_markdown())
        else:
            _print_lines(table.as_text())
            _print_lines(_wrapped(table.notes))
    if notes:
        print()
        _print_lines((f"- {note}" for note in notes) if markdown else _wrapped(notes))
    if answers:
        print()
        _print_lines((f"- {line}" for line in answers) if markdown else _wrapped(answers))


def _wrapped(lines: Iterable[str]) -> Iterable[str]:
    width = max(min(shutil.get_terminal_size((_LINE, 24)).columns, _LINE), 20)
    for line in lines:
        # A number without an interval leaves two spaces behind.  Paths and names of metrics stay whole.
        yield from textwrap.wrap(
            " ".join(line.split()), width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )


def _warnings(report: RunReport) -> list[str]:
    return [f"warning: {visible(warning)}" for warning in report.run.record.warnings]


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _print_csv(rows: Sequence[ReportRow]) -> None:
    records = [row_record(row) for row in rows]
    names = list(dict.fromkeys(name for record in records for name in record))
    write_csv(sys.stdout, [names, *(list(record.values()) for record in records)])
