"""Whether what is stored of a generation belongs together: its tokens, its reply and its units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Where a token stands in a reply, and what it stands for.

    Attributes:
        position: 0-based, among the tokens of the reply.
        start, end: half-open range in the bytes of the reply.
        piece: bytes of the token; None where neither row nor vocabulary has them.
    """

    position: int
    start: int
    end: int
    piece: bytes | None


@dataclass(frozen=True, slots=True)
class UnitRange:
    """Where a unit stands; None for a unit without tokens or bytes."""

    kind: str
    index: int
    token_start: int | None
    token_end: int | None
    byte_start: int | None
    byte_end: int | None


def generation_faults(reply: bytes, tokens: Sequence[TokenBytes], units: Sequence[UnitRange]) -> list[str]:
    """Say what does not fit together in a finished generation; nothing for a sound one.

    Tokens count from 0 without a gap, their bytes joined are the reply, and every unit lies inside it.  A last token
    without bytes may have a text in the vocabulary: the end of a generation says nothing.  Without any tokens the
    reply is taken as it is, as for a text that came without them; units then have no tokens.

    Args:
        reply: all bytes.
        tokens: in order of position.
        units: in any order.
    """
    return [*_token_faults(reply, tokens), *_unit_faults(len(reply), len(tokens), units)]


def _token_faults(reply: bytes, tokens: Sequence[TokenBytes]) -> list[str]:
    end = 0
    for place, token in enumerate(tokens):
        if token.position != place:
            return [f"token {place} is missing"]
        if token.start != end:
            return [f"token {place} begins at byte {token.start}, not {end}"]
        end = token.end
        silent_end = token.start == token.end and place == len(tokens) - 1
        if token.piece is None:
            return [f"token {place} has no bytes in the vocabulary"]
        if token.piece != reply[token.start : token.end] and not silent_end:
            return [f"token {place} is not what the reply holds at its bytes {token.start} to {token.end}"]
    if tokens and end != len(reply):
        return [f"the tokens hold {end} bytes and the reply {len(reply)}"]
    return []


def _unit_faults(length: int, tokens: int, units: Sequence[UnitRange]) -> list[str]:
    faults = []
    for unit in units:
        if unit.token_end is not None and unit.token_end > tokens:
            faults.append(f"{unit.kind} {unit.index} ends at token {unit.token_end} of {tokens}")
        if unit.byte_end is not None and unit.byte_end > length:
            faults.append(f"{unit.kind} {unit.index} ends at byte {unit.byte_end} of {length}")
    return faults
