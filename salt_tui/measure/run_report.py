"""What a run found: counts, rates and metrics per task and their mean, from the stored units (design 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from salt_tui.measure.findings import (
    CourseOfAnswers,
    course_of_answers,
    mean_confidences,
)
from salt_tui.measure.rates import RATES as UNIT_RATES
from salt_tui.measure.rates import Rates, measure_rates
from salt_tui.measure.row_selection import RowSelection
from salt_tui.measure.rows import (
    GRANULARITIES,
    USUAL,
    WHOLE,
    ReportRow,
    RowChoice,
    mark_best,
    measure_rows,
)
from salt_tui.measure.slices import slice_parts
from salt_tui.measure.task_scores import RAW
from salt_tui.store.queries import open_queries
from salt_tui.store.results import StoredRun, TaskCounts
from scoring.confidence import HEADLINE_FUNCTION
from scoring.correctness import TaskMean, mean_over_tasks
from scoring.value import Value, undefined

HEADLINE_METRICS = {"ece": "ece", "auroc_macro": "auroc", "auroc_micro": "auroc_micro"}
"""The metrics of raw `HEADLINE_FUNCTION` over atoms that stand beside the rates, by their names there."""

RATES = (*UNIT_RATES, *HEADLINE_METRICS)
"""The headline values of a task; ECE and AUROC are those of raw `HEADLINE_FUNCTION` over atoms."""

DIGEST_METRICS = ("accuracy", "ece", "brier", "nll", "auroc", "auroc_micro", "prr", "euro_auc")
"""What the tables of a digest show; the others are in the rows."""

GRANULARITY_METRICS = ("accuracy", "ece", "auroc", "auroc_micro", "prr")
"""What is compared between atoms, lines and whole answers."""

NO_FINISHED_ANSWER = "no finished answer"
NO_ANSWER_COUNTS = "no answer that counts"
"""All finished answers failed, were cancelled or ran out of context."""


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
class RunReport:
    """A whole run."""

    run: StoredRun
    tasks: tuple[TaskReport, ...]
    mean: Mapping[str, TaskMean]


@dataclass(frozen=True, slots=True)
class RunDigest:
    """What the default report shows.

    Attributes:
        report: counts and rates per task.
        rows: of atoms every function raw and by the usual map, and every map of the headline function; of lines and
            whole answers the headline function; with the best marked.
        rates: precision, recall and redundancy with intervals.
        says: mean raw headline function per task.
        course: how atoms change along an answer.
    """

    report: RunReport
    rows: tuple[ReportRow, ...]
    rates: Rates
    says: Mapping[str, float]
    course: CourseOfAnswers


@dataclass(frozen=True, slots=True)
class RunAnalyses:
    """What JSON adds to the chosen rows; always of the whole run.

    Attributes:
        course: how atoms change along an answer.
        granularities: raw headline function over atoms, lines and whole answers.
    """

    course: CourseOfAnswers
    granularities: tuple[ReportRow, ...]


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
        rates = measure_rates(columns, 0)
        (row,) = measure_rows(columns, RowChoice({HEADLINE_FUNCTION: (RAW,)}, tuple(HEADLINE_METRICS.values()), 0))
        tasks = tuple(_task_report(counts, rates, row) for counts in queries.task_counts(run))
        mean = {rate: mean_over_tasks({task.task: task.values[rate] for task in tasks}) for rate in RATES}
        return RunReport(queries.run_record(run), tasks, mean)


def report_rows(database: Path, run: int, choice: RowSelection) -> tuple[ReportRow, ...]:
    """Measure the chosen rows, those of a slice after each other.

    Raises:
        StoreError: no such file or run.
        UsageError: no column of that name to slice by.
    """
    found: list[ReportRow] = []
    with open_queries(database) as queries, queries.snapshot():
        for unit in choice.units:
            columns = queries.unit_columns(run, unit, choice.rows.functions)
            parts = (WHOLE,) if choice.by is None else slice_parts(queries, run, columns, choice.by)
            found.extend(measure_rows(columns, choice.rows, parts))
    return mark_best(found)


def report_digest(database: Path, report: RunReport, draws: int) -> RunDigest:
    """Measure what answers the questions of a report: how right, how calibrated, by which signal, where it breaks.

    Args:
        database: the file.
        report: of the run.
        draws: bootstrap resamples; 0 for no intervals.

    Raises:
        StoreError: the file cannot be read.
    """
    rows: list[ReportRow] = []
    with open_queries(database) as queries, queries.snapshot():
        for unit in GRANULARITIES:
            columns = queries.unit_columns(report.run.run, unit)
            maps = USUAL if unit == "atom" else {HEADLINE_FUNCTION: (RAW,)}
            rows.extend(measure_rows(columns, RowChoice(maps, DIGEST_METRICS, draws)))
            if unit == "atom":
                atoms = columns
    return RunDigest(
        report=report,
        rows=mark_best(rows),
        rates=measure_rates(atoms, draws),
        says=mean_confidences(atoms),
        course=course_of_answers(atoms),
    )


def report_analyses(database: Path, run: int, draws: int) -> RunAnalyses:
    """Measure the course of answers, and atoms beside lines and whole answers.

    Args:
        database: the file.
        run: its number.
        draws: bootstrap resamples; 0 for no intervals.

    Raises:
        StoreError: no such file or run.
    """
    choice = RowChoice({HEADLINE_FUNCTION: (RAW,)}, GRANULARITY_METRICS, draws, ("ece", "auroc"))
    with open_queries(database) as queries, queries.snapshot():
        found = {unit: queries.unit_columns(run, unit, (HEADLINE_FUNCTION,)) for unit in GRANULARITIES}
    rows = tuple(row for columns in found.values() for row in measure_rows(columns, choice))
    return RunAnalyses(course_of_answers(found["atom"]), rows)


def _task_report(counts: TaskCounts, rates: Rates, row: ReportRow) -> TaskReport:
    if counts.done <= counts.left_out:
        values = dict.fromkeys(RATES, undefined(NO_ANSWER_COUNTS if counts.done else NO_FINISHED_ANSWER))
    else:
        units, metrics = rates.tasks[counts.task].counts, row.tasks[counts.task].values
        values = {
            "precision": units.precision,
            "recall": units.recall,
            "redundancy": units.redundancy,
            **{name: metrics[metric] for name, metric in HEADLINE_METRICS.items()},
        }
    return TaskReport(
        task=counts.task,
        answers=counts.done,
        planned=counts.answers,
        left_out=counts.left_out,
        atoms=counts.atoms,
        correct=counts.correct,
        reference_atoms=counts.reference_atoms,
        values=values,
        statuses=dict(counts.statuses),
    )
