"""What a report says beside its rows: atoms or lines, the course of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from salt_tui.measure.rows import ReportRow
from salt_tui.measure.task_scores import RAW
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.analyses_comparison import GranularityComparison, compare_granularities
from scoring.analyses_position import (
    Curve,
    calibration_by_position,
    correctness_by_history,
    correctness_by_position,
)
from scoring.confidence import HEADLINE_FUNCTION
from scoring.metrics import METRICS

HISTORY_BINS = 5

_CORRECT, _WRONG, _MISSING, _REDUNDANT, _ABSTAINED = (
    UNIT_STATUSES.index(status) for status in ("correct", "wrong", "missing", "redundant", "abstained")
)


@dataclass(frozen=True, slots=True)
class CourseOfAnswers:
    """How atoms change along an answer; every curve is the mean over tasks, each task equal.

    Attributes:
        correctness: share of right atoms by relative position, in tenths.
        calibration: ECE of raw `HEADLINE_FUNCTION` by relative position, in tenths.
        history: share of right atoms by the share of right atoms before them, in fifths.
    """

    correctness: Curve
    calibration: Curve
    history: Curve


def course_of_answers(columns: UnitColumns) -> CourseOfAnswers:
    """Return the curves of a run's atoms; missing atoms have no position and are left out."""
    generated = columns.status != _MISSING
    answers, answer = np.unique(columns.generation[generated], return_inverse=True)
    length = np.bincount(answer, minlength=answers.size)[answer]
    correct = columns.status[generated] == _CORRECT
    redundant = columns.status[generated] == _REDUNDANT
    index, task = columns.index[generated], columns.task[generated]
    scores = columns.confidences[HEADLINE_FUNCTION][generated]
    scored = ~np.isnan(scores) & (columns.status[generated] != _ABSTAINED)
    calibration = calibration_by_position(
        scores[scored], correct[scored], index[scored], length[scored], answer[scored], task[scored]
    )
    history = correctness_by_history(correct, redundant, index, answer, task, HISTORY_BINS)
    position = correctness_by_position(correct, redundant, index, length, answer, task)
    return CourseOfAnswers(
        correctness=_named(position.rate, columns.task_names),
        calibration=_named(calibration, columns.task_names),
        history=_named(history, columns.task_names),
    )


def _named(curve: Curve, tasks: Sequence[str]) -> Curve:
    """Return the curve with the names of its tasks in place of their codes."""
    return replace(curve, tasks={tasks[int(code)]: values for code, values in curve.tasks.items()})


def mean_confidences(columns: UnitColumns) -> dict[str, float]:
    """Return the mean raw `HEADLINE_FUNCTION` of each task that has a unit in confidence metrics."""
    scores = columns.confidences[HEADLINE_FUNCTION]
    counted = ~np.isnan(scores) & (columns.status != _MISSING) & (columns.status != _ABSTAINED)
    return {
        task: float(scores[chosen].mean())
        for code, task in enumerate(columns.task_names)
        if (chosen := counted & (columns.task == code)).any()
    }


def atoms_against_lines(rows: Sequence[ReportRow], metric: str) -> GranularityComparison | None:
    """Compare atoms with lines in one metric of raw `HEADLINE_FUNCTION`; None unless both were measured."""
    found = {row.granularity: row for row in rows if row.function == HEADLINE_FUNCTION and row.calibrator == RAW}
    direction = METRICS[metric].higher_is_better
    if direction is None or not {"atom", "line"} <= found.keys():
        return None
    tasks = [task for task in found["atom"].tasks if task in found["line"].tasks]
    atoms, lines = ([found[unit].tasks[task].values[metric].value for task in tasks] for unit in ("atom", "line"))
    return compare_granularities(atoms, lines, tasks, higher_is_better=direction)
