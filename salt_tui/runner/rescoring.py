"""A stored reply scored again, without the model: what the present parser and scorer make of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from salt_tui.engine.events import Token
from salt_tui.runner.answering import finish_answer
from salt_tui.runner.asked_problems import form_of
from salt_tui.runner.live_answer import LiveAnswer, ScoredChanges
from salt_tui.store.records import UnitKind, UnitRecord
from salt_tui.store.results import StoredReply
from scoring.answer_status import AnswerStatus, StopReason
from scoring.confidence import CONFIDENCE_FUNCTIONS
from tasks.answer import split_reference

SAME_CONFIDENCE = 1e-9
"""Relative difference up to which two confidences are the same: mathematical libraries differ in the last digits."""

_OPENING = b"<think>"
_UNIT_FIELDS = ("line", "text", "reference", "status", "token_start", "token_end", "byte_start", "byte_end")

Shown: TypeAlias = "int | float | str | None"


@dataclass(frozen=True, slots=True)
class RescoredReply:
    """What the present program makes of a stored reply."""

    units: tuple[UnitRecord, ...]
    extraction: str
    answer_status: AnswerStatus


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """One value that is stored otherwise than it is found; None where there is none."""

    what: str
    stored: Shown
    found: Shown


def rescored(reply: StoredReply) -> RescoredReply:
    """Read and score a reply again, token by token as when it came.

    Of a reply without tokens, units have neither token ranges nor confidences.  Replays (``branch``) may have asked
    for a part of the answer, so what they lack is not counted as missing.

    Args:
        reply: without `faults`.

    Raises:
        Exception: what the task raises, where it cannot read its own stored reference.
    """
    form = form_of(reply.problem)
    reference = split_reference(form, reply.problem.reference)
    thinking = reply.prompt_end.rstrip().endswith(_OPENING)
    answer = LiveAnswer(form, reference, (), thinking_open=thinking)
    units: list[UnitRecord] = []
    for changes in _read_again(answer, reply):
        if changes.withdrawn:
            units.clear()
        units += changes.units
    stop_reason: StopReason = reply.stop_reason  # type: ignore[assignment]
    changes, status = finish_answer(answer, stop_reason, whole=reply.role != "branch")
    if changes.withdrawn:
        units.clear()
    units += changes.units
    return RescoredReply(tuple(units), answer.extraction, status)


def _read_again(answer: LiveAnswer, reply: StoredReply) -> Iterator[ScoredChanges]:
    if not reply.tokens:
        yield answer.add_text(reply.reply)
    for position, token in enumerate(reply.tokens):
        piece = reply.reply[token.start : token.end]
        said = Token(0, position, None, token.log_probability, token.entropy, (), (), False, False, piece)
        yield answer.add(said)[1]


def score_differences(stored: StoredReply, found: RescoredReply) -> Iterator[ScoreDifference]:
    """Yield what is stored of a reply otherwise than it is scored now."""
    for name in ("extraction", "answer_status"):
        one, other = getattr(stored, name), getattr(found, name)
        if one != other:
            yield ScoreDifference(name, one, other)
    units = {(unit.kind, unit.index): unit for unit in stored.units if not _left_open(stored, unit)}
    scored = {(unit.kind, unit.index): unit for unit in found.units}
    for key in sorted({*units, *scored}):
        what = f"{key[0]} {key[1] + 1}"
        old, new = units.get(key), scored.get(key)
        if old is None or new is None:
            yield ScoreDifference(what, _in_words(old), _in_words(new))
            continue
        for name in _UNIT_FIELDS:
            one, other = getattr(old, name), getattr(new, name)
            if one != other:
                yield ScoreDifference(f"{name} of {what}", one, other)
        for name, value, again in zip(CONFIDENCE_FUNCTIONS, old.confidences, new.confidences, strict=True):
            if not _same(value, again):
                yield ScoreDifference(f"{name} of {what}", value, again)


def other_units(stored: StoredReply, found: RescoredReply) -> tuple[tuple[UnitKind, int], ...]:
    """Return kind and index of the stored units that are others now, so that what was said about them is void."""
    now = {(unit.kind, unit.index): _standing(unit) for unit in found.units}
    return tuple(
        (unit.kind, unit.index) for unit in stored.units if now.get((unit.kind, unit.index)) != _standing(unit)
    )


def _standing(unit: UnitRecord) -> tuple[object, ...]:
    return unit.text is None, unit.token_start, unit.token_end, unit.byte_start, unit.byte_end


def _left_open(stored: StoredReply, unit: UnitRecord) -> bool:
    """Say whether a unit is a missing one of a replay, which is stored only where the whole answer was asked for."""
    return stored.role == "branch" and unit.status == "missing"


def _in_words(unit: UnitRecord | None) -> str | None:
    if unit is None:
        return None
    return unit.status if unit.text is None else f"{unit.status}: {unit.text}"


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=SAME_CONFIDENCE, abs_tol=1e-300)
