"""What a model nearly said: how likely the right answer was at a token, and where an atom parts from what is right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.store.records import UnitRecord
from salt_tui.store.results import StoredToken
from salt_tui.visible_text import visible


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could have come.

    Attributes:
        text: its bytes, made visible.
        probability: of it, in [0, 1].
        said: whether it is the one that came.
        right: whether the right answer goes on with it.
    """

    text: str
    probability: float
    said: bool
    right: bool


@dataclass(frozen=True, slots=True)
class RightToken:
    """The likeliest token with which the right answer goes on.

    Attributes:
        rank: its place among all tokens, 1 for the likeliest; None where it is not among those that are stored.
        probability: of it; None where it is not stored.
        listed: how many are stored.
        text: its bytes, made visible; None where it is not stored.
    """

    rank: int | None
    probability: float | None
    listed: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Parting:
    """The first token of an atom with which it is no longer right.

    Attributes:
        position: its place in the answer, from 0.
        said: its bytes, made visible.
        probability: of it, in [0, 1].
        right: what should have come.
        whole: whether it is the whole atom, and what should have come, where it is stored, the whole right one; blanks
            are left out.
    """

    position: int
    said: str
    probability: float
    right: RightToken
    whole: bool


def where_it_parts(unit: UnitRecord, tokens: Sequence[StoredToken]) -> Parting | None:
    """Return where a wrong atom parts from the right one; None where nothing is right or nothing is known.

    Args:
        unit: the atom.
        tokens: of its answer, in order: those of the atom and the one behind it at least.
    """
    if unit.status != "wrong" or unit.token_start is None or unit.token_end is None:
        return None
    for number, token in enumerate(tokens):
        if not unit.token_start <= token.record.position <= unit.token_end:
            continue
        pieces = right_pieces(unit, tokens, number)
        if pieces is None:
            return None
        if not _goes_on(token.piece, pieces):
            right = right_token(token, pieces)
            whole = shown_bytes(token.piece.strip()) == visible(unit.text or "")
            if right.text is not None:
                whole = whole and right.text.strip() == visible(unit.reference or "")
            log = token.record.log_probability
            if log is None:
                return None
            probability = math.exp(log)
            return Parting(token.record.position, shown_bytes(token.piece), probability, right, whole)
    return None


def right_pieces(unit: UnitRecord, tokens: Sequence[StoredToken], number: int) -> tuple[bytes, bytes] | None:
    """Return what stands in a token before its atom, and what of the right atom is still to come.

    Args:
        unit: the atom that the token is a part of, or that ends before the token.
        tokens: of its answer, in order; those from its first one on at least.
        number: place of the token among them.

    Returns:
        None where nothing is right, or the atom had parted from it before the token.
    """
    if unit.reference is None or unit.byte_start is None or unit.token_start is None:
        return None
    token = tokens[number]
    first = number - (token.record.position - unit.token_start)
    text = b"".join(other.piece for other in tokens[first : number + 1])
    start = tokens[first].record.start
    right = unit.reference.encode()
    said = text[unit.byte_start - start : max(unit.byte_start, token.record.start) - start]
    if not right.startswith(said):
        return None
    before = text[token.record.start - start : max(token.record.start, unit.byte_start) - start]
    return before, right[len(said) :]


def candidates(token: StoredToken, right: tuple[bytes, bytes] | None) -> tuple[Candidate, ...]:
    """Return the stored alternatives of a token, likeliest first, and behind them itself where it is not stored.

    Args:
        token: the one that came.
        right: as `right_pieces` returns it.
    """
    found = [
        Candidate(shown_bytes(piece), math.exp(log), piece == token.piece, _goes_on(piece, right))
        for piece, log in zip(token.alternative_pieces, token.record.alternative_log_probabilities, strict=True)
    ]
    if not any(candidate.said for candidate in found) and token.record.log_probability is not None:
        probability = math.exp(token.record.log_probability)
        found.append(Candidate(shown_bytes(token.piece), probability, True, _goes_on(token.piece, right)))
    return tuple(found)


def right_token(token: StoredToken, right: tuple[bytes, bytes]) -> RightToken:
    """Return the likeliest token with which the right answer goes on in place of one."""
    listed = len(token.alternative_pieces)
    for rank, candidate in enumerate(candidates(token, right), start=1):
        if candidate.right:
            return RightToken(rank if rank <= listed else None, candidate.probability, listed, candidate.text)
    return RightToken(None, None, listed)


def _goes_on(piece: bytes, right: tuple[bytes, bytes] | None) -> bool:
    """Return whether a token goes on with what is right: a part of it, or all of it and something behind it."""
    if right is None or not piece.startswith(right[0]):
        return False
    said, wanted = piece[len(right[0]) :], right[1]
    return bool(said) and (wanted.startswith(said) or (said.startswith(wanted) and not said[len(wanted) :].strip()))


def shown_bytes(piece: bytes) -> str:
    r"""Return the bytes of a token as visible text; what is no text as ``\x..``."""
    return visible(piece.decode("utf-8", errors="backslashreplace"))
