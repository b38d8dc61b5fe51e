"""Frames between the parent and the engine's child: requests and replies as JSON, token steps packed.

A frame is a little-endian ``uint32`` payload length, one byte for the kind, and the payload:

- ``J``: JSON of one of the dataclasses below or of its neighbours, with its class name under ``type``;
- ``T``: the tokens of one step of all slots, `struct`-packed, about 200 bytes a token (JSON would be 700);
- ``S``: the same of an engine without token ids, as JSON: there, a server is what takes the time;
- ``V``: the vocabulary: ``uint32`` lengths, then the bytes;
- ``A``: the activations of one token: a head, the numbers of the layers, then the values as they are.

Nothing is pickled.  The alternatives' log-probabilities are rounded to float32 on the way; everything else is exact.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import struct
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias

from salt_tui.engine.engine import NextTurn
from salt_tui.engine.errors import EngineError
from salt_tui.engine.events import (
    Activations,
    AsideTaken,
    Chosen,
    EngineNotice,
    EngineStopped,
    LoadProgress,
    PromptProgress,
    ReadoutTaken,
    SequenceEnded,
    Token,
)
from salt_tui.engine.model_info import Build, ContextInfo, ModelInfo, Speed
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.requests import Aside, ChatTurn, Choice, Forced, Free, Generate, Spelled

PIPE_BYTES = 1 << 20
"""Asked for on Linux: about 5,000 tokens may wait for a busy parent before the child has to."""


@dataclass(frozen=True, slots=True)
class DescribeBuild:
    """Asks for a `Build`."""


@dataclass(frozen=True, slots=True)
class ListVocabulary:
    """Asks for a `Vocabulary`."""


@dataclass(frozen=True, slots=True)
class Encode:
    """Asks for `TokenSequences`, one per conversation."""

    conversations: tuple[tuple[ChatTurn, ...], ...]


@dataclass(frozen=True, slots=True)
class Tokenize:
    """Asks for `TokenSequences` with one element."""

    text: bytes


@dataclass(frozen=True, slots=True)
class ContinueConversation:
    """Asks for a `NextTurn`."""

    reply: tuple[int, ...]
    turn: ChatTurn


@dataclass(frozen=True, slots=True)
class DefineSet:
    """Names a set of token ids for readouts; answered by `Accepted`."""

    name: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The request is carried out and has no other answer."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Asks for a `Speed`; nothing may be running."""

    prompt_tokens: int
    steps: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stops one sequence, or all when ``key`` is None; answered by `SequenceEnded` events only."""

    key: int | None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The bytes of every token id."""

    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class TokenSequences:
    """Token ids of each text that was asked about."""

    sequences: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A request failed; ``error`` chooses the exception that the parent raises, ``unexpected`` is a bug."""

    error: Literal["model", "context", "engine", "unexpected"]
    message: str


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One step's tokens, at most one per slot."""

    tokens: tuple[Token, ...]


Request: TypeAlias = (
    DescribeBuild
    | LoadOptions
    | ListVocabulary
    | Encode
    | Tokenize
    | ContinueConversation
    | DefineSet
    | ContextOptions
    | Measure
    | Generate
    | Cancel
)
Reply: TypeAlias = Build | ModelInfo | Vocabulary | TokenSequences | NextTurn | ContextInfo | Speed | Accepted | Failure
Report: TypeAlias = (
    LoadProgress
    | PromptProgress
    | Chosen
    | AsideTaken
    | ReadoutTaken
    | Activations
    | SequenceEnded
    | TokenStep
    | EngineNotice
    | EngineStopped
)
Message: TypeAlias = Request | Reply | Report

