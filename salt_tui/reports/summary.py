"""What ends a run: a table of tasks, what was left out, and why values are missing."""

from __future__ import annotations

from collections.abc import Mapping

from salt_tui.measure.run_report import RATES, RunReport, TaskReport
from salt_tui.measure.spread import Spread
from salt_tui.reports.cells import is_partial, mean_cell
from salt_tui.reports.question_tables import MEAN
from salt_tui.reports.text_tables import PARTIAL, TextTable, number, value_text
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION

_HEADS = {
    "precision": "prec.",
    "recall": "recall",
    "redundancy": "redun.",
    "ece": "ECE",
    "auroc_macro": "AUROC",
    "auroc_micro": "micro",
}


def summary_table(report: RunReport) -> TextTable:
    """Return all rates of every task."""
    rows = [
        (
            task.task,
            f"{task.answers}/{task.planned}",
            str(task.atoms),
            str(task.correct),
            *(value_text(task.values[rate]) for rate in RATES),
        )
        for task in report.tasks
    ]
    rows.append((MEAN, "", "", "", *(mean_cell(report.mean[rate]) for rate in RATES)))
    return TextTable("", ("task", "answers", "atoms", "right", *_HEADS.values()), tuple(rows), extra=("right", "micro"))


def summary_notes(report: RunReport) -> list[str]:
    """Return what was left out, why values are missing, and how to read the rates."""
    notes = left_out_notes(report)
    for task in report.tasks:
        notes.extend(
            f"{task.task}: no {', '.join(_HEADS[rate] for rate in rates)}: {reason}"
            for reason, rates in _by_reason(task).items()
        )
    if any(is_partial(mean) for mean in report.mean.values()):
        notes.append(f"{PARTIAL} mean of the other tasks")
    notes.append(
        f"ECE and AUROC: of atoms by raw {HEADLINE_FUNCTION}. Lower ECE and redundancy are better, higher precision,"
        " recall and AUROC (0.5 is chance; micro: inside answers)."
    )
    notes.extend(warnings(report))
    return notes


def spread_table(model: str, spread: Mapping[str, Spread]) -> TextTable:
    """Return how far the repeats of one model spread."""
    rows = tuple(
        (_HEADS[rate], str(found.runs), *map(number, (found.mean, found.deviation, found.lowest, found.highest)))
        for rate, found in spread.items()
    )
    heads = ("", "runs", "mean", "± between runs", "lowest", "highest")
    return TextTable(f"{visible(model)}: spread between runs with other sampler seeds", heads, rows)


def warnings(report: RunReport) -> list[str]:
    """Return the warnings of a run."""
    return [f"warning: {visible(warning)}" for warning in report.run.record.warnings]


def left_out_notes(report: RunReport, *, brief: bool = False) -> list[str]:
    """Return what became of the answers of every task; briefly: only where not all are complete."""
    notes = []
    for task in report.tasks:
        if brief and dict(task.statuses) == {"complete": task.planned}:
            continue
        statuses = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in task.statuses.items())
        left_out = f"; {task.left_out} left out of every rate" if task.left_out else ""
        notes.append(f"{visible(task.task)}: {statuses or 'no answer yet'}{left_out}")
    return notes


def _by_reason(task: TaskReport) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for rate, value in task.values.items():
        if value.reason is not None:
            reasons.setdefault(value.reason, []).append(rate)
    return reasons
