"""What the user asks for, before anything is resolved."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

from salt_tui.engine.options import CACHE_MB, check_width
from salt_tui.inputs.question_files import read_questions
from salt_tui.runner.plan import BELOW_LIMIT, WHOLE_NUMBERS, SamplingPlan
from salt_tui.similar_names import did_you_mean
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX, OwnTask
from tasks.parameters import level_parameters
from tasks.registry import TASKS, get_task
from tasks.task import DIFFICULTIES, METHODS, Method, Parameters, Task

MAXIMUM_LIMIT = 100_000
"""Problems per task: drawing so many of the slowest task takes a quarter of an hour, computing them weeks."""

MAXIMUM_SHOTS = 16
THREADS_PER_PROCESSOR = 4
MINIMUM_CONTEXT = 16


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How to compute; names and meanings are llama.cpp's.  None leaves the choice to the engine or the plan."""

    gpu_layers: int | Literal["auto", "all"] = "auto"
    width: int = 4
    context: int | None = None
    threads: int | None = None
    batch: int = 512
    micro_batch: int = 512
    flash_attention: Literal["auto", "on", "off"] = "auto"
    key_type: str = "f16"
    value_type: str = "f16"
    cache_mb: int = CACHE_MB


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One ``salt-tui run``.

    Attributes:
        model: a name from ``models.toml`` or a path.
        tasks: names, or ``("all",)``.
        parameters: ``--param`` texts ``key=value``.
        max_tokens: ``-n``; None derives it from the longest reference of each task.
        date: ISO date that the chat template sees; None is today.
    """

    model: str
    tasks: tuple[str, ...]
    difficulty: str
    limit: int
    seed: int
    method: str = "regular"
    shots: int | None = None
    parameters: tuple[str, ...] = ()
    max_tokens: int | None = None
    date: str | None = None
    sampling: SamplingPlan = field(default_factory=SamplingPlan)
    engine: EngineOptions = field(default_factory=EngineOptions)


@dataclass(frozen=True, slots=True)
class RequestedTask:
    """A task of a request with every parameter set."""

    task: Task
    parameters: Parameters


def check_request(request: RunRequest) -> tuple[RequestedTask | OwnTask, ...]:
    """Validate what can be validated without the model and resolve tasks and parameters.

    Raises:
        UsageError: naming what is wrong and what would be right; also the first bad row of a file.
        ParameterError: for ``--param``.
        ContextError: for the width.
    """
    if request.difficulty not in DIFFICULTIES:
        raise UsageError(f"unknown difficulty {request.difficulty!r}: one of {', '.join(DIFFICULTIES)}")
    method_of(request.method)
    _require(1 <= request.limit <= MAXIMUM_LIMIT, f"--limit {request.limit}: at least 1, at most {MAXIMUM_LIMIT}")
    _require(request.seed in WHOLE_NUMBERS, f"--seed {request.seed}: {BELOW_LIMIT}")
    if request.shots is not None:
        _require(0 <= request.shots <= MAXIMUM_SHOTS, f"--shots {request.shots}: 0 to {MAXIMUM_SHOTS}")
    if request.max_tokens is not None:
        _require(request.max_tokens >= 1, f"-n {request.max_tokens}: at least 1")
        _require(request.max_tokens in WHOLE_NUMBERS, f"-n {request.max_tokens}: {BELOW_LIMIT}")
    if request.date is not None:
        _check_date(request.date)
    check_sampling(request.sampling)
    check_engine_options(request.engine)
    files = tuple(dict.fromkeys(name for name in request.tasks if name.startswith(FILE_PREFIX)))
    named = tuple(dict.fromkeys(name for name in request.tasks if name not in files))
    names = tuple(TASKS) if "all" in named else named
    _require(bool(names or files), "no task named: --tasks NAME,NAME, --tasks all or --tasks file:PROBLEMS.jsonl")
    tasks = [get_task(name) for name in names]
    generated = tuple(
        RequestedTask(task, level_parameters(task, request.difficulty, overrides))
        for task, overrides in zip(tasks, _overrides(tasks, request.parameters), strict=True)
    )
    if files and request.method != "regular":
        raise UsageError(f"--method {request.method}: problems of a file are asked directly, leave it out")
    own = [read_questions(Path(name.removeprefix(FILE_PREFIX))) for name in files]
    repeated = [name for name, count in Counter(task.name for task in own).items() if count > 1]
    _require(not repeated, f"two files would both be {', '.join(repeated)}: rename one")
    return (*generated, *own)


def _overrides(tasks: Sequence[Task], texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Give each task the ``--param`` texts that it has a parameter for."""
    known = [{parameter.name for parameter in task.parameters} for task in tasks]
    shares: list[list[str]] = [[] for _ in tasks]
    for text in texts:
        name = text.partition("=")[0].strip()
        takers = [share for share, names in zip(shares, known, strict=True) if name in names]
        if not takers:
            valid = sorted(set().union(*known))
            hint = did_you_mean(name, valid)
            raise UsageError(f"--param {text}: key=value with one of {', '.join(valid)}{hint}")
        for share in takers:
            share.append(text)
    return [tuple(share) for share in shares]


