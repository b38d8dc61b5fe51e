"""The numbers of a run that goes on, measured beside the screen by the same functions as its report.

A thread measures a copy of the units, at most every half second and never for more than a fifth of the time; the
screen reads the last result and whether anything came after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.course import correctness_along
from salt_tui.measure.rates import measure_rates
from salt_tui.measure.rows import ReportRow, RowChoice, measure_rows
from salt_tui.measure.task_scores import RAW, raw_scores, task_units
from salt_tui.store.results import UnitColumns
from scoring.correctness import TaskMean
from scoring.intervals import DRAWS, Interval
from scoring.signals import confidence_entry
from scoring.value import NOT_A_PROBABILITY, Value, undefined

METRICS = {"ece": "ece", "auroc_macro": "auroc", "auroc_micro": "auroc_micro"}
"""The metrics of the confidences, by the names of `Measured`."""

SHARES = ("precision", "recall")
"""The shares of right units, by the names of `Measured`."""

DRAWN_UNITS = 50_000
"""Above so many units there are no intervals while the run goes on: 1,000 draws would take seconds."""

EVERY_SECONDS = 0.5
REST = 4.0
"""Times the duration of a measurement that pass before the next."""

NEEDS_CALIBRATION = "needs calibration"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured: granularity, confidence function, and one task or (None) the mean over all."""

    kind: str
    function: str
    task: str | None


@dataclass(frozen=True, slots=True)
class RunningUnits:
    """The units so far.

    Attributes:
        columns: of the answers that count, of one granularity, with one confidence function.
        left_out: answers that do not count.
    """

    columns: UnitColumns
    left_out: int


@dataclass(frozen=True, slots=True)
class TaskNumbers:
    """What is said of one task.

    Attributes:
        precision, recall: of its units, pooled.
        ece: of its units, by the chosen function.
        along: share of right units by relative position in the answer, in tenths; None in a tenth without units.
    """

    precision: Value
    recall: Value
    ece: Value
    along: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of the units so far.

    Attributes:
        units: units with a confidence that were measured.
        answers: answers that hold one.
        left_out: answers that do not count.
        micro: those of ``answers`` with both right and wrong units, the base of ``auroc_micro``.
        values: ``precision``, ``recall`` and the names of `METRICS`: the mean over tasks, each task equal.
        intervals: by the same names, those of the report; absent where there is none.
        tasks: how many tasks have a value, by name.
        ordered: by task, the confidences of ``units``, oriented so that higher is surer, ascending.
    """

    units: int
    answers: int
    left_out: int
    micro: int
    values: Mapping[str, Value]
    intervals: Mapping[str, tuple[float, float]]
    tasks: Mapping[str, int]
    ordered: Mapping[str, NDArray[np.float64]]

    def surer_than(self, task: str, value: float, function: str) -> float | None:
        """Return the share of a task's units with strictly less confidence than ``value``; None without units."""
        ordered = self.ordered.get(task)
        if ordered is None or not ordered.size:
            return None
        oriented = value if confidence_entry(function).higher_is_confident else -value
        return float(np.searchsorted(ordered, oriented, side="left") / ordered.size)


def measure_running(units: RunningUnits, function: str, task: str | None = None, draws: int = DRAWS) -> Measured:
    """Measure units as the report does.

    Args:
        units: of all tasks.
        function: the confidence function.
        task: the one to measure; None for the mean over all.
        draws: bootstrap resamples; 0 for no intervals.
    """
    columns = units.columns if task is None else _only(units.columns, task)
    rates = measure_rates(columns)
    (row,) = measure_rows(columns, RowChoice({function: (RAW,)}, tuple(METRICS.values()), draws))
    means = {name: rates.means[name] for name in SHARES} | {
        name: row.values[metric] for name, metric in METRICS.items()
    }
    intervals: dict[str, Interval | None] = {
        **{name: rates.intervals[name] for name in SHARES},
        **{name: row.intervals.get(metric) for name, metric in METRICS.items()},
    }
    return Measured(
        units=row.n,
        answers=row.answers,
        left_out=units.left_out,
        micro=sum(found.inside.generations for found in row.tasks.values()),
        values={name: _shared_reason(mean) for name, mean in means.items()},
        intervals={name: ends for name, interval in intervals.items() if (ends := _ends(interval)) is not None},
        tasks={name: len(row.tasks) - len(mean.left_out) for name, mean in means.items()},
        ordered=_ordered(row, columns, function),
    )