_JSON_TYPES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        *(DescribeBuild, LoadOptions, ListVocabulary, Encode, Tokenize, ContinueConversation, DefineSet),
        *(ContextOptions, Measure, Generate, Cancel),
        *(Build, ModelInfo, TokenSequences, NextTurn, ContextInfo, Speed, Accepted, Failure),
        *(LoadProgress, PromptProgress, Chosen, AsideTaken, ReadoutTaken, SequenceEnded),
        *(EngineNotice, EngineStopped),
    )
}
_TAGGED = {cls.__name__: cls for cls in (Forced, Choice, Free, Aside, Spelled)}
"""Classes that stand in for each other in a field: their JSON names them."""

_HEADER = struct.Struct("<IB")
_JSON, _TOKENS, _SPELLED, _VOCABULARY, _ACTIVATIONS = b"JTSVA"
_ACTIVATIONS_HEAD = struct.Struct("<qII")  # key, position, number of layers
_FORCED, _END = 1, 2


def to_bytes(message: Message) -> bytes:
    """Return the message as one frame."""
    if isinstance(message, TokenStep):
        if any(token.id is None for token in message.tokens):
            kind, payload = _SPELLED, json.dumps([_spell(token) for token in message.tokens]).encode("ascii")
        else:
            kind, payload = _TOKENS, b"".join(map(_pack_token, message.tokens))
    elif isinstance(message, Vocabulary):
        lengths = [len(piece) for piece in message.pieces]
        kind, payload = _VOCABULARY, struct.pack(f"<I{len(lengths)}I", len(lengths), *lengths)
        payload += b"".join(message.pieces)
    elif isinstance(message, Activations):
        layers, count = message.layers, len(message.layers)
        head = _ACTIVATIONS_HEAD.pack(message.key, message.position, count)
        kind, payload = _ACTIVATIONS, head + struct.pack(f"<{count}I", *layers) + message.values
    else:
        value = {"type": type(message).__name__, **_to_json(message)}
        kind, payload = _JSON, json.dumps(value, separators=(",", ":")).encode("ascii")
    return _HEADER.pack(len(payload), kind) + payload


class FrameBuffer:
    """Puts frames together from whatever pieces a pipe delivers."""

    def __init__(self) -> None:
        """Start empty."""
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Add bytes and return the messages they complete; raises `EngineError` for bytes that are no frame."""
        self._data += data
        messages: list[Message] = []
        start = 0
        while len(self._data) - start >= _HEADER.size:
            length, kind = _HEADER.unpack_from(self._data, start)
            end = start + _HEADER.size + length
            if len(self._data) < end:
                break
            messages.append(_from_payload(kind, bytes(self._data[start + _HEADER.size : end])))
            start = end
        del self._data[:start]
        return messages


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes to a blocking descriptor; raises `BrokenPipeError` when the other end is gone."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def enlarge_pipe(descriptor: int) -> None:
    """Ask for `PIPE_BYTES` of buffer where the system can; a smaller buffer only means more waiting."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


# --- token steps ------------------------------------------------------------------------------------------------


@functools.cache
def _token_layout(alternatives: int) -> struct.Struct:
    """Key, position, id, flags, number of alternatives, log-probability, entropy, ids, log-probabilities."""
    return struct.Struct(f"<qIiBBdd{alternatives}i{alternatives}f")


_TOKEN_HEAD = _token_layout(0)


def _pack_token(token: Token) -> bytes:
    return _token_layout(len(token.alternatives)).pack(
        token.key,
        token.position,
        token.id,
        token.forced * _FORCED | token.end * _END,
        len(token.alternatives),
        token.log_probability,
        token.entropy,
        *token.alternatives,
        *token.alternative_log_probabilities,
    )


def _unpack_tokens(payload: bytes) -> tuple[Token, ...]:
    tokens: list[Token] = []
    start = 0
    while start < len(payload):
        count: int = _TOKEN_HEAD.unpack_from(payload, start)[4]
        layout = _token_layout(count)
        key, position, token, flags, _, log_probability, entropy, *rest = layout.unpack_from(payload, start)
        alternatives, probabilities = tuple(rest[:count]), tuple(rest[count:])
        forced, end = bool(flags & _FORCED), bool(flags & _END)
        tokens.append(Token(key, position, token, log_probability, entropy, alternatives, probabilities, forced, end))
        start += layout.size
    return tuple(tokens)


