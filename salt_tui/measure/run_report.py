"""What a run found: counts, rates and metrics per task and their mean, from the stored units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from salt_tui.measure.analyses import RunAnalyses, analyse_run
from salt_tui.measure.choices import ChoiceReport, measure_choices
from salt_tui.measure.conclusions import conclude_functions, conclude_maps, judge_kinds
from salt_tui.measure.course import CourseOfAnswers, course_of_answers, mean_confidences
from salt_tui.measure.findings import (
    Finding,
    calibrated_finding,
    function_finding,
    history_finding,
    map_finding,
    position_finding,
    right_finding,
    undecided,
    unit_finding,
)
from salt_tui.measure.header import RunHeader, run_header
from salt_tui.measure.rates import RATES as UNIT_RATES
from salt_tui.measure.rates import Rates, measure_rates
from salt_tui.measure.row_selection import RowSelection
from salt_tui.measure.rows import GRANULARITIES, MAPS, WHOLE, ReportRow, RowChoice, measure_rows
from salt_tui.measure.slices import slice_parts
from salt_tui.measure.task_scores import RAW, task_units
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitKind
from salt_tui.store.results import StoredRun, TaskCounts, UnitColumns
from scoring.choosing import UnitComparison
from scoring.conclusions import Conclusion
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION
from scoring.correctness import TaskMean, mean_over_tasks
from scoring.value import Value, undefined

HEADLINE_METRICS = {"ece": "ece", "auroc_macro": "auroc", "auroc_micro": "auroc_micro"}
"""The metrics of raw `HEADLINE_FUNCTION` over atoms that stand beside the rates, by their names there."""

RATES = (*UNIT_RATES, *HEADLINE_METRICS)
"""The headline values of a task; ECE and AUROC are those of raw `HEADLINE_FUNCTION` over atoms."""

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
    """A whole run in its headline values."""

    run: StoredRun
    header: RunHeader
    tasks: tuple[TaskReport, ...]
    mean: Mapping[str, TaskMean]


@dataclass(frozen=True, slots=True)
class FullReport:
    """Everything that a report in any format shows.

    Attributes:
        summary: counts and headline values per task.
        selection: what was asked for.
        rows: the chosen rows; without a choice the usual ones.
        rows_left_out: rows of the full report that are not among them because they are not usual.
        rates: precision, recall and redundancy of atoms with intervals.
        says: mean raw headline function over atoms, per task.
        course: how atoms change along an answer.
        findings: one per question, in the order of a report.
        unknown: what the run leaves open and how many more problems would tell; empty where there is nothing.
        conclusions: what the findings rest on; None without resamples.
        analyses: what takes all texts and tokens; None unless it was asked for.
        choices: all options of multiple-choice problems; None where there are none.
    """

    summary: RunReport
    selection: RowSelection
    rows: tuple[ReportRow, ...]
    rows_left_out: int
    rates: Rates
    says: Mapping[str, float]
    course: CourseOfAnswers
    findings: tuple[Finding, ...]
    unknown: str
    conclusions: Conclusions | None
    analyses: RunAnalyses | None
    choices: ChoiceReport | None = None

    def row(self, unit: str, function: str, name: str) -> ReportRow | None:
        """Return the row of a granularity, function and map; None if it was not measured."""
        known = {(row.granularity, row.function, row.calibrator): row for row in self.rows}
        return known.get((unit, function, name))

    def finding(self, question: str) -> Finding | None:
        """Return the finding of a question."""
        return next((finding for finding in self.findings if finding.question == question), None)


def report_run(database: Path, name: str) -> RunReport:
    """Measure a run, finished or not.

    Args:
        database: the file.
        name: number of the run or ``latest``.

    Raises:
        StoreError: no such file or run.
    """
    with open_queries(database) as queries, queries.snapshot():
        run = queries.find_run(name)
        return _summary(queries, run, queries.unit_columns(run, "atom", (HEADLINE_FUNCTION,)))


def measure_report(database: Path, name: str, selection: RowSelection) -> FullReport:
    """Measure everything that a report shows.

    Args:
        database: the file.
        name: number of the run or ``latest``.
        selection: which rows, how many resamples.

    Raises:
        StoreError: no such file or run.
        UsageError: no column of that name to slice by.
    """
    with open_queries(database) as queries, queries.snapshot():
        run = queries.find_run(name)
        known = {unit: functions_of(queries, run, unit) for unit in GRANULARITIES}
        selection.check_functions(dict.fromkeys(function for names in known.values() for function in names))
        columns: dict[str, UnitColumns] = {unit: queries.unit_columns(run, unit, known[unit]) for unit in GRANULARITIES}
        summary = _summary(queries, run, columns["atom"])
        rows: list[ReportRow] = []
        for unit in selection.units:
            parts = (WHOLE,) if selection.by is None else slice_parts(queries, run, columns[unit], selection.by)
            rows.extend(measure_rows(columns[unit], selection.choice(unit, known[unit]), parts))
        atoms = columns["atom"]
        rates = measure_rates(atoms)
        analyses = analyse_run(queries, run, atoms, rates, selection.draws) if selection.analyses else None
        choices = measure_choices(queries, run, selection.draws)
    left_out = sum(selection.left_out(unit, known[unit]) for unit in selection.units)
    says, course = mean_confidences(atoms), course_of_answers(atoms)
    findings, unknown, found = measure_findings(columns, rates, says, course, selection.draws)
    return FullReport(
        summary, selection, tuple(rows), left_out, rates, says, course, findings, unknown, found, analyses, choices
    )


def functions_of(queries: Queries, run: int, unit: UnitKind) -> tuple[str, ...]:
    """Return the confidence functions of units of one granularity, and the signals about them by their names."""
    signals = (signal.shown for signal in queries.signal_names(run) if unit in signal.kinds)
    return (*CONFIDENCE_FUNCTIONS, *signals)


@dataclass(frozen=True, slots=True)
class Conclusions:
    """What can be told apart on a run; the head of a report says it, its tables show it.

    Attributes:
        functions: of the confidence functions, by AUROC over atoms.
        maps: of the calibration maps of the headline function, raw scores among them, by Brier over atoms.
        units: of atoms, lines and whole answers, each by the function that is best on other answers.
    """

    functions: Conclusion
    maps: Conclusion
    units: UnitComparison


def measure_findings(
    columns: Mapping[str, UnitColumns],
    rates: Rates,
    says: Mapping[str, float],
    course: CourseOfAnswers,
    draws: int,
) -> tuple[tuple[Finding, ...], str, Conclusions | None]:
    """Return what may be said of a run, question by question, what is not known, and what the former rests on.

    Args:
        columns: its units by granularity, each with all functions and signals.
        rates: of its atoms.
        says: mean raw headline function over atoms, per task.
        course: how its atoms change along an answer.
        draws: resamples; without any, nothing is compared.
    """
    right = right_finding(rates)
    along = (position_finding(course.ends), history_finding(course.before))
    if not draws:
        return (right, *along), "", None
    atoms = columns["atom"]
    said, share = stated_and_right(rates, says)
    found = Conclusions(
        functions=conclude_functions(atoms, tuple(atoms.confidences), draws),
        maps=conclude_maps(atoms, HEADLINE_FUNCTION, MAPS, draws),
        units=_judge_units(columns),
    )
    known = _judge_atoms(atoms, found.units)
    findings = (
        right,
        calibrated_finding(known, _atoms_in(atoms, known.tasks), said, share),
        function_finding(found.functions),
        map_finding(found.maps, said, share),
        *along,
        unit_finding(found.units, _atoms_in(atoms, found.units.tasks)),
    )
    unknown = undecided({"Which function ranks best": found.functions, "Which map is best": found.maps})
    return findings, unknown, found


def stated_and_right(rates: Rates, says: Mapping[str, float]) -> tuple[float | None, float | None]:
    """Return mean raw headline confidence and share of right atoms over the same tasks; None where no task has one.

    Args:
        rates: of the atoms.
        says: mean raw headline function over atoms, per task.
    """
    if not says:
        return None, None
    right = mean_over_tasks({task: rates.tasks[task].counts.precision for task in says})
    return sum(says.values()) / len(says), right.mean.value


def _atoms_in(atoms: UnitColumns, tasks: Sequence[str]) -> int:
    return sum(int(task_units(atoms, task).rows.size) for task in tasks)


def _judge_atoms(atoms: UnitColumns, units: UnitComparison) -> UnitComparison:
    """Judge atoms on all tasks that have right and wrong ones; by the comparison of units where it rests on the same.

    Another draw of splits would give the same units a second interval.
    """
    if not units.tasks_left_out:
        return units
    alone = judge_kinds({"atom": atoms})
    return units if alone.tasks == units.tasks else alone


def _judge_units(columns: Mapping[str, UnitColumns]) -> UnitComparison:
    """Compare all kinds of units; without whole answers where too few are right for half of the other tasks."""
    every = judge_kinds(columns)
    parts = judge_kinds({kind: found for kind, found in columns.items() if kind != "generation"})
    return every if 2 * len(every.tasks) >= len(parts.tasks) else parts


def _summary(queries: Queries, run: int, atoms: UnitColumns) -> RunReport:
    rates = measure_rates(atoms)
    (row,) = measure_rows(atoms, RowChoice({HEADLINE_FUNCTION: (RAW,)}, tuple(HEADLINE_METRICS.values()), 0))
    tasks = tuple(_task_report(counts, rates, row) for counts in queries.task_counts(run))
    mean = {rate: mean_over_tasks({task.task: task.values[rate] for task in tasks}) for rate in RATES}
    stored = queries.run_record(run)
    return RunReport(stored, run_header(stored, queries.path, queries.studies(run)), tasks, mean)


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
