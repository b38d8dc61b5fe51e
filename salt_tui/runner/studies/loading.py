"""The model that computes a study: loaded as its run had it, or taken from who keeps it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from salt_tui.engine.engine import Engine
from salt_tui.engine.models import ResolvedModel, open_engine
from salt_tui.paths import new_engine_log_path
from salt_tui.runner.jobs import Emit, Job
from salt_tui.runner.kept_engine import EngineKeeper, KeptModel
from salt_tui.runner.model_identity import ModelIdentity
from salt_tui.runner.opened_model import OpenedModel, open_model
from salt_tui.runner.provenance import Provenance
from salt_tui.runner.request import EngineOptions, check_engine_options, read_gpu_layers
from salt_tui.runner.resumption import environment_differences
from salt_tui.runner.stored_model import LoadedAgain, load_again, options_of
from salt_tui.runner.studies.kind import StudyKind
from salt_tui.runner.studies.second_model_loading import load_second_model
from salt_tui.runner.studies.subject import Subject
from salt_tui.runner.watchdog import AnswerWatch
from salt_tui.store.results import StoredStudy
from salt_tui.store.store import StoreError
from salt_tui.usage_error import UsageError


@dataclass(frozen=True, slots=True)
class Loading:
    """What is to be loaded for a study, and how.

    Attributes:
        resolved: the model that computes it.
        threads: None takes the run's.
        cache_mb: memory for beginnings that its jobs share.
        study: that is gone on with; None for a new one.
    """

    resolved: ResolvedModel
    threads: int | None
    cache_mb: int
    study: StoredStudy | None = None


@dataclass(slots=True)
class LoadedStudy:
    """The model that computes a study, loaded, and how to open it; one that is kept also with its context open.

    Attributes:
        name: of the model.
        engine: with the model loaded.
        options: how its context is opened.
        date: that its template sees.
        asked_for: identity of the run's model.
        again: what loading gave.
        vocabulary: of the model.
        opened: with its context; None before there is one.
        context: of that, in tokens.
    """

    name: str
    engine: Engine
    options: EngineOptions
    date: str | None
    asked_for: str
    again: LoadedAgain
    vocabulary: tuple[bytes, ...]
    opened: OpenedModel | None = None
    context: int | None = None

    @property
    def identity(self) -> ModelIdentity:
        """Of the model's files."""
        return self.again.identity


@contextlib.contextmanager
def loaded_for(
    kind: StudyKind,
    subject: Subject,
    loading: Loading,
    log: Path | None,
    emit: Emit,
    keeper: EngineKeeper | None,
    beat: Callable[[], None] = lambda: None,
) -> Iterator[LoadedStudy]:
    """Load the model of a study, or take the one that is kept; end its engine when the body fails.

    A kept one outlives a refusal of what was asked, and is given up after anything else that fails.
    """
    options = _engine_options(kind, subject, loading)

    def fits(kept: KeptModel) -> bool:
        return (
            isinstance(kept, LoadedStudy)
            and (kept.options, kept.date, kept.asked_for) == (options, subject.plan.date, subject.plan.identity)
            and kept.again.info.template == subject.plan.template
        )

    kept = None if keeper is None else keeper.fitting(fits, emit, beat)
    if isinstance(kept, LoadedStudy):
        loaded = kept
        loaded.engine.call_while_waiting(AnswerWatch(emit, f"{loaded.name} to answer", beat))
    else:
        loaded = _load(kind, subject, loading, options, log, emit, beat)
        if keeper is not None:
            keeper.keep(loaded)
    try:
        yield loaded
    except BaseException as error:
        if keeper is None:
            loaded.engine.close()
        elif not isinstance(error, UsageError | StoreError):
            keeper.drop()  # it may still be about to answer
        raise


def _engine_options(kind: StudyKind, subject: Subject, loading: Loading) -> EngineOptions:
    plan = subject.plan
    options = options_of(subject.environment, width=plan.width, context=plan.context, threads=loading.threads)
    options = replace(options, cache_mb=loading.cache_mb)
    check_engine_options(options)
    if kind.computed_by == "another model":
        # As many layers as were asked for: as many as the run had would be a guess for another file.
        options = replace(options, gpu_layers=read_gpu_layers(subject.environment.requested_gpu_layers))
    return options


def _load(
    kind: StudyKind,
    subject: Subject,
    loading: Loading,
    options: EngineOptions,
    log: Path | None,
    emit: Emit,
    while_waiting: Callable[[], None],
) -> LoadedStudy:
    """Load the model of a new study, or of a stored one; see that it is the same and can do what the kind needs."""
    plan, resolved = subject.plan, loading.resolved
    engine = open_engine(resolved, log or new_engine_log_path())
    try:
        if kind.computed_by == "another model":
            again = load_second_model(engine, resolved, plan, options, loading.study, emit, while_waiting)
        else:
            title = f"a study of run {subject.stored.run}"
            again = load_again(engine, resolved, plan, options, title, emit, while_waiting)
            if again.info.template != plan.template:
                raise UsageError(
                    f"{title} is not possible: the chat template of {resolved.name} is another than it was"
                )
        kind.refuse_engine(again.info.capabilities)
        vocabulary = engine.vocabulary() if again.info.capabilities.vocabulary else ()
        return LoadedStudy(resolved.name, engine, options, plan.date, plan.identity, again, vocabulary)
    except BaseException:
        engine.close()
        raise


def open_as_the_run(
    loaded: LoadedStudy, subject: Subject, jobs: Sequence[Job], context: int | None
) -> tuple[OpenedModel, Provenance]:
    """Open the context with the shape of the run, and with the layers that jobs ask for."""
    layers = tuple(sorted({layer for job in jobs for layer in job.request(0).layers}))
    info, width = loaded.again.info, subject.plan.width
    model = loaded.opened
    if model is None or layers or (context or 0) > (loaded.context or 0):
        model = open_model(
            loaded.engine, loaded.name, info, loaded.options, context=context, width=width, layers=layers
        )
        loaded.opened, loaded.context = model, context
    environment = model.environment(subject.environment.requested_gpu_layers)
    warnings = tuple(
        f"computed in another environment than run {subject.stored.run}: {difference}"
        for difference in environment_differences(subject.environment, environment)
    )
    return model, Provenance(loaded.again.identity, environment, warnings)
