"""The rows of a report: every metric per granularity, confidence function and calibration map, as means over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.draws import draws_of
from salt_tui.measure.task_scores import (
    RAW,
    FloatArray,
    TaskScores,
    TaskUnits,
    calibrated_scores,
    measure,
    measure_inside_answers,
    raw_scores,
    resample,
    task_units,
)
from salt_tui.store.records import UnitKind
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.benchmark_intervals import RESAMPLED
from scoring.calibrators import CALIBRATORS
from scoring.correctness import TaskMean, mean_over_tasks
from scoring.intervals import DRAWS, AnswerClasses, Interval, ResampledMetric, mean_interval, metric_interval
from scoring.metrics import METRICS
from scoring.ranking import MicroAuroc
from scoring.value import Value

GRANULARITIES: tuple[UnitKind, ...] = ("atom", "line", "generation")

MAPS: tuple[str, ...] = (RAW, *CALIBRATORS)
"""Raw scores and every registered map."""

USUAL_MAP = "isotonic"
"""The map by which functions that are no probabilities can be compared in calibration."""

USUAL_INTERVALS: tuple[str, ...] = ("accuracy", "ece", "brier", "nll", "auroc", "auroc_micro", "prr")
"""The metrics that have an interval in the usual rows; in chosen ones all of `RESAMPLED` have."""

NO_CONFIDENCE = "no confidence"


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which rows are measured, with which metrics and intervals.

    Attributes:
        maps: per confidence function the names of its maps, `RAW` for raw scores.
        metrics: names of `METRICS`.
        draws: bootstrap resamples of the answers of a task; 0 for no intervals.
        with_interval: metrics that get one, of those that can.
    """

    maps: Mapping[str, tuple[str, ...]]
    metrics: tuple[str, ...] = tuple(METRICS)
    draws: int = DRAWS
    with_interval: tuple[str, ...] = RESAMPLED

    @property
    def resampled(self) -> tuple[str, ...]:
        """The measured metrics that get an interval."""
        return tuple(name for name in self.metrics if name in self.with_interval) if self.draws else ()

    @property
    def functions(self) -> tuple[str, ...]:
        """The confidence functions."""
        return tuple(self.maps)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """What one task contributes to a row.

    Attributes:
        n: units with a score.
        answers: answers that these come from.
        values: by name of `scoring.metrics.METRICS`.
        intervals: over the answers of this task alone, for the metrics that were resampled and have a value.
        inside: what micro AUROC is made of.
    """

    n: int
    answers: int
    values: Mapping[str, Value]
    intervals: Mapping[str, Interval]
    inside: MicroAuroc


