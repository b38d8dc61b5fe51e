"""Two runs on the problems that both hold: what differs between them, what changed, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.draws import generator_of
from salt_tui.measure.header import RunHeader, planned_tasks, run_header
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import StoredRun, UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION
from scoring.labels import CONFIDENCE_STATUSES
from scoring.metrics import METRICS
from scoring.paired_runs import COMPARED, RATES, PairedMetric, PairedTask, RunOnTask, compare_runs
from scoring.signals import confidence_entry
from scoring.signed_rank import SignedRankTest, signed_rank_tests

FEWEST_SHARED = 6
"""With five problems that differ no test by swapping can reach p = .05."""

_CORRECT = UNIT_STATUSES.index("correct")
_GENERATED = np.array([status != "missing" for status in UNIT_STATUSES])
_REFERENCE = np.array([status != "redundant" for status in UNIT_STATUSES])
_IN_CONFIDENCE = np.array([status in CONFIDENCE_STATUSES for status in UNIT_STATUSES])

Key = tuple[str, str]
"""Task and content hash of a problem."""


@dataclass(frozen=True, slots=True)
class RunName:
    """A run as it is named on the command line: ``N``, ``latest`` or ``FILE.db:N``."""

    database: Path
    run: str

    @classmethod
    def of(cls, text: str, database: Path) -> RunName:
        """Read a name; without a file it is a run of that database."""
        file, colon, run = text.rpartition(":")
        return cls(Path(file), run) if colon and file else cls(database, text)

    def __str__(self) -> str:
        """Return how it is told apart from runs of other files."""
        return f"{self.database}:{self.run}"


@dataclass(frozen=True, slots=True)
class ChangedProblem:
    """A problem whose verdicts differ between the runs.

    Attributes:
        task: its task.
        first, second: its place in each run, counted from 0.
        gained, lost: atoms that are right in the second run only, and in the first only.
        whole: ``gained`` or ``lost`` where the whole answer became right or wrong, else None.
    """

    task: str
    first: int
    second: int
    gained: int
    lost: int
    whole: str | None


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs beside each other.

    Attributes:
        first, second: what shaped them.
        differs: names of the settings that differ, as in the plan.
        environment_differs: names of what differs in how they were computed.
        shared: problems that both answered.
        only_first, only_second: problems that only one of them answered.
        changed: the shared problems whose verdicts differ.
        function: the confidence function of Brier, AUROC and ECE.
        metrics: by name of `COMPARED`.
    """

    first: RunHeader
    second: RunHeader
    differs: tuple[str, ...]
    environment_differs: tuple[str, ...]
    shared: int
    only_first: int
    only_second: int
    changed: tuple[ChangedProblem, ...]
    function: str
    metrics: Mapping[str, PairedMetric]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that both hold."""
        return tuple(next(iter(self.metrics.values())).tasks)


def compare_two(first: RunName, second: RunName, function: str = HEADLINE_FUNCTION) -> ComparedRuns:
    """Compare two stored runs on the problems that both answered, matched by content.

    Args:
        first: a run.
        second: another; differences are second minus first.
        function: the confidence function of Brier, AUROC and ECE.

    Raises:
        StoreError: no such file or run.
        UsageError: both are the same run, or they share fewer than six problems; says how many.
    """
    one, other = _read(first, function), _read(second, function)
    if first.database.resolve() == second.database.resolve() and one.stored.run == other.stored.run:
        raise UsageError(f"run {one.stored.run} is compared with itself; name two runs")
    shared = [key for key in one.positions if key in other.positions]
    only = len(one.positions) - len(shared), len(other.positions) - len(shared)
    if len(shared) < FEWEST_SHARED:
        raise UsageError(
            f"{first.run} and {second.run} share {len(shared)} answered problems ({only[0]} are only in the first,"
            f" {only[1]} only in the second); {FEWEST_SHARED} are needed. Same tasks, difficulty and --seed give the"
            " same problems"
        )
    entry = confidence_entry(function)
    tasks = [task for task in one.columns.task_names if any(key[0] == task for key in shared)]
    paired = [PairedTask(task, one.on_task(task, shared), other.on_task(task, shared)) for task in tasks]
    metrics = compare_runs(paired, generator_of("compare"), probability=not entry.needs_calibration)
    return ComparedRuns(
        first=run_header(one.stored, first.database),
        second=run_header(other.stored, second.database),
        differs=_plan_differences(json.loads(one.stored.record.plan), json.loads(other.stored.record.plan)),
        environment_differs=_differences(
            json.loads(one.stored.record.environment), json.loads(other.stored.record.environment)
        ),
        shared=len(shared),
        only_first=only[0],
        only_second=only[1],
        changed=tuple(_changed(one, other, shared)),
        function=function,
        metrics=metrics,
    )


def cell_tests(pairs: Sequence[ComparedRuns]) -> dict[str, SignedRankTest]:
    """Return the paper's tests over cells, each a pair of runs in one task (SALT figures 6 and 38)."""
    gains = {}
    for metric in COMPARED:
        sign = 1.0 if metric in RATES or METRICS[metric].higher_is_better else -1.0
        gains[metric] = [
            sign * task.difference.value
            for pair in pairs
            for task in pair.metrics[metric].tasks.values()
            if task.difference.value is not None
        ]
    return signed_rank_tests(gains)