def method_of(name: str) -> Method:
    """Return the method of that name or raise `UsageError`."""
    for method in METHODS:
        if method == name:
            return method
    raise UsageError(f"unknown method {name!r}: one of {', '.join(METHODS)}")


def read_gpu_layers(text: str) -> int | Literal["auto", "all"]:
    """Read ``-ngl``: ``auto``, ``all`` or a count; raises `UsageError`."""
    if text == "auto":
        return "auto"
    if text == "all":
        return "all"
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise UsageError(f"-ngl {text}: auto, all, or a count of layers")


def check_engine_options(options: EngineOptions) -> None:
    """Raise `UsageError`, or `ContextError` for the width, unless the options can be tried."""
    check_width(options.width)
    if options.context is not None:
        _require(options.context >= MINIMUM_CONTEXT, f"-c {options.context}: at least {MINIMUM_CONTEXT} tokens")
    if options.threads is not None:
        # More threads than processors only wait for each other; llama.cpp crashes at tens of thousands.
        most = THREADS_PER_PROCESSOR * (os.cpu_count() or 1)
        _require(1 <= options.threads <= most, f"-t {options.threads}: 1 to {most} on this machine")
    _require(options.batch >= 1, f"-b {options.batch}: at least 1")
    _require(options.cache_mb >= 0, f"--cache-mb {options.cache_mb}: 0 or more")
    _require(
        1 <= options.micro_batch <= options.batch, f"-ub {options.micro_batch}: 1 to -b ({options.batch}); give both"
    )


def _check_date(text: str) -> None:
    try:
        well_formed = date.fromisoformat(text).isoformat() == text
    except ValueError:
        well_formed = False
    _require(well_formed, f"--date {visible(text)}: a day as YYYY-MM-DD")


def check_sampling(sampling: SamplingPlan) -> None:
    """Raise `UsageError` for a value outside its range."""
    temperature = sampling.temperature
    _require(0 <= temperature < math.inf, f"--temp {temperature}: a number, at least 0")
    _require(sampling.top_k >= 0, f"--top-k {sampling.top_k}: at least 0 (0 keeps all)")
    _require(0 < sampling.top_p <= 1, f"--top-p {sampling.top_p}: above 0, at most 1")
    _require(0 <= sampling.min_p < 1, f"--min-p {sampling.min_p}: at least 0, below 1")
    _require(sampling.top_k in WHOLE_NUMBERS, f"--top-k {sampling.top_k}: {BELOW_LIMIT}")
    _require(sampling.seed in WHOLE_NUMBERS, f"--sampler-seed {sampling.seed}: {BELOW_LIMIT}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UsageError(message)
