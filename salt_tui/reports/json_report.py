"""A report as JSON-able data with the stable names of design 5; undefined is None and ``reasons`` says why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from salt_tui.measure.findings import CourseOfAnswers, atoms_against_lines
from salt_tui.measure.row_selection import RowSelection
from salt_tui.measure.rows import ReportRow
from salt_tui.measure.run_report import RATES, RunAnalyses, RunReport, TaskReport
from scoring.analyses_position import Curve
from scoring.benchmark_intervals import RESAMPLED
from scoring.correctness import TaskMean
from scoring.intervals import Interval
from scoring.value import json_number


def run_data(report: RunReport) -> dict[str, Any]:
    """Return the object of ``run`` and ``resume``."""
    model = report.run.model
    return {
        "run": report.run.run,
        "state": report.run.state,
        "message": report.run.message,
        "exact": report.run.record.exact,
        "warnings": list(report.run.record.warnings),
        "model": {
            "name": model.name,
            "description": model.description,
            "path": model.path,
            "sha256": model.sha256,
        },
        "plan": json.loads(report.run.record.plan),
        "tasks": {task.task: _task_data(task) for task in report.tasks},
        "mean": _means(report.mean),
    }


def report_data(
    report: RunReport, rows: Sequence[ReportRow], selection: RowSelection, analyses: RunAnalyses
) -> dict[str, Any]:
    """Return the object of ``report --format json``."""
    data = {
        **run_data(report),
        "rows": [row_data(row) for row in rows],
        "analyses": analyses_data(analyses),
        "draws": selection.rows.draws,
    }
    if selection.left_out:
        data["rows_left_out"] = {"count": selection.left_out, "reason": "not usual; --full measures every row"}
    return data


def row_data(row: ReportRow) -> dict[str, Any]:
    """Return one row of ``report``: means over tasks, their intervals, and what is not in them and why."""
    return {
        "granularity": row.granularity,
        "function": row.function,
        "calibrator": row.calibrator,
        **({} if row.part is None else {"part": row.part}),
        "n": row.n,
        "answers": row.answers,
        **_means(row.values),
        "reasons": {name: why(mean) for name, mean in row.values.items() if mean.mean.reason is not None},
        "intervals": {name: _ends(interval) for name, interval in row.intervals.items()},
        "units_left_out": dict(row.units_left_out),
        "auroc_micro_by_task": {
            task: {
                "generations": inside.generations,
                "left_out": inside.left_out,
                "pair_weighted": inside.pair_weighted.value,
            }
            for task, inside in ((name, found.inside) for name, found in row.tasks.items())
        },
        "winning_function": list(row.winning_function),
        "winning_map": list(row.winning_map),
        "best_function": list(row.best_function),
        "best_map": list(row.best_map),
        "notes": list(row.notes),
    }


def analyses_data(analyses: RunAnalyses) -> dict[str, Any]:
    """Return what the tables say about the course of an answer and about atoms, lines and whole answers.

    A number of a curve is None in a part without units.
    """
    course = analyses.course
    return {
        "position": _position(course),
        "history": _curve(course.history),
        "granularity": {
            "rows": [row_data(row) for row in analyses.granularities],
            "atoms_against_lines": {metric: _against_lines(analyses, metric) for metric in ("ece", "auroc")},
        },
    }


def row_record(row: ReportRow) -> dict[str, str | int | float | None]:
    """Return one row of ``report --format csv``; every row has the same names."""
    record: dict[str, str | int | float | None] = {
        "granularity": row.granularity,
        "function": row.function,
        "calibrator": row.calibrator,
        **({} if row.part is None else {"part": row.part}),
        "n": row.n,
        "answers": row.answers,
        **{name: json_number(mean.mean.value) for name, mean in row.values.items()},
    }
    for name in RESAMPLED:
        if name in row.values:
            interval = row.intervals.get(name)
            record[f"{name}_low"] = None if interval is None else interval.low
            record[f"{name}_high"] = None if interval is None else interval.high
    record["units_left_out"] = "; ".join(f"{reason}: {count}" for reason, count in row.units_left_out.items())
    record["reasons"] = "; ".join(
        f"{name}: {why(mean)}" for name, mean in row.values.items() if mean.mean.reason is not None
    )
    return record


def why(mean: TaskMean) -> str:
    """Return why no task has a value; the reason alone where all share it."""
    return "; ".join(dict.fromkeys(mean.left_out.values())) or mean.mean.reason or ""


def _position(course: CourseOfAnswers) -> dict[str, Any]:
    data = _curve(course.correctness)
    error = course.calibration
    nothing = [None] * len(data["n"])
    data["ece"] = list(error.mean) or nothing
    for task, curve in data["tasks"].items():
        curve["ece"] = list(error.tasks[task].value) if task in error.tasks else nothing
    return data


def _curve(curve: Curve) -> dict[str, Any]:
    units = [task.units for task in curve.tasks.values()]
    return {
        "edges": list(curve.edges),
        "n": [sum(counts) for counts in zip(*units, strict=True)] if units else [0] * len(curve.mean),
        "accuracy": list(curve.mean),
        "tasks": {name: {"n": list(task.units), "accuracy": list(task.value)} for name, task in curve.tasks.items()},
    }


def _against_lines(analyses: RunAnalyses, metric: str) -> dict[str, Any] | None:
    compared = atoms_against_lines(analyses.granularities, metric)
    if compared is None:
        return None
    means = compared.overall
    return {
        "tasks": means.pairs,
        "atoms": means.first.value,
        "lines": means.second.value,
        "p_atoms_better": means.p_first_better.value,
        "p_lines_better": means.p_second_better.value,
        **({} if means.first.reason is None else {"reason": means.first.reason}),
    }


def _ends(interval: Interval) -> list[float] | None:
    return None if interval.low is None or interval.high is None else [interval.low, interval.high]


def _task_data(task: TaskReport) -> dict[str, Any]:
    return {
        "answers": task.answers,
        "planned": task.planned,
        "left_out": task.left_out,
        "atoms": task.atoms,
        "correct": task.correct,
        "reference_atoms": task.reference_atoms,
        **{rate: task.values[rate].value for rate in RATES},
        "statuses": dict(task.statuses),
        "reasons": {rate: value.reason for rate, value in task.values.items() if value.reason is not None},
    }


def _means(values: Mapping[str, TaskMean]) -> dict[str, Any]:
    reasons = {name: mean.mean.reason for name, mean in values.items() if mean.mean.reason is not None}
    left_out = {name: dict(mean.left_out) for name, mean in values.items() if mean.left_out}
    return {
        **{name: json_number(mean.mean.value) for name, mean in values.items()},
        "reasons": reasons,
        "left_out": left_out,
    }
