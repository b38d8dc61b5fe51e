"""How well the best confidence function of a unit does, judged on other answers than it was chosen on.

Atoms, lines and whole answers each have a function that suits them: what ranks atoms best may be the worst for whole
answers.  A function chosen and judged on the same answers looks better than it is, the more so the more functions
there are to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.benchmark_intervals import draw_generations
from scoring.conclusions import (
    ERROR_RATE,
    MOST_REDRAWS,
    NEVER_DRAWN,
    Alternatives,
    Resampled,
    Verdict,
    complete_units,
    incomplete,
    tell_apart,
    why_not,
)
from scoring.intervals import LEVEL, Interval
from scoring.pair_counts import auroc_in_draws
from scoring.scored_units import FloatArray
from scoring.value import NO_TASKS, Value, undefined

SPLITS = 100
DRAWS = 400
FEWEST_ANSWERS = 10
"""Answers a task must have for choosing on one half and judging on the other."""

FIXED_FUNCTION = "logprob_sum"
"""The function where there are too few answers to choose one; it takes every token of a unit into account."""

NO_FUNCTION = "no confidence function has enough values"


@dataclass(frozen=True, slots=True)
class JudgedUnit:
    """One kind of unit with the function that suits it.

    Attributes:
        unit: such as ``atom``, ``line`` or ``generation``.
        auroc: mean over tasks, judged on answers on which the function was not chosen.
        interval: of it, over resamples of answers.
        chosen: share of the splits in which each function was chosen, most often chosen first.
    """

    unit: str
    auroc: Value
    interval: Interval
    chosen: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class UnitComparison:
    """Kinds of units, each judged by its own best function, on the same answers.

    Attributes:
        units: in the order they were given.
        verdict: which of them cannot be told apart from the best; None with fewer than two, or without a task.
        fixed: the function of every unit, where a task has too few answers to choose one; None else.
        tasks: the tasks that entered.
        tasks_left_out: the others, with the reason.
        answers: number of answers in the tasks that entered.
        redrawn: splits that were drawn again because a half lacked a class.
    """

    units: Mapping[str, JudgedUnit]
    verdict: Verdict | None
    fixed: str | None
    tasks: tuple[str, ...]
    tasks_left_out: Mapping[str, str]
    answers: int
    redrawn: int


def judge_units(
    units: Mapping[str, Sequence[Alternatives]],
    generator: np.random.Generator,
    *,
    questions: int = 1,
    splits: int = SPLITS,
    draws: int = DRAWS,
) -> UnitComparison:
    """Judge kinds of units by AUROC, each by the function that is best for it on other answers.

    Each of 100 splits halves the answers of every task; the function with the best mean over tasks on one half is
    judged on the other.  The interval comes from 400 resamples of n − 1 of n answers, each split once, with all copies
    of an answer on one side.  Where a task has fewer than ten answers, `FIXED_FUNCTION` is taken and said.

    Args:
        units: per kind of unit its tasks, with the functions as alternatives; ``generation`` numbers the same answers
            (or problems, where several answers belong to one) in all kinds.
        generator: the only source of chance.
        questions: how many questions the report answers; they share the error rate of 5 %.
        splits: number of splits.
        draws: number of resamples.

    Returns:
        A task enters if at least two of its answers hold a right and two a wrong unit, of every kind.
    """
    tables, tasks_left_out = _tables(units)
    fixed = FIXED_FUNCTION if any(table.answers < FEWEST_ANSWERS for table in tables) else None
    columns: list[_Columns] = []
    redrawn = 0
    for table in tables:
        drawn = table.draw(splits, draws, generator, halves=fixed is None)
        if drawn is None:
            tasks_left_out[table.task] = NEVER_DRAWN
            continue
        redrawn += drawn.redrawn
        columns.append(_Columns(table, drawn))
    judged = {unit: _judged(unit, columns, splits, fixed) for unit in units}
    verdict = None
    known = [unit for unit in judged.values() if unit.auroc.value is not None]
    if len(known) > 1:
        means = np.array([unit.auroc.value for unit in known])
        resamples = np.column_stack([unit.draws for unit in known])
        verdict = tell_apart(Resampled(tuple(unit.unit for unit in known), means, resamples), True, _rate(questions))
    return UnitComparison(
        units={name: JudgedUnit(name, unit.auroc, _interval(unit), unit.chosen) for name, unit in judged.items()},
        verdict=verdict,
        fixed=fixed,
        tasks=tuple(column.table.task for column in columns),
        tasks_left_out=tasks_left_out,
        answers=sum(column.table.answers for column in columns),
        redrawn=redrawn,
    )


def _rate(questions: int) -> float:
    return ERROR_RATE / questions


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Weights of answers to choose on and to judge on: splits first, then resamples."""

    choose: FloatArray
    judge: FloatArray
    redrawn: int


