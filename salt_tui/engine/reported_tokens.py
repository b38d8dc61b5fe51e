"""OpenAI's log-probability objects, as servers and files hold them, read into tokens: checked, never believed.

Two shapes are read: that of chat completions (``{"content": [{"token", "bytes", "logprob", "top_logprobs"}]}``), and
that of completions (``{"tokens", "token_logprobs", "top_logprobs"}``), which llama-server also fills with the former.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from salt_tui.engine.events import ALTERNATIVES
from salt_tui.engine.token_alignment import ReportedToken

UNLIKELY = -9999.0
"""What servers write for a probability of 0, or for one that they do not tell; llama-server writes a lower one."""

_ROUNDING = 1e-3
"""A log-probability that is above 0 by no more than this is rounding."""

_MOST_MASS = 1.01
_REPLACEMENT = "\ufffd"
_MANY_IDS = "token_id:"


class ReportError(ValueError):
    """Something that is no log-probability object; the message is one line."""


def read_logprobs(value: object) -> list[ReportedToken]:
    """Read a ``logprobs`` object of either shape; None holds no tokens.

    Raises:
        ReportError: it is neither, or holds numbers that cannot be.
    """
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise ReportError("logprobs is no object")
    content = value.get("content")
    if isinstance(content, list):
        return [_chat_token(_mapping(entry)) for entry in content]
    if "tokens" in value:
        return list(_completion_tokens(value))
    if content is None:
        return []
    raise ReportError("logprobs.content is no list")


def _chat_token(entry: Mapping[str, Any]) -> ReportedToken:
    spelled, damaged = _spelling(entry)
    listed = entry.get("top_logprobs")
    if listed is not None and not isinstance(listed, list):
        raise ReportError("top_logprobs is no list")
    tops = [_mapping(top) for top in listed or []]
    alternatives = [(_spelling(top)[0], _number(top.get("logprob"))) for top in tops]
    damaged = damaged or _holds_several(entry, spelled, tops)
    return _token(spelled, entry.get("logprob"), alternatives, damaged=damaged)


def _holds_several(entry: Mapping[str, Any], spelled: bytes, tops: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether an entry of llama-server stands for half characters before it too, for which it has no entries."""
    number = entry.get("id")
    if number is None or all(byte < 0x80 for byte in spelled):
        return False
    same = [top for top in tops if top.get("id") == number]
    return not same or _spelling(same[0])[0] != spelled


def _completion_tokens(value: Mapping[str, Any]) -> Iterator[ReportedToken]:
    texts, numbers, tops = value["tokens"], value.get("token_logprobs"), value.get("top_logprobs")
    if not isinstance(texts, list) or not isinstance(numbers, list) or len(numbers) != len(texts):
        raise ReportError("tokens and token_logprobs are not lists of one length")
    if tops is not None and (not isinstance(tops, list) or len(tops) != len(texts)):
        raise ReportError("top_logprobs is no list of the length of tokens")
    for place, text in enumerate(texts):
        spelled, damaged = _spelling({"token": text})
        listed = {} if tops is None or tops[place] is None else _mapping(tops[place])
        alternatives = [(_spelling({"token": name})[0], _number(number)) for name, number in listed.items()]
        yield _token(spelled, numbers[place], alternatives, damaged=damaged)


def _token(
    spelled: bytes, number: object, alternatives: list[tuple[bytes, float | None]], *, damaged: bool
) -> ReportedToken:
    log_probability = _number(number)
    # Neither OpenAI nor vLLM promises an order; vLLM puts the chosen token first.
    ranked = sorted(((name, log) for name, log in alternatives if log is not None), key=lambda item: -item[1])
    if log_probability is not None:
        own = next((place for place, item in enumerate(ranked) if item[0] == spelled), None)
        if own is None and ranked and log_probability > ranked[0][1]:
            ranked.insert(0, (spelled, log_probability))
        elif own is not None and own == len(ranked) - 1 > 0:
            # The least probable may be there because it was chosen, not because it belongs to the most probable.
            del ranked[own]
    ranked = ranked[:ALTERNATIVES]
    if math.fsum(math.exp(log) for _, log in ranked) > _MOST_MASS:
        raise ReportError(f"the probabilities of {len(ranked)} tokens add up to more than 1")
    names, logs = tuple(name for name, _ in ranked), tuple(log for _, log in ranked)
    return ReportedToken(spelled, log_probability, names, logs, damaged)


def _spelling(entry: Mapping[str, Any]) -> tuple[bytes, bool]:
    """Return the bytes of a token, and whether they may not be its own."""
    text, numbers = entry.get("token"), entry.get("bytes")
    if not isinstance(text, str):
        raise ReportError("a token is no text")
    if text.startswith(_MANY_IDS) and text.removeprefix(_MANY_IDS).isdigit():
        raise ReportError("tokens are given as ids, not as texts: start the server without return_tokens_as_token_ids")
    if isinstance(numbers, list) and numbers:
        if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 256 for one in numbers):
            raise ReportError("the bytes of a token are not numbers from 0 to 255")
        spelled = bytes(numbers)
        # A server that replaces halves before it makes bytes of them says so in its text too.
        return spelled, _REPLACEMENT.encode() in spelled
    # Half a surrogate pair has no bytes either.
    text = "".join(_REPLACEMENT if "\ud800" <= character < "\ue000" else character for character in text)
    return text.encode(), not text or _REPLACEMENT in text


def _number(value: object) -> float | None:
    """Return a log-probability; None where a server writes that it does not know it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ReportError(f"a log-probability is {_shown(value)}, no number")
    if value > _ROUNDING:
        raise ReportError(f"a log-probability is {_shown(value)}, above 0")
    return None if value <= UNLIKELY else min(float(value), 0.0)


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ReportError(f"{_shown(value)} is no token with a log-probability")
    return value


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 19 digits"
    text = "null" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
