"""A model other than the run's, loaded to read the run's answers: and compared with the run's."""

from __future__ import annotations

from collections.abc import Callable

from salt_tui.engine.engine import Engine
from salt_tui.engine.model_registry import load_registry
from salt_tui.engine.models import ResolvedModel, resolve_model, resolve_stored
from salt_tui.runner.jobs import Emit
from salt_tui.runner.model_identity import identity_of
from salt_tui.runner.opened_model import load_model
from salt_tui.runner.plan import DATE_THAT_NOBODY_READS, RunPlan
from salt_tui.runner.request import EngineOptions
from salt_tui.runner.stored_model import LoadedAgain
from salt_tui.store.queries import Queries
from salt_tui.store.results import StoredStudy
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError


def find_second_model(name: str, study: StoredStudy | None, queries: Queries) -> ResolvedModel:
    """Return the model of a new study by what the user wrote, or that of a stored one.

    Args:
        name: after ``-m``.
        study: that is gone on with; None for a new one.
        queries: of the file that holds it.

    Raises:
        ModelError: it is not there or cannot be used.
    """
    if study is None:
        return resolve_model(name, load_registry())
    place = Place(queries.path, study.work.title)
    return resolve_stored(place.read("model_entry", study.model.entry, ResolvedModel.from_json))


def load_second_model(
    engine: Engine,
    resolved: ResolvedModel,
    plan: RunPlan,
    options: EngineOptions,
    study: StoredStudy | None,
    emit: Emit,
    while_waiting: Callable[[], None],
) -> LoadedAgain:
    """Load it; that of a stored study must be the same.

    Raises:
        UsageError: another one.
        ModelError: it cannot be used.
    """
    identity = identity_of(resolved.files)
    info = load_model(engine, resolved, options, plan.date or DATE_THAT_NOBODY_READS, emit, while_waiting)
    if study is not None and identity.text(info, while_waiting) != study.model.identity:
        raise UsageError(
            f"{study.work.title} cannot be resumed: {resolved.place} is another model than it was; put the old one back"
            " or start anew"
        )
    return LoadedAgain(info, identity)


def refuse_another_vocabulary(name: str, first: tuple[bytes, ...], second: tuple[bytes, ...]) -> None:
    """Raise `UsageError` unless two models have the same pieces under the same ids.

    Args:
        name: of the second model.
        first: bytes of each token id of the run's model.
        second: of the other one.
    """
    if not first:
        raise UsageError("the engine of the run gave no token ids, so no other model can read its tokens")
    if first == second:
        return
    if len(first) != len(second):
        raise UsageError(
            f"{name} has another vocabulary than the run's model ({len(second):,} tokens, not {len(first):,}), so it"
            " cannot read its tokens; a second model needs the same one, as other quantisations have"
        )
    place = next(number for number, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)
    raise UsageError(
        f"{name} has another vocabulary than the run's model (token {place} is {second[place]!r}, not"
        f" {first[place]!r}), so it cannot read its tokens; a second model needs the same one, as other"
        " quantisations have"
    )