def measure_tasks(units: RunningUnits, function: str) -> dict[str, TaskNumbers]:
    """Measure every task that has a unit."""
    columns = units.columns
    (row,) = measure_rows(columns, RowChoice({function: (RAW,)}, ("ece",), 0))
    along = correctness_along(columns)
    numbers = {}
    for task, found in measure_rates(columns).tasks.items():
        ece = row.tasks[task].values["ece"] if task in row.tasks else undefined("no unit with a confidence")
        numbers[task] = TaskNumbers(found.counts.precision, found.counts.recall, ece, along.get(task, ()))
    return numbers


def _only(columns: UnitColumns, task: str) -> UnitColumns:
    here = columns.task == columns.task_names.index(task) if task in columns.task_names else columns.task < 0
    return UnitColumns(
        kind=columns.kind,
        task_names=(task,) if task in columns.task_names else (),
        task=np.zeros(int(here.sum()), dtype=np.int64),
        generation=columns.generation[here],
        position=columns.position[here],
        index=columns.index[here],
        line=columns.line[here],
        status=columns.status[here],
        confidences={name: values[here] for name, values in columns.confidences.items()},
        lower_is_confident=columns.lower_is_confident,
    )


def _ordered(row: ReportRow, columns: UnitColumns, function: str) -> dict[str, NDArray[np.float64]]:
    return {task: np.sort(raw_scores(columns, task_units(columns, task), function).ranking) for task in row.tasks}


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None or interval.low is None or interval.high is None else (interval.low, interval.high)


def _shared_reason(mean: TaskMean) -> Value:
    """Return the mean, undefined with the tasks' own reason where they agree on one."""
    reasons = set(mean.left_out.values())
    if mean.mean.value is not None or len(reasons) != 1:
        return mean.mean
    reason = reasons.pop()
    return undefined(NEEDS_CALIBRATION if reason == NOT_A_PROBABILITY else reason)


class RunningMeasurement:
    """Measures the units of a map in a thread, now and then.

    Args:
        clock: monotonic seconds; injected by tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._asked: tuple[int, Choice] | None = None
        self._result: tuple[int, Choice, Measured] | None = None
        self._tasks: tuple[tuple[str, str], Mapping[str, TaskNumbers]] | None = None
        self._not_before = 0.0
        self.failure: str | None = None

    def result(self, choice: Choice) -> Measured | None:
        """Return the last result for a choice, None while there is none."""
        result = self._result
        return result[2] if result is not None and result[1] == choice else None

    def is_newest(self, version: int, choice: Choice) -> bool:
        """Return whether the last result is for a choice and that version of the units."""
        return self._result is not None and self._result[:2] == (version, choice)

    def tasks(self, kind: str, function: str) -> Mapping[str, TaskNumbers]:
        """Return the last numbers of every task that has a unit of that kind."""
        return self._tasks[1] if self._tasks is not None and self._tasks[0] == (kind, function) else {}

    def update(
        self, read: Callable[[Choice], RunningUnits], version: int, choice: Choice, *, rest: bool = True
    ) -> None:
        """Begin to measure when something changed and enough time has passed.

        Args:
            read: copies the units of a choice's granularity and function, of all tasks; called by the thread.
            version: of the units.
            choice: what to measure.
            rest: whether more is to come, so that measuring must leave time for other things.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        same = self._asked is not None and self._asked[1] == choice
        waiting = rest and same and self._clock() < self._not_before
        if (version, choice) == self._asked or waiting:
            return
        self._asked = (version, choice)
        # No daemon: one that is inside numpy's sorting when the interpreter ends aborts the process.
        self._thread = threading.Thread(target=self._work, args=(read, version, choice, rest), name="metrics")
        self._thread.start()

    def wait(self, timeout: float) -> None:
        """Wait for the measurement at work, if there is one."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self, read: Callable[[Choice], RunningUnits], version: int, choice: Choice, rest: bool) -> None:
        begun = self._clock()
        try:
            units = read(choice)
            draws = 0 if rest and units.columns.status.size > DRAWN_UNITS else DRAWS
            tasks = measure_tasks(units, choice.function)
            self._result = version, choice, measure_running(units, choice.function, choice.task, draws)
            self._tasks = (choice.kind, choice.function), tasks
            self.failure = None
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
        ended = self._clock()
        self._not_before = ended + max(EVERY_SECONDS, REST * (ended - begun))
