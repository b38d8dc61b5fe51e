"""The numbers under the map: precision, ECE and AUROC so far, with n and intervals, measured beside the screen.

A thread measures a copy of the units, at most every half second and never for more than a fifth of the time; the
screen reads the last result and whether anything came after it.  Values are those of `scoring`, on all answers that
count.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.app.answer_cells import COLUMNS, FUNCTIONS, STATUS_CODES, AnswerCells
from scoring.answer_status import LEFT_OUT
from scoring.confidence import CONFIDENCE_FUNCTIONS, ConfidenceFunction
from scoring.correctness import TaskMean, UnitCounts, mean_over_tasks
from scoring.intervals import LEVEL
from scoring.labels import CONFIDENCE_STATUSES, UNIT_STATUSES
from scoring.metrics import evaluate_units
from scoring.scored_units import SortedColumns
from scoring.value import Value, undefined

NAMES = ("precision", "ece", "auroc_macro", "auroc_micro")
_METRICS = {"ece": "ece", "auroc_macro": "auroc", "auroc_micro": "auroc_micro"}

DRAWS = 200
"""Bootstrap draws while a run goes on; its report has 1,000."""

DRAWN_UNITS = 20_000
"""Above so many units there are no intervals here: 200 draws would take seconds."""

GIVE_WAY_SECONDS = 0.0005
"""Pause between two draws, in which the screen's thread gets the interpreter: a key took up to 80 ms without it."""

EVERY_SECONDS = 0.5
REST = 4.0
"""Times the duration of a measurement that pass before the next."""

NEEDS_CALIBRATION = "needs calibration"
SEED = 20260424

_COUNTED = np.array([status in CONFIDENCE_STATUSES for status in UNIT_STATUSES])


@dataclass(frozen=True, slots=True)
class Choice:
    """What is measured: granularity, confidence function, and one task or (None) the mean over all."""

    kind: str
    function: str
    task: str | None


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of the units so far.

    Attributes:
        units: units with a confidence that were measured.
        answers: answers that hold one.
        left_out: answers that do not count.
        micro: those of ``answers`` with both right and wrong units, the base of ``auroc_micro``.
        values: by name of `NAMES`: the mean over tasks, each task equal.
        intervals: 95 % percentile bootstrap over answers, absent where there is none.
        tasks: how many tasks have a value, by name.
        ordered: by task, the confidences of ``units``, oriented so that higher is surer, ascending.
    """

    units: int
    answers: int
    left_out: int
    micro: int
    values: dict[str, Value]
    intervals: dict[str, tuple[float, float]]
    tasks: dict[str, int]
    ordered: dict[str, NDArray[np.float64]]

    def surer_than(self, task: str, value: float, function: str) -> float | None:
        """Return the share of a task's units with strictly less confidence than ``value``; None without units."""
        ordered = self.ordered.get(task)
        if ordered is None or not ordered.size:
            return None
        oriented = value if CONFIDENCE_FUNCTIONS[function].higher_is_confident else -value
        return float(np.searchsorted(ordered, oriented, side="left") / ordered.size)


@dataclass(frozen=True, slots=True)
class TaskUnits:
    """The units of one task's answers that count, copied.

    Attributes:
        status: codes, shape ``(n,)``.
        value: of the function, NaN for undefined, shape ``(n,)``.
        answer: number of the answer within the task, shape ``(n,)``.
        answers: how many.
    """

    status: NDArray[np.uint8]
    value: NDArray[np.float64]
    answer: NDArray[np.int64]
    answers: int


def copy_units(answers: Sequence[AnswerCells], kind: str, function: str) -> tuple[dict[str, TaskUnits], int]:
    """Copy what is measured, by task, and count the answers that are left out."""
    column = COLUMNS[function]
    parts: dict[str, tuple[list[bytes], list[NDArray[np.float32]], list[int]]] = {}
    left_out = 0
    for answer in answers:
        if answer.status in LEFT_OUT:
            left_out += 1
            continue
        cells = answer.units[kind]
        if not _counts(answer, kind):
            continue
        statuses, values, counts = parts.setdefault(answer.task, ([], [], []))
        codes, column_values = bytes(cells.statuses), cells.values[column :: len(FUNCTIONS)]
        # The screen's thread may have added a unit between the two reads.
        count = min(len(codes), len(column_values))
        statuses.append(codes[:count])
        values.append(np.array(column_values[:count], dtype=np.float32))
        counts.append(count)
    tasks = {
        task: TaskUnits(
            np.frombuffer(b"".join(statuses), dtype=np.uint8),
            np.concatenate(values).astype(np.float64),
            np.repeat(np.arange(len(counts)), counts),
            len(counts),
        )
        for task, (statuses, values, counts) in parts.items()
    }
    return tasks, left_out


