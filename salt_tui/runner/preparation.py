"""From a request to a stored run that is ready to compute."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from salt_tui.engine.engine import Engine
from salt_tui.engine.errors import ContextError
from salt_tui.engine.model_info import ModelInfo
from salt_tui.engine.model_registry import ModelRegistry
from salt_tui.engine.models import ResolvedModel, load_registry, open_engine, resolve_model
from salt_tui.engine.requests import ChatTurn
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.asked_problems import OWN_DIFFICULTY, generated_record, letter_choice, own_record
from salt_tui.runner.events import ModelLoading, Notice
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.model_identity import identity_of, sha256_of
from salt_tui.runner.opened_model import load_model, make_ready, open_model
from salt_tui.runner.plan import Environment, RunPlan, TaskPlan, canonical_json, content_hash, reads_date
from salt_tui.runner.prompting import (
    ANSWER_ALLOWANCE,
    EncodedProblem,
    answer_limit,
    encode_conversations,
    encode_problems,
    needed_context,
    reply_limit,
)
from salt_tui.runner.provenance import Provenance
from salt_tui.runner.request import RequestedTask, RunRequest, check_request, method_of
from salt_tui.store.disk_space import TOKEN_BYTES, room_for
from salt_tui.store.records import Message, ModelRecord, ProblemRecord, RunRecord, Statistics, Work
from salt_tui.store.store import StoreError, check_place, open_store
from salt_tui.usage_error import UsageError
from tasks.own_problems import PROMPT_VERSION, OwnTask, right_reply
from tasks.parameters import format_parameter
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, worked_examples

SLOW_LIMIT = 1000
"""From so many problems on, drawing them takes seconds and is announced."""


@dataclass(frozen=True, slots=True)
class _DrawnTask:
    """A task with its problems and their prompts."""

    plan: TaskPlan
    problems: tuple[ProblemRecord, ...]
    prompts: tuple[EncodedProblem, ...]


def prepare_run(
    request: RunRequest, database: Path, emit: Emit, log: Path | None = None, registry: ModelRegistry | None = None
) -> ReadyWork:
    """Load the model, draw the problems, make the plan and store the run.

    Nothing is stored before everything has been checked.  What is returned owns an open store and engine: end both
    with `ReadyWork.close`.

    Args:
        request: what to compute.
        database: the file; made where it is not there.
        emit: takes the events of loading.
        log: for what the child prints; None takes a new one.
        registry: the known models; None reads the files that name them.

    Raises:
        UsageError, ParameterError, ModelError, ContextError, StoreError: one line each, exit code 2.
        EngineError: the engine broke, exit code 1.
    """
    requested = check_request(request)
    resolved = resolve_model(request.model, load_registry() if registry is None else registry)
    check_place(database)
    engine = open_engine(resolved, log or new_engine_log_path())
    try:
        return _prepare(request, requested, resolved, database, engine, emit)
    except BaseException:
        engine.close()
        raise


def _prepare(
    request: RunRequest,
    requested: Sequence[RequestedTask | OwnTask],
    resolved: ResolvedModel,
    database: Path,
    engine: Engine,
    emit: Emit,
) -> ReadyWork:
    identity = identity_of(resolved.files)
    date = request.date or datetime.now(UTC).date().isoformat()
    info = load_model(engine, resolved, request.engine, date, emit)
    if request.date is not None and not reads_date(info.template):
        emit(Notice(f"--date {request.date} has no effect: the chat template of {resolved.name} shows no date"))
    reasoning = resolved.kind == "reasoning"
    tokenizer = engine if info.capabilities.vocabulary else None
    drawn = [
        _own_task(tokenizer, item, request, reasoning)
        if isinstance(item, OwnTask)
        else _draw_task(tokenizer, item, request, reasoning, emit)
        for item in requested
    ]
    context = _context(request, resolved, drawn, info, emit)
    model = open_model(engine, resolved.name, info, request.engine, context=context, width=request.engine.width)
    if info.capabilities.vocabulary:
        _check_letters(drawn, model.vocabulary)
    plan = RunPlan(
        identity=identity.text(info),
        template=info.template,
        template_options=dict(resolved.template_options),
        date=date if reads_date(info.template) else None,
        seed=request.seed,
        limit=request.limit,
        tasks=tuple(task.plan for task in drawn),
        sampling=request.sampling,
        context=context,
        width=request.engine.width,
        sent=info.sent,
    )
    environment = model.environment(str(request.engine.gpu_layers))
    caveats = [f"{resolved.name}: {resolved.entry.caveat}"] if resolved.entry.caveat else []
    if context is not None and context > info.trained_context > 0:
        caveats.append(f"-c {context}: the model was trained on {info.trained_context} tokens")
    caveats += [
        f"{item.task.name}: {caveat}"
        for item in requested
        if isinstance(item, RequestedTask) and (caveat := item.task.caveat(item.parameters))
    ]
    warnings = (*info.warnings, *_exactness_warnings(environment), *caveats)
    likely = sum(len(task.problems) * task.plan.max_tokens for task in drawn) // ANSWER_ALLOWANCE
    room_for(likely * TOKEN_BYTES, database, "the run")
    # Hash and exactness check took their time: the last event at which a stop leaves nothing behind.
    emit(ModelLoading(resolved.name, 1.0))
    store = open_store(database)
    try:
        run = store.create_run(
            model_record(resolved, info, plan.identity),
            model.vocabulary,
            _run_record(plan, environment, warnings, info.capabilities.statistics),
            [problem for task in drawn for problem in task.problems],
        )
        store.claim(Work(run))
        return make_ready(
            run, plan, store, model, _prompts_by_problem(drawn), Provenance(identity, environment, warnings), emit
        )
    except BaseException:
        with contextlib.suppress(StoreError):
            store.close()
        raise


def _draw_task(
    engine: Engine | None, item: RequestedTask, request: RunRequest, reasoning: bool, emit: Emit
) -> _DrawnTask:
    task = item.task
    method = method_of(request.method)
    shots = DEFAULT_SHOTS if request.shots is None else request.shots
    if request.limit >= SLOW_LIMIT:
        emit(Notice(f"drawing {request.limit} problems of {task.name}"))
    drawn = draw_problems(task, request.difficulty, item.parameters, request.seed, request.limit, shots)
    if drawn.note:
        emit(Notice(drawn.note))
    if not drawn.problems:
        raise UsageError(f"{task.name} at {request.difficulty}: no problem left beside the {shots} worked examples")
    prompts = encode_problems(engine, task, drawn.problems, method, shots)
    max_tokens = request.max_tokens or answer_limit(engine, task, drawn.problems, method, reasoning=reasoning)
    return _DrawnTask(
        plan=TaskPlan(
            task=task.name,
            prompt_version=task.prompt_version,
            difficulty=request.difficulty,
            parameters={name: format_parameter(value) for name, value in sorted(item.parameters.items())},
            method=method,
            shots=shots,
            example_ids=tuple(example.id for example in worked_examples(task, request.difficulty, shots)),
            problem_ids=tuple(problem.id for problem in drawn.problems),
            max_tokens=max_tokens,
        ),
        problems=tuple(generated_record(problem, position, method) for position, problem in enumerate(drawn.problems)),
        prompts=tuple(prompts),
    )


def _own_task(engine: Engine | None, task: OwnTask, request: RunRequest, reasoning: bool) -> _DrawnTask:
    asked = task.problems[: request.limit]
    asks = [tuple(Message(t.role, t.content) for t in task.conversation(problem, request.shots)) for problem in asked]
    records = tuple(
        own_record(problem, task.name, position, messages)
        for position, (problem, messages) in enumerate(zip(asked, asks, strict=True))
    )
    conversations = [tuple(ChatTurn(turn.role, turn.content) for turn in record.messages) for record in records]
    longest = max(map(right_reply, asked), key=len)
    return _DrawnTask(
        plan=TaskPlan(
            task=task.name,
            prompt_version=PROMPT_VERSION,
            difficulty=OWN_DIFFICULTY,
            parameters={},
            method="regular",
            shots=task.most_examples(request.shots),
            example_ids=tuple(example.content_id for example in task.examples),
            problem_ids=tuple(record.content_id for record in records),
            max_tokens=request.max_tokens or reply_limit(engine, longest, reasoning=reasoning),
        ),
        problems=records,
        prompts=tuple(encode_conversations(engine, conversations)),
    )


def _needed_context(tasks: Sequence[_DrawnTask]) -> int:
    return max(needed_context(task.prompts, task.plan.max_tokens) for task in tasks)


def _context(
    request: RunRequest, resolved: ResolvedModel, drawn: Sequence[_DrawnTask], info: ModelInfo, emit: Emit
) -> int | None:
    """Return the context of an answer; None where the engine does not let us choose it.

    Raises:
        UsageError: ``-c`` for such an engine.
        ContextError: no prompt fits.
    """
    if not info.capabilities.vocabulary:
        if request.engine.context is not None:
            raise UsageError(
                f"-c {request.engine.context}: the server of {resolved.name} sets the context, leave it out"
            )
        return None
    context = request.engine.context or resolved.default_context or _automatic_context(drawn, info, emit)
    _check_prompts_fit(drawn, context)
    return context


def _automatic_context(tasks: Sequence[_DrawnTask], info: ModelInfo, emit: Emit) -> int:
    needed = _needed_context(tasks)
    if needed > info.trained_context > 0:
        emit(
            Notice(
                f"the longest prompt and answer need {needed} tokens, the model was trained on"
                f" {info.trained_context}: longer answers are cut there; -c {needed} overrides"
            )
        )
        return info.trained_context
    return needed


def _check_prompts_fit(tasks: Sequence[_DrawnTask], context: int) -> None:
    shortest = min(len(encoded.prompt) for task in tasks for encoded in task.prompts)
    if shortest >= context:
        raise ContextError(
            f"-c {context}: no prompt fits, the shortest has {shortest} tokens; use -c {_needed_context(tasks)}"
        )


def _check_letters(tasks: Sequence[_DrawnTask], vocabulary: tuple[bytes, ...]) -> None:
    problems = (problem for task in tasks for problem in task.problems if problem.answer_kind == "choice")
    most = max((len(problem.choices) for problem in problems), default=0)
    if most:
        letter_choice(vocabulary, most, sampled=False)


def _exactness_warnings(environment: Environment) -> tuple[str, ...]:
    if environment.exact is not False:
        return ()
    if not environment.exactness:
        return ("not exact: what a server computes may depend on what else it computes",)
    worst = max(environment.exactness.values())
    return (f"not exact: here, scheduling changes logits by up to {worst:.2g}; a resumed run may differ",)


def model_record(resolved: ResolvedModel, info: ModelInfo, identity: str) -> ModelRecord:
    """Return a loaded model as it is stored."""
    return ModelRecord(
        identity=identity,
        sha256=sha256_of(identity),
        name=resolved.name,
        path=resolved.place,
        file_bytes=info.file_bytes,
        description=info.description,
        architecture=info.architecture,
        quantisation=info.quantisation,
        parameters=info.parameters,
        vocabulary_size=info.vocabulary_size,
        trained_context=info.trained_context,
        template=info.template,
        entry=resolved.to_json(),
    )


def _run_record(
    plan: RunPlan, environment: Environment, warnings: tuple[str, ...], statistics: Statistics
) -> RunRecord:
    plan_text, environment_text = canonical_json(plan), canonical_json(environment)
    return RunRecord(
        plan=plan_text,
        plan_hash=content_hash(plan_text),
        environment=environment_text,
        environment_hash=content_hash(environment_text),
        exact=environment.exact,
        warnings=warnings,
        statistics=statistics,
    )


def _prompts_by_problem(tasks: Sequence[_DrawnTask]) -> dict[tuple[str, str], EncodedProblem]:
    return {
        (task.plan.task, problem.content_id): encoded
        for task in tasks
        for problem, encoded in zip(task.problems, task.prompts, strict=True)
    }
