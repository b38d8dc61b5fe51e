"""``salt-tui report`` and the summary that ends a run."""

from __future__ import annotations

from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.commands.line_width import terminal_width
from salt_tui.measure.row_selection import RowSelection
from salt_tui.measure.run_report import RunReport, measure_report, report_run
from salt_tui.paths import database_path
from salt_tui.reports.formats import REPORT_FORMATS
from salt_tui.reports.head import title_lines
from salt_tui.reports.summary import summary_notes, summary_table
from salt_tui.reports.wrapping import wrapped
from salt_tui.usage_error import UsageError

PAGE = "html"
"""The format that is no list of lines."""

MANY_ATOMS = 200_000
"""1,000 draws of the usual rows of more atoms than this take longer than a minute."""


def print_report(
    name: str, database: Path | None, output: str, selection: RowSelection, answers: int | None = None
) -> int:
    """Print a stored run in one of the formats of `REPORT_FORMATS`, or as a page.

    Args:
        name: number of the run or ``latest``.
        database: the file; None for the usual one.
        output: the format.
        selection: the rows; without a choice the report answers its usual questions.
        answers: shown in a page, None for as many as usual.

    Raises:
        UsageError: answers are asked for in another format.
    """
    if answers is not None and output != PAGE:
        raise UsageError(f"--answers goes with --format {PAGE}")
    path = database or database_path()
    if selection.draws:
        atoms = sum(task.atoms for task in report_run(path, name).tasks)
        if atoms > MANY_ATOMS:
            say(f"{atoms:,} atoms: intervals may take minutes, --draws 0 leaves them out")
    report = measure_report(path, name, selection)
    if output == PAGE:
        from salt_tui.commands.page import ANSWERS, report_page

        print(report_page(report, path, ANSWERS if answers is None else answers))
        return DONE
    for line in REPORT_FORMATS[output](report, terminal_width()):
        print(line)
    return DONE


def print_summary(report: RunReport) -> None:
    """Print what a run found: a table of tasks, what was left out, and why values are missing."""
    width = terminal_width()
    for line in title_lines(report):
        for piece in wrapped(line, width):
            print(piece)
    for line in summary_table(report).as_text(width):
        print(line)
    for note in summary_notes(report):
        for piece in wrapped(note, width):
            print(piece)
