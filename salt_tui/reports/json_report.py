"""A report as JSON-able data with stable names; undefined is None and ``reasons`` says why, infinite is a text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from salt_tui.measure.analyses import RunAnalyses
from salt_tui.measure.choices import RAW, SCALED, ChoiceReport, TaskChoices
from salt_tui.measure.course import CourseOfAnswers
from salt_tui.measure.findings import Finding
from salt_tui.measure.header import RunHeader
from salt_tui.measure.rates import Rates
from salt_tui.measure.rows import ReportRow
from salt_tui.measure.run_report import RATES, FullReport, RunReport, TaskReport
from salt_tui.reports.analysis_tables import analyses_data
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
        "header": header_data(report.header),
        "plan": json.loads(report.run.record.plan),
        "tasks": {task.task: _task_data(task) for task in report.tasks},
        "mean": _means(report.mean),
    }


def report_data(report: FullReport) -> dict[str, Any]:
    """Return the object of ``report --format json``."""
    data = {
        **run_data(report.summary),
        "findings": [finding_data(finding) for finding in report.findings],
        "unknown": report.unknown or None,
        "rates": rates_data(report.rates),
        "rows": [row_data(row) for row in report.rows],
        "analyses": {
            "position": _position(report.course),
            "density": _curve(report.course.density, "density"),
            "redundancy_by_position": _curve(report.course.redundancy, "redundancy"),
            "history": _curve(report.course.history, "accuracy"),
            **_further(report.analyses),
        },
        **choice_data(report.choices),
        "draws": report.selection.draws,
    }
    if report.rows_left_out:
        data["rows_left_out"] = {
            "count": report.rows_left_out,
            "reason": "not usual; --full measures every row",
        }
    return data


def _further(analyses: RunAnalyses | None) -> dict[str, Any]:
    """Return what ``--analyses`` adds."""
    if analyses is None:
        return {}
    return {**analyses_data(analyses), "parts": [row_data(row) for row in analyses.parts]}


def choice_data(report: ChoiceReport | None) -> dict[str, Any]:
    """Return ``choices`` of ``report --format json``; nothing for a run without such problems."""
    if report is None:
        return {}
    return {
        "choices": {
            "tasks": {task: _choices_of_task(found) for task, found in report.tasks.items()},
            "mean": {
                kind: {name: json_number(mean.mean.value) for name, mean in report.means[kind].items()}
                | {"interval": ends(report.intervals[kind]) if kind in report.intervals else None}
                for kind in (RAW, SCALED)
            },
        }
    }


def _choices_of_task(found: TaskChoices) -> dict[str, Any]:
    return {
        "n": found.n,
        "left_out": dict(found.left_out),
        "letters": found.letters,
        **{
            kind: {name: json_number(value.value) for name, value in found.values[kind].items()}
            | {
                "interval": ends(found.intervals[kind]) if kind in found.intervals else None,
                "reasons": {name: value.reason for name, value in found.values[kind].items() if value.reason},
            }
            for kind in (RAW, SCALED)
        },
        "fitted_temperature": found.temperature,
        "notes": list(found.notes),
    }


def header_data(header: RunHeader) -> dict[str, Any]:
    """Return what shaped a run, with the names of ``runs``."""
    return {
        "run": header.run,
        "model": header.model,
        "description": header.description,
        "state": header.state,
        "created_at": header.created_at,
        "finished_at": header.finished_at,
        "difficulty": header.difficulty,
        "method": header.method,
        "shots": header.shots,
        "seed": header.seed,
        "sampling": dict(header.sampling),
        "width": header.width,
        "context": header.context,
        "device": header.device,
        "statistics": header.statistics,
        "exact": header.exact,
        "tasks": list(header.tasks),
        "answers": header.answers,
        "note": header.note,
        "studies": [{"study": str(study.work), "kind": study.kind, "state": study.state} for study in header.studies],
        "model_identity": header.model_identity,
        "model_sha256": header.model_sha256,
        "plan_hash": header.plan_hash,
        "environment_hash": header.environment_hash,
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return the answer to one question."""
    return {
        "question": finding.question,
        "sentence": finding.sentence,
        "best": list(finding.best),
        "n": finding.n,
        "answers": finding.answers,
        "tasks": list(finding.tasks),
        "reasons": dict(finding.reasons),
    }


def rates_data(rates: Rates) -> dict[str, Any]:
    """Return intervals of precision, recall and redundancy, of every task and of their mean."""
    return {
        "tasks": {
            task: {name: {"value": rate.value, "interval": ends(rate.interval)} for name, rate in found.rates.items()}
            for task, found in rates.tasks.items()
        },
        "mean": {
            name: {"value": mean.mean.value, "interval": ends(rates.intervals[name])}
            for name, mean in rates.means.items()
        },
    }


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
        "intervals": {name: ends(interval) for name, interval in row.intervals.items()},
        "units_left_out": dict(row.units_left_out),
        "auroc_micro_by_task": {
            task: {
                "generations": inside.generations,
                "left_out": inside.left_out,
                "pair_weighted": inside.pair_weighted.value,
            }
            for task, inside in ((name, found.inside) for name, found in row.tasks.items())
        },
        "notes": list(row.notes),
    }


def row_record(summary: RunReport, row: ReportRow) -> dict[str, str | int | float | None]:
    """Return one row of ``report --format csv``; every row has the same names and says what shaped its run."""
    header = summary.header
    record: dict[str, str | int | float | None] = {
        "run": header.run,
        "model": header.model,
        "difficulty": header.difficulty,
        "method": header.method,
        "shots": header.shots,
        "seed": header.seed,
        "sampling": header.sampling_words,
        "width": header.width,
        "created_at": header.created_at,
        "plan_hash": header.plan_hash,
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
    data = _curve(course.correctness, "accuracy")
    error = course.calibration
    nothing = [None] * len(data["n"])
    data["ece"] = list(error.mean) or nothing
    for task, curve in data["tasks"].items():
        curve["ece"] = list(error.tasks[task].value) if task in error.tasks else nothing
    return data


def _curve(curve: Curve, value: str) -> dict[str, Any]:
    """Return a curve whose values are called ``value``."""
    units = [task.units for task in curve.tasks.values()]
    return {
        "edges": list(curve.edges),
        "n": [sum(counts) for counts in zip(*units, strict=True)] if units else [0] * len(curve.mean),
        value: list(curve.mean),
        "tasks": {name: {"n": list(task.units), value: list(task.value)} for name, task in curve.tasks.items()},
    }


def ends(interval: Interval) -> list[float] | None:
    """Return both ends, None where there is no interval."""
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
