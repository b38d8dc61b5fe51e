"""Records to rows and back, and the refusal of numbers that SQLite would turn into NULL or keep as infinity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from math import isfinite
from typing import Any, TypeAlias

from salt_tui.store.errors import StoreFailure
from salt_tui.store.records import GenerationEnd, ProblemRecord, TokenRecord, UnitRecord
from salt_tui.store.schema import CONFIDENCE_COLUMNS

Row: TypeAlias = "tuple[int | float | str | bytes | None, ...]"

PROBLEM_FIELDS = tuple(field.name for field in fields(ProblemRecord))
TOKEN_COLUMNS = "position, id, byte_start, byte_end, log_probability, entropy, alternatives, forced"
UNIT_COLUMNS = (
    'kind, "index", line, text, reference, status, token_start, token_end, byte_start, byte_end, '
    + ", ".join(CONFIDENCE_COLUMNS)
)


def problem_record(row: Sequence[Any]) -> ProblemRecord:
    """Return the record of a row of ``problem`` with the columns of `PROBLEM_FIELDS`."""
    values = dict(zip(PROBLEM_FIELDS, row, strict=True))
    return ProblemRecord(**(values | {"seed": int(values["seed"])}))


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
    if not (isfinite(token.log_probability) and isfinite(token.entropy) and isfinite(sum(log_probabilities))):
        raise StoreFailure(
            f"token {token.position} of generation {generation} has a number that is not finite; the row was refused"
        )
    values: list[int | float] = [0] * (2 * len(ids))
    values[0::2] = ids
    values[1::2] = log_probabilities
    return (
        generation,
        token.position,
        token.id,
        token.start,
        token.end,
        token.log_probability,
        token.entropy,
        _alternatives_format(len(ids)) % tuple(values),
        int(token.forced),
    )


@cache
def _alternatives_format(count: int) -> str:
    return "[" + ",".join(["[%d,%.7g]"] * count) + "]"


def token_record(row: Sequence[Any]) -> TokenRecord:
    """Return the record of a row of `TOKEN_COLUMNS`."""
    alternatives = json.loads(row[6])
    return TokenRecord(
        position=row[0],
        id=row[1],
        start=row[2],
        end=row[3],
        log_probability=row[4],
        entropy=row[5],
        alternatives=tuple(pair[0] for pair in alternatives),
        alternative_log_probabilities=tuple(float(pair[1]) for pair in alternatives),
        forced=bool(row[7]),
    )


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


def unit_record(row: Sequence[Any]) -> UnitRecord:
    """Return the record of a row of `UNIT_COLUMNS`."""
    return UnitRecord(*(*row[:10], tuple(row[10:])))


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


def token_ids(text: str) -> tuple[int, ...]:
    """Read token ids from the JSON array that `token_ids_text` wrote."""
    return tuple(json.loads(text))


def token_ids_text(ids: Sequence[int]) -> str:
    """Write token ids as a JSON array without spaces: about six bytes an id, as small as a blob and readable."""
    return json.dumps(list(ids), separators=(",", ":"))
