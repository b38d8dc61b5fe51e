"""The registry of report formats: a new one is a line here and a function that yields lines."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from salt_tui.csv_rows import write_csv
from salt_tui.measure.run_report import FullReport
from salt_tui.number_text import INFINITE, UNDEFINED
from salt_tui.reports.analysis_tables import analysis_tables
from salt_tui.reports.head import sentences, title_lines
from salt_tui.reports.json_report import report_data, row_record
from salt_tui.reports.question_tables import question_tables
from salt_tui.reports.row_tables import row_tables
from salt_tui.reports.summary import left_out_notes, warnings
from salt_tui.reports.text_tables import BEST, PARTIAL, TextTable, latex, markdown
from salt_tui.reports.wrapping import wrapped

_LABEL = 13
"""Places of a label of the head, which fits the longest."""

Writer = Callable[[FullReport, int], Iterable[str]]
"""Yields the lines of a report; the second argument is the width of the terminal, in columns."""


def write_table(report: FullReport, width: int) -> Iterator[str]:
    """Yield sentences and tables as text, not wider than the terminal."""
    for line in title_lines(report.summary):
        yield from wrapped(line, width)
    if report.selection.usual:
        yield ""
        for label, sentence in sentences(report):
            yield from wrapped(f"{label:<{_LABEL}}{sentence}", width, " " * _LABEL)
    tables = report_tables(report)
    for table in tables:
        yield ""
        yield from table.as_text(width)
        for note in table.notes:
            yield from wrapped(note, width)
    notes = [*legend(tables), *report_notes(report)]
    yield ""
    for note in notes:
        yield from wrapped(note, width)


def write_markdown(report: FullReport, width: int) -> Iterator[str]:
    """Yield sentences and tables as Markdown."""
    first, *others = title_lines(report.summary)
    yield f"## {markdown(first)}"
    for line in others:
        yield from ("", markdown(line))
    if report.selection.usual:
        yield ""
        for label, sentence in sentences(report):
            yield f"- **{label}.** {markdown(sentence)}"
    tables = report_tables(report)
    for table in tables:
        yield ""
        yield from table.as_markdown()
    yield ""
    yield from (f"- {markdown(note)}" for note in [*legend(tables), *report_notes(report)])


def write_latex(report: FullReport, width: int) -> Iterator[str]:
    r"""Yield the tables for LaTeX, sentences and notes as comments; needs ``\usepackage{booktabs}``."""
    yield r"% needs \usepackage{booktabs}"
    for line in title_lines(report.summary):
        yield f"% {line}"
    if report.selection.usual:
        yield from (f"% {label}: {sentence}" for label, sentence in sentences(report))
    tables = report_tables(report)
    for table in tables:
        yield ""
        yield from table.as_latex()
    yield ""
    yield from (f"% {latex(note)}" for note in legend(tables))


def write_json(report: FullReport, width: int) -> Iterator[str]:
    """Yield one line, a JSON object."""
    yield json.dumps(report_data(report), ensure_ascii=False, allow_nan=False)


def write_rows(report: FullReport, width: int) -> Iterator[str]:
    """Yield one line of CSV per row, headed by their names."""
    records = [row_record(report.summary, row) for row in report.rows]
    names = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO(newline="")
    write_csv(text, [names, *(list(record.values()) for record in records)])
    yield text.getvalue().removesuffix("\n")


REPORT_FORMATS: dict[str, Writer] = {
    "table": write_table,
    "json": write_json,
    "csv": write_rows,
    "md": write_markdown,
    "latex": write_latex,
}
"""By the name on the command line; ``html``, which needs answers and figures, is `commands.page`."""


def legend(tables: Sequence[TextTable]) -> list[str]:
    """Return what the marks in these tables mean, each once."""
    text = "".join(cell for table in tables for row in table.rows for cell in (*table.heads, *row))
    meanings = {
        BEST: "cannot be told apart from the best of its column",
        PARTIAL: "mean of the tasks that have a value",
        INFINITE: "an infinite loss: a wrong atom at confidence 1, or a right one at 0",
        "[": "[ ] 95 % interval, by drawing whole answers",
        UNDEFINED: "undefined",
    }
    parts = [meaning if mark == "[" else f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in text]
    return [f"Marks: {'; '.join(parts)}; ↑ higher, ↓ lower is better."] if parts else []


def report_tables(report: FullReport) -> list[TextTable]:
    """Return the tables of the usual questions, or of the chosen rows, and those of analyses."""
    tables = question_tables(report) if report.selection.usual else row_tables(report.rows, report.selection.by)
    return tables if report.analyses is None else [*tables, *analysis_tables(report.analyses)]


def report_notes(report: FullReport) -> list[str]:
    """Return what was left out, and the warnings of the run."""
    brief = left_out_notes(report.summary, brief=True) if report.selection.usual else []
    return [*brief, *warnings(report.summary)]
