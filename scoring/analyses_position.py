"""How correctness and calibration change along an answer (SALT section 5.1, appendices B.1 and E.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scoring.calibration_error import expected_calibration_error
from scoring.scored_units import (
    FloatArray,
    Groups,
    IntArray,
    ScoredUnits,
    checked_columns,
    group_codes,
    require_probability_rows,
)

POSITION_BINS = 10
HISTORY_BINS = 20


@dataclass(frozen=True, slots=True)
class TaskCurve:
    """One task's curve; both have one entry per bin.

    Attributes:
        value: the measured number, None in a bin without units.
        units: number of units in the bin.
    """

    value: tuple[float | None, ...]
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A number per bin of [0, 1]; bin j covers (edges[j], edges[j + 1]], the first one 0 as well.

    Attributes:
        edges: shape ``(bins + 1,)``.
        mean: over the tasks that have units in the bin, each task equal; None where no task has.
        deviation: population standard deviation over these tasks; None with fewer than two.
        tasks: the curve of every task.
    """

    edges: tuple[float, ...]
    mean: tuple[float | None, ...]
    deviation: tuple[float | None, ...]
    tasks: dict[str, TaskCurve]


@dataclass(frozen=True, slots=True)
class CorrectnessByPosition:
    """Where in an answer the right units are.

    Attributes:
        rate: share of right units among the units of the bin, in [0, 1].
        density: density over relative position of the right units, mean 1 over the bins; what Figure 2 draws.
    """

    rate: Curve
    density: Curve


def correctness_by_position(
    correct: ArrayLike, index: ArrayLike, length: ArrayLike, tasks: Groups, bins: int = POSITION_BINS
) -> CorrectnessByPosition:
    """Return correctness over relative position (SALT figure 2): unit 60 of 100 stands at 0.6.

    Args:
        correct: of every generated unit (abstained ones are not correct), shape ``(n,)``.
        index: the unit's 0-based place in its answer, shape ``(n,)``.
        length: number of units generated in that answer, shape ``(n,)``.
        tasks: shape ``(n,)``.
        bins: equal-width bins of (index + 1) / length.

    Raises:
        ValueError: for columns of different lengths, an index outside its answer, or fewer than one bin.
    """
    outcomes = _outcomes(correct)
    place = _position_bins(index, length, bins, outcomes.size)

    names, codes = _tasks(tasks, outcomes.size)
    units, right = _counts(codes, place, outcomes, len(names), bins)
    totals = right.sum(axis=1, keepdims=True)
    density = np.divide(right * bins, totals, out=np.full(right.shape, np.nan), where=totals > 0)
    return CorrectnessByPosition(_shares(names, units, right), _averaged(names, units, density))


