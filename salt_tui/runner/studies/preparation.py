"""From what is asked about a stored run to a study that is ready to compute, new or resumed."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from salt_tui.engine.models import ResolvedModel, resolve_stored
from salt_tui.engine.options import CACHE_MB
from salt_tui.engine.requests import Aside, Forced, Free, Generate, Segment, Spelled
from salt_tui.runner.answering import ReplyReading
from salt_tui.runner.events import ModelLoading, Notice, RunStarted, TaskProgress
from salt_tui.runner.heartbeat import Heartbeat
from salt_tui.runner.jobs import Emit, Job
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.opened_model import OpenedModel
from salt_tui.runner.plan import Environment, canonical_json, content_hash
from salt_tui.runner.preparation import model_record
from salt_tui.runner.prompting import ANSWER_ALLOWANCE
from salt_tui.runner.provenance import Provenance
from salt_tui.runner.resumption import check_environment
from salt_tui.runner.studies.kind import StudyKind, StudySetting
from salt_tui.runner.studies.loading import LoadedStudy, Loading, loaded_for, open_as_the_run
from salt_tui.runner.studies.plan import (
    Options,
    OptionValue,
    StudyPlan,
    hash_of_answers,
    positions_by_task,
)
from salt_tui.runner.studies.registry import study_kind
from salt_tui.runner.studies.second_model_loading import (
    find_second_model,
    refuse_another_vocabulary,
)
from salt_tui.runner.studies.subject import Subject, still_covered
from salt_tui.store.disk_space import TOKEN_BYTES, room_for
from salt_tui.store.queries import open_queries
from salt_tui.store.records import StudyRecord, Work
from salt_tui.store.results import StoredStudy
from salt_tui.store.store import Store, StoreError, open_store
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError


@dataclass(frozen=True, slots=True)
class _OpenStudy:
    """A study whose model is open, with all its jobs."""

    kind: StudyKind
    subject: Subject
    store: Store
    model: OpenedModel
    provenance: Provenance
    jobs: Sequence[Job]


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """One ``salt-tui study``.

    Attributes:
        kind: a name of the registry.
        run: name of the run it is about.
        options: of the kind; what is not there takes its default.
        context: ``-c``; None takes what is needed, at least the run's.
        threads: ``-t``; None takes the run's.
        cache_mb: ``--cache-mb``, memory for beginnings that its jobs share; changes no number.
    """

    kind: str
    run: str
    options: Mapping[str, OptionValue]
    context: int | None = None
    threads: int | None = None
    cache_mb: int = CACHE_MB


def prepare_study(
    request: StudyRequest, database: Path, emit: Emit, log: Path | None = None, keeper: EngineKeeper | None = None
) -> ReadyWork:
    """Load the model of a run and store a new study of its finished answers.

    Nothing is stored before everything has been checked.  What is returned owns an open store and engine: end both
    with `ReadyWork.close`.

    Args:
        request: what to compute.
        database: the file that holds the run.
        emit: takes the events of loading.
        log: for what the child prints; None takes a new one.
        keeper: in whose thread this is called: its model is used where it fits, and it keeps the one that is loaded.

    Raises:
        UsageError, ModelError, ContextError, StoreError: one line each, exit code 2.
        EngineError: the engine broke, exit code 1.
    """
    kind = study_kind(request.kind)
    options = kind.complete(request.options)
    with open_queries(database) as queries:
        subject = Subject.read(queries, queries.find_run(request.run))
        known = [study.work for study in queries.studies(subject.stored.run) if study.kind == kind.name and kind.reused]
        reused = queries.study_record(known[0]) if known else None
    run, answers = subject.stored.run, subject.answers
    if not answers:
        raise UsageError(f"run {run} has no finished answer that a study could be about")
    least = subject.plan.context
    if request.context is not None and least is not None and request.context < least:
        raise UsageError(f"-c {request.context}: a study has at least the context of its run, {least} tokens")
    if kind.computed_by == "no model":
        return _prepare_without_model(kind, options, subject, database, emit)
    loading = Loading(_computing(kind, options, subject, None, database), request.threads, request.cache_mb)
    with _open_for(database) as store, loaded_for(kind, subject, loading, log, emit, keeper) as loaded:
        jobs = _jobs(kind, options, subject, loaded, database, emit, None if reused is None else reused.work)
        needed = max((tokens_of(job.request(0)) for job in jobs), default=0) if kind.grows_context else 0
        context = _grown(subject.plan.context, max(needed, request.context or 0))
        model, provenance = open_as_the_run(loaded, subject, jobs, context)
        if (reason := kind.inexact(options)) is not None:
            provenance = replace(provenance, warnings=(*provenance.warnings, f"not exact: {reason}"))
        plan = _plan(kind, options, subject, len(jobs), context)
        # The last event at which a stop leaves nothing behind.
        emit(ModelLoading(loaded.name, 1.0))
        if reused is None:
            record = _record(plan, kind, provenance, model, loading.resolved)
            work = store.create_study(run, record, model.vocabulary)
            store.claim(work)
        else:
            work = reused.work
            store.claim(work)
            store.forget_unfinished(work)
            began = Place(database, work.title).read("environment", reused.record.environment, Environment.from_json)
            provenance = check_environment(store, work, began, provenance, allowed=True)
        ready = _ready(work, plan, _OpenStudy(kind, subject, store, model, provenance, jobs), database, emit)
        return replace(ready, keeps_engine=keeper is not None)


def prepare_study_resume(
    study: StoredStudy,
    database: Path,
    emit: Emit,
    *,
    allow_environment_change: bool,
    threads: int | None,
    cache_mb: int = CACHE_MB,
    log: Path | None = None,
) -> ReadyWork:
    """Make a stored study ready to go on.

    Args:
        study: not finished.
        database: the file that holds it.
        emit: takes the events of loading.
        allow_environment_change: go on although the environment differs; the study is then marked not exact.
        threads: None takes the study's.
        cache_mb: memory for beginnings that its jobs share; changes no number.
        log: for what the child prints; None takes a new one.

    Raises:
        EnvironmentChangedError: another environment that is not allowed.
        UsageError: another model, or answers that are no longer those that the study covers.
        ModelError, ContextError, StoreError: as for a new study.
    """
    work = study.work
    plan = read_study_plan(database, study)
    kind = study_kind(plan.kind)
    environment = Place(database, work.title).read("environment", study.record.environment, Environment.from_json)
    with open_queries(database) as queries:
        subject = Subject.read(queries, work.run)
    subject = replace(subject, answers=still_covered(work, plan, subject.answers))
    if kind.computed_by == "no model":
        return _resume_without_model(work, plan, kind, subject, database, emit)
    wanted_threads = environment.threads if threads is None else threads
    loading = Loading(_computing(kind, plan.options, subject, study, database), wanted_threads, cache_mb, study)
    with _open_for(database) as store:
        store.claim(work)
        if kind.reused:
            store.forget_unfinished(work)
        store.reopen_generations(work)
        beat = Heartbeat(store, work).beat
        with loaded_for(kind, subject, loading, log, emit, None, beat) as loaded:
            jobs = _jobs(kind, plan.options, subject, loaded, database)
            model, provenance = open_as_the_run(loaded, subject, jobs, plan.context)
            provenance = replace(provenance, warnings=study.record.warnings)
            provenance = check_environment(store, work, environment, provenance, allowed=allow_environment_change)
            return _ready(work, plan, _OpenStudy(kind, subject, store, model, provenance, jobs), database, emit)


def _prepare_without_model(
    kind: StudyKind, options: Options, subject: Subject, database: Path, emit: Emit
) -> ReadyWork:
    """Store a study that only puts together what is stored; its numbers rest on the run's environment."""
    with open_queries(database) as queries:
        signals = kind.reads(queries, subject.stored.run)
    plan = replace(_plan(kind, options, subject, 0, subject.plan.context), signals=signals)
    plan_text, record = canonical_json(plan), subject.stored.record
    study = StudyRecord(
        kind.name,
        plan_text,
        content_hash(plan_text),
        record.environment,
        record.environment_hash,
        record.exact,
        (),
        record.statistics,
    )
    store = open_store(database)
    try:
        work = store.create_study(subject.stored.run, study)
        store.claim(work)
        return _ready_without_model(work, plan, kind, subject, store, database, emit)
    except BaseException:
        with contextlib.suppress(StoreError):
            store.close()
        raise