def _spell(token: Token) -> list[Any]:
    names = [name.decode("latin-1") if isinstance(name, bytes) else name for name in token.alternatives]
    return [
        token.key,
        token.position,
        token.id,
        token.log_probability,
        token.entropy,
        names,
        token.alternative_log_probabilities,
        token.forced,
        token.end,
        None if token.piece is None else token.piece.decode("latin-1"),
    ]


def _unspell(payload: bytes) -> tuple[Token, ...]:
    tokens: list[Token] = []
    for key, position, token, log_probability, entropy, names, probabilities, forced, end, piece in json.loads(payload):
        alternatives = tuple(name.encode("latin-1") if isinstance(name, str) else name for name in names)
        spelled = None if piece is None else piece.encode("latin-1")
        head = (key, position, token, log_probability, entropy)
        tokens.append(Token(*head, alternatives, tuple(probabilities), forced, end, spelled))
    return tuple(tokens)


# --- JSON of dataclasses ----------------------------------------------------------------------------------------


def _from_payload(kind: int, payload: bytes) -> Message:
    try:
        if kind == _TOKENS:
            return TokenStep(_unpack_tokens(payload))
        if kind == _SPELLED:
            return TokenStep(_unspell(payload))
        if kind == _VOCABULARY:
            return _unpack_vocabulary(payload)
        if kind == _ACTIVATIONS:
            key, position, count = _ACTIVATIONS_HEAD.unpack_from(payload)
            start = _ACTIVATIONS_HEAD.size
            layers = struct.unpack_from(f"<{count}I", payload, start)
            return Activations(key, position, layers, payload[start + 4 * count :])
        if kind == _JSON:
            value = json.loads(payload)
            message: Message = _from_json(_JSON_TYPES[value["type"]], value)
            return message
    except (KeyError, ValueError, TypeError, struct.error) as error:
        raise EngineError(f"the engine sent an unreadable message ({error}): please report it") from error
    raise EngineError(f"the engine sent a message of unknown kind {kind}: please report it")


def _unpack_vocabulary(payload: bytes) -> Vocabulary:
    (count,) = struct.unpack_from("<I", payload)
    lengths = struct.unpack_from(f"<{count}I", payload, 4)
    pieces: list[bytes] = []
    start = 4 + 4 * count
    for length in lengths:
        pieces.append(payload[start : start + length])
        start += length
    return Vocabulary(tuple(pieces))


def _to_json(value: Any) -> Any:
    if is_dataclass(value):
        tag = {"type": type(value).__name__} if type(value).__name__ in _TAGGED else {}
        return {**tag, **{field.name: _to_json(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, tuple):
        # Prompts are long tuples of integers: nothing to convert in them.
        return value if not value or isinstance(value[0], int) else [_to_json(item) for item in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _from_json(hint: Any, value: Any) -> Any:
    return _decoder(hint)(value)


@functools.cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """Return what turns a JSON value into a value of the annotated type."""
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        parts = [(name, _decoder(part)) for name, part in hints.items()]
        return lambda value: typing.cast(Any, hint)(**{name: decode(value[name]) for name, decode in parts})
    if hint is bytes:
        return lambda value: value.encode("latin-1")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        item = _decoder(arguments[0])
        return tuple if item is _as_is else lambda value: tuple(map(item, value))
    if origin in (typing.Union, types.UnionType):
        if set(arguments) == set(_TAGGED.values()):
            return lambda value: _decoder(_TAGGED[value["type"]])(value)
        choices = [_decoder(argument) for argument in arguments if argument is not types.NoneType]
        if len(choices) == 1 and choices[0] is not _as_is:
            return lambda value: None if value is None else choices[0](value)
    return _as_is


def _as_is(value: Any) -> Any:
    return value
