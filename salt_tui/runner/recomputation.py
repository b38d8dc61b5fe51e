"""Stored answers computed again with the model at hand, and compared bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event

from salt_tui.engine.models import ResolvedModel, load_registry, resolve_model
from salt_tui.runner.difference import Difference
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import Loop
from salt_tui.runner.plan import Environment
from salt_tui.runner.resumption import environment_differences, prepare_resume
from salt_tui.store.copying import copy_questions
from salt_tui.store.placing import scratch_folder
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import Work
from salt_tui.store.results import StoredAnswer, StoredRun, StoredToken
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError

_COMPUTED = ("end", "length", "context")
"""How answers end that the model alone decides."""


@dataclass(frozen=True, slots=True)
class RecomputedRun:
    """What became of some answers of a run.

    Attributes:
        work: the run.
        answers: how many were computed again.
        elsewhere: what is another environment now, in words; empty where it is the run's.
        differences: what came out otherwise than it is stored.
    """

    work: Work
    answers: int
    elsewhere: tuple[str, ...]
    differences: tuple[Difference, ...]


def recompute(queries: Queries, run: int, count: int, model: str | None, emit: Emit, stop: Event) -> RecomputedRun:
    """Compute answers of a run again in a file of its own, and compare; the run's file is only read.

    It is resumed as if these answers had not been begun, so plan, model and prompts are compared too.

    Args:
        queries: of the file.
        run: its number.
        count: how many answers, spread evenly over those that the model ended; all where there are fewer.
        model: name or path, as after ``-m``; None takes the file where it was.
        emit: takes the events of loading and computing.
        stop: ends it; what it returns is then about the answers that were finished.

    Raises:
        UsageError: the run was not computed here by a model that can be, another model or plan, or no such answer.
        ModelError, ContextError, StoreError: as for a resumed run.
    """
    stored = queries.run_record(run)
    if stored.record.statistics != "vocabulary":
        raise UsageError(
            f"the answers of run {run} came from a server or a file: nothing computes them again bit for bit"
        )
    chosen = _spread([answer for answer in queries.answers(run) if answer.stop_reason in _COMPUTED], count)
    if not chosen:
        raise UsageError(f"run {run} has no answer that the model ended: nothing to compute again")
    began = _environment(queries, stored)
    with scratch_folder() as folder:
        copy = folder / "again.db"
        copy_questions(queries, run, [answer.problem_id for answer in chosen], copy)
        with open_queries(copy) as copied:
            again = copied.run_record(run)
        if model is not None:
            again = _with_model(again, Place(queries.path, f"run {run}"), model)
        ready = prepare_resume(again, copy, emit, allow_environment_change=True, threads=None, some_problems=True)
        with closing(ready):
            Loop(ready, emit, stop).run()
        with open_queries(copy) as copied:
            # Resuming elsewhere calls the rest of a run not exact; here the numbers themselves tell.
            current = replace(_environment(copied, copied.run_record(run)), exact=began.exact)
            found = {answer.problem_id: answer for answer in copied.answers(run) if answer.stop_reason in _COMPUTED}
            pairs = [(answer, found[answer.problem_id]) for answer in chosen if answer.problem_id in found]
            differences = [
                difference for pair in pairs for difference in _differences(Work(run), queries, copied, *pair)
            ]
            return RecomputedRun(Work(run), len(pairs), environment_differences(began, current), tuple(differences))


def _spread(answers: Sequence[StoredAnswer], count: int) -> list[StoredAnswer]:
    """Return so many of them at even distances."""
    count = min(count, len(answers))
    return [answers[place * len(answers) // count] for place in range(count)]


def _environment(queries: Queries, stored: StoredRun) -> Environment:
    place = Place(queries.path, f"run {stored.run}")
    return place.read("environment", stored.record.environment, Environment.from_json)


def _with_model(stored: StoredRun, place: Place, model: str) -> StoredRun:
    """Return the run with its model at another place; whether it is the same model is looked at when it is loaded."""
    entry = place.read("model_entry", stored.model.entry, ResolvedModel.from_json)
    here = resolve_model(model, load_registry())
    moved = replace(entry, path=here.path)
    return replace(stored, model=replace(stored.model, entry=moved.to_json()))


def _differences(
    work: Work, before: Queries, after: Queries, stored: StoredAnswer, found: StoredAnswer
) -> Iterator[Difference]:
    name = f"{stored.problem.task}:{stored.problem.position + 1}"
    if stored.generation is None or found.generation is None:
        return
    if before.prompt(stored.generation) != after.prompt(found.generation):
        yield Difference(work, name, "prompt tokens", stored.prompt_tokens, found.prompt_tokens)
        return
    old, new = before.tokens(stored.generation), after.tokens(found.generation)
    together = list(zip(old, new, strict=False))
    parted = next((place for place, (one, other) in enumerate(together) if one.record.id != other.record.id), None)
    if parted is None and len(old) != len(new):
        parted = len(together)
    if parted is not None:
        yield Difference(work, name, f"computed again, token {parted + 1}", _shown(old, parted), _shown(new, parted))
        together = together[:parted]
    for what, part in (("log-probability", _log_probability), ("entropy", _entropy)):
        pairs = [(part(one), part(other)) for one, other in together]
        apart = [(abs(a - b), a, b) for a, b in pairs if a is not None and b is not None and a != b]
        if apart:
            _, a, b = max(apart)
            yield Difference(work, name, f"computed again, {what} of {len(apart)} tokens, the most", a, b)
    if parted is None and stored.reply != found.reply:
        yield Difference(work, name, "computed again, reply", _text(stored.reply), _text(found.reply))
    if parted is None and stored.stop_reason != found.stop_reason:
        yield Difference(work, name, "computed again, stop_reason", stored.stop_reason, found.stop_reason)


def _shown(tokens: Sequence[StoredToken], place: int) -> str | None:
    return _text(tokens[place].piece) if place < len(tokens) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _log_probability(token: StoredToken) -> float | None:
    return token.record.log_probability


def _entropy(token: StoredToken) -> float | None:
    return token.record.entropy
