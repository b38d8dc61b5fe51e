"""``salt-tui report`` and the summary that ends a run: tables that read well at 80 columns."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from salt_tui.commands.failures import DONE
from salt_tui.paths import database_path
from salt_tui.runner.report import RATES, ReportRow, RunReport, TaskReport, report_rows, report_run
from salt_tui.runner.report_json import report_data, row_data
from salt_tui.visible_text import visible
from scoring.correctness import TaskMean
from scoring.value import Value

_RATE_HEADS = {
    "precision": "precision",
    "recall": "recall",
    "redundancy": "redund.",
    "ece": "ECE",
    "auroc_macro": "AUROC",
    "auroc_micro": "micro",
}
_TABLE_METRICS = {"accuracy": "right", "ece": "ECE", "brier": "Brier", "auroc": "AUROC", "auroc_micro": "micro"}
_PLAIN_WIDTH = 400
"""Columns where stdout is no terminal: lines are never broken there."""


def print_report(name: str, database: Path | None, output: str) -> int:
    """Print a stored run in one of the formats ``table json csv md``."""
    path = database or database_path()
    report = report_run(path, name)
    rows = report_rows(path, report.run.run)
    if output == "json":
        print(json.dumps(report_data(report, rows), ensure_ascii=False, allow_nan=False))
    elif output == "csv":
        _print_csv(rows)
    elif output == "md":
        _print_markdown(report, rows)
    else:
        print_summary(report)
        console = _console()
        console.print()
        console.print(_rows_table(rows))
    return DONE


def print_summary(report: RunReport) -> None:
    """Print what a run found: a table of tasks, what was left out, and why values are missing."""
    console = _console()
    run = report.run
    console.print(f"run {run.run} · {visible(run.model.name)} · {visible(run.model.description)} · {run.state}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("task", no_wrap=True)
    for head in ("answers", "atoms", "right", *_RATE_HEADS.values()):
        table.add_column(head, justify="right", no_wrap=True)
    for task in report.tasks:
        table.add_row(
            task.task,
            f"{task.answers}/{task.planned}",
            str(task.atoms),
            str(task.correct),
            *(_number(task.values[rate]) for rate in RATES),
        )
    table.add_row("mean of tasks", "", "", "", *(_number(report.mean[rate].mean) for rate in RATES))
    console.print(table)
    for note in _notes(report):
        console.print(note)


def _console() -> Console:
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False, width=width)


def _number(value: Value) -> str:
    return "–" if value.value is None else f"{value.value:.3f}"


def _notes(report: RunReport) -> list[str]:
    notes = []
    for task in report.tasks:
        statuses = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in task.statuses.items())
        left_out = f"; {task.left_out} left out of every rate" if task.left_out else ""
        notes.append(f"{task.task}: {statuses or 'no answer yet'}{left_out}")
    for task in report.tasks:
        notes.extend(
            f"{task.task}: no {', '.join(_RATE_HEADS[rate] for rate in rates)}: {reason}"
            for reason, rates in _by_reason(task).items()
        )
    notes.append("ECE and AUROC: of atoms by raw max_probability. Lower ECE and redundancy are better,")
    notes.append("higher precision, recall and AUROC (0.5 is chance; micro: inside answers).")
    notes.extend(f"warning: {visible(warning)}" for warning in report.run.record.warnings)
    return notes


def _by_reason(task: TaskReport) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for rate, value in task.values.items():
        if value.reason is not None:
            reasons.setdefault(value.reason, []).append(rate)
    return reasons


def _rows_table(rows: tuple[ReportRow, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("unit", "confidence function", "map"):
        table.add_column(head, no_wrap=True)
    for head in ("n", *_TABLE_METRICS.values()):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        values = [_number(row.values[metric].mean) for metric in _TABLE_METRICS]
        table.add_row(row.granularity, row.function, row.calibrator, str(row.n), *values)
    return table


def _print_csv(rows: tuple[ReportRow, ...]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names = [name for name in row_data(rows[0]) if name not in {"reasons", "left_out"}]
    writer.writerow(names)
    for row in rows:
        data = row_data(row)
        writer.writerow(["" if data[name] is None else data[name] for name in names])


def _print_markdown(report: RunReport, rows: tuple[ReportRow, ...]) -> None:
    _markdown_table(
        ["task", "answers", "atoms", "right", *_RATE_HEADS.values()],
        [
            [task.task, f"{task.answers}/{task.planned}", str(task.atoms), str(task.correct)]
            + [_number(task.values[rate]) for rate in RATES]
            for task in report.tasks
        ],
    )
    print()
    _markdown_table(
        ["unit", "confidence function", "map", "n", *_TABLE_METRICS.values()],
        [
            [row.granularity, row.function, row.calibrator, str(row.n)]
            + [_mean(row.values[metric]) for metric in _TABLE_METRICS]
            for row in rows
        ],
    )


def _mean(mean: TaskMean) -> str:
    return _number(mean.mean)


def _markdown_table(heads: list[str], rows: list[list[str]]) -> None:
    for cells in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(cells)} |")
