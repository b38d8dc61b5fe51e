"""How correctness and calibration change along an answer (SALT section 5.1, appendices B.1 and E.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoring.calibration_error import expected_calibration_error
from scoring.intervals import Interval
from scoring.rate_intervals import mean_rate_interval, rate
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
    """One task's curve; all have one entry per bin.

    Attributes:
        value: the measured number, None in a bin without units.
        units: number of units in the bin.
        answers: number of answers that these come from.
    """

    value: tuple[float | None, ...]
    units: tuple[int, ...]
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A number per bin of [0, 1]; bin j covers (edges[j], edges[j + 1]], the first one 0 as well.

    Attributes:
        edges: shape ``(bins + 1,)``.
        mean: over the tasks that have units in the bin, each task equal; None where no task has.
        deviation: population standard deviation over these tasks; None with fewer than two.
        tasks_without: how many tasks have no unit in the bin: means of bins with other tasks are not comparable, and
            `scoring.contrasts` compares the tasks that both have.
        intervals: of the means, for shares; empty for other numbers.
        tasks: the curve of every task.
    """

    edges: tuple[float, ...]
    mean: tuple[float | None, ...]
    deviation: tuple[float | None, ...]
    tasks_without: tuple[int, ...]
    intervals: tuple[Interval, ...]
    tasks: dict[str, TaskCurve]


@dataclass(frozen=True, slots=True)
class CorrectnessByPosition:
    """Where in an answer the right units are.

    Attributes:
        rate: share of right units among the units of the bin that have a reference unit, in [0, 1].
        density: density over relative position of the right units, mean 1 over the bins; what Figure 2 draws.
        redundancy: share of redundant units among all units of the bin, in [0, 1].
    """

    rate: Curve
    density: Curve
    redundancy: Curve


def correctness_by_position(
    correct: ArrayLike,
    redundant: ArrayLike,
    index: ArrayLike,
    length: ArrayLike,
    generations: Groups,
    tasks: Groups,
    bins: int = POSITION_BINS,
) -> CorrectnessByPosition:
    """Return correctness over relative position (SALT figure 2): unit 60 of 100 stands at 0.6.

    Redundant units stand at the end of answers and are wrong by construction, so they have a curve of their own.

    Args:
        correct: of every generated unit (abstained ones are not correct), shape ``(n,)``.
        redundant: whether it has no reference unit, shape ``(n,)``.
        index: the unit's 0-based place in its answer, shape ``(n,)``.
        length: number of units generated in that answer, shape ``(n,)``.
        generations: the answer of each unit, shape ``(n,)``.
        tasks: shape ``(n,)``.
        bins: equal-width bins of (index + 1) / length.

    Raises:
        ValueError: for columns of different lengths, an index outside its answer, or fewer than one bin.
    """
    outcomes, extra = _outcomes(correct), _outcomes(redundant).astype(bool)
    place = _position_bins(index, length, bins, outcomes.size)
    cells = _Cells.of(tasks, generations, place, bins)
    wanted = cells.part(~extra)
    rate = _shares(wanted, outcomes[~extra])
    right = wanted.counts(outcomes[~extra])
    totals = right.sum(axis=1, keepdims=True)
    density = np.divide(right * bins, totals, out=np.full(right.shape, np.nan), where=totals > 0)
    return CorrectnessByPosition(rate, _averaged(wanted, density), _shares(cells, extra.astype(np.int64)))