def _counts(answer: AnswerCells, kind: str) -> bool:
    return answer.status not in {"waiting", "prompt", "open", *LEFT_OUT} and len(answer.units[kind]) > 0


def task_precisions(answers: Sequence[AnswerCells], kind: str) -> dict[str, Value]:
    """Return the precision of every task that has a unit of a kind in an answer that counts, units pooled."""
    statuses: dict[str, Counter[str]] = {}
    for answer in answers:
        if _counts(answer, kind):
            counter = statuses.setdefault(answer.task, Counter())
            for status, code in STATUS_CODES.items():
                counter[status] += answer.units[kind].statuses.count(code)
    return {task: UnitCounts(**counter).precision for task, counter in statuses.items()}


def measure(tasks: dict[str, TaskUnits], left_out: int, function: str, draws: int = DRAWS) -> Measured:
    """Measure copied units; the interval of a mean draws the answers of every task by themselves."""
    entry = CONFIDENCE_FUNCTIONS[function]
    probability = not entry.needs_calibration
    sorted_tasks = {task: _sort(units, entry, probability=probability) for task, units in tasks.items()}
    size = sum(units.size for units in sorted_tasks.values())
    by_task = {task: _values(units, None, probability) for task, units in sorted_tasks.items()}
    means = {name: mean_over_tasks({task: values[name] for task, values in by_task.items()}) for name in NAMES}
    intervals: dict[str, tuple[float, float]] = {}
    if size <= DRAWN_UNITS:
        drawn = [name for name in NAMES if _has_spread(name, sorted_tasks, by_task)]
        intervals = _intervals(sorted_tasks, drawn, probability, draws)
    return Measured(
        units=size,
        answers=sum(len(units.present) for units in sorted_tasks.values()),
        left_out=left_out,
        micro=sum(units.micro for units in sorted_tasks.values()),
        values={name: _shared_reason(mean) for name, mean in means.items()},
        intervals=intervals,
        tasks={name: len(by_task) - len(mean.left_out) for name, mean in means.items()},
        ordered=_ordered(tasks, entry),
    )


def _shared_reason(mean: TaskMean) -> Value:
    """Return the mean, undefined with the tasks' own reason where they agree on one."""
    reasons = set(mean.left_out.values())
    return undefined(reasons.pop()) if mean.mean.value is None and len(reasons) == 1 else mean.mean


def _ordered(tasks: dict[str, TaskUnits], entry: ConfidenceFunction) -> dict[str, NDArray[np.float64]]:
    return {task: np.sort(entry.oriented(units.value[_known(units)])) for task, units in tasks.items()}


def _known(units: TaskUnits) -> NDArray[np.bool_]:
    return _COUNTED[units.status] & ~np.isnan(units.value)


def _has_spread(name: str, tasks: dict[str, _SortedTask], by_task: dict[str, dict[str, Value]]) -> bool:
    """Return whether every task of a mean has two answers to draw from: one answer, or a mean that holds it, has none.

    The rule of the report; of micro AUROC the answers that it is the mean of count.
    """
    answers = [task.drawn_from(name) for label, task in tasks.items() if by_task[label][name].value is not None]
    return min(answers, default=0) > 1


@dataclass(frozen=True, slots=True)
class _SortedTask:
    """The units of a task, sorted once for all draws.

    Attributes:
        columns: of the units with a confidence.
        present: numbers of the answers that have one, shape ``(columns.generations,)``.
        counts: units by answer and status, shape ``(answers, statuses)``.
        micro: answers with both right and wrong units.
        size: units with a confidence.
    """

    columns: SortedColumns
    present: NDArray[np.int64]
    counts: NDArray[np.int64]
    micro: int
    size: int

    def drawn_from(self, name: str) -> int:
        """Return how many answers the value of a metric rests on."""
        return {"precision": len(self.counts), "auroc_micro": self.micro}.get(name, len(self.present))


