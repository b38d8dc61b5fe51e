"""Timed work for ``salt-tui bench`` and ``make bench``: real runs into a store that is thrown away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from salt_tui.engine.engine_kinds import engine_kind
from salt_tui.engine.model_info import ContextInfo, ModelInfo
from salt_tui.engine.models import ResolvedModel
from salt_tui.engine.process import LLAMA_COMMAND, EngineProcess
from salt_tui.engine.requests import Forced, Free, Generate
from salt_tui.runner.answering import ReplyReading
from salt_tui.runner.errors import RunFailedError
from salt_tui.runner.events import RunStarted, TaskProgress
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.runner.opened_model import answer_jobs, context_options, load_model
from salt_tui.runner.plan import RunPlan, SamplingPlan, TaskPlan, canonical_json
from salt_tui.runner.prompting import EncodedProblem, answer_limit, encode_problems, needed_context
from salt_tui.runner.request import EngineOptions
from salt_tui.store.placing import scratch_folder
from salt_tui.store.records import ModelRecord, ProblemRecord, RunRecord, Work
from salt_tui.store.store import Store, open_store
from salt_tui.usage_error import UsageError
from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS
from tasks.registry import get_task
from tasks.task import Problem

TASK = "kronecker_product"
DATE = "2026-01-01"
"""The templates' date: the same prompts on every day."""

_LEAD = 16
"""Steps of the shorter of two runs, whose difference is the time of decoding alone."""

Display = Callable[[], AbstractContextManager[Emit]]


class _BenchmarkProcess(EngineProcess):
    """An engine that can be told what every answer says, and not to share preambles."""

    forced: tuple[int, ...] = ()
    sharing = True

    def submit(self, request: Generate) -> None:
        """Queue the request with what is set here."""
        preamble = request.preamble if self.sharing else 0
        # The last token is free, so that the answer ends as others do.
        segments = (Forced(self.forced[:-1]), Free(1)) if self.forced else request.segments
        super().submit(replace(request, segments=segments, preamble=preamble))


@dataclass(frozen=True, slots=True)
class Evaluations:
    """A few problems of a real task, with their prompts; computed as often as wanted."""

    problems: tuple[Problem, ...]
    prompts: tuple[EncodedProblem, ...]
    max_tokens: int

    @property
    def context(self) -> int:
        """Tokens that prompt and answer need."""
        return needed_context(self.prompts, self.max_tokens)