@dataclass(frozen=True, slots=True)
class _ReadRun:
    """A run with its atoms, the answered problems by content and where each stands."""

    stored: StoredRun
    columns: UnitColumns
    positions: Mapping[Key, int]
    function: str

    def rows(self, key: Key) -> NDArray[np.int64]:
        """Return the places of the atoms of a problem."""
        task = self.columns.task_names.index(key[0])
        return np.flatnonzero((self.columns.task == task) & (self.columns.position == self.positions[key]))

    def on_task(self, task: str, shared: Sequence[Key]) -> RunOnTask:
        """Return the counts and confidences of the shared problems of one task, in their order."""
        keys = [key for key in shared if key[0] == task]
        rows = [self.rows(key) for key in keys]
        statuses = [self.columns.status[places] for places in rows]
        places = np.concatenate([np.zeros(0, np.int64), *rows])
        problem = np.repeat(np.arange(len(keys)), [part.size for part in rows])
        oriented = confidence_entry(self.function).oriented(self.columns.confidences[self.function][places])
        status = self.columns.status[places]
        known = _IN_CONFIDENCE[status] & ~np.isnan(oriented)
        return RunOnTask(
            right=np.array([(part == _CORRECT).sum() for part in statuses], dtype=np.float64),
            generated=np.array([_GENERATED[part].sum() for part in statuses], dtype=np.float64),
            reference=np.array([_REFERENCE[part].sum() for part in statuses], dtype=np.float64),
            correct=status[known] == _CORRECT,
            confidence=oriented[known],
            problem=problem[known],
        )


def _read(name: RunName, function: str) -> _ReadRun:
    with open_queries(name.database) as queries, queries.snapshot():
        run = queries.find_run(name.run)
        columns = queries.unit_columns(run, "atom", (function,))
        return _ReadRun(queries.run_record(run), columns, _positions(queries, run, columns), function)


def _positions(queries: Queries, run: int, columns: UnitColumns) -> dict[Key, int]:
    """Return where each answered problem stands; the problem itself, not its number, is what two runs share."""
    answered = set(zip(columns.task.tolist(), columns.position.tolist(), strict=True))
    names = list(columns.task_names)
    return {
        (problem.task, problem.content_id): problem.position
        for problem in (answer.problem for answer in queries.answers(run))
        if problem.task in names and (names.index(problem.task), problem.position) in answered
    }


def _changed(one: _ReadRun, other: _ReadRun, shared: Sequence[Key]) -> Iterator[ChangedProblem]:
    for key in shared:
        first, second = (_right_by_index(run, run.rows(key)) for run in (one, other))
        size = max(first.size, second.size)
        before, after = (np.pad(column, (0, size - column.size)) for column in (first, second))
        gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
        whole = _wholly_right(one, one.rows(key)), _wholly_right(other, other.rows(key))
        verdict = {(False, True): "gained", (True, False): "lost"}.get(whole)
        if gained or lost or verdict:
            yield ChangedProblem(key[0], one.positions[key], other.positions[key], gained, lost, verdict)


def _right_by_index(run: _ReadRun, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    right = np.zeros(int(run.columns.index[rows].max(initial=-1)) + 1, dtype=np.bool_)
    right[run.columns.index[rows]] = run.columns.status[rows] == _CORRECT
    return right


def _wholly_right(run: _ReadRun, rows: NDArray[np.int64]) -> bool:
    return bool((run.columns.status[rows] == _CORRECT).all())


def _plan_differences(*plans: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the settings of two plans that differ; the problems themselves are no setting."""
    shared = set.intersection(*({str(task["task"]) for task in planned_tasks(plan)} for plan in plans))
    settings = [
        {
            **{name: value for name, value in plan.items() if name not in {"tasks", "sampling", "limit"}},
            **{("sampler_seed" if name == "seed" else name): value for name, value in plan.get("sampling", {}).items()},
            **_task_settings(plan, shared),
        }
        for plan in plans
    ]
    differing = _differences(*settings)
    if all(not plan.get("sampling", {}).get("temperature") for plan in plans):
        return tuple(name for name in differing if name not in {"top_k", "top_p", "min_p", "sampler_seed"})
    return differing


def _task_settings(plan: Mapping[str, Any], shared: set[str]) -> dict[str, Any]:
    """Return the settings of the shared tasks, by name; each is a list over these tasks."""
    tasks = {str(task["task"]): task for task in planned_tasks(plan) if task["task"] in shared}
    names = dict.fromkeys(name for task in tasks.values() for name in task)
    return {
        name: [tasks[task].get(name) for task in sorted(tasks)]
        for name in names
        if name not in {"task", "problem_ids", "example_ids"}
    }


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(visible(name) for name in dict.fromkeys((*first, *second)) if first.get(name) != second.get(name))
