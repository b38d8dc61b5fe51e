"""A report as JSON-able data with the stable names of design 5; undefined is None and ``reasons`` says why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from salt_tui.runner.report import RATES, ReportRow, RunReport, TaskReport
from scoring.correctness import TaskMean


def run_data(report: RunReport) -> dict[str, Any]:
    """Return the object of ``run`` and ``resume``."""
    model = report.run.model
    return {
        "run": report.run.run,
        "state": report.run.state,
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


def report_data(report: RunReport, rows: Sequence[ReportRow]) -> dict[str, Any]:
    """Return the object of ``report --format json``."""
    return {**run_data(report), "rows": [row_data(row) for row in rows]}


def row_data(row: ReportRow) -> dict[str, Any]:
    """Return one row of ``report``."""
    return {
        "granularity": row.granularity,
        "function": row.function,
        "calibrator": row.calibrator,
        "n": row.n,
        **_means(row.values),
    }


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
    return {**{name: mean.mean.value for name, mean in values.items()}, "reasons": reasons, "left_out": left_out}
