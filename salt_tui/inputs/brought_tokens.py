"""Tokens that a row of a file brings with its answer, each with its bytes of the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

LOST = "bytes that no reported token accounts for"
"""The reason of a unit that holds such bytes."""

TOP_K = "top-k only"
"""Why entropies are undefined where only the most probable tokens are reported."""


_LARGEST = 1e100
"""Of a log-probability without its sign and of an entropy: those of all tokens have a finite sum."""


class BroughtTokensError(ValueError):
    """Tokens that cannot be read, or are not those of the answer; one line."""


@dataclass(frozen=True, slots=True)
class BroughtToken:
    """A piece of an answer.

    Attributes:
        piece: its bytes; all pieces of an answer joined are the answer.
        log_probability: natural, at most 0; None for bytes that no token accounts for.
        entropy: nats over the whole vocabulary; None where it was not brought.
        alternatives: bytes of the most probable tokens, most probable first.
        alternative_log_probabilities: theirs.
        end: it ended the answer and says nothing.
    """

    piece: bytes
    log_probability: float | None
    entropy: float | None = None
    alternatives: tuple[bytes, ...] = ()
    alternative_log_probabilities: tuple[float, ...] = ()
    end: bool = False


def tokens_of_ranges(answer: str, entries: object) -> tuple[BroughtToken, ...]:
    """Return the tokens of an answer from objects with ``byte_start``, ``byte_end`` and ``log_probability``.

    Those of exported answers are such objects.  Bytes between them belong to no token.

    Raises:
        BroughtTokensError: no list of them, ranges that overlap, go back or lie outside, or numbers that cannot be.
    """
    if not isinstance(entries, list):
        raise BroughtTokensError("not a list")
    data, end = answer.encode(), 0
    found: list[BroughtToken] = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise BroughtTokensError(f"token {number} is no object")
        first, last = entry.get("byte_start"), entry.get("byte_end")
        if type(first) is not int or type(last) is not int:
            raise BroughtTokensError(f"token {number} has no whole numbers 'byte_start' and 'byte_end'")
        if not end <= first <= last <= len(data):
            raise BroughtTokensError(
                f"token {number} has bytes {first} to {last}, but those before it end at {end} and the response has"
                f" {len(data)}"
            )
        if first > end:
            found.append(BroughtToken(data[end:first], None))
        value = _number(number, entry, "log_probability", -_LARGEST, 0.0)
        entropy = _number(number, entry, "entropy", 0.0, _LARGEST)
        found.append(BroughtToken(data[first:last], value, entropy))
        end = last
    if end < len(data):
        found.append(BroughtToken(data[end:], None))
    return tuple(found)


def _number(number: int, entry: Mapping[str, object], name: str, low: float, high: float) -> float | None:
    value = entry.get(name)
    if value is None:
        return None
    try:
        found = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:  # a whole number of more than 308 digits
        found = math.nan
    if not low <= found <= high:
        limits = "at most 0 and not below -1e100" if high == 0.0 else "at least 0 and at most 1e100"
        raise BroughtTokensError(f"token {number} has the {name} {repr(value)[:40]}; a number, {limits}")
    return found