def _sort(units: TaskUnits, entry: ConfidenceFunction, *, probability: bool) -> _SortedTask:
    known = _known(units)
    scores = np.clip(units.value[known], 0.0, 1.0) if probability else entry.oriented(units.value[known])
    right = units.status[known] == STATUS_CODES["correct"]
    counts = np.zeros((units.answers, len(UNIT_STATUSES)), dtype=np.int64)
    np.add.at(counts, (units.answer, units.status), 1)
    classes = np.zeros((units.answers, 2), dtype=bool)
    classes[units.answer[known], right.astype(np.int64)] = True
    return _SortedTask(
        SortedColumns.from_columns(scores, right, units.answer[known]),
        np.unique(units.answer[known]),
        counts,
        int(classes.all(axis=1).sum()),
        int(known.sum()),
    )


def _values(task: _SortedTask, times: NDArray[np.int64] | None, probability: bool) -> dict[str, Value]:
    """Return the values of a task, with every answer once or as often as a draw has it."""
    names = [name for name in _METRICS if probability or name != "ece"]
    units = task.columns.units(None if times is None else times[task.present])
    found = evaluate_units(units, [_METRICS[name] for name in names], probability)
    values = {name: found[_METRICS[name]] for name in names}
    values.setdefault("ece", undefined(NEEDS_CALIBRATION))
    counts = task.counts.sum(axis=0) if times is None else times @ task.counts
    values["precision"] = UnitCounts(*(int(count) for count in counts)).precision
    return values


def _intervals(
    tasks: dict[str, _SortedTask], names: Sequence[str], probability: bool, draws: int
) -> dict[str, tuple[float, float]]:
    generator = np.random.default_rng(SEED)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(draws if names else 0):
        time.sleep(GIVE_WAY_SECONDS)
        values = {}
        for name, task in tasks.items():
            number = len(task.counts)
            times = np.bincount(generator.integers(0, number, size=number), minlength=number)
            values[name] = _values(task, times, probability)
        for metric in names:
            mean = mean_over_tasks({name: value[metric] for name, value in values.items()}).mean.value
            if mean is not None:
                found[metric].append(mean)
    tail = (1.0 - LEVEL) / 2.0
    return {
        metric: (float(low), float(high))
        for metric, drawn in found.items()
        if drawn
        for low, high in [np.quantile(drawn, [tail, 1.0 - tail])]
    }


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
        self._precisions: tuple[str, dict[str, Value]] | None = None
        self._not_before = 0.0
        self.failure: str | None = None

    def result(self, choice: Choice) -> Measured | None:
        """Return the last result for a choice, None while there is none."""
        result = self._result
        return result[2] if result is not None and result[1] == choice else None

    def is_newest(self, version: int, choice: Choice) -> bool:
        """Return whether the last result is for a choice and that version of the map."""
        return self._result is not None and self._result[:2] == (version, choice)

    def precisions(self, kind: str) -> dict[str, Value]:
        """Return the last measured precision of every task that has a unit of that kind."""
        return self._precisions[1] if self._precisions is not None and self._precisions[0] == kind else {}

    def update(self, answers: Sequence[AnswerCells], version: int, choice: Choice, *, rest: bool = True) -> None:
        """Begin to measure when something changed and enough time has passed.

        Args:
            answers: of the map.
            version: of the map.
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
        self._thread = threading.Thread(target=self._work, args=(list(answers), version, choice), name="metrics")
        self._thread.start()

    def wait(self, timeout: float) -> None:
        """Wait for the measurement at work, if there is one."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self, answers: Sequence[AnswerCells], version: int, choice: Choice) -> None:
        begun = self._clock()
        chosen = [answer for answer in answers if choice.task is None or answer.task == choice.task]
        try:
            precisions = choice.kind, task_precisions(answers, choice.kind)
            tasks, left_out = copy_units(chosen, choice.kind, choice.function)
            self._result = version, choice, measure(tasks, left_out, choice.function)
            self._precisions = precisions
            self.failure = None
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
        ended = self._clock()
        self._not_before = ended + max(EVERY_SECONDS, REST * (ended - begun))
