"""``salt-tui doctor``: what this installation can do."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import salt_tui
from salt_tui.commands.failures import DONE, FAILED
from salt_tui.engine.engine_kinds import REMOTE, engine_kind
from salt_tui.engine.errors import EngineError, ModelError
from salt_tui.engine.model_info import Build, ContextInfo, Exactness, ModelInfo
from salt_tui.engine.models import ResolvedModel, load_registry, open_engine, resolve_model
from salt_tui.engine.process import LLAMA_COMMAND, EngineProcess
from salt_tui.paths import database_path, log_directory, new_engine_log_path, user_models_file
from salt_tui.runner.opened_model import load_model, open_model
from salt_tui.runner.request import EngineOptions
from salt_tui.runner.restart_check import difference_after_restart
from salt_tui.visible_text import visible

CHECK_CONTEXT = 512
"""Tokens per answer of the context in which exactness is checked."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found; ``failure`` is the line that says what does not work."""

    build: Build | None
    model: ModelInfo | None
    context: ContextInfo | None
    failure: str | None


def examine(model: str, *, json_output: bool) -> int:
    """Print versions, devices, files and the exactness check; exit 1 when the engine cannot compute."""
    log = new_engine_log_path()
    try:
        found = _examine(model, log)
    except EngineError as error:
        found = Examination(None, None, None, str(error))
    if json_output:
        data = {
            "version": salt_tui.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "database": str(database_path()),
            "models": str(user_models_file()),
            "engine_logs": str(log_directory()),
            **asdict(found),
        }
        print(json.dumps(data, ensure_ascii=False))
    else:
        _print(found)
    return DONE if found.failure is None else FAILED


def _examine(model: str, log: Path) -> Examination:
    resolved = _resolved(model)
    if isinstance(resolved, str):  # build and devices can be told without a model
        with EngineProcess(LLAMA_COMMAND, log) as engine:
            return Examination(engine.build(), None, None, resolved)
    with open_engine(resolved, log) as engine:
        build = engine.build()
        try:
            date = datetime.now(UTC).date().isoformat()
            options = EngineOptions()
            info = load_model(engine, resolved, options, date, lambda event: None)
            opened = open_model(
                engine, resolved.name, info, options, context=CHECK_CONTEXT, width=options.width, check="full"
            )
            build, context = info.build, opened.context
            if engine_kind(resolved.engine).computes:
                context = with_restart(context, difference_after_restart(engine, options.width))
        except EngineError as error:
            return Examination(build, None, None, str(error))
        return Examination(build, info, context, None)


def _resolved(model: str) -> ResolvedModel | str:
    """Return the model, or the line that says why it cannot be used."""
    try:
        return resolve_model(model, load_registry())
    except ModelError as error:
        return str(error)


def with_restart(context: ContextInfo, restart: float) -> ContextInfo:
    """Add what a restart changed to the exactness check."""
    differences = {**context.exactness.differences, "restart": restart}
    exact = all(difference == 0.0 for difference in differences.values())
    return replace(context, exactness=Exactness(differences, exact))


def _print(found: Examination) -> None:
    print(f"salt-tui   {salt_tui.__version__}, Python {platform.python_version()}, {platform.platform()}")
    if found.build is not None:
        versions = ", ".join(f"{name} {version}" for name, version in found.build.versions.items())
        print(f"engine     {found.build.engine}: {versions}")
        if found.build.engine != REMOTE:
            where = "this build can offload" if found.build.supports_gpu else "this build computes on the CPU"
            print(f"GPU        {where}")
        for device in found.build.devices:
            print(f"device     {visible(device.name)}: {visible(device.description)}{_memory(device.memory_free)}")
        if found.build.engine != REMOTE:
            print(f"features   {visible(found.build.system_information)}")
    _print_path("database", database_path())
    _print_path("models", user_models_file())
    _print_path("engine logs", log_directory())
    if found.model is not None and found.build is not None and found.build.engine == REMOTE:
        for line in _served(found.model):
            print(line)
    elif found.model is not None and found.context is not None:
        layers = f"{found.context.gpu_layers}/{found.model.layers} layers on GPU"
        print(f"model      {visible(found.model.description)}, {layers}")
        print(f"exactness  {_exactness(found.context)}")
    if found.failure is not None:
        print(f"problem    {visible(found.failure)}")


def _served(model: ModelInfo) -> Iterator[str]:
    """Say what a server told and showed."""
    context = f", context {model.trained_context:,}" if model.trained_context else ""
    yield f"model      {visible(model.name or '')}, {visible(model.description)}{context}"
    yield f"identity   {visible(model.identity or '')}"
    raw = {
        True: "those of the model, before temperature and samplers",
        False: "change with the temperature: no lower bound of the entropy",
        None: "too few to tell whether they are those before the temperature",
    }
    sent = model.sent or {}
    yield f"statistics the most probable tokens only; log-probabilities {raw[sent.get('before_sampling')]}"
    yield "exactness  not exact: what a server computes may depend on what else it computes"
    for warning in model.warnings:
        yield f"warning    {visible(warning)}"


def _print_path(name: str, path: Path) -> None:
    print(f"{name:<10} {visible(str(path))}{'' if path.exists() else ' (not there yet)'}")


def _memory(free: int | None) -> str:
    return "" if free is None else f", {free / 2**30:.1f} GiB free"


def _exactness(context: ContextInfo) -> str:
    shape = f"at width {context.width}, {context.threads} threads"
    if context.exactness.exact is None:
        return f"not checked {shape}"
    if context.exactness.exact:
        return f"bit for bit {shape}: {', '.join(context.exactness.differences)}"
    found = ", ".join(f"{name} {value:.2g}" for name, value in context.exactness.differences.items())
    return f"NOT exact {shape}: largest differences {found}"