def _resume_without_model(
    work: Work, plan: StudyPlan, kind: StudyKind, subject: Subject, database: Path, emit: Emit
) -> ReadyWork:
    store = open_store(database)
    try:
        store.claim(work)
        return _ready_without_model(work, plan, kind, subject, store, database, emit)
    except BaseException:
        with contextlib.suppress(StoreError):
            store.close()
        raise


def _ready_without_model(
    work: Work, plan: StudyPlan, kind: StudyKind, subject: Subject, store: Store, database: Path, emit: Emit
) -> ReadyWork:
    emit(
        RunStarted(
            run=work.run,
            model=f"{subject.model.name}, not needed",
            device="no model",
            width=plan.width,
            difficulty=subject.plan.tasks[0].difficulty,
            exact=subject.environment.exact,
            tasks=(),
            warnings=(),
            study=work.number,
            statistics=subject.stored.record.statistics,
        )
    )
    return ReadyWork(
        work=work,
        store=store,
        engine=None,
        width=plan.width,
        jobs=(),
        attempts={},
        computed=0,
        provenance=None,
        conclude=_conclude(work, plan, kind, store, database, emit),
    )


def _grown(context: int | None, needed: int) -> int | None:
    """Return the context of a study: the run's, or more; None where the engine does not let us choose it."""
    return None if context is None else max(context, needed)


