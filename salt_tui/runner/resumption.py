"""From a stored run to one that goes on, bit for bit as it would have gone."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from salt_tui.engine.engine import Engine
from salt_tui.engine.models import ResolvedModel, open_engine, resolve_stored
from salt_tui.engine.requests import ChatTurn
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.errors import EnvironmentChangedError
from salt_tui.runner.heartbeat import Heartbeat
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.opened_model import make_ready, open_model
from salt_tui.runner.plan import Environment, RunPlan, TaskPlan, canonical_json, differences
from salt_tui.runner.prompting import EncodedProblem, encode_conversations, encode_problems
from salt_tui.runner.provenance import Provenance
from salt_tui.runner.request import check_engine_options, method_of
from salt_tui.runner.stored_model import load_again, options_of
from salt_tui.store.queries import open_queries
from salt_tui.store.records import PendingProblem, ProblemRecord, Work
from salt_tui.store.results import StoredRun
from salt_tui.store.store import Store, StoreError, open_store
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX
from tasks.prompts import worked_examples
from tasks.registry import get_task
from tasks.task import Problem

COMPARED_PROMPTS = 16
"""Prompts of finished answers of a task that are rendered again; a run may have 100,000."""


def prepare_resume(
    stored: StoredRun,
    database: Path,
    emit: Emit,
    *,
    allow_environment_change: bool,
    threads: int | None,
    log: Path | None = None,
    some_problems: bool = False,
) -> ReadyWork:
    """Make a stored run ready to go on.

    Args:
        stored: the run; not finished.
        database: the file that holds it.
        emit: takes the events of loading.
        allow_environment_change: go on although the environment differs; the run is then marked not exact.
        threads: None takes the run's.
        log: for what the child prints; None takes a new one.
        some_problems: the file holds some problems of the plan on purpose; without it, all must be there.

    Raises:
        EnvironmentChangedError: another environment that is not allowed.
        UsageError: another plan, naming what differs.
        ModelError, ContextError: as for a new run.
        StoreError: as for a new run; problems that the plan does not ask, or lacking ones.
    """
    place = Place(database, f"run {stored.run}")
    resolved = resolve_stored(place.read("model_entry", stored.model.entry, ResolvedModel.from_json))
    plan = place.read("plan", stored.record.plan, RunPlan.from_json)
    environment = place.read("environment", stored.record.environment, Environment.from_json)
    work = Work(stored.run)
    store = open_store(database)
    try:
        store.claim(work)
        store.reopen_generations(work)
        heartbeat = Heartbeat(store, work)
        engine = open_engine(resolved, log or new_engine_log_path())
        try:
            options = options_of(environment, width=plan.width, context=plan.context, threads=threads)
            check_engine_options(options)
            again = load_again(engine, resolved, plan, options, work.title, emit, heartbeat.beat)
            _check_plan(stored.run, plan, replace(plan, template=again.info.template))
            model = open_model(engine, resolved.name, again.info, options, context=plan.context, width=plan.width)
            current = model.environment(environment.requested_gpu_layers)
            provenance = Provenance(again.identity, current, tuple(stored.record.warnings))
            provenance = check_environment(store, work, environment, provenance, allowed=allow_environment_change)
            _refuse_other_problems(stored.run, plan, database, some=some_problems)
            pending = store.pending_problems(stored.run)
            tokenizer = engine if again.info.capabilities.vocabulary else None
            prompts = _encode_again(tokenizer, plan, pending, stored.run, database)
            return make_ready(stored.run, plan, store, model, prompts, provenance, emit)
        except BaseException:
            engine.close()
            raise
    except BaseException:
        # Gives the lease back as well; a disk that is full again must not hide the error that led here.
        with contextlib.suppress(StoreError):
            store.close()
        raise


def _check_plan(run: int, stored: RunPlan, current: RunPlan) -> None:
    """Compare with what this program and this file would plan; problems themselves come from the store."""
    tasks = tuple(task if task.task.startswith(FILE_PREFIX) else _planned_today(task) for task in current.tasks)
    found = differences(canonical_json(stored), canonical_json(replace(current, tasks=tasks)))
    if found:
        raise UsageError(f"run {run} cannot go on as it began, its plan is another now: {'; '.join(found)}")


def _planned_today(plan: TaskPlan) -> TaskPlan:
    """Return what the program would plan for a generated task; problems of files are stored with their prompts."""
    task = get_task(plan.task)
    if plan.difficulty not in task.levels:
        raise UsageError(f"{plan.task} has no level {visible(plan.difficulty, 40)!r}; restore a copy of the file")
    examples = worked_examples(task, plan.difficulty, plan.shots)
    return replace(plan, prompt_version=task.prompt_version, example_ids=tuple(example.id for example in examples))


def _refuse_other_problems(run: int, plan: RunPlan, database: Path, *, some: bool) -> None:
    """Refuse a file whose problems are not those of the plan: the run would end as if it had answered what it lacks."""
    left = {
        (task.task, position): (task.difficulty, found)
        for task in plan.tasks
        for position, found in enumerate(task.problem_ids)
    }
    with open_queries(database) as queries:
        for problem in queries.stored_problems(run):
            planned = left.pop((problem.task, problem.position), None)
            if planned != (problem.difficulty, problem.content_id):
                name = f"{visible(problem.task, 40)}:{problem.position + 1}"
                raise StoreError(
                    f"{database}: run {run} holds {name}, a problem that its plan does not ask; restore a copy"
                )
    if left and not some:
        task, position = next(iter(left))
        raise StoreError(
            f"{database}: run {run} lacks {len(left)} of the problems that its plan asks, first {task}:{position + 1};"
            " restore a copy of the file"
        )


def check_environment(
    store: Store, work: Work, began: Environment, provenance: Provenance, *, allowed: bool
) -> Provenance:
    """Compare the environment with that in which a run or study was computed so far.

    Args:
        store: holds it.
        work: the run or study; claimed.
        began: its environment so far.
        provenance: what it rests on from now on.
        allowed: go on where they differ; it is then marked as not exact.

    Raises:
        EnvironmentChangedError: they differ, which is not allowed.
    """
    found = environment_differences(began, provenance.environment)
    if not found:
        return replace(provenance, environment=began)
    if not allowed:
        raise EnvironmentChangedError(work.title, found)
    return provenance.store_as_not_exact(store, work, f"resumed in another environment ({'; '.join(found)})")


def environment_differences(began: Environment, current: Environment) -> tuple[str, ...]:
    """Name what differs between the environment of a run and this one.

    What the exactness check measured varies from time to time where it is not 0: only that an exact run would no
    longer be exact is a difference.
    """
    if began.exact is not True or current.exact is True:
        current = replace(current, exactness=began.exactness, exact=began.exact)
    return differences(canonical_json(began), canonical_json(current))


def _encode_again(
    engine: Engine | None, plan: RunPlan, pending: Sequence[PendingProblem], run: int, database: Path
) -> dict[tuple[str, str], EncodedProblem]:
    """Render the open prompts, and some that are stored, which must come out as they are stored.

    Raises:
        UsageError: a prompt is another now.
    """
    stored = _stored_prompts(database, run)
    problems = {(item.problem.task, item.problem.content_id): item.problem for item in pending}
    problems |= {key: problem for key, (problem, _) in stored.items()}
    prompts: dict[tuple[str, str], EncodedProblem] = {}
    for task in plan.tasks:
        asked = [problem for (name, _), problem in problems.items() if name == task.task]
        encoded = _encode_task(engine, task, asked)
        prompts |= {(item.task, item.content_id): prompt for item, prompt in zip(asked, encoded, strict=True)}
    for key, (problem, prompt) in stored.items():
        if prompts[key] != prompt:
            raise UsageError(
                f"run {run} cannot go on as it began: the prompt of answer {problem.position + 1} of {problem.task} is"
                " another than it was, so its chat template or its tokenizer does not give the same each time"
            )
    return prompts


def _encode_task(engine: Engine | None, plan: TaskPlan, asked: Sequence[ProblemRecord]) -> list[EncodedProblem]:
    if plan.task.startswith(FILE_PREFIX):
        return encode_conversations(
            engine, [tuple(ChatTurn(turn.role, turn.content) for turn in problem.messages) for problem in asked]
        )
    problems = [Problem(item.task, item.text, item.reference, item.difficulty, 0) for item in asked]
    return encode_problems(engine, get_task(plan.task), problems, method_of(plan.method), plan.shots)


def _stored_prompts(database: Path, run: int) -> dict[tuple[str, str], tuple[ProblemRecord, EncodedProblem]]:
    """Return the prompts of all answers that were begun, and of some that are finished."""
    finished: Counter[str] = Counter()
    prompts: dict[tuple[str, str], tuple[ProblemRecord, EncodedProblem]] = {}
    with open_queries(database) as queries:
        for answer in queries.answers(run):
            problem = answer.problem
            if answer.answer_status is not None:
                finished[problem.task] += 1
            if answer.generation is None or finished[problem.task] > COMPARED_PROMPTS:
                continue
            ids = queries.prompt(answer.generation)
            if ids is not None:
                prompts[problem.task, problem.content_id] = problem, EncodedProblem(ids, answer.preamble or 0)
    return prompts
