"""The model of a stored run, loaded and opened again as the run had it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from salt_tui.engine.engine import Engine
from salt_tui.engine.model_info import ModelInfo
from salt_tui.engine.models import ResolvedModel
from salt_tui.runner.jobs import Emit
from salt_tui.runner.model_identity import ModelIdentity, identity_of, shown_identity
from salt_tui.runner.opened_model import load_model
from salt_tui.runner.plan import DATE_THAT_NOBODY_READS, Environment, RunPlan
from salt_tui.runner.request import EngineOptions
from salt_tui.usage_error import UsageError


@dataclass(frozen=True, slots=True)
class LoadedAgain:
    """A model that is the run's, loaded; its context is not open yet."""

    info: ModelInfo
    identity: ModelIdentity


def load_again(
    engine: Engine,
    resolved: ResolvedModel,
    plan: RunPlan,
    options: EngineOptions,
    title: str,
    emit: Emit,
    while_waiting: Callable[[], None],
) -> LoadedAgain:
    """Load the model of a run and see that it is the same one.

    Args:
        engine: has nothing loaded.
        resolved: the model, found again.
        plan: of the run.
        options: how to load.
        title: for messages, what needs the model, e.g. ``run 17``.
        emit: takes the progress of loading.
        while_waiting: called every second while the file is hashed.

    Raises:
        UsageError: another model.
        ModelError: it cannot be used.
    """
    identity = identity_of(resolved.files)
    info = load_model(engine, resolved, options, plan.date or DATE_THAT_NOBODY_READS, emit, while_waiting)
    found = identity.text(info, while_waiting)
    if found != plan.identity:
        raise UsageError(
            f"{title} needs another model than {resolved.place} ({shown_identity(found)}): the run was begun with"
            f" {shown_identity(plan.identity)}; use that one or begin a new run"
        )
    if _asked(info.sent) != _asked(plan.sent):
        raise UsageError(f"{title}: {resolved.name} would be asked otherwise than in the run; begin a new one")
    return LoadedAgain(info, identity)


def _asked(sent: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what requests hold; what was found out about the server's numbers is measured, and stays the run's."""
    return None if sent is None else {name: value for name, value in sent.items() if name != "before_sampling"}


def options_of(environment: Environment, *, width: int, context: int | None, threads: int | None) -> EngineOptions:
    """Return how a run computed, to compute so again.

    Args:
        environment: of the run.
        width: of its plan.
        context: tokens per sequence.
        threads: None takes the run's.
    """
    return EngineOptions(
        # As many as then, also where -ngl auto would find room for more or fewer today.
        gpu_layers=environment.gpu_layers,
        width=width,
        context=context,
        # Imported answers were computed with none; then the engine chooses.
        threads=(environment.threads if threads is None else threads) or None,
        batch=environment.batch,
        micro_batch=environment.micro_batch,
        flash_attention="on" if environment.flash_attention else "off",
        key_type=environment.key_type,
        value_type=environment.value_type,
    )