def _plan(kind: StudyKind, options: Options, subject: Subject, jobs: int, context: int | None) -> StudyPlan:
    return StudyPlan(
        kind=kind.name,
        run_plan_hash=subject.stored.record.plan_hash,
        options={} if kind.reused else dict(options),
        answers=positions_by_task(subject.answers),
        answers_hash=hash_of_answers(subject.answers),
        jobs=0 if kind.reused else jobs,
        context=context,
        width=subject.plan.width,
    )


def read_study_plan(database: Path, study: StoredStudy) -> StudyPlan:
    """Read the plan of a stored study.

    Raises:
        StoreError: it is none.
    """
    return Place(database, study.work.title).read("plan", study.record.plan, StudyPlan.from_json)


def tokens_of(request: Generate) -> int:
    """Return how many tokens of context a request can take at most, prompt included."""
    return len(request.prompt) + sum(map(_tokens_of_segment, request.segments))


def _least_bytes(kind: StudyKind, jobs: Sequence[Job]) -> int:
    """Return about how much the jobs will store at least: most replies end long before their limit.

    Walks for activations store no tokens; what their vectors take, the kind itself says.
    """
    segments = [segment for job in jobs for segment in job.request(0).segments]
    free = sum(segment.max_tokens for segment in segments if isinstance(segment, Free)) // ANSWER_ALLOWANCE
    walked = sum(len(segment.tokens) for segment in segments if isinstance(segment, Forced))
    return TOKEN_BYTES * (free + (0 if "activations" in kind.needs else walked))


def _tokens_of_segment(segment: Segment) -> int:
    if isinstance(segment, Free):
        return segment.max_tokens
    if isinstance(segment, Spelled):
        return 1
    if isinstance(segment, Aside):
        return 0  # cut back before the reply goes on, which takes at least as many
    return len(segment.tokens) if isinstance(segment, Forced) else max(map(len, segment.options))


def _computing(
    kind: StudyKind, options: Options, subject: Subject, study: StoredStudy | None, database: Path
) -> ResolvedModel:
    """Return the model that computes a study."""
    if kind.computed_by == "another model":
        with open_queries(database) as queries:
            return find_second_model(str(options["model"]), study, queries)
    return resolve_stored(subject.model)


@contextlib.contextmanager
def _open_for(database: Path) -> Iterator[Store]:
    """Open the store; close it when the body fails."""
    store = open_store(database)
    try:
        yield store
    except BaseException:
        # Gives the lease back as well; a disk that is full again must not hide the error that led here.
        with contextlib.suppress(StoreError):
            store.close()
        raise