@dataclass(frozen=True, slots=True)
class ReportRow:
    """Every metric of one confidence function and map at one granularity: means over tasks, each task equal.

    Attributes:
        granularity: ``atom``, ``line`` or ``generation``.
        function: name of the confidence function.
        calibrator: name of the calibration map, ``none`` for raw scores.
        part: value of the column that the report is sliced by; None for the whole.
        n: units of all tasks with a score.
        answers: answers that these units come from.
        values: by name of `scoring.metrics.METRICS`.
        tasks: what every task contributes.
        intervals: of the means, for the metrics that have one.
        units_left_out: how many units are not in `n`, by reason; none where it is 0.
        notes: what the fits of the map had to say, with the task.
    """

    granularity: str
    function: str
    calibrator: str
    part: str | None
    n: int
    answers: int
    values: Mapping[str, TaskMean]
    tasks: Mapping[str, TaskRow]
    intervals: Mapping[str, Interval]
    units_left_out: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A slice of the units of a run; the mask is over its columns."""

    label: str | None
    mask: NDArray[np.bool_] | None


WHOLE = Part(None, None)


def measure_rows(columns: UnitColumns, choice: RowChoice, parts: Sequence[Part] = (WHOLE,)) -> tuple[ReportRow, ...]:
    """Measure every chosen row of one granularity, function by function, map by map.

    Args:
        columns: the units of the run at this granularity, with the chosen functions.
        choice: what to measure.
        parts: slices of the units; maps are fitted on the whole run in any case.

    Raises:
        ValueError: for the name of a map; names the nearest.
    """
    tasks = [task_units(columns, task) for task in columns.task_names]
    draws = {units.task: draws_of(units.task, units.generations, choice.draws) for units in tasks}
    return tuple(
        row
        for function in choice.functions
        for row in _rows_of_function(columns, tasks, draws, function, choice, parts)
    )


def _rows_of_function(
    columns: UnitColumns,
    tasks: Sequence[TaskUnits],
    draws: Mapping[str, FloatArray],
    function: str,
    choice: RowChoice,
    parts: Sequence[Part],
) -> list[ReportRow]:
    raw = {units.task: raw_scores(columns, units, function) for units in tasks}
    known = [
        {task: _measure_task(_part(scores, part), draws[task], choice) for task, scores in raw.items()}
        for part in parts
    ]
    rows = []
    for name in choice.maps[function]:
        mapped = {task: calibrated_scores(scores, name) for task, scores in raw.items()}
        for part, raw_cells in zip(parts, known, strict=True):
            cells = raw_cells
            if name != RAW:
                cells = {
                    task: _measure_map(
                        _part(scores, part), draws[task], choice, raw_cells[task], scores.ranking is raw[task].ranking
                    )
                    for task, scores in mapped.items()
                }
            rows.append(_row(columns, function, name, part, cells, mapped, choice))
    return rows


def _part(scores: TaskScores, part: Part) -> TaskScores:
    return scores if part.mask is None else scores.part(part.mask)


@dataclass(frozen=True, slots=True)
class _Cell:
    """One task under one function and map, with its resamples, which no row keeps: those of all rows fill memory."""

    n: int
    answers: int
    values: Mapping[str, Value]
    draws: Mapping[str, FloatArray]
    classes: AnswerClasses
    inside: MicroAuroc

    def resampled(self, metric: str) -> ResampledMetric:
        """Return a metric with its resamples."""
        return ResampledMetric(metric, self.values[metric], self.draws[metric], self.classes)

    def row(self) -> TaskRow:
        """Return the numbers with their intervals."""
        intervals = {
            metric: metric_interval(self.resampled(metric))
            for metric in self.draws
            if self.values[metric].value is not None
        }
        return TaskRow(self.n, self.answers, self.values, intervals, self.inside)


def _measure_task(scores: TaskScores, draws: FloatArray, choice: RowChoice) -> _Cell:
    return _Cell(
        int(scores.correct.size),
        int(np.unique(scores.generation).size),
        measure(scores, choice.metrics),
        resample(scores, draws, choice.resampled),
        AnswerClasses.of(scores.correct, scores.generation),
        measure_inside_answers(scores),
    )


def _measure_map(scores: TaskScores, draws: FloatArray, choice: RowChoice, raw: _Cell, same_order: bool) -> _Cell:
    """Measure what a map changes; the metrics of the order are those of the raw scores where it keeps it."""
    if scores.confidence is None or not same_order:
        return _measure_task(scores, draws, choice)
    changed = replace(choice, metrics=tuple(name for name in choice.metrics if not METRICS[name].ranks_only))
    values = {**raw.values, **measure(scores, changed.metrics)}
    kept = {name: column for name, column in raw.draws.items() if METRICS[name].ranks_only}
    return replace(
        raw,
        values={name: values[name] for name in choice.metrics},
        draws={**kept, **resample(scores, draws, changed.resampled)},
    )


def _row(
    columns: UnitColumns,
    function: str,
    name: str,
    part: Part,
    cells: Mapping[str, _Cell],
    mapped: Mapping[str, TaskScores],
    choice: RowChoice,
) -> ReportRow:
    # A slice has no units of some tasks at all; those are no part of its means, and nothing to be named.
    present = {task: cell for task, cell in cells.items() if part.mask is None or cell.n}
    answers = sum(cell.answers for cell in present.values())
    return ReportRow(
        granularity=columns.kind,
        function=function,
        calibrator=name,
        part=part.label,
        n=sum(cell.n for cell in present.values()),
        answers=answers,
        values={
            metric: mean_over_tasks({task: cell.values[metric] for task, cell in present.items()})
            for metric in choice.metrics
        },
        tasks={task: cell.row() for task, cell in present.items()},
        intervals=_intervals(present, choice),
        units_left_out=_left_out(columns, function, part),
        notes=tuple(f"{task}: {note}" for task, scores in mapped.items() for note in scores.notes),
    )


def _intervals(cells: Mapping[str, _Cell], choice: RowChoice) -> dict[str, Interval]:
    """Return the interval of the mean over tasks; answers are drawn inside each task."""
    found = {}
    for metric in choice.resampled:
        tasks = [cell.resampled(metric) for cell in cells.values() if metric in cell.draws]
        if any(task.value.value is not None for task in tasks):
            found[metric] = mean_interval(tasks)
    return found


def _left_out(columns: UnitColumns, function: str, part: Part) -> dict[str, int]:
    status = columns.status if part.mask is None else columns.status[part.mask]
    scores = columns.confidences[function] if part.mask is None else columns.confidences[function][part.mask]
    missing, abstained = UNIT_STATUSES.index("missing"), UNIT_STATUSES.index("abstained")
    reason = columns.undefined.get(function, NO_CONFIDENCE)
    counts = {
        "missing": int((status == missing).sum()),
        "abstained": int((status == abstained).sum()),
        reason: int((np.isnan(scores) & (status != missing) & (status != abstained)).sum()),
    }
    return {reason: count for reason, count in counts.items() if count}
