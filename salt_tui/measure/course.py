"""How atoms change along an answer: by position, and by what was right before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.analyses_position import (
    Curve,
    calibration_by_position,
    correctness_by_history,
    correctness_by_position,
    history_shares,
)
from scoring.confidence import HEADLINE_FUNCTION
from scoring.contrasts import Contrast, contrast

HISTORY_BINS = 5

_CORRECT, _WRONG, _MISSING, _REDUNDANT, _ABSTAINED = (
    UNIT_STATUSES.index(status) for status in ("correct", "wrong", "missing", "redundant", "abstained")
)


@dataclass(frozen=True, slots=True)
class CourseOfAnswers:
    """How atoms change along an answer; every curve is the mean over tasks, each task equal.

    Attributes:
        correctness: share of right atoms by relative position, in tenths; redundant atoms apart.
        redundancy: share of redundant atoms by relative position, in tenths.
        density: where the right atoms stand, mean 1 over the tenths.
        calibration: ECE of raw `HEADLINE_FUNCTION` by relative position, in tenths.
        history: share of right atoms by the share of right atoms before them, in fifths; redundant atoms apart.
        ends: right atoms in the first third of an answer against the last third.
        before: right atoms after at most half right ones against those after more.
    """

    correctness: Curve
    redundancy: Curve
    density: Curve
    calibration: Curve
    history: Curve
    ends: Contrast
    before: Contrast


def course_of_answers(columns: UnitColumns) -> CourseOfAnswers:
    """Return the curves of a run's atoms; missing atoms have no position and are left out."""
    generated = columns.status != _MISSING
    answer = columns.generation[generated]
    places, lengths = places_written(columns)
    correct = columns.status[generated] == _CORRECT
    redundant = columns.status[generated] == _REDUNDANT
    index, length, task = places[generated], lengths[generated], columns.task[generated]
    scores = columns.confidences[HEADLINE_FUNCTION][generated]
    scored = ~np.isnan(scores) & (columns.status[generated] != _ABSTAINED)
    calibration = calibration_by_position(
        scores[scored], correct[scored], index[scored], length[scored], answer[scored], task[scored]
    )
    history = correctness_by_history(correct, redundant, index, answer, task, HISTORY_BINS)
    position = correctness_by_position(correct, redundant, index, length, answer, task)
    right_before, before = history_shares(correct, index, answer)
    wanted, names = ~redundant, columns.task_names

    def between(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Contrast:
        labels = np.array(names, dtype=object)[task[wanted]]
        return contrast(correct[wanted], first[wanted], second[wanted], answer[wanted], labels)

    return CourseOfAnswers(
        correctness=_named(position.rate, names),
        redundancy=_named(position.redundancy, names),
        density=_named(position.density, names),
        calibration=_named(calibration, names),
        history=_named(history, names),
        ends=between(3 * (index + 1) <= length, 3 * (index + 1) > 2 * length),
        before=between((before > 0) & (2 * right_before <= before), 2 * right_before > before),
    )


def correctness_along(columns: UnitColumns) -> dict[str, tuple[float | None, ...]]:
    """Return the share of right atoms by relative position, in tenths, of every task; None in a tenth without atoms."""
    generated = columns.status != _MISSING
    places, lengths = places_written(columns)
    found = correctness_by_position(
        columns.status[generated] == _CORRECT,
        columns.status[generated] == _REDUNDANT,
        places[generated],
        lengths[generated],
        columns.generation[generated],
        columns.task[generated],
    )
    return {task: curve.value for task, curve in _named(found.rate, columns.task_names).tasks.items()}


def places_written(columns: UnitColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each unit's place among the written units of its answer, from 0, and how many these are, shape ``(n,)``.

    Both follow the order of the columns.  That is not the index where units are missing before others: leaves of a
    JSON answer that the reference does not have stand behind all of those that it has, written or missing, and while an
    answer is written, units of earlier lines may come late.  A missing unit has the place -1.
    """
    generated = columns.status != _MISSING
    answers, answer = np.unique(columns.generation, return_inverse=True)
    length = np.bincount(answer[generated], minlength=answers.size)
    place = np.full(answer.size, -1)
    order = np.flatnonzero(generated)[np.argsort(answer[generated], kind="stable")]
    place[order] = np.arange(order.size) - np.repeat(np.cumsum(length) - length, length)
    return place, length[answer]


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
