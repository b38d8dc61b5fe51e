"""Tokens as servers and other programs report them, put where they stand in a reply.

OpenAI's chat completions give ``{"content": [{"token", "logprob", "bytes", "top_logprobs"}, …]}``, its completions
``{"tokens", "token_logprobs", "top_logprobs"}``; tools of one's own may give byte ranges.  Servers that decode token by
token lose the bytes of a character that two tokens share: the token's text is then empty or holds U+FFFD.  What lies
between is found again by its ASCII characters, which no half character holds, and counts as said by nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

MOST_ALTERNATIVES = 20
"""Of a token that are kept, the most probable ones."""

ROUNDING = 1e-6
"""A log-probability this much above 0 is rounding; more is refused."""

LOST = "bytes that no reported token accounts for"
"""The reason of a unit that holds such bytes."""

_LOST = "\ufffd"


class ReportedTokensError(ValueError):
    """Tokens that cannot be read, or are not those of the reply; one line."""


@dataclass(frozen=True, slots=True)
class ReportedToken:
    """A piece of a reply.

    Attributes:
        piece: its bytes; all pieces of a reply joined are the reply.
        log_probability: natural, at most 0; None for bytes that no reported token accounts for.
        entropy: nats over the whole vocabulary; None where it was not reported.
        alternatives: bytes and log-probability of the most probable tokens, most probable first.
        end: it ended the reply and says nothing.
    """

    piece: bytes
    log_probability: float | None
    entropy: float | None = None
    alternatives: tuple[tuple[bytes, float], ...] = ()
    end: bool = False


@dataclass(frozen=True, slots=True)
class _Said:
    """A token before its place is known; ``exact`` are its bytes where they are, else ``text`` is what is left."""

    exact: bytes | None
    text: str
    token: ReportedToken


def tokens_of_logprobs(reply: str, logprobs: object) -> tuple[ReportedToken, ...]:
    """Return the tokens of a reply from OpenAI's object, or from the list that it holds.

    Args:
        reply: the whole text.
        logprobs: of the chat or the completions interface, as JSON.

    Returns:
        Pieces that joined are the reply, and perhaps an end.

    Raises:
        ReportedTokensError: neither of them, or tokens of another text; says what and where.
    """
    if isinstance(logprobs, Mapping) and isinstance(logprobs.get("content"), list):
        logprobs = logprobs["content"]
    if isinstance(logprobs, list):
        return _joined(reply, [_chat_token(number, entry) for number, entry in enumerate(logprobs)])
    if isinstance(logprobs, Mapping) and isinstance(logprobs.get("tokens"), list):
        return _joined(reply, list(_completion_tokens(logprobs)))
    raise ReportedTokensError("neither a chat's 'content' list nor the 'tokens' of a completion")


def tokens_of_ranges(reply: str, entries: object) -> tuple[ReportedToken, ...]:
    """Return the tokens of a reply from objects with ``byte_start``, ``byte_end`` and ``log_probability``.

    Those of exported answers are such objects.  Bytes between them are said by nobody.

    Raises:
        ReportedTokensError: no list of them, or ranges that overlap, go back or lie outside.
    """
    if not isinstance(entries, list):
        raise ReportedTokensError("not a list")
    data, found, end = reply.encode(), [], 0
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise ReportedTokensError(f"token {number} is no object")
        first, last = entry.get("byte_start"), entry.get("byte_end")
        if type(first) is not int or type(last) is not int:
            raise ReportedTokensError(f"token {number} has no whole numbers 'byte_start' and 'byte_end'")
        if not end <= first <= last <= len(data):
            raise ReportedTokensError(
                f"token {number} has bytes {first} to {last}, but those before it end at {end} and the response has"
                f" {len(data)}"
            )
        if first > end:
            found.append(ReportedToken(data[end:first], None))
        value = _log_probability(number, entry.get("log_probability"))
        entropy = entry.get("entropy")
        if entropy is not None and not (_is_number(entropy) and 0.0 <= entropy < math.inf):
            raise ReportedTokensError(f"token {number} has the entropy {_shown(entropy)}; at least 0")
        found.append(ReportedToken(data[first:last], value, None if entropy is None else float(entropy)))
        end = last
    if end < len(data):
        found.append(ReportedToken(data[end:], None))
    return tuple(found)


def _chat_token(number: int, entry: object) -> _Said:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("token"), str):
        raise ReportedTokensError(f"token {number} is no object with a text 'token'")
    alternatives = entry.get("top_logprobs") or []
    if not isinstance(alternatives, list):
        raise ReportedTokensError(f"token {number}: 'top_logprobs' is no list")
    return _said(
        number,
        entry["token"],
        _bytes(number, entry.get("bytes")),
        entry.get("logprob"),
        [_alternative(number, alternative) for alternative in alternatives],
    )


def _alternative(number: int, entry: object) -> tuple[bytes, object]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("token"), str):
        raise ReportedTokensError(f"token {number}: an entry of 'top_logprobs' is no object with a text 'token'")
    data = _bytes(number, entry.get("bytes"))
    return _utf8(entry["token"]) if data is None else data, entry.get("logprob")


def _completion_tokens(logprobs: Mapping[str, Any]) -> Iterator[_Said]:
    texts, values = logprobs["tokens"], logprobs.get("token_logprobs")
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    if not isinstance(values, list) or not isinstance(tops, list) or not len(texts) == len(values) == len(tops):
        raise ReportedTokensError("'tokens', 'token_logprobs' and 'top_logprobs' are not lists of one length")
    for number, (text, value, top) in enumerate(zip(texts, values, tops, strict=True)):
        if not isinstance(text, str) or not (top is None or isinstance(top, Mapping)):
            raise ReportedTokensError(f"token {number} is no text, or its alternatives are no object")
        yield _said(number, text, None, value, [(_utf8(name), one) for name, one in (top or {}).items()])


def _said(
    number: int, text: str, data: bytes | None, value: object, alternatives: Iterable[tuple[bytes, object]]
) -> _Said:
    known = [(name, _log_probability(number, one)) for name, one in alternatives]
    ordered = sorted(((name, one) for name, one in known if one is not None), key=lambda pair: -pair[1])
    token = ReportedToken(b"", _log_probability(number, value), None, tuple(ordered[:MOST_ALTERNATIVES]))
    if data is None and text and _LOST not in text:
        data = _utf8(text)
    return _Said(data, text, token)


def _joined(reply: str, tokens: Sequence[_Said]) -> tuple[ReportedToken, ...]:
    """Give each token its bytes of the reply; see the module for those that have lost theirs."""
    data = reply.encode()
    found: list[ReportedToken] = []
    place = number = 0
    while number < len(tokens):
        said = tokens[number]
        if said.exact is not None and data.startswith(said.exact, place):
            found.append(replace(said.token, piece=said.exact))
            place += len(said.exact)
        elif number == 0 and said.exact is not None and data.startswith(said.exact.lstrip(b" ")):
            # Some tokenizers put a space before a text that is not part of it.
            piece = said.exact.lstrip(b" ")
            found.append(replace(said.token, piece=piece))
            place += len(piece)
        elif place == len(data) and number == len(tokens) - 1:
            found.append(replace(said.token, end=True))
        else:
            last, end = _group(data, place, tokens, number)
            if data[place:end].isascii():
                if end > place or last == number:
                    raise _other_text(data, place, number, said)
                found += [entry.token for entry in tokens[number:last]]
            else:
                found.append(_lost(found, data[place:end]))
            place, number = end, last
            continue
        number += 1
    if place < len(data):
        rest = data[place:]
        if any(byte < 0x80 for byte in rest):
            raise ReportedTokensError(f"the tokens end at byte {place} of {len(data)}")
        found.append(_lost(found, rest))
    return tuple(found)


def _lost(found: list[ReportedToken], piece: bytes) -> ReportedToken:
    """Return a piece that nobody said, with the tokens before it that may have said its beginning instead of theirs."""
    while found and found[-1].piece and found[-1].piece[0] >= 0x80:
        piece = found.pop().piece + piece
    return ReportedToken(piece, None)


def _group(data: bytes, place: int, tokens: Sequence[_Said], number: int) -> tuple[int, int]:
    """Find where it is certain again which token says what.

    Returns:
        The first token behind the group that begins with an ASCII character, and where it begins.  All bytes before
        are the group's ASCII characters and what was lost between them.
    """
    ascii_left, last = bytearray(), number
    while last < len(tokens):
        exact = tokens[last].exact
        if exact and exact[0] < 0x80:
            break
        known = exact if exact is not None else _utf8(tokens[last].text)
        ascii_left += bytes(byte for byte in known if byte < 0x80)
        last += 1
    end = place
    for wanted in ascii_left:
        while end < len(data) and data[end] >= 0x80:
            end += 1
        if end == len(data) or data[end] != wanted:
            raise _other_text(data, end, number, tokens[number])
        end += 1
    while end < len(data) and data[end] >= 0x80:
        end += 1
    return last, end


def _other_text(data: bytes, place: int, number: int, said: _Said) -> ReportedTokensError:
    here = data[place : place + 20].decode(errors="replace")
    return ReportedTokensError(
        f"token {number} is {_shown(said.text)}, but the response has {_shown(here)} there (byte {place})"
    )


def _log_probability(number: int, value: object) -> float | None:
    if value is None:
        return None
    if not _is_number(value) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ReportedTokensError(f"token {number} has the log-probability {_shown(value)}; a number is needed")
    if value > ROUNDING:
        raise ReportedTokensError(f"token {number} has the log-probability {value:g}, above 0")
    return min(0.0, float(value))


def _bytes(number: int, value: object) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(one) is int and 0 <= one < 256 for one in value):
        raise ReportedTokensError(f"token {number}: 'bytes' is no list of numbers from 0 to 255")
    return bytes(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _shown(value: object) -> str:
    return repr(value)[:40]
