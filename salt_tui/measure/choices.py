"""How good a run's probabilities of all options of its multiple-choice problems are, raw and after a temperature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from salt_tui.measure.draws import draws_of
from salt_tui.store.queries import Queries
from scoring.answer_status import LEFT_OUT
from scoring.calibrators_fitted import Unfitted
from scoring.choices import (
    CHOICE_METRICS,
    ChoiceTable,
    brier_losses,
    cross_fit_temperature,
    fit_temperature,
)
from scoring.correctness import TaskMean, mean_over_tasks
from scoring.intervals import LEVEL, Interval, student_reach
from scoring.scored_units import FloatArray
from scoring.value import NO_SPREAD, ONE_ANSWER, Value, undefined

RAW, SCALED = "raw", "temperature"
"""The probabilities as they are, and after temperature scaling, cross-fitted by problem."""

BRIER = "multiclass_brier"
"""The metric that has intervals: it is a mean over answers, and the only one that a conclusion may rest on."""

NO_LETTERS = "no letter's probability is known"

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class TaskChoices:
    """The choices of one task.

    Attributes:
        n: answers measured.
        left_out: answers in which some letter's probability is undefined, by reason.
        letters: how many letters are offered at most.
        values: by `RAW` or `SCALED` and the names of `CHOICE_METRICS`.
        intervals: of `BRIER`, by `RAW` or `SCALED`.
        temperature: fitted on all answers, for use elsewhere; None where it cannot be.
        notes: what the fits had to say.
    """

    n: int
    left_out: Mapping[str, int]
    letters: int
    values: Mapping[str, Mapping[str, Value]]
    intervals: Mapping[str, Interval]
    temperature: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChoiceReport:
    """The choices of a run.

    Attributes:
        tasks: those with such problems, by name.
        means: over these tasks, each equal; as `TaskChoices.values`.
        intervals: of these means, as `TaskChoices.intervals`.
    """

    tasks: Mapping[str, TaskChoices]
    means: Mapping[str, Mapping[str, TaskMean]]
    intervals: Mapping[str, Interval]


def measure_choices(queries: Queries, run: int, draws: int) -> ChoiceReport | None:
    """Measure all letters of the multiple-choice problems of a run; None where there are none.

    Args:
        queries: of the database.
        run: its number.
        draws: resamples of answers for the intervals; 0 for none.
    """
    read = _read(queries, run)
    if not read:
        return None
    measured = {task: _task(task, found, draws) for task, found in read.items()}
    tasks = {task: found for task, (found, _) in measured.items()}
    return ChoiceReport(
        tasks=tasks,
        means={
            kind: {
                name: mean_over_tasks({task: found.values[kind][name] for task, found in tasks.items()})
                for name in CHOICE_METRICS
            }
            for kind in (RAW, SCALED)
        },
        intervals={
            kind: _interval([spread[kind] for _, spread in measured.values() if kind in spread], draws)
            for kind in (RAW, SCALED)
        }
        if draws
        else {},
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    """A Brier score of one task in resamples of its answers."""

    value: float
    draws: FloatArray
    answers: int


@dataclass(slots=True)
class _ReadTask:
    rows: list[list[float]]
    right: list[int]
    left_out: Counter[str]


def _read(queries: Queries, run: int) -> dict[str, _ReadTask]:
    known: dict[int, dict[str, tuple[float | None, str | None]]] = {}
    for generation, letter, value, reason in queries.letters(run):
        known.setdefault(generation, {})[letter] = (value, reason)
    tasks: dict[str, _ReadTask] = {}
    for answer in queries.answers(run):
        problem = answer.problem
        if problem.answer_kind != "choice":
            continue
        task = tasks.setdefault(problem.task, _ReadTask([], [], Counter()))
        if answer.generation is None or answer.answer_status is None or answer.answer_status in LEFT_OUT:
            continue
        given = known.get(answer.generation, {})
        offered = [given.get(letter, (None, NO_LETTERS)) for letter in _LETTERS[: len(problem.choices)]]
        unknown = next((reason or NO_LETTERS for value, reason in offered if value is None), None)
        if unknown is not None or problem.reference not in _LETTERS[: len(problem.choices)]:
            task.left_out[unknown or NO_LETTERS] += 1
            continue
        task.rows.append([value for value, _ in offered if value is not None])
        task.right.append(_LETTERS.index(problem.reference))
    return tasks


def _task(name: str, read: _ReadTask, draws: int) -> tuple[TaskChoices, dict[str, _Spread]]:
    letters = max((len(row) for row in read.rows), default=0)
    probability = np.full((len(read.rows), letters), np.nan)
    for number, row in enumerate(read.rows):
        probability[number, : len(row)] = row
    raw = ChoiceTable.of(probability, read.right)
    scaled = cross_fit_temperature(raw)
    whole = fit_temperature(raw)
    tables: dict[str, ChoiceTable | str] = {
        RAW: raw if raw.n else next(iter(read.left_out), NO_LETTERS),
        SCALED: scaled.reason if isinstance(scaled, Unfitted) else scaled.table,
    }
    spread = {
        kind: _Spread(float(losses.mean()), _resampled(name, losses, draws), losses.size)
        for kind, table in tables.items()
        if isinstance(table, ChoiceTable) and draws
        for losses in (brier_losses(table),)
    }
    return TaskChoices(
        n=raw.n,
        left_out=dict(read.left_out),
        letters=letters,
        values={
            kind: {
                metric: undefined(table) if isinstance(table, str) else entry.function(table)
                for metric, entry in CHOICE_METRICS.items()
            }
            for kind, table in tables.items()
        },
        intervals={kind: _interval([found], draws) for kind, found in spread.items()},
        temperature=None if isinstance(whole, Unfitted) else whole.temperature,
        notes=() if isinstance(scaled, Unfitted) else scaled.notes,
    ), spread


def _resampled(task: str, losses: FloatArray, draws: int) -> FloatArray:
    """Return the mean loss in each resample of the answers, shape ``(draws,)``; empty for one answer."""
    if losses.size < 2:
        return np.zeros(0)
    drawn = draws_of(task, losses.size, draws)
    means: FloatArray = drawn @ losses / drawn.sum(axis=1)
    return means


def _interval(spreads: Sequence[_Spread], draws: int) -> Interval:
    """Return the interval of a mean over tasks as `scoring.intervals.mean_interval` does for every other metric."""
    if not spreads or any(not spread.draws.size for spread in spreads):
        return Interval(None, None, LEVEL, reason=ONE_ANSWER)
    variances = np.array([((spread.draws - spread.value) ** 2).mean() for spread in spreads])
    if sqrt(float(variances.sum())) <= 1e-12:
        return Interval(None, None, LEVEL, draws, reason=NO_SPREAD)
    reach = student_reach(variances, np.array([spread.answers - 1.0 for spread in spreads]), LEVEL)
    estimate = sum(spread.value for spread in spreads) / len(spreads)
    return Interval(max(estimate - reach, 0.0), min(estimate + reach, CHOICE_METRICS[BRIER].maximum), LEVEL, draws)