class Benchmark:
    """A loaded model to time.  Everything that is stored goes to a folder that is deleted at the end.

    Raises:
        ModelError: the model cannot be loaded.
        UsageError: the model is a script.
    """

    def __init__(self, resolved: ResolvedModel, options: EngineOptions, log_path: Path) -> None:
        if resolved.entry.server is not None:
            raise UsageError(
                f"{resolved.name} is on a server, whose steps cannot be timed from here; the tok/s of a run tell how"
                " fast it answers"
            )
        if not engine_kind(resolved.engine).computes:
            raise UsageError(f"{resolved.name} is a script: it computes nothing that could be timed")
        self._options = options
        self._scratch = ExitStack()
        self._folder = self._scratch.enter_context(scratch_folder())
        self._resolved = resolved
        self._runs = 0
        self.engine = _BenchmarkProcess(LLAMA_COMMAND, log_path)
        try:
            self.info: ModelInfo = load_model(self.engine, resolved, options, DATE, lambda event: None)
            self._vocabulary = self.engine.vocabulary()
            text = "****\n" + "\n".join(" ".join(str(row * column) for column in range(8)) for row in range(9))
            self._answer = self.engine.tokenize(text.encode())
        except BaseException:
            self.close()
            raise

    def open(self, width: int, context: int) -> ContextInfo:
        """Make a context of so many slots and tokens; it is not checked."""
        return self.engine.open_context(context_options(self._options, context=context, width=width, check="none"))

    def run_seconds(self, width: int, steps: int, display: Display) -> tuple[float, float]:
        """Return the seconds of a short and of a long run in which every slot answers, everything stored.

        The long one has ``steps`` steps more: the difference is decoding alone, without prompts and without the
        beginning and the end of a run.  The answers are forced, one token per step as sampled ones are, so that none
        ends early.

        Args:
            width: of the open context, which needs room for ``steps`` tokens and 32 more.
            steps: of the difference.
            display: takes the events of the runs.
        """
        return self._forced_run(width, _LEAD, display), self._forced_run(width, _LEAD + steps, display)

    def _forced_run(self, width: int, tokens: int, display: Display) -> float:
        repeated = self._answer * (tokens // len(self._answer) + 1)
        self.engine.forced = repeated[:tokens]
        try:
            prompt = EncodedProblem(self._answer[:8], 0)
            problems = [Problem(TASK, str(number), "1 2\n3 4", "easy", number) for number in range(width)]
            return self._run(problems, [prompt] * width, tokens, width, 1024, display)
        finally:
            self.engine.forced = ()

    def evaluations(self, count: int, max_tokens: int | None = None) -> Evaluations:
        """Draw problems of an easy task with worked examples in their prompts."""
        task = get_task(TASK)
        problems = draw_problems(task, "easy", level_parameters(task, "easy", ()), 1, count, DEFAULT_SHOTS).problems
        prompts = encode_problems(self.engine, task, problems, "regular", DEFAULT_SHOTS)
        limit = max_tokens or answer_limit(self.engine, task, problems, "regular", reasoning=False)
        return Evaluations(tuple(problems), tuple(prompts), limit)

    def evaluation_seconds(self, work: Evaluations, width: int, *, sharing: bool, display: Display) -> float:
        """Return the seconds from the first prompt to the last stored answer, on a context of that width."""
        self.engine.sharing = sharing
        try:
            return self._run(work.problems, work.prompts, work.max_tokens, width, work.context, display)
        finally:
            self.engine.sharing = True

    def _run(
        self,
        problems: Sequence[Problem],
        prompts: Sequence[EncodedProblem],
        max_tokens: int,
        width: int,
        context: int,
        display: Display,
    ) -> float:
        self._runs += 1
        with open_store(self._folder / f"{self._runs}.db") as store:
            ready = self._ready(store, problems, prompts, max_tokens, width, context)
            with display() as emit:
                tasks = (TaskProgress(TASK, 0, len(problems)),)
                emit(RunStarted(ready.work.run, self._resolved.name, "", width, "easy", None, tasks, ()))
                loop = Loop(ready, emit, threading.Event())
                begin = time.perf_counter()
                state = loop.run()
                seconds = time.perf_counter() - begin
        if state != "finished":
            raise RunFailedError(f"the engine failed while it was timed; {self.engine.log_path} says more")
        return seconds

    def _ready(
        self,
        store: Store,
        problems: Sequence[Problem],
        prompts: Sequence[EncodedProblem],
        max_tokens: int,
        width: int,
        context: int,
    ) -> ReadyWork:
        ids = tuple(problem.id for problem in problems)
        task = TaskPlan(TASK, get_task(TASK).prompt_version, "easy", {}, "regular", 0, (), ids, max_tokens)
        sampling = SamplingPlan(0.0, 0, 1.0, 0.0, 0)
        plan = RunPlan("bench", None, {}, DATE, 0, len(ids), (task,), sampling, context, width)
        name, path, info = self._resolved.name, self._resolved.place, self.info
        model = ModelRecord(
            "bench", None, name, path, info.file_bytes, info.description, info.architecture, info.quantisation,
            info.parameters, info.vocabulary_size, info.trained_context, None, "{}",
        )  # fmt: skip
        records = [
            ProblemRecord(TASK, number, problem.id, "easy", 0, "regular", problem.text, problem.reference, 0, 0)
            for number, problem in enumerate(problems)
        ]
        run = store.create_run(
            model, self._vocabulary, RunRecord(canonical_json(plan), "", "{}", "", None, ()), records
        )
        store.claim(Work(run))
        pending = tuple(store.pending_problems(run))
        encoded = {(TASK, item.problem.content_id): prompts[item.problem.position] for item in pending}
        jobs = answer_jobs(plan, pending, encoded, ReplyReading(self._vocabulary, thinking_open=False))
        return ReadyWork(Work(run), store, self.engine, width, jobs, attempts={}, computed=0, provenance=None)

    def close(self) -> None:
        """End the child and delete what was stored."""
        self.engine.close()
        self._scratch.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
