"""Two runs on the problems that both hold: what differs between them, what changed, and how sure that is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from salt_tui.measure.answer_pairs import AnsweredIn, AnswerPair, pair_answers
from salt_tui.measure.draws import generator_of
from salt_tui.measure.header import RunHeader, planned_tasks, run_header
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import IMPORTED
from salt_tui.store.results import StoredRun, UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from scoring.confidence import HEADLINE_FUNCTION
from scoring.labels import CONFIDENCE_STATUSES
from scoring.metrics import METRICS
from scoring.paired_runs import COMPARED, RATES, PairedMetric, PairedTask, RunOnTask, metrics_one_by_one
from scoring.signals import confidence_entry
from scoring.signed_rank import SignedRankTest, signed_rank_tests

FEWEST_SHARED = 6
"""With five problems that differ no test by swapping can reach p = .05."""

_CORRECT = UNIT_STATUSES.index("correct")
_GENERATED = np.array([status != "missing" for status in UNIT_STATUSES])
_REFERENCE = np.array([status != "redundant" for status in UNIT_STATUSES])
_IN_CONFIDENCE = np.array([status in CONFIDENCE_STATUSES for status in UNIT_STATUSES])

_IN_ROWS = ("difficulty", "method", "shots")
"""Settings that the rows of imported answers bring."""

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

    @classmethod
    def of(cls, pair: AnswerPair) -> ChangedProblem:
        """Count what changed between the two answers to a problem."""
        gained, lost = int(pair.gained.sum()), int(pair.lost.sum())
        return cls(pair.task, pair.first.position, pair.second.position, gained, lost, pair.whole)


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs beside each other.

    Attributes:
        first, second: what shaped them.
        differs: names of the settings that differ, as in the plan, and ``statistics`` where these do.
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


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs that were read, on the problems that both answered; nothing is measured yet.

    Attributes:
        first, second: the runs.
        shared: the problems that both answered, in the order of the first run.
        answers: to these problems, in the same order.
    """

    first: ReadRun
    second: ReadRun
    shared: tuple[Key, ...]
    answers: tuple[AnswerPair, ...]

    @property
    def only(self) -> tuple[int, int]:
        """How many answered problems only the first and only the second run holds."""
        held = len(self.shared)
        return len(self.first.answers) - held, len(self.second.answers) - held

    @property
    def headers(self) -> tuple[RunHeader, RunHeader]:
        """What shaped the runs."""
        return self.first.header, self.second.header

    @property
    def differs(self) -> tuple[str, ...]:
        """Names of the settings that differ, as in the plan, and ``statistics`` where these do."""
        first, second = (json.loads(run.stored.record.plan) for run in (self.first, self.second))
        of_tokens = () if self.first.statistics == self.second.statistics else ("statistics",)
        return (*_plan_differences(first, second), *of_tokens)

    @property
    def environment_differs(self) -> tuple[str, ...]:
        """Names of what differs in how they were computed."""
        return _differences(*(json.loads(run.stored.record.environment) for run in (self.first, self.second)))

    @property
    def functions(self) -> tuple[str, ...]:
        """The confidence functions, of those that were read, that are known in both runs."""
        known = [run.known_functions for run in (self.first, self.second)]
        return tuple(name for name in known[0] if name in known[1])

    @property
    def too_few(self) -> str | None:
        """Why nothing can be said of the differences; None where there are enough shared problems."""
        if len(self.shared) >= FEWEST_SHARED:
            return None
        first, second = self.first.name, self.second.name
        only = self.only
        return (
            f"{first} and {second} share {len(self.shared)} answered problems ({only[0]} are only in the first,"
            f" {only[1]} only in the second); {FEWEST_SHARED} are needed. Same tasks, difficulty and --seed give the"
            " same problems"
        )

    def measured(self, function: str) -> Iterator[PairedMetric]:
        """Yield the metrics of `COMPARED`, each as soon as it is there: 100,000 atoms take some seconds.

        Raises:
            UsageError: the runs share fewer than six problems.
        """
        if self.too_few is not None:
            raise UsageError(self.too_few)
        names = list(dict.fromkeys(pair.task for pair in self.answers))
        paired = []
        for task in names:
            pairs = [pair for pair in self.answers if pair.task == task]
            runs = (self.first, self.second)
            paired.append(PairedTask(task, *(run.on_task(pairs, side, function) for side, run in enumerate(runs))))
        probability = not confidence_entry(function).needs_calibration
        without = next(
            (f"no {function} in {name}" for name, run in self._sides() if function not in run.known_functions), None
        )
        yield from metrics_one_by_one(paired, generator_of("compare"), probability=probability, without=without)

    def compared(self, function: str, metrics: Mapping[str, PairedMetric]) -> ComparedRuns:
        """Put together what was measured."""
        first, second = self.headers
        only = self.only
        return ComparedRuns(
            first=first,
            second=second,
            differs=self.differs,
            environment_differs=self.environment_differs,
            shared=len(self.shared),
            only_first=only[0],
            only_second=only[1],
            changed=tuple(ChangedProblem.of(pair) for pair in self.answers if pair.is_changed),
            function=function,
            metrics=metrics,
        )

    def _sides(self) -> tuple[tuple[str, ReadRun], ...]:
        return ("A", self.first), ("B", self.second)


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
    pair = read_pair(first, second, (function,))
    for read in (pair.first, pair.second):
        if read.statistics == "none":
            continue  # no other function would do either; what is right can be compared all the same
        if (reason := read.columns.undefined.get(function)) is not None:
            raise UsageError(f"run {read.stored.run} has no {function} ({reason}); compare by another --function")
    return pair.compared(function, {metric.name: metric for metric in pair.measured(function)})


