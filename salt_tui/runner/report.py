"""What a run found: counts, rates and metrics per task and their mean, from the stored units (design 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitKind
from salt_tui.store.results import StoredRun, TaskCounts, UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION
from scoring.correctness import TaskMean, UnitCounts, mean_over_tasks
from scoring.metrics import METRICS, evaluate_units
from scoring.scored_units import ScoredUnits
from scoring.value import Value

RATES = ("precision", "recall", "redundancy", "ece", "auroc_macro", "auroc_micro")
"""The headline values of a task; ECE and AUROC are those of raw `HEADLINE_FUNCTION` over atoms."""

GRANULARITIES: tuple[UnitKind, ...] = ("atom", "line", "generation")

_IN_CONFIDENCE = tuple(UNIT_STATUSES.index(status) for status in ("correct", "wrong", "redundant"))
"""Missing units have no confidence and abstained ones are left out of it (spec 2)."""

_CORRECT = UNIT_STATUSES.index("correct")


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task of a run.

    Attributes:
        answers: finished answers.
        planned: answers asked for.
        left_out: finished answers that count nowhere: failed, cancelled or out of context.
        atoms: generated atoms of the answers that count.
        correct: those that are right.
        reference_atoms: atoms of the right answers.
        values: by name, see `RATES`.
        statuses: finished answers by answer status.
    """

    task: str
    answers: int
    planned: int
    left_out: int
    atoms: int
    correct: int
    reference_atoms: int
    values: Mapping[str, Value]
    statuses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReportRow:
    """Every metric of one confidence function at one granularity: means over tasks, each task equal.

    Attributes:
        granularity: ``atom``, ``line`` or ``generation``.
        function: name of the confidence function.
        calibrator: name of the calibration map, ``none`` for raw scores.
        n: units of all tasks.
        values: by name of `scoring.metrics.METRICS`.
    """

    granularity: str
    function: str
    calibrator: str
    n: int
    values: Mapping[str, TaskMean]


@dataclass(frozen=True, slots=True)
class RunReport:
    """A whole run."""

    run: StoredRun
    tasks: tuple[TaskReport, ...]
    mean: Mapping[str, TaskMean]


def report_run(database: Path, name: str) -> RunReport:
    """Measure a run, finished or not.

    Args:
        database: the file.
        name: number of the run or ``latest``.

    Raises:
        StoreError: no such file or run.
    """
    with open_queries(database) as queries:
        run = queries.find_run(name)
        columns = queries.unit_columns(run, "atom", (HEADLINE_FUNCTION,))
        tasks = tuple(_task_report(counts, columns) for counts in queries.task_counts(run))
        mean = {rate: mean_over_tasks({task.task: task.values[rate] for task in tasks}) for rate in RATES}
        return RunReport(queries.run_record(run), tasks, mean)


def report_rows(database: Path, run: int) -> tuple[ReportRow, ...]:
    """Measure every confidence function at every granularity, on raw scores."""
    with open_queries(database) as queries:
        return tuple(
            _row(columns, function)
            for columns in _columns_by_granularity(queries, run)
            for function in CONFIDENCE_FUNCTIONS
        )


def _columns_by_granularity(queries: Queries, run: int) -> list[UnitColumns]:
    return [queries.unit_columns(run, kind) for kind in GRANULARITIES]


def _task_report(counts: TaskCounts, columns: UnitColumns) -> TaskReport:
    units = UnitCounts(counts.correct, counts.wrong, counts.missing, counts.redundant, counts.abstained)
    metrics = evaluate_units(_scored_units(columns, counts.task, HEADLINE_FUNCTION), ("ece", "auroc", "auroc_micro"))
    return TaskReport(
        task=counts.task,
        answers=counts.done,
        planned=counts.answers,
        left_out=counts.left_out,
        atoms=units.generated,
        correct=units.correct,
        reference_atoms=counts.reference_atoms,
        values={
            "precision": units.precision,
            "recall": units.recall,
            "redundancy": units.redundancy,
            "ece": metrics["ece"],
            "auroc_macro": metrics["auroc"],
            "auroc_micro": metrics["auroc_micro"],
        },
        statuses=dict(counts.statuses),
    )


def _scored_units(columns: UnitColumns, task: str, function: str) -> ScoredUnits:
    here = np.isin(columns.status, _IN_CONFIDENCE)
    if task in columns.task_names:
        here &= columns.task == columns.task_names.index(task)
    else:
        here &= False
    scores = CONFIDENCE_FUNCTIONS[function].oriented(columns.confidences[function][here])
    return ScoredUnits.from_columns(scores, columns.status[here] == _CORRECT, columns.generation[here])


def _row(columns: UnitColumns, function: str) -> ReportRow:
    probability = not CONFIDENCE_FUNCTIONS[function].needs_calibration
    by_task = {
        task: evaluate_units(_scored_units(columns, task, function), probability=probability)
        for task in columns.task_names
    }
    return ReportRow(
        granularity=columns.kind,
        function=function,
        calibrator="none",
        n=int(np.isin(columns.status, _IN_CONFIDENCE).sum()),
        values={
            metric: mean_over_tasks({task: values[metric] for task, values in by_task.items()}) for metric in METRICS
        },
    )
