"""How atoms change along an answer: by position, and by what was right before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.analyses_position import (
    Curve,
    calibration_by_position,
    correctness_by_history,
    correctness_by_position,
)
from scoring.confidence import HEADLINE_FUNCTION

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
