"""What an engine reports while it computes: tokens with their statistics, readings, ends and deaths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

StopReason = Literal["end", "length", "done", "context", "cancelled", "failed"]
"""Why a sequence ended.

``end``: an end-of-generation token was sampled, or is the last of the forced ones; ``length``: the last segment is
`Free` and reached its limit; ``done``: the segments are used up; ``context``: the context is full; ``cancelled``;
``failed``: the engine failed.
"""

ALTERNATIVES = 20
"""How many of the most probable tokens every step reports (fewer when the vocabulary is smaller)."""


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How far the prompt of a sequence is evaluated, in tokens; the copied preamble counts as done."""

    key: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Token:
    """One answer token with its statistics, before any sampler; over what, `Capabilities.statistics` says.

    An engine without the capability ``vocabulary`` gives no ids: its tokens and their alternatives are bytes.

    Attributes:
        key: the sequence.
        position: in the reply, from 0, trunk included.
        id: the token; None where the engine gives no ids.
        log_probability: natural logarithm, <= 0; None for bytes of the reply that no reported token accounts for.
        entropy: nats, >= 0; None where it is not known over the whole vocabulary.
        alternatives: the most probable ids, most probable first, ties by id; at most `ALTERNATIVES`.
        alternative_log_probabilities: theirs.
        forced: True when the caller chose it, False when it was sampled.
        end: True for an end-of-generation token; it has statistics but no bytes in the reply.
        piece: its bytes in the reply where the engine gives no ids, else None: the vocabulary has them.
    """

    key: int
    position: int
    id: int | None
    log_probability: float | None
    entropy: float | None
    alternatives: tuple[int | bytes, ...]
    alternative_log_probabilities: tuple[float, ...]
    forced: bool
    end: bool
    piece: bytes | None = None

    def spoken(self, vocabulary: Sequence[bytes]) -> bytes:
        """Return what it adds to the reply.

        Args:
            vocabulary: bytes of every token id; empty where the engine gives no ids.
        """
        if self.end:
            return b""
        if self.id is None:
            return self.piece or b""
        return vocabulary[self.id]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a `Choice` found; the tokens of the chosen option follow as forced ones.

    Attributes:
        key: the sequence.
        position: of the first token of the option.
        log_probabilities: of each option, natural logarithm, the sum over its tokens; -inf where it is impossible,
            None where an engine that lists the most probable tokens only does not list it.
        chosen: place of the appended option.
    """

    key: int
    position: int
    log_probabilities: tuple[float | None, ...]
    chosen: int


@dataclass(frozen=True, slots=True)
class AsideTaken:
    """What an `Aside` found; nothing of it is part of the reply.

    Attributes:
        key: the sequence.
        position: in the reply, of the first of its tokens if it had been said.
        log_probabilities: of each token, given those before it, over the whole vocabulary; <= 0, or -inf.
        log_mass: natural logarithm of the summed probability of the set after the last; None when not asked for.
    """

    key: int
    position: int
    log_probabilities: tuple[float, ...]
    log_mass: float | None


@dataclass(frozen=True, slots=True)
class ReadoutTaken:
    """What a `Readout` found, before the token at its position; natural logarithms, -inf for probability 0.

    Attributes:
        key: the sequence.
        position: of the readout.
        log_probabilities: of the listed ids.
        rest: of all other ids together; None when not asked for.
        log_mass: of the named set; None when not asked for.
    """

    key: int
    position: int
    log_probabilities: tuple[float, ...]
    rest: float | None
    log_mass: float | None


@dataclass(frozen=True, slots=True)
class Activations:
    """Outputs of blocks (residual stream) in the evaluation that produced the token at a position.

    Attributes:
        key: the sequence.
        position: of the token that was produced.
        layers: blocks, from 0, in the order of the request.
        values: little-endian float32, shape ``(len(layers), width)``.
    """

    key: int
    position: int
    layers: tuple[int, ...]
    values: bytes


@dataclass(frozen=True, slots=True)
class SequenceEnded:
    """A sequence is over; no further event bears its key."""

    key: int
    stop_reason: StopReason
    message: str | None = None


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The child ended by itself; every sequence in flight is lost and `Engine.restart` may be called.

    Attributes:
        exit_code: negative for a signal, as in `subprocess`.
        log_tail: the last lines of the child's log, escaped of control characters.
    """

    exit_code: int
    log_tail: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineNotice:
    """One line about the engine that the user must see, such as a server that asks to wait."""

    text: str


@dataclass(frozen=True, slots=True)
class EngineStopped:
    """The engine cannot go on, and another start would not help; every sequence in flight is lost.

    Attributes:
        message: why, one line.
    """

    message: str


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """Share of the model that is loaded, 0..1."""

    fraction: float


Reading: TypeAlias = Chosen | AsideTaken | ReadoutTaken | Activations


Event: TypeAlias = PromptProgress | Token | Reading | SequenceEnded | EngineDied | EngineNotice | EngineStopped