@dataclass(frozen=True, slots=True)
class _Table:
    """One task in every kind of unit; answers are numbered alike."""

    task: str
    numbers: FloatArray
    units: Mapping[str, Alternatives]

    @property
    def answers(self) -> int:
        return int(self.numbers.size)

    def owners(self, unit: str) -> np.ndarray:
        return np.searchsorted(self.numbers, self.units[unit].generation)

    def draw(self, splits: int, draws: int, generator: np.random.Generator, *, halves: bool) -> _Drawn | None:
        """Draw weights until each side holds both classes of every kind of unit."""
        classes = []
        for unit, table in self.units.items():
            for kind in (table.correct, ~table.correct):
                classes.append(np.bincount(self.owners(unit), weights=kind, minlength=self.answers))
        held = np.column_stack(classes)
        total = splits + draws
        choose, judge = np.zeros((total, self.answers)), np.zeros((total, self.answers))
        bad = np.arange(total)
        redrawn = 0
        for _ in range(MOST_REDRAWS):
            copies = np.ones((bad.size, self.answers))
            resampled = bad >= splits
            copies[resampled] = draw_generations(self.answers, int(resampled.sum()), generator, self.answers - 1)
            if halves:
                side = _halves(copies > 0, generator)
                choose[bad], judge[bad] = copies * side, copies * ~side
            else:
                choose[bad] = judge[bad] = copies
            empty = ((choose[bad] @ held) * (judge[bad] @ held) == 0.0).any(axis=1)
            bad = bad[empty]
            if not bad.size:
                return _Drawn(choose, judge, redrawn)
            redrawn += int(bad.size)
        return None


def _halves(held: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return a random half of the held answers of each row (the smaller one of an odd number)."""
    order = np.where(held, generator.random(held.shape), np.inf)
    rank = np.argsort(np.argsort(order, axis=1), axis=1)
    half: np.ndarray = rank < (held.sum(axis=1) // 2)[:, None]
    return half


@dataclass(frozen=True, slots=True)
class _Columns:
    table: _Table
    drawn: _Drawn

    def auroc(self, unit: str, function: str) -> tuple[FloatArray, FloatArray]:
        """Return AUROC on both sides, shape ``(splits + draws,)`` each."""
        units, owner = self.table.units[unit], self.table.owners(unit)
        weights = np.concatenate([self.drawn.choose, self.drawn.judge])
        area = auroc_in_draws(units.scores[function], units.correct.astype(np.float64), owner, weights)
        half = area.size // 2
        return area[:half], area[half:]


@dataclass(frozen=True, slots=True)
class _Judged:
    unit: str
    auroc: Value
    draws: FloatArray
    chosen: Mapping[str, float]


def _judged(unit: str, columns: Sequence[_Columns], splits: int, fixed: str | None) -> _Judged:
    if not columns:
        return _Judged(unit, undefined(NO_TASKS), np.zeros(0), {})
    functions = tuple(columns[0].table.units[unit].scores)
    if fixed is not None:
        if fixed not in functions:
            return _Judged(unit, undefined(f"no {fixed}"), np.zeros(0), {})
        functions = (fixed,)
    sides = [[column.auroc(unit, function) for function in functions] for column in columns]
    means = np.mean(sides, axis=0)  # functions × sides × (splits + draws), each task equal
    best = means[:, 0].argmax(axis=0)
    judged = means[best, 1, np.arange(best.size)]
    counts = np.bincount(best[:splits], minlength=len(functions)) / splits
    order = np.argsort(-counts, kind="stable")
    chosen = {functions[number]: float(counts[number]) for number in order if counts[number]}
    return _Judged(unit, Value(float(judged[:splits].mean())), judged[splits:], chosen)


def _interval(unit: _Judged) -> Interval:
    if unit.auroc.value is None:
        return Interval(None, None, reason=unit.auroc.reason)
    tail = (1.0 - LEVEL) / 2.0
    low, high = (float(q) for q in np.quantile(unit.draws, [tail, 1.0 - tail]))
    # A split judged once scatters around the mean of a hundred; its interval is never narrower than that.
    return Interval(min(low, unit.auroc.value), max(high, unit.auroc.value), LEVEL, int(unit.draws.size))


def _tables(units: Mapping[str, Sequence[Alternatives]]) -> tuple[list[_Table], dict[str, str]]:
    """Return the tasks that every kind of unit can be judged on, with the same functions in all tasks of a kind."""
    kept: dict[str, tuple[str, ...]] = {}
    for unit, tasks in units.items():
        names = tuple(dict.fromkeys(name for task in tasks for name in task.scores))
        gaps = incomplete(tasks, names)
        kept[unit] = tuple(name for name in names if name not in gaps)
    by_task: dict[str, dict[str, Alternatives]] = {}
    for unit, tasks in units.items():
        for table in tasks:
            by_task.setdefault(table.task, {})[unit] = complete_units(table, kept[unit])
    tables: list[_Table] = []
    left_out: dict[str, str] = {}
    for task, kinds in by_task.items():
        if any(kind.correct.size and not kept[unit] for unit, kind in kinds.items()):
            left_out[task] = NO_FUNCTION
            continue
        problems = [problem for kind in kinds.values() if (problem := why_not(kind, "auroc")) is not None]
        if problems or kinds.keys() != units.keys():
            left_out[task] = problems[0] if problems else f"no {' or '.join(sorted(units.keys() - kinds.keys()))}"
            continue
        numbers = np.unique(np.concatenate([kind.generation for kind in kinds.values()]))
        tables.append(_Table(task, numbers, kinds))
    return tables, left_out
