"""Does a child that was started anew compute the same numbers?  The part of the exactness check that needs two."""

from __future__ import annotations

from collections.abc import Sequence

from salt_tui.engine.engine import Engine
from salt_tui.engine.errors import EngineError
from salt_tui.engine.events import EngineDied, SequenceEnded, Token
from salt_tui.engine.model_info import INCOMPARABLE
from salt_tui.engine.requests import ChatTurn, Forced, Generate

_TEXTS = ("Count to nine.", "Name three colours.")
_STEPS = 6


def difference_after_restart(engine: Engine, width: int) -> float:
    """Compute the same forced answers before and after a restart, all slots busy.

    Args:
        engine: with an open context of this width with room for a short chat and six tokens; nothing runs on it.
        width: slots.

    Returns:
        The largest absolute difference between log-probabilities or entropies (nats), 0.0 when bit-identical,
        `INCOMPARABLE` when other tokens are the most probable.

    Raises:
        EngineError: the engine failed.
    """
    prompts = engine.encode([[ChatTurn("user", text)] for text in _TEXTS])
    requests = [Generate(key, prompts[key % 2], 0, (Forced(prompts[(key + 1) % 2][-_STEPS:]),)) for key in range(width)]
    before = _answers(engine, requests)
    engine.restart()
    after = _answers(engine, requests)
    return max(_difference(one, other) for one, other in zip(before, after, strict=True))


def _answers(engine: Engine, requests: Sequence[Generate]) -> list[Token]:
    """Return the tokens in order of key and position."""
    for request in requests:
        engine.submit(request)
    tokens: list[Token] = []
    running = len(requests)
    while running:
        for event in engine.events(1.0):
            if isinstance(event, Token):
                tokens.append(event)
            elif isinstance(event, EngineDied):
                raise EngineError(f"the engine died during the exactness check; {engine.log_path} says more")
            elif isinstance(event, SequenceEnded):
                running -= 1
                if event.stop_reason == "failed":
                    raise EngineError(f"the exactness check failed: {event.message}")
    return sorted(tokens, key=lambda token: token.key)


def _difference(one: Token, other: Token) -> float:
    if (one.id, one.alternatives) != (other.id, other.alternatives):
        return INCOMPARABLE
    numbers = ((token.log_probability, token.entropy, *token.alternative_log_probabilities) for token in (one, other))
    return max(0.0 if a == b else abs(a - b) for a, b in zip(*numbers, strict=True))
