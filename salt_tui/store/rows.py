"""Records to rows and back, and the refusal of numbers that SQLite would turn into NULL or keep as infinity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from math import frexp, isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from salt_tui.store.errors import StoreFailure
from salt_tui.store.records import (
    ActivationRecord,
    GenerationEnd,
    InterventionRecord,
    Message,
    ProblemRecord,
    SignalRecord,
    TokenRecord,
    UnitRecord,
    Work,
)
from salt_tui.store.schema import CONFIDENCE_COLUMNS, UNIT_STATUSES
from salt_tui.store.stored_values import Place
from salt_tui.visible_text import visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row: TypeAlias = "tuple[int | float | str | bytes | None, ...]"

PROBLEM_FIELDS = tuple(field.name for field in fields(ProblemRecord))
MOST_UNITS = 10_000_000
"""Largest index of a unit that is believed: programs count up to it."""
TOKEN_COLUMNS = "position, id, bytes, byte_start, byte_end, log_probability, entropy, alternatives, forced"
UNIT_COLUMNS = (
    'kind, "index", line, text, reference, status, token_start, token_end, byte_start, byte_end, '
    + ", ".join(CONFIDENCE_COLUMNS)
)


def problem_row(run: int, problem: ProblemRecord) -> Row:
    """Return the row of a problem: its run, then the columns of `PROBLEM_FIELDS`."""
    # A seed has 64 bits without sign, one more than SQLite's integers.
    texts = {
        "seed": str(problem.seed),
        "choices": _json(problem.choices),
        "slices": _json(dict(problem.slices)),
        "messages": _json([{"role": message.role, "content": message.content} for message in problem.messages]),
    }
    return (run, *(texts[name] if name in texts else getattr(problem, name) for name in PROBLEM_FIELDS))


def _json(value: Sequence[Any] | Mapping[str, str]) -> str | None:
    return json.dumps(value, ensure_ascii=False) if value else None


def problem_record(row: Sequence[Any], place: Place) -> ProblemRecord:
    """Return the record of a row of ``problem`` with the columns of `PROBLEM_FIELDS`.

    Raises:
        StoreError: a column holds what no program of ours writes.
    """
    values = dict(zip(PROBLEM_FIELDS, row, strict=True))
    # Names of tasks, levels and methods are shown, compared and printed everywhere, and never hold what hides.
    values |= {name: visible(values[name]) for name in ("task", "difficulty", "method")}
    values["seed"] = place.read("seed", values["seed"], int)
    values["choices"] = () if values["choices"] is None else place.texts("choices", values["choices"])
    values["slices"] = () if values["slices"] is None else place.read("slices", values["slices"], _slices)
    values["messages"] = () if values["messages"] is None else place.read("messages", values["messages"], _messages)
    return ProblemRecord(**values)


def _slices(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in json.loads(text).items())


def _messages(text: str) -> tuple[Message, ...]:
    return tuple(Message(str(message["role"]), str(message["content"])) for message in json.loads(text))


def token_row(generation: int, token: TokenRecord) -> Row:
    """Return the row of one token.

    The alternatives become JSON, ``[[id, log-probability], …]``, most probable first, at seven significant digits:
    the precision of the engine's 32-bit floats.  Measured for 20 of them: 367 bytes and 11 microseconds, against 160
    bytes as a blob that neither Datasette nor pandas could read.

    Raises:
        StoreFailure: NaN or an infinity among the numbers, or lists of different lengths.
    """
    ids, log_probabilities = token.alternatives, token.alternative_log_probabilities
    if len(ids) != len(log_probabilities):
        raise StoreFailure(
            f"token {token.position} of generation {generation} has {len(ids)} alternatives and"
            f" {len(log_probabilities)} log-probabilities; the row was refused"
        )
    # One sum finds any NaN or infinity, because log-probabilities have one sign and cannot cancel.
    numbers = (token.log_probability or 0.0, token.entropy or 0.0, sum(log_probabilities))
    if not all(map(isfinite, numbers)):
        raise StoreFailure(
            f"token {token.position} of generation {generation} has a number that is not finite; the row was refused"
        )
    return (
        generation,
        token.position,
        token.id,
        token.piece,
        token.start,
        token.end,
        token.log_probability,
        token.entropy,
        _alternatives_text(ids, log_probabilities),
        int(token.forced),
    )


def _alternatives_text(names: Sequence[int | bytes], log_probabilities: Sequence[float]) -> str:
    if any(isinstance(name, bytes) for name in names):
        # Engines without ids give at most 20 texts; a text need not be whole characters, so it may be a list of bytes.
        named = [_piece_name(name) for name in names]
        return json.dumps([[name, float(f"{value:.7g}")] for name, value in zip(named, log_probabilities, strict=True)])
    values: list[int | float | bytes] = [0] * (2 * len(names))
    values[0::2] = names
    values[1::2] = log_probabilities
    return _alternatives_format(len(names)) % tuple(values)


def _piece_name(name: int | bytes) -> int | str | list[int]:
    if isinstance(name, int):
        return name
    try:
        return name.decode()
    except UnicodeDecodeError:
        return list(name)


@cache
def _alternatives_format(count: int) -> str:
    return "[" + ",".join(["[%d,%.7g]"] * count) + "]"


def token_record(row: Sequence[Any], place: Place) -> TokenRecord:
    """Return the record of a row of `TOKEN_COLUMNS`.

    Raises:
        StoreError: the alternatives are not what `token_row` writes.
    """
    names, log_probabilities = place.read("alternatives", row[7], _alternatives)
    if not (isfinite(row[5] or 0.0) and isfinite(row[6] or 0.0) and all(map(isfinite, log_probabilities))):
        raise place.foreign(f"a number of token {row[0]}", "not finite")
    return TokenRecord(
        position=row[0],
        id=row[1],
        start=row[3],
        end=row[4],
        log_probability=row[5],
        entropy=row[6],
        alternatives=names,
        alternative_log_probabilities=log_probabilities,
        forced=bool(row[8]),
        piece=row[2],
    )


def _alternatives(text: str) -> tuple[tuple[int | bytes, ...], tuple[float, ...]]:
    pairs = json.loads(text)
    return tuple(_named_piece(pair[0]) for pair in pairs), tuple(float(pair[1]) for pair in pairs)


def _named_piece(name: int | str | list[int]) -> int | bytes:
    if isinstance(name, int):
        return name
    return name.encode() if isinstance(name, str) else bytes(name)


def unit_row(generation: int, unit: UnitRecord) -> Row:
    """Return the row of one unit.

    Raises:
        StoreFailure: a confidence that is NaN or infinite, or not one value per confidence function.
    """
    if len(unit.confidences) != len(CONFIDENCE_COLUMNS):
        raise StoreFailure(
            f"{unit.kind} {unit.index} of generation {generation} has {len(unit.confidences)} confidences,"
            f" not {len(CONFIDENCE_COLUMNS)}; the row was refused"
        )
    for name, value in zip(CONFIDENCE_COLUMNS, unit.confidences, strict=True):
        if value is not None and not isfinite(value):
            raise StoreFailure(
                f"{name} of {unit.kind} {unit.index} of generation {generation} is {value}; the row was refused"
            )
    return (
        generation,
        unit.kind,
        unit.index,
        unit.line,
        unit.text,
        unit.reference,
        unit.status,
        unit.token_start,
        unit.token_end,
        unit.byte_start,
        unit.byte_end,
        *unit.confidences,
    )


def unit_record(row: Sequence[Any], place: Place) -> UnitRecord:
    """Return the record of a row of `UNIT_COLUMNS`.

    Raises:
        StoreError: an index or a status that there cannot be, or a confidence that is infinite.
    """
    unit = UnitRecord(*(*row[:10], tuple(row[10:])))
    what = f"{unit.kind} {unit.index}"
    if unit.index > MOST_UNITS:
        raise place.foreign("index", unit.index)
    if unit.status not in UNIT_STATUSES:
        raise place.foreign(f"status of {what}", unit.status)
    for name, value in zip(CONFIDENCE_COLUMNS, unit.confidences, strict=True):
        place.number(f"{name} of {what}", value)
    return unit


def end_row(generation: int, end: GenerationEnd) -> Row:
    """Return reply, stop reason, extraction, answer status, error, prompt seconds and decode seconds.

    Raises:
        StoreFailure: a duration that is NaN or infinite.
    """
    for name, value in (("prompt_seconds", end.prompt_seconds), ("decode_seconds", end.decode_seconds)):
        if value is not None and not isfinite(value):
            raise StoreFailure(f"{name} of generation {generation} is {value}; the row was refused")
    return (
        end.reply,
        end.stop_reason,
        end.extraction,
        end.answer_status,
        end.error,
        end.prompt_seconds,
        end.decode_seconds,
    )


def signal_row(work: Work, signal: SignalRecord) -> Row:
    """Return the row of one signal of a run or study.

    Raises:
        StoreFailure: a value that is NaN or infinite, or neither value nor reason.
    """
    what = f"{signal.name} of {signal.kind} {signal.index} of generation {signal.generation}"
    if signal.value is not None and not isfinite(signal.value):
        raise StoreFailure(f"{what} is {signal.value}; the row was refused")
    if signal.value is None and signal.reason is None:
        raise StoreFailure(f"{what} has neither a value nor a reason; the row was refused")
    return (
        work.run,
        work.study,
        signal.generation,
        signal.kind,
        signal.index,
        signal.name,
        signal.value,
        signal.reason,
    )


def activation_row(study: int, activation: ActivationRecord) -> Row:
    """Return the row of one activation: 16-bit floats, little-endian, times a power of two.

    The power brings the largest value into [2**14, 2**15): residual streams go beyond 65,504, the largest 16-bit
    float, and a power of two adds no error of its own.

    Raises:
        StoreFailure: a value that is NaN or infinite, or no value.
    """
    import numpy as np

    vector = np.asarray(activation.vector, dtype=np.float64)
    largest = float(np.max(np.abs(vector), initial=0.0))
    if vector.ndim != 1 or not vector.size or not isfinite(largest):
        raise StoreFailure(
            f"the activation of layer {activation.layer} for {activation.kind} {activation.index} of generation"
            f" {activation.generation} is empty or not finite; the row was refused"
        )
    scale = 2.0 ** (frexp(largest)[1] - 15) if largest else 1.0
    return (
        study,
        activation.generation,
        activation.kind,
        activation.index,
        activation.layer,
        activation.positions,
        scale,
        (vector / scale).astype("<f2").tobytes(),
    )


def activation_vector(scale: float, vector: bytes) -> NDArray[np.float32]:
    """Return what `activation_row` stored, shape ``(width,)``."""
    import numpy as np

    return (np.frombuffer(vector, dtype="<f2").astype(np.float64) * scale).astype(np.float32)


def intervention_row(study: int, branch: InterventionRecord) -> Row:
    """Return the row of one intervention.

    Raises:
        StoreFailure: a number that is NaN or infinite.
    """
    numbers = (
        branch.treatment_global,
        branch.treatment_local,
        branch.correct_before,
        branch.correct_before_local,
        branch.log_probability_reference,
    )
    if not all(value is None or isfinite(value) for value in numbers):
        raise StoreFailure(
            f"the intervention of generation {branch.generation} has a number that is not finite; the row was refused"
        )
    return (
        branch.generation,
        study,
        branch.answer,
        branch.target,
        branch.variant,
        branch.direction,
        json.dumps(branch.edits, ensure_ascii=False) if branch.edits else "[]",
        branch.treatment_global,
        branch.treatment_local,
        branch.length,
        branch.correct_before,
        branch.correct_before_local,
        None if branch.outcome is None else int(branch.outcome),
        branch.log_probability_reference,
        branch.reason,
    )


INTERVENTION_COLUMNS = (
    "generation, answer, target, variant, direction, edits, treatment_global, treatment_local, length, correct_before,"
    " correct_before_local, outcome, log_probability_reference, reason"
)


def intervention_record(row: Sequence[Any], place: Place) -> InterventionRecord:
    """Return the record of a row of `INTERVENTION_COLUMNS`.

    Raises:
        StoreError: the edits are not what `intervention_row` writes.
    """
    outcome = None if row[11] is None else bool(row[11])
    return InterventionRecord(*(*row[:5], place.read("edits", row[5], _edits), *row[6:11], outcome, *row[12:]))


def _edits(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(index), str(atom)) for index, atom in json.loads(text))


def token_ids_text(ids: Sequence[int] | None) -> str | None:
    """Write token ids as a JSON array without spaces: about six bytes an id, as small as a blob and readable."""
    return None if ids is None else json.dumps(list(ids), separators=(",", ":"))