def read_pair(first: RunName, second: RunName, functions: Sequence[str] = (HEADLINE_FUNCTION,)) -> RunPair:
    """Read two stored runs; 100,000 atoms of each take a second.

    Args:
        first: a run.
        second: another.
        functions: the confidence functions to read.

    Raises:
        StoreError: no such file or run.
        UsageError: both are the same run.
    """
    one, other = _read(first, functions), _read(second, functions)
    if first.database.resolve() == second.database.resolve() and one.stored.run == other.stored.run:
        raise UsageError(f"run {one.stored.run} is compared with itself; name two runs")
    shared = tuple(key for key in one.answers if key in other.answers)
    answers = tuple(pair_answers(key[0], one.answers[key], other.answers[key]) for key in shared)
    return RunPair(one, other, shared, answers)


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
class ReadRun:
    """A run with its atoms, and the answered problems by content.

    Attributes:
        name: as it was named.
        stored: its record.
        header: what shaped it.
        columns: its atoms, of the answers that count.
        answers: by problem, in the order of the plan.
    """

    name: str
    stored: StoredRun
    header: RunHeader
    columns: UnitColumns
    answers: Mapping[Key, AnsweredIn]

    @property
    def statistics(self) -> str:
        """What the numbers of a token rest on."""
        return self.stored.record.statistics

    @property
    def known_functions(self) -> tuple[str, ...]:
        """The confidence functions, of those that were read, that some atom has a value of."""
        counted = _IN_CONFIDENCE[self.columns.status]
        return tuple(name for name, column in self.columns.confidences.items() if not np.isnan(column[counted]).all())

    def on_task(self, pairs: Sequence[AnswerPair], side: int, function: str) -> RunOnTask:
        """Return the counts and confidences of the shared problems of one task, in their order."""
        rows = [(pair.first, pair.second)[side].rows for pair in pairs]
        statuses = [self.columns.status[places] for places in rows]
        places = np.concatenate([np.zeros(0, np.int64), *(np.arange(part.start, part.stop) for part in rows)])
        problem = np.repeat(np.arange(len(pairs)), [part.stop - part.start for part in rows])
        entry = confidence_entry(function, self.columns.lower_is_confident)
        oriented = entry.oriented(self.columns.confidences[function][places])
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


def _read(name: RunName, functions: Sequence[str]) -> ReadRun:
    with open_queries(name.database) as queries, queries.snapshot():
        run = queries.find_run(name.run)
        columns = queries.unit_columns(run, "atom", functions)
        stored = queries.run_record(run)
        return ReadRun(name.run, stored, run_header(stored, name.database), columns, _answers(queries, run, columns))


def _answers(queries: Queries, run: int, columns: UnitColumns) -> dict[Key, AnsweredIn]:
    """Return the answered problems; the problem itself, not its number, is what two runs share."""
    # The atoms of an answer stand together.
    generations, starts = np.unique(columns.generation, return_index=True)
    ends = [*starts[1:].tolist(), columns.generation.size]
    rows = dict(zip(generations.tolist(), map(slice, starts.tolist(), ends), strict=True))
    return {
        (answer.problem.task, answer.problem.content_id): AnsweredIn.read(
            columns, answer.problem.position, answer.generation, rows[answer.generation]
        )
        for answer in queries.answers(run)
        if answer.generation is not None and answer.generation in rows
    }


def _plan_differences(*plans: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the settings of two plans that differ; the problems themselves are no setting.

    Of answers that another program gave, only what their rows say is known; the rest of such a plan means nothing.
    """
    shared = set.intersection(*({str(task["task"]) for task in planned_tasks(plan)} for plan in plans))
    if any(str(plan.get("identity", "")).startswith(IMPORTED) for plan in plans):
        told = [_task_settings(plan, shared) for plan in plans]
        known = [{"identity": plan.get("identity"), **of_tasks} for plan, of_tasks in zip(plans, told, strict=True)]
        return tuple(name for name in _differences(*known) if name in {"identity", *_IN_ROWS})
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
    tasks = {str(task["task"]): task for task in planned_tasks(plan) if str(task["task"]) in shared}
    names = dict.fromkeys(name for task in tasks.values() for name in task)
    return {
        name: [tasks[task].get(name) for task in sorted(tasks)]
        for name in names
        if name not in {"task", "problem_ids", "example_ids"}
    }


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(visible(name) for name in dict.fromkeys((*first, *second)) if first.get(name) != second.get(name))
