"""What is stored about answers compared with what it follows from: signals, activations, outcomes of edits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from salt_tui.runner.difference import Difference
from salt_tui.runner.studies.plan import StudyPlan
from salt_tui.runner.studies.registry import study_kind
from salt_tui.store.check_queries import StoredVector
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.results import StoredStudy
from salt_tui.store.schema import TOKEN_SIGNALS, VOID_UNIT
from salt_tui.store.stored_values import Place
from scoring.signals import SIGNALS

SAME_SIGNAL = 1e-6
"""Relative and absolute difference up to which two signals are the same: logistic models are fitted by iteration."""


def check_signal_ranges(queries: Queries, work: Work) -> Iterator[Difference]:
    """Yield the signals that have values which their definitions do not allow."""
    for name, kind, low, high in queries.signal_ranges(work):
        known = SIGNALS.get(name)
        if known is not None:
            for value in sorted({low, high}):
                if not known.minimum - SAME_SIGNAL <= value <= known.maximum + SAME_SIGNAL:
                    allowed = f"from {known.minimum:g} to {known.maximum:g}"
                    yield Difference(work, None, f"a value of {name} of {kind}s", value, allowed)


def check_signals_of_run(queries: Queries, work: Work) -> Iterator[Difference]:
    """Yield what does not fit among the signals of a run itself: names that are computed, and letters of choices."""
    for (name, kind), count in queries.count_signals(work).items():
        if name in TOKEN_SIGNALS:
            what = f"{name} of {kind}s is computed from their tokens and stored {count:,} times as well"
            yield Difference(work, None, "signals", None, what)
    for choice in queries.stored_choices(work.run):
        name = f"{choice.task}:{choice.position + 1}"
        letters = choice.letters
        total = math.fsum(letters.values())
        if letters and not _same(total, 1.0):
            yield Difference(work, name, "sum of the letters' probabilities", total, 1.0)
        for kind, stored in choice.probabilities.items():
            found = letters.get(choice.letter)
            if not _same(stored, found):
                yield Difference(work, name, f"choice_probability of {kind}", stored, found)


def check_study(queries: Queries, study: StoredStudy) -> Iterator[Difference]:
    """Yield what a finished study says otherwise than its own stored rows give, one answer in memory at a time.

    Signals that the study computed as a function of stored rows are computed again: agreement of samples, combined
    scores (seeded), what is said of units because it was said of their answer.  What a model said in between is not
    stored and cannot be asked again here.
    """
    work = study.work
    plan = Place(queries.path, work.title).read("plan", study.record.plan, StudyPlan.from_json)
    names = {generation: f"{task}:{position + 1}" for generation, task, position in queries.answer_places(work.run)}
    yield from _check_signals(queries, study, plan, names)
    yield from _check_activations(queries, work, names)
    for edit in queries.stored_outcomes(work):
        name = names.get(edit.answer, f"answer {edit.answer}")
        if edit.outcome != edit.found:
            yield Difference(
                work, name, f"outcome of {edit.variant} at atom {edit.target + 1}", edit.outcome, edit.found
            )


def _check_signals(
    queries: Queries, study: StoredStudy, plan: StudyPlan, names: dict[int, str]
) -> Iterator[Difference]:
    work = study.work
    again: Counter[tuple[str, str]] = Counter()
    for batch in study_kind(study.record.kind).signals(queries, study, plan):
        for generation, records in groupby(sorted(batch, key=_generation_of), key=_generation_of):
            found = list(records)
            again.update((record.name, record.kind) for record in found)
            stored = queries.signals_about(work, generation)
            for record in found:
                yield from _compare(work, names.get(generation, f"answer {generation}"), stored, record)
    for key, count in queries.count_signals(work).items():
        if again[key] not in (0, count):
            yield Difference(work, None, f"rows of {key[0]} of {key[1]}s", count, again[key])


def _generation_of(record: SignalRecord) -> int:
    return record.generation


def _compare(
    work: Work,
    name: str,
    stored: dict[tuple[str, int, str], tuple[float | None, str | None]],
    record: SignalRecord,
) -> Iterator[Difference]:
    what = f"{record.name} of {record.kind} {record.index + 1}"
    known = stored.get((record.kind, record.index, record.name))
    if known is None:
        yield Difference(work, name, what, None, record.value if record.value is not None else record.reason)
        return
    value, reason = known
    if reason == VOID_UNIT:
        return
    if not _same(value, record.value):
        yield Difference(work, name, what, value, record.value)
    elif reason != record.reason:
        yield Difference(work, name, f"reason of {what}", reason, record.reason)


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=SAME_SIGNAL, abs_tol=SAME_SIGNAL)


def _check_activations(queries: Queries, work: Work, names: dict[int, str]) -> Iterator[Difference]:
    """Compare the vectors of each answer: as wide as most, finite, and of every layer and place for every unit."""
    layers, width = queries.activation_layers(work), queries.usual_width(work)
    for generation, group in groupby(queries.stored_vectors(work), key=lambda vector: vector.generation):
        name = names.get(generation, f"answer {generation}")
        vectors = list(group)
        for vector in vectors:
            what = f"activation of {vector.kind} {vector.index + 1}, layer {vector.layer}, {vector.positions}"
            if vector.width != width:
                yield Difference(work, name, f"width of {what}", vector.width, width)
            if not vector.is_finite:
                yield Difference(work, name, what, None, "a number that is not finite")
        yield from _check_complete(work, name, vectors, layers)
        units = set(queries.units_with_tokens(generation))
        for kind, index in sorted({(vector.kind, vector.index) for vector in vectors} - units):
            yield Difference(work, name, f"activation of {kind} {index + 1}", "stored", "no such unit with tokens")
    for generation, kind, index in queries.units_without_vectors(work):
        name = names.get(generation, f"answer {generation}")
        yield Difference(work, name, f"activations of {kind} {index + 1}", None, "the unit has tokens")


def _check_complete(work: Work, name: str, vectors: Sequence[StoredVector], layers: list[int]) -> Iterator[Difference]:
    held: dict[tuple[str, int], set[tuple[int, str]]] = {}
    for vector in vectors:
        held.setdefault((vector.kind, vector.index), set()).add((vector.layer, vector.positions))
    wanted = {(layer, positions) for layer in layers for positions in ("producing", "own")}
    for (kind, index), found in held.items():
        for layer, positions in sorted(wanted - found):
            what = f"activation of {kind} {index + 1}, layer {layer}, {positions}"
            yield Difference(work, name, what, None, "other layers of the unit are there")
