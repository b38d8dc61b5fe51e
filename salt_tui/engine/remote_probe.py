"""What short requests find out about a server before anything is stored: whether it gives what is needed, and whose."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from salt_tui.engine.remote_client import Client, RefusedError
from salt_tui.engine.remote_requests import AnswerError, Samplers, body
from salt_tui.engine.remote_server import Server
from salt_tui.engine.requests import ChatTurn, Sampling
from salt_tui.engine.token_alignment import AlignmentError, PlacedToken, TokenAligner

_QUESTION = (ChatTurn("user", "Name a colour."),)
_TOKENS = 4
_HOT = 2.0
_SAME = 0.25
"""Nats by which a log-probability may differ between two requests, whose batches differ; a temperature of 2 moves most
of a list by more than one."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found out.

    Attributes:
        answered: the name that the server answers with.
        alternatives: how many it lists.
        raw: its log-probabilities do not change with the temperature; None where that cannot be told.
        samplers: which it takes.
    """

    answered: str | None
    alternatives: int
    raw: bool | None
    samplers: Samplers


async def look(client: Client, server: Server) -> Probe:
    """Ask for a few tokens, hot and cold.

    Raises:
        AnswerError: the server gives no log-probabilities.
        AlignmentError, ServerError, LaterError, RefusedError, CutError: it cannot be used; one line.
    """
    samplers: Samplers = "all"
    try:
        hot, _ = await _first(client, server, Sampling(_HOT), samplers)
    except RefusedError:
        samplers = "standard"
        hot, _ = await _first(client, server, Sampling(_HOT), samplers)
    cold, answered = await _first(client, server, Sampling(), samplers)
    return Probe(answered, len(cold.alternatives), _are_raw(cold, hot), samplers)


async def _first(
    client: Client, server: Server, sampling: Sampling, samplers: Samplers
) -> tuple[PlacedToken, str | None]:
    """Return the first token of a short answer, and the model that answered."""
    found: list[PlacedToken] = []
    aligner = TokenAligner()
    model: str | None = None
    asked = body(server, _QUESTION, _TOKENS, sampling, samplers)
    async with contextlib.aclosing(client.ask(asked, _TOKENS)) as answers:
        async for chunk in answers:
            model = chunk.model or model
            found += aligner.add(chunk.text.encode(), chunk.tokens)
    try:
        found += aligner.finish(stopped=True)
    except AlignmentError as error:
        if not found:
            raise without_log_probabilities() from error
    known = next((token for token in found if token.log_probability is not None), None)
    if known is None:
        raise without_log_probabilities()
    return known, model


def _are_raw(cold: PlacedToken, hot: PlacedToken) -> bool | None:
    """Say whether the log-probabilities of a first token are the same at two temperatures."""
    before = dict(zip(cold.alternatives, cold.alternative_log_probabilities, strict=True))
    after = dict(zip(hot.alternatives, hot.alternative_log_probabilities, strict=True))
    both = before.keys() & after.keys()
    if len(both) < min(2, len(before)):
        return False if before and after else None
    return max((abs(before[name] - after[name]) for name in both), default=0.0) <= _SAME if both else None


def without_log_probabilities() -> AnswerError:
    """Return the error of an answer without what this is all about."""
    return AnswerError(
        "the server gives no log-probabilities (llama-cpp-python's server needs --logits_all true, vLLM a"
        " --max-logprobs of 20)"
    )
