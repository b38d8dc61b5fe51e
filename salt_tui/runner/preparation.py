"""From a request, or a stored run, to a run that is ready to compute."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import salt_tui
from salt_tui.engine.engine import (
    ContextError,
    ContextInfo,
    ContextOptions,
    Engine,
    LoadOptions,
    LoadProgress,
    ModelInfo,
)
from salt_tui.engine.models import ResolvedModel, load_registry, open_engine, resolve_model
from salt_tui.paths import engine_log_path
from salt_tui.runner.errors import UsageError
from salt_tui.runner.events import ModelLoading, Notice, RunEvent, RunStarted, TaskProgress
from salt_tui.runner.experiment import ReadyRun
from salt_tui.runner.model_hash import ModelHash
from salt_tui.runner.plan import (
    Environment,
    RunPlan,
    TaskPlan,
    canonical_json,
    content_hash,
    differences,
    make_environment,
)
from salt_tui.runner.prompting import EncodedProblem, answer_limit, encode_problems, needed_context
from salt_tui.runner.request import EngineOptions, RequestedTask, RunRequest, check_request, method_of
from salt_tui.store.queries import open_queries
from salt_tui.store.records import ModelRecord, ProblemRecord, RunRecord
from salt_tui.store.store import Store, open_store
from tasks.answer import split_reference
from tasks.parameters import parameters_to_texts
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, worked_examples
from tasks.registry import get_task
from tasks.task import Method, Problem

Emit = Callable[[RunEvent], None]


@dataclass(frozen=True, slots=True)
class _DrawnTask:
    """A task with its problems and their prompts."""

    plan: TaskPlan
    problems: tuple[Problem, ...]
    prompts: tuple[EncodedProblem, ...]


def prepare_run(request: RunRequest, database: Path, emit: Emit) -> ReadyRun:
    """Load the model, draw the problems, make the plan and store the run.

    Nothing is stored before everything has been checked.  The returned run owns an open store and engine: end both
    with `close_run`.

    Raises:
        UsageError, ParameterError, ModelError, ContextError, StoreError: one line each, exit code 2.
        EngineError: the engine broke, exit code 1.
    """
    requested = check_request(request)
    resolved = resolve_model(request.model, load_registry())
    store = open_store(database)
    try:
        engine = open_engine(resolved, engine_log_path())
    except BaseException:
        store.close()
        raise
    try:
        return _prepare(request, requested, resolved, store, engine, emit)
    except BaseException:
        engine.close()
        store.close()
        raise


def _prepare(
    request: RunRequest,
    requested: Sequence[RequestedTask],
    resolved: ResolvedModel,
    store: Store,
    engine: Engine,
    emit: Emit,
) -> ReadyRun:
    date = datetime.now(UTC).date().isoformat()
    digest = ModelHash(resolved.path)
    model = _load(engine, resolved, request.engine, date, emit)
    method = method_of(request.method)
    shots = DEFAULT_SHOTS if request.shots is None else request.shots
    tasks = [_draw_task(engine, item, request, method, shots, resolved.kind == "reasoning", emit) for item in requested]
    context = request.engine.context or resolved.default_context or _automatic_context(tasks, model, emit)
    _check_prompts_fit(tasks, context)
    plan = RunPlan(
        model_sha256=digest.result(),
        template=model.template,
        template_options=dict(resolved.template_options),
        date=date,
        seed=request.seed,
        limit=request.limit,
        tasks=tuple(task.plan for task in tasks),
        sampling=request.sampling,
        context=context,
        width=request.engine.width,
    )
    options = request.engine
    opened = engine.open_context(_context_options(options, context, options.width))
    environment = _environment(model, opened, str(options.gpu_layers))
    vocabulary = engine.vocabulary()
    warnings = (*model.warnings, *_exactness_warnings(environment))
    text, environment_text = canonical_json(plan), canonical_json(environment)
    run = store.create_run(
        _model_record(resolved, model, plan.model_sha256),
        vocabulary,
        RunRecord(
            text, content_hash(text), environment_text, content_hash(environment_text), environment.exact, warnings
        ),
        [
            _problem_record(problem, position, task.plan.method)
            for task in tasks
            for position, problem in enumerate(task.problems)
        ],
    )
    store.claim(run)
    prompts = {
        (task.plan.task, problem.id): encoded
        for task in tasks
        for problem, encoded in zip(task.problems, task.prompts, strict=True)
    }
    return _ready(run, plan, store, engine, model, opened, vocabulary, prompts, resolved.name, warnings, emit)


def prepare_resume(
    run: int, database: Path, emit: Emit, *, allow_environment_change: bool, threads: int | None = None
) -> ReadyRun:
    """Make a stored run ready to go on, bit for bit as it would have gone.

    Args:
        run: its number.
        database: the file that holds it.
        emit: takes events of loading.
        allow_environment_change: go on although the environment differs; the run is then marked not exact.
        threads: None takes the run's.

    Raises:
        UsageError: another plan or environment, naming what differs; or the run is unknown.
        ModelError, ContextError, StoreError: as for `prepare_run`.
    """
    with open_queries(database) as queries:
        stored = queries.find_run(run)
        plan = RunPlan.from_json(stored.plan)
        environment = Environment(**json.loads(stored.environment))
        resolved = ResolvedModel.from_json(queries.run_model(stored.number).entry)
    resolved = resolve_model(str(resolved.path), load_registry(), entry=resolved)
    digest = ModelHash(resolved.path)
    store = open_store(database)
    try:
        store.claim(run)
        engine = open_engine(resolved, engine_log_path())
    except BaseException:
        store.close()
        raise
    try:
        options = _stored_options(environment, plan, threads)
        model = _load(engine, resolved, options, plan.date, emit)
        _check_plan(plan, replace(plan, model_sha256=digest.result(), template=model.template), run)
        opened = engine.open_context(_context_options(options, plan.context, plan.width))
        current = _environment(model, opened, environment.requested_gpu_layers)
        warnings = _resume_environment(
            store, run, environment, current, (*stored.warnings,), allowed=allow_environment_change
        )
        prompts = _prompts_again(engine, plan, store, run)
        return _ready(
            run, plan, store, engine, model, opened, engine.vocabulary(), prompts, resolved.name, warnings, emit
        )
    except BaseException:
        engine.close()
        store.release(run, "interrupted", None)
        store.close()
        raise


def close_run(ready: ReadyRun) -> None:
    """End the engine and close the store."""
    ready.engine.close()
    ready.store.close()


# --- steps ------------------------------------------------------------------------------------------------------


def _load(engine: Engine, resolved: ResolvedModel, options: EngineOptions, date: str, emit: Emit) -> ModelInfo:
    def report(progress: LoadProgress) -> None:
        emit(ModelLoading(resolved.name, progress.fraction))

    return engine.load(
        LoadOptions(
            path=str(resolved.path),
            gpu_layers=options.gpu_layers,
            template=resolved.template,
            template_options=dict(resolved.template_options),
            date=date,
        ),
        report,
    )


def _draw_task(
    engine: Engine,
    item: RequestedTask,
    request: RunRequest,
    method: Method,
    shots: int,
    reasoning: bool,
    emit: Emit,
) -> _DrawnTask:
    task = item.task
    drawn = draw_problems(task, request.difficulty, item.parameters, request.seed, request.limit, shots)
    if drawn.note:
        emit(Notice(f"{task.name}: {drawn.note}"))
    if not drawn.problems:
        raise UsageError(f"{task.name} at {request.difficulty}: no problem left beside the {shots} worked examples")
    prompts = encode_problems(engine, task, drawn.problems, method, shots)
    max_tokens = request.max_tokens or answer_limit(engine, task, drawn.problems, method, reasoning=reasoning)
    return _DrawnTask(
        plan=TaskPlan(
            task=task.name,
            prompt_version=task.prompt_version,
            difficulty=request.difficulty,
            parameters=parameters_to_texts(item.parameters),
            method=method,
            shots=shots,
            example_ids=tuple(example.id for example in worked_examples(task, request.difficulty, shots)),
            problem_ids=tuple(problem.id for problem in drawn.problems),
            max_tokens=max_tokens,
        ),
        problems=drawn.problems,
        prompts=tuple(prompts),
    )


def _automatic_context(tasks: Sequence[_DrawnTask], model: ModelInfo, emit: Emit) -> int:
    needed = max(needed_context(task.prompts, task.plan.max_tokens) for task in tasks)
    if needed > model.trained_context > 0:
        emit(
            Notice(
                f"the longest prompt and answer need {needed} tokens, the model was trained on"
                f" {model.trained_context}: longer answers are cut there; -c {needed} overrides"
            )
        )
        return model.trained_context
    return needed


def _check_prompts_fit(tasks: Sequence[_DrawnTask], context: int) -> None:
    lengths = [len(encoded.prompt) for task in tasks for encoded in task.prompts]
    if min(lengths) >= context:
        needed = max(needed_context(task.prompts, task.plan.max_tokens) for task in tasks)
        raise ContextError(f"-c {context}: no prompt fits (shortest {min(lengths)} tokens); use -c {needed}")


def _context_options(options: EngineOptions, context: int, width: int) -> ContextOptions:
    return ContextOptions(
        width=width,
        context=context,
        batch=options.batch,
        micro_batch=options.micro_batch,
        threads=options.threads,
        flash_attention=options.flash_attention,
        key_type=options.key_type,
        value_type=options.value_type,
    )


def _environment(model: ModelInfo, context: ContextInfo, requested_gpu_layers: str) -> Environment:
    return make_environment(
        program_version=salt_tui.__version__,
        python_version=platform.python_version(),
        build=model.build,
        model=model,
        context=context,
        requested_gpu_layers=requested_gpu_layers,
    )


def _exactness_warnings(environment: Environment) -> tuple[str, ...]:
    if environment.exact is not False:
        return ()
    worst = max(environment.exactness.values())
    return (f"not exact: on this device scheduling changes logits by up to {worst:.2g}; resume may differ",)


def _model_record(resolved: ResolvedModel, model: ModelInfo, sha256: str) -> ModelRecord:
    return ModelRecord(
        sha256=sha256,
        name=resolved.name,
        path=str(resolved.path),
        file_bytes=model.file_bytes,
        description=model.description,
        architecture=model.architecture,
        quantisation=model.quantisation,
        parameters=model.parameters,
        vocabulary_size=model.vocabulary_size,
        trained_context=model.trained_context,
        template=model.template,
        entry=resolved.to_json(),
    )


def _problem_record(problem: Problem, position: int, method: str) -> ProblemRecord:
    reference = split_reference(get_task(problem.task), problem.reference)
    return ProblemRecord(
        task=problem.task,
        position=position,
        content_id=problem.id,
        difficulty=problem.difficulty,
        seed=problem.seed,
        method=method,
        text=problem.text,
        reference=problem.reference,
        reference_atoms=len(reference.atoms),
        reference_lines=len(reference.lines),
    )


def _ready(
    run: int,
    plan: RunPlan,
    store: Store,
    engine: Engine,
    model: ModelInfo,
    context: ContextInfo,
    vocabulary: tuple[bytes, ...],
    prompts: dict[tuple[str, str], EncodedProblem],
    name: str,
    warnings: tuple[str, ...],
    emit: Emit,
) -> ReadyRun:
    pending = tuple(store.pending_problems(run))
    open_problems = {name: 0 for name in (task.task for task in plan.tasks)}
    for problem in pending:
        open_problems[problem.record.task] += 1
    emit(
        RunStarted(
            run=run,
            model=f"{name} · {model.description}",
            device=_device_words(model, context),
            width=context.width,
            difficulty=plan.tasks[0].difficulty,
            exact=context.exactness.exact,
            tasks=tuple(
                TaskProgress(
                    task.task, len(task.problem_ids) - open_problems[task.task], len(task.problem_ids)
                )
                for task in plan.tasks
            ),
            warnings=warnings,
        )
    )
    return ReadyRun(
        run=run,
        plan=plan,
        store=store,
        engine=engine,
        vocabulary=vocabulary,
        thinking_open=model.thinking_open,
        pending=pending,
        prompts={problem.id: prompts[problem.record.task, problem.record.content_id] for problem in pending},
    )


def _device_words(model: ModelInfo, context: ContextInfo) -> str:
    devices = [device.name for device in model.build.devices if device.kind != "cpu"]
    if model.gpu_layers and devices:
        return f"{devices[0]} {model.gpu_layers}/{model.layers} layers"
    return f"CPU ×{context.threads}"


# --- resuming ---------------------------------------------------------------------------------------------------


def _stored_options(environment: Environment, plan: RunPlan, threads: int | None) -> EngineOptions:
    asked = environment.requested_gpu_layers
    return EngineOptions(
        gpu_layers=asked if asked in {"auto", "all"} else int(asked),  # type: ignore[arg-type]
        width=plan.width,
        context=plan.context,
        threads=threads or environment.threads,
        batch=environment.batch,
        micro_batch=environment.micro_batch,
        flash_attention="on" if environment.flash_attention else "off",
        key_type=environment.key_type,
        value_type=environment.value_type,
    )


def _check_plan(stored: RunPlan, current: RunPlan, run: int) -> None:
    tasks = tuple(
        replace(
            task,
            prompt_version=get_task(task.task).prompt_version,
            example_ids=tuple(
                example.id for example in worked_examples(get_task(task.task), task.difficulty, task.shots)
            ),
        )
        for task in current.tasks
    )
    found = differences(canonical_json(stored), canonical_json(replace(current, tasks=tasks)))
    if found:
        raise UsageError(f"run {run} cannot be resumed, its plan is another: {'; '.join(found)}")


def _resume_environment(
    store: Store,
    run: int,
    stored: Environment,
    current: Environment,
    warnings: tuple[str, ...],
    *,
    allowed: bool,
) -> tuple[str, ...]:
    found = differences(canonical_json(stored), canonical_json(current))
    if not found:
        return warnings
    if not allowed:
        raise UsageError(
            f"run {run} was computed in another environment ({'; '.join(found)});"
            " --allow-environment-change goes on and marks the run not exact"
        )
    warnings = (*warnings, f"not exact: resumed in another environment ({'; '.join(found)})")
    text = canonical_json(replace(current, exact=False))
    store.update_environment(run, text, content_hash(text), False, warnings)
    return warnings


def _prompts_again(
    engine: Engine, plan: RunPlan, store: Store, run: int
) -> dict[tuple[str, str], EncodedProblem]:
    pending = store.pending_problems(run)
    prompts: dict[tuple[str, str], EncodedProblem] = {}
    for task in plan.tasks:
        problems = [
            Problem(task.task, item.record.text, item.record.reference, item.record.difficulty, item.record.seed)
            for item in pending
            if item.record.task == task.task
        ]
        encoded = encode_problems(engine, get_task(task.task), problems, method_of(task.method), task.shots)
        prompts.update(
            {(task.task, problem.id): prompt for problem, prompt in zip(problems, encoded, strict=True)}
        )
    return prompts


def plan_words(plan: RunPlan) -> dict[str, object]:
    """Return the plan as JSON-able data for reports."""
    return asdict(plan)