def correctness_by_history(
    correct: ArrayLike, index: ArrayLike, generations: Groups, tasks: Groups, bins: int = HISTORY_BINS
) -> Curve:
    """Return the share of right units over the share of right units before them (SALT figures 3, 22 to 24).

    The first unit of an answer has no history and is left out.  All correct before is in the last bin, none in the
    first.

    Args:
        correct: of every generated unit, shape ``(n,)``.
        index: the unit's 0-based place in its answer, shape ``(n,)``; an answer's units are 0, 1, 2, … without gaps.
        generations: the answer of each unit, shape ``(n,)``.
        tasks: shape ``(n,)``.
        bins: equal-width bins of the share.

    Raises:
        ValueError: for columns of different lengths, a gap in an answer, or fewer than one bin.
    """
    outcomes = _outcomes(correct)
    places = _whole_numbers(index, outcomes.size, "index")
    _at_least_one_bin(bins)
    codes = group_codes(generations)
    if codes.size != outcomes.size:
        raise ValueError(f"correct has {outcomes.size} rows and generations {codes.size}")
    order = np.lexsort((places, codes))
    sorted_codes, sorted_places = codes[order], places[order]
    is_first = np.r_[True, sorted_codes[1:] != sorted_codes[:-1]] if outcomes.size else np.zeros(0, dtype=bool)
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.r_[starts, outcomes.size])
    if not np.array_equal(sorted_places, np.arange(outcomes.size) - np.repeat(starts, sizes)):
        raise ValueError("an answer's units must be 0, 1, 2, … without gaps: pass every generated unit, once")
    before = np.cumsum(outcomes[order]) - outcomes[order]
    before -= np.repeat(before[starts], sizes)
    later = sorted_places > 0
    rows = order[later]
    bin_of_row = np.maximum(-(-bins * before[later] // sorted_places[later]) - 1, 0)
    names, task_codes = _tasks(tasks, outcomes.size)
    return _shares(names, *_counts(task_codes[rows], bin_of_row, outcomes[rows], len(names), bins))


def calibration_by_position(
    confidence: ArrayLike,
    correct: ArrayLike,
    index: ArrayLike,
    length: ArrayLike,
    tasks: Groups,
    bins: int = POSITION_BINS,
) -> Curve:
    """Return the expected calibration error (15 bins) of the units at each relative position (SALT figure 29).

    Args:
        confidence: in [0, 1], shape ``(n,)``.
        correct: shape ``(n,)``; abstained units are left out, as in every confidence metric.
        index: the unit's 0-based place in its answer, shape ``(n,)``.
        length: number of units generated in that answer, abstained ones included, shape ``(n,)``.
        tasks: shape ``(n,)``.
        bins: equal-width bins of (index + 1) / length.

    Raises:
        ValueError: for columns of different lengths, a confidence outside [0, 1], an index outside its answer, or
            fewer than one bin.
    """
    scores, outcomes = checked_columns(confidence, correct)
    require_probability_rows(scores)
    place = _position_bins(index, length, bins, outcomes.size)

    names, codes = _tasks(tasks, outcomes.size)
    units, _ = _counts(codes, place, outcomes, len(names), bins)
    errors = np.full(units.shape, np.nan)
    for task, number in np.argwhere(units > 0):
        rows = (codes == task) & (place == number)
        error = expected_calibration_error(ScoredUnits.from_columns(scores[rows], outcomes[rows])).value
        errors[task, number] = np.nan if error is None else error
    return _averaged(names, units, errors)


def _counts(
    codes: IntArray, bin_of_row: IntArray, outcomes: IntArray, tasks: int, bins: int
) -> tuple[IntArray, IntArray]:
    """Return the number of units and of right units, shape ``(tasks, bins)`` each."""
    cells = codes * bins + bin_of_row
    units = np.bincount(cells, minlength=tasks * bins)
    right = np.bincount(cells[outcomes == 1], minlength=tasks * bins)
    return units.reshape(tasks, bins), right.reshape(tasks, bins)


def _shares(names: Sequence[str], units: IntArray, right: IntArray) -> Curve:
    return _averaged(names, units, np.divide(right, units, out=np.full(units.shape, np.nan), where=units > 0))


def _averaged(names: Sequence[str], units: IntArray, values: FloatArray) -> Curve:
    """Return the curve of values of shape ``(tasks, bins)``, NaN where undefined."""
    bins = values.shape[1]
    columns = [column[~np.isnan(column)] for column in values.T]
    return Curve(
        edges=tuple(number / bins for number in range(bins + 1)),
        mean=tuple(float(column.mean()) if column.size else None for column in columns),
        deviation=tuple(float(column.std()) if column.size > 1 else None for column in columns),
        tasks={
            name: TaskCurve(
                value=tuple(None if np.isnan(value) else float(value) for value in values[row]),
                units=tuple(int(count) for count in units[row]),
            )
            for row, name in enumerate(names)
        },
    )


def _outcomes(correct: ArrayLike) -> IntArray:
    column = np.asarray(correct)
    return checked_columns(np.zeros(column.shape), column)[1]


def _position_bins(index: ArrayLike, length: ArrayLike, bins: int, size: int) -> IntArray:
    """Return ⌈bins · (index + 1) / length⌉ − 1 in whole numbers, so that no edge is decided by rounding."""
    _at_least_one_bin(bins)
    places, lengths = _whole_numbers(index, size, "index"), _whole_numbers(length, size, "length")
    outside = np.flatnonzero((places < 0) | (places >= lengths))
    if outside.size:
        row = int(outside[0])
        raise ValueError(f"row {row}: index {places[row]} is outside an answer of {lengths[row]} units")
    return -(-bins * (places + 1) // lengths) - 1


def _at_least_one_bin(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins is at least 1, not {bins}")


def _whole_numbers(column: ArrayLike, size: int, name: str) -> IntArray:
    numbers = np.asarray(column)
    if numbers.shape != (size,):
        raise ValueError(f"{name} has shape {numbers.shape}, not ({size},)")
    if size and not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"{name} holds whole numbers, not {numbers.dtype}")
    return numbers.astype(np.int64)


def _tasks(tasks: Groups, size: int) -> tuple[list[str], IntArray]:
    """Return the tasks in the order of their codes and the number of each row's task."""
    codes = group_codes(tasks)
    if codes.size != size:
        raise ValueError(f"tasks has {codes.size} rows, not {size}")
    _, firsts = np.unique(codes, return_index=True)
    return [str(tasks[first]) for first in firsts.tolist()], codes
