"""A model that is loaded, with its context open; shared by new and resumed runs."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import salt_tui
from salt_tui.engine.device_words import device_in_words
from salt_tui.engine.engine import Engine
from salt_tui.engine.events import LoadProgress
from salt_tui.engine.model_info import ContextInfo, ModelInfo
from salt_tui.engine.models import ResolvedModel
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.runner.answering import AnswerJob, ReplyReading, answer_sampling
from salt_tui.runner.events import ModelLoading, RunStarted, TaskProgress
from salt_tui.runner.jobs import Emit, JobName
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.plan import Environment, RunPlan, TaskPlan, make_environment
from salt_tui.runner.prompting import ANSWER_ALLOWANCE, ANSWER_MARGIN, EncodedProblem
from salt_tui.runner.provenance import Provenance
from salt_tui.runner.request import EngineOptions
from salt_tui.runner.watchdog import AnswerWatch
from salt_tui.store.records import PendingProblem, Work
from salt_tui.store.store import Store


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """What loading and opening gave; ``vocabulary`` is empty where the engine gives no ids."""

    name: str
    engine: Engine
    info: ModelInfo
    context: ContextInfo
    vocabulary: tuple[bytes, ...]

    def environment(self, requested_gpu_layers: str) -> Environment:
        """Describe how this computes."""
        return make_environment(
            program_version=salt_tui.__version__,
            python_version=platform.python_version(),
            build=self.info.build,
            model=self.info,
            context=self.context,
            requested_gpu_layers=requested_gpu_layers,
        )

    @property
    def device(self) -> str:
        """Where it computes, see `device_in_words`."""
        names = [f"{device.name} {device.description}" for device in self.info.build.devices]
        return device_in_words(names, self.context.gpu_layers, self.context.threads)


def load_model(
    engine: Engine,
    resolved: ResolvedModel,
    options: EngineOptions,
    date: str,
    emit: Emit,
    beat: Callable[[], None] = lambda: None,
) -> ModelInfo:
    """Load, reporting progress; from now on the engine says when it lets somebody wait.

    Args:
        engine: has nothing loaded.
        resolved: the model.
        options: how to load it.
        date: that templates see.
        emit: takes the progress.
        beat: called every second while an answer of the engine is waited for.

    Raises:
        ModelError: it cannot be used.
    """
    watch = AnswerWatch(emit, f"{resolved.name} to be loaded", beat)
    engine.call_while_waiting(watch)

    def report(progress: LoadProgress) -> None:
        watch.progressed()
        emit(ModelLoading(resolved.name, progress.fraction))

    asked = LoadOptions(
        path=resolved.place,
        gpu_layers=options.gpu_layers,
        template=resolved.template,
        template_options=dict(resolved.template_options),
        date=date,
        server=resolved.entry.server,
    )
    return engine.load(asked, report)


def open_model(
    engine: Engine,
    name: str,
    info: ModelInfo,
    options: EngineOptions,
    *,
    context: int | None,
    width: int,
    check: Literal["none", "quick", "full"] = "quick",
    layers: tuple[int, ...] = (),
) -> OpenedModel:
    """Open the context and fetch the vocabulary; raises `ContextError`."""
    asked = replace(context_options(options, context=context, width=width, check=check), layers=layers)
    opened = engine.open_context(asked)
    vocabulary = engine.vocabulary() if info.capabilities.vocabulary else ()
    return OpenedModel(name, engine, info, opened, vocabulary)


def context_options(
    options: EngineOptions, *, context: int | None, width: int, check: Literal["none", "quick", "full"]
) -> ContextOptions:
    """Return what to open, with the context and the width that were settled on."""
    return ContextOptions(
        width=width,
        context=context,
        batch=options.batch,
        micro_batch=options.micro_batch,
        threads=options.threads,
        flash_attention=options.flash_attention,
        key_type=options.key_type,
        value_type=options.value_type,
        check=check,
        cache_mb=options.cache_mb,
    )


def make_ready(
    run: int,
    plan: RunPlan,
    store: Store,
    model: OpenedModel,
    prompts: dict[tuple[str, str], EncodedProblem],
    provenance: Provenance,
    emit: Emit,
) -> ReadyWork:
    """Announce the run and collect what its loop needs.

    Args:
        run: its number; claimed by this process.
        plan: of the run.
        store: open.
        model: opened.
        prompts: by task and content id of the problem; those of all open problems at least.
        provenance: what its numbers rest on; its warnings are shown.
        emit: takes `RunStarted`.
    """
    pending = tuple(store.pending_problems(run))
    left: dict[str, list[PendingProblem]] = {task.task: [] for task in plan.tasks}
    for problem in pending:
        left[problem.problem.task].append(problem)
    emit(
        RunStarted(
            run=run,
            model=f"{model.name} · {model.info.description}",
            device=model.device,
            width=model.context.width,
            difficulty=plan.tasks[0].difficulty,
            exact=model.context.exactness.exact,
            tasks=tuple(
                TaskProgress(
                    task.task,
                    len(task.problem_ids) - len(left[task.task]),
                    len(task.problem_ids),
                    _planned_tokens(task, left[task.task]),
                    _prompt_tokens([prompts[task.task, item.problem.content_id] for item in left[task.task]]),
                )
                for task in plan.tasks
            ),
            warnings=provenance.warnings,
            statistics=model.info.capabilities.statistics,
        )
    )
    return ReadyWork(
        work=Work(run),
        store=store,
        engine=model.engine,
        width=plan.width,
        attempts={JobName(item.id, item.problem.task, item.problem.position).key: item.attempt for item in pending},
        jobs=answer_jobs(plan, pending, prompts, ReplyReading(model.vocabulary, model.info.thinking_open)),
        computed=sum(len(task.problem_ids) for task in plan.tasks) - len(pending),
        provenance=provenance,
    )


def answer_jobs(
    plan: RunPlan,
    pending: Sequence[PendingProblem],
    prompts: Mapping[tuple[str, str], EncodedProblem],
    reading: ReplyReading,
) -> tuple[AnswerJob, ...]:
    """Return one job for each open problem, in their order.

    Args:
        plan: of the run.
        pending: the open problems.
        prompts: by task and content id.
        reading: how replies are read.
    """
    limits = {task.task: task.max_tokens for task in plan.tasks}
    return tuple(
        AnswerJob(
            name=JobName(item.id, item.problem.task, item.problem.position),
            problem=item.problem,
            prompt=prompts[item.problem.task, item.problem.content_id],
            max_tokens=limits[item.problem.task],
            sampling=answer_sampling(plan.sampling, item.problem.content_id),
            reading=reading,
        )
        for item in pending
    )


def _prompt_tokens(prompts: Sequence[EncodedProblem]) -> float:
    """Return what is evaluated for each of some prompts of one task on average; their preamble once for all."""
    if not prompts:
        return 0.0
    own = sum(len(encoded.prompt) - encoded.preamble for encoded in prompts)
    return (own + max(encoded.preamble for encoded in prompts)) / len(prompts)


def _planned_tokens(task: TaskPlan, left: Sequence[PendingProblem]) -> int:
    """Return the limit of an answer, or what it would be by the longest right answer where ``-n`` allows more.

    Answers of a weak model run to their limits, those of a good one are about half as long: in relation to the limit
    tasks differ less than in relation to the right answers (11-fold and 32-fold with salt-nano).
    """
    if task.method == "cot":
        return task.max_tokens
    longest = max((len(problem.problem.reference) for problem in left), default=0)
    return min(task.max_tokens, ANSWER_ALLOWANCE * longest + ANSWER_MARGIN)