def correctness_by_history(
    correct: ArrayLike,
    redundant: ArrayLike,
    index: ArrayLike,
    generations: Groups,
    tasks: Groups,
    bins: int = HISTORY_BINS,
) -> Curve:
    """Return the share of right units over the share of right units before them (SALT figures 3, 22 to 24).

    The first unit of an answer has no history and is left out; redundant units are wrong by construction and only
    count as history.  All correct before is in the last bin, none in the first.

    Args:
        correct: of every generated unit, shape ``(n,)``.
        redundant: whether it has no reference unit, shape ``(n,)``.
        index: the unit's 0-based place in its answer, shape ``(n,)``; an answer's units are 0, 1, 2, … without gaps.
        generations: the answer of each unit, shape ``(n,)``.
        tasks: shape ``(n,)``.
        bins: equal-width bins of the share.

    Raises:
        ValueError: for columns of different lengths, a gap in an answer, or fewer than one bin.
    """
    outcomes, extra = _outcomes(correct), _outcomes(redundant).astype(bool)
    _at_least_one_bin(bins)
    history = history_shares(outcomes, index, generations)
    numerators, denominators = history
    kept = (denominators > 0) & ~extra
    place = np.maximum(-(-bins * numerators // np.maximum(denominators, 1)) - 1, 0)
    return _shares(_Cells.of(tasks, generations, place, bins).part(kept), outcomes[kept])


def history_shares(correct: ArrayLike, index: ArrayLike, generations: Groups) -> tuple[IntArray, IntArray]:
    """Return for each unit how many right units, and how many units, stand before it in its answer, shape ``(n,)``.

    Args:
        correct: of every generated unit, shape ``(n,)``.
        index: as in `correctness_by_history`.
        generations: the answer of each unit, shape ``(n,)``.

    Raises:
        ValueError: for columns of different lengths or a gap in an answer.
    """
    outcomes = _outcomes(correct)
    places = _whole_numbers(index, outcomes.size, "index")
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
    right = np.zeros(outcomes.size, dtype=np.int64)
    right[order] = before
    return right, places


def calibration_by_position(
    confidence: ArrayLike,
    correct: ArrayLike,
    index: ArrayLike,
    length: ArrayLike,
    generations: Groups,
    tasks: Groups,
    bins: int = POSITION_BINS,
) -> Curve:
    """Return the expected calibration error (15 bins) of the units at each relative position (SALT figure 29).

    Args:
        confidence: in [0, 1], shape ``(n,)``.
        correct: shape ``(n,)``; abstained units are left out, as in every confidence metric.
        index: the unit's 0-based place in its answer, shape ``(n,)``.
        length: number of units generated in that answer, abstained ones included, shape ``(n,)``.
        generations: the answer of each unit, shape ``(n,)``.
        tasks: shape ``(n,)``.
        bins: equal-width bins of (index + 1) / length.

    Raises:
        ValueError: for columns of different lengths, a confidence outside [0, 1], an index outside its answer, or
            fewer than one bin.
    """
    scores, outcomes = checked_columns(confidence, correct)
    require_probability_rows(scores)
    place = _position_bins(index, length, bins, outcomes.size)

    cells = _Cells.of(tasks, generations, place, bins)
    units = cells.counts()
    errors = np.full(units.shape, np.nan)
    for task, number in np.argwhere(units > 0):
        rows = (cells.task == task) & (place == number)
        error = expected_calibration_error(ScoredUnits.from_columns(scores[rows], outcomes[rows])).value
        errors[task, number] = np.nan if error is None else error
    return _averaged(cells, errors)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The task, answer and bin of each unit, as codes."""

    names: tuple[str, ...]
    task: IntArray
    answer: IntArray
    answers: int
    place: IntArray
    bins: int

    @classmethod
    def of(cls, tasks: Groups, generations: Groups, place: IntArray, bins: int) -> _Cells:
        names, task = _tasks(tasks, place.size)
        answer = group_codes(generations)
        if answer.size != place.size:
            raise ValueError(f"generations has {answer.size} rows, not {place.size}")
        return cls(tuple(names), task, answer, int(answer.max(initial=-1)) + 1, place, bins)

    def part(self, kept: NDArray[np.bool_]) -> _Cells:
        """Some of the units; tasks and answers stay."""
        return replace(self, task=self.task[kept], answer=self.answer[kept], place=self.place[kept])

    def counts(self, weights: IntArray | None = None) -> IntArray:
        """Units, or the sum of their weights, shape ``(tasks, bins)``."""
        cell = self.task * self.bins + self.place
        found = np.bincount(cell, weights=weights, minlength=len(self.names) * self.bins)
        return found.astype(np.int64).reshape(len(self.names), self.bins)

    def by_answer(self, weights: IntArray | None = None) -> IntArray:
        """The same for every answer, shape ``(answers, bins)``; an answer belongs to one task."""
        cell = self.answer * self.bins + self.place
        found = np.bincount(cell, weights=weights, minlength=self.answers * self.bins)
        return found.astype(np.int64).reshape(self.answers, self.bins)

    def task_of_answer(self) -> IntArray:
        found = np.zeros(self.answers, dtype=np.int64)
        found[self.answer] = self.task
        return found


def _shares(cells: _Cells, right: IntArray) -> Curve:
    """Return the curve of shares of right units, with intervals of the means."""
    units, hits = cells.by_answer(), cells.by_answer(right)
    owner = cells.task_of_answer()
    rates = [
        [rate(hits[owner == task, number], units[owner == task, number]) for task in range(len(cells.names))]
        for number in range(cells.bins)
    ]
    values = np.array([[np.nan if one.value is None else one.value for one in column] for column in rates])
    curve = _averaged(cells, values.reshape(cells.bins, len(cells.names)).T)
    return replace(curve, intervals=tuple(mean_rate_interval(column) for column in rates))


def _averaged(cells: _Cells, values: FloatArray) -> Curve:
    """Return the curve of values of shape ``(tasks, bins)``, NaN where undefined."""
    units, owner = cells.counts(), cells.task_of_answer()
    answers = [(cells.by_answer()[owner == task] > 0).sum(axis=0) for task in range(len(cells.names))]
    columns = [column[~np.isnan(column)] for column in values.T]
    return Curve(
        edges=tuple(number / cells.bins for number in range(cells.bins + 1)),
        mean=tuple(float(column.mean()) if column.size else None for column in columns),
        deviation=tuple(float(column.std()) if column.size > 1 else None for column in columns),
        tasks_without=tuple(int((column == 0).sum()) for column in units.T),
        intervals=(),
        tasks={
            name: TaskCurve(
                value=tuple(None if np.isnan(value) else float(value) for value in values[row]),
                units=tuple(int(count) for count in units[row]),
                answers=tuple(int(count) for count in answers[row]),
            )
            for row, name in enumerate(cells.names)
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