def _jobs(
    kind: StudyKind,
    options: Options,
    subject: Subject,
    loaded: LoadedStudy,
    database: Path,
    announce: Emit | None = None,
    work: Work | None = None,
) -> Sequence[Job]:
    """Make the jobs; of a new study also say what they will cost."""
    engine, info = loaded.engine, loaded.again.info
    reading = ReplyReading(loaded.vocabulary, info.thinking_open)
    with open_queries(database) as queries:
        if kind.computed_by == "another model":
            refuse_another_vocabulary(loaded.name, queries.vocabulary(subject.stored.run), reading.vocabulary)
        setting = StudySetting(options, subject.plan, subject.answers, queries, engine, info, reading, work)
        jobs = kind.jobs(setting)
        kind.refuse_cuts(info.capabilities, jobs)
        if work is None:
            room_for(_least_bytes(kind, jobs), database, f"a study of kind {kind.name}")
        if announce is not None and kind.announce is not None:
            announce(Notice(kind.announce(setting, jobs)))
    return jobs


def _record(
    plan: StudyPlan, kind: StudyKind, provenance: Provenance, model: OpenedModel, resolved: ResolvedModel
) -> StudyRecord:
    plan_text, environment_text = canonical_json(plan), canonical_json(provenance.environment)
    return StudyRecord(
        kind=kind.name,
        plan=plan_text,
        plan_hash=content_hash(plan_text),
        environment=environment_text,
        environment_hash=content_hash(environment_text),
        exact=_exact(kind, plan, provenance.environment.exact),
        warnings=provenance.warnings,
        statistics=model.info.capabilities.statistics,
        model=model_record(resolved, model.info, provenance.model.text(model.info))
        if kind.computed_by == "another model"
        else None,
    )


def _exact(kind: StudyKind, plan: StudyPlan, engine: bool | None) -> bool | None:
    """Say whether a study is exact, as far as it is known: its options may make it less so than the engine is."""
    return engine if kind.inexact(plan.options) is None else False


def _ready(work: Work, plan: StudyPlan, study: _OpenStudy, database: Path, emit: Emit) -> ReadyWork:
    """Announce a claimed study and collect what its loop needs."""
    store, model = study.store, study.model
    finished = store.finished_keys(work)
    left = tuple(job for job in study.jobs if job.name.key not in finished)
    emit(
        RunStarted(
            run=work.run,
            model=f"{model.name} · {model.info.description}",
            device=model.device,
            width=model.context.width,
            difficulty=study.subject.plan.tasks[0].difficulty,
            exact=_exact(study.kind, plan, model.context.exactness.exact),
            tasks=_progress(study, left),
            warnings=study.provenance.warnings,
            study=work.number,
            statistics=model.info.capabilities.statistics,
        )
    )
    with open_queries(database) as queries:
        attempts = {
            (begun.problem_id, begun.parent, begun.role, begun.number): begun.attempt
            for begun in queries.generations(work)
            if begun.stop_reason is None
        }
    return ReadyWork(
        work=work,
        store=store,
        engine=model.engine,
        width=plan.width,
        jobs=left,
        attempts=attempts,
        computed=len(study.jobs) - len(left),
        provenance=study.provenance,
        conclude=_conclude(work, plan, study.kind, store, database, emit),
    )


def _conclude(
    work: Work, plan: StudyPlan, kind: StudyKind, store: Store, database: Path, emit: Emit
) -> Callable[[Callable[[], None]], None]:
    def conclude(beat: Callable[[], None]) -> None:
        with open_queries(database) as queries:
            batches = iter(kind.signals(queries, queries.study_record(work), plan))
            for step in count(1):
                if step <= (steps := len(kind.concludes)):
                    emit(Notice(f"fitting {kind.concludes[step - 1]}, {step} of {steps}"))
                if (signals := next(batches, None)) is None:
                    return
                store.add_signals(work, signals)
                beat()

    return conclude


def _progress(study: _OpenStudy, left: Sequence[Job]) -> tuple[TaskProgress, ...]:
    total = Counter(job.name.task for job in study.jobs)
    still = Counter(job.name.task for job in left)
    tokens: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for answer in study.subject.answers:
        tokens[answer.problem.task] += answer.tokens
        answers[answer.problem.task] += 1
    return tuple(
        # Jobs of a study are about as long, in proportion, as the answers that they are about.
        TaskProgress(task, total[task] - still[task], total[task], max(1, round(tokens[task] / answers[task])))
        for task in total
    )
