"""What the rest of the program knows of an engine: options, events and the interface of the handle.

What one sequence is asked to be is in `salt_tui.engine.requests`.

Nothing here names llama.cpp.  A llama.cpp child, a scripted child and other engines all look like this.
The order of use is `Engine.load`, `Engine.encode` (as often as wanted), `Engine.open_context`, then any number of
`Engine.submit` and `Engine.events`.  Loading and opening are two steps because a plan can only know the context it
needs after its prompts are tokenised.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias

from salt_tui.engine.remote_server import Server
from salt_tui.engine.requests import ChatTurn, Generate

StopReason = Literal["end", "length", "done", "context", "cancelled", "failed"]
"""Why a sequence ended.

``end``: an end-of-generation token was sampled, or is the last of the forced ones; ``length``: the last segment is
`Free` and reached its limit; ``done``: the segments are used up; ``context``: the context is full; ``cancelled``;
``failed``: the engine failed.
"""

ALTERNATIVES = 20
"""How many of the most probable tokens every step reports (fewer when the vocabulary is smaller)."""


CACHE_MB = 1024
"""Main memory for beginnings that requests share, where nothing else is asked for, in 2**20 bytes."""


# --- options ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How the model file is opened; the names are llama.cpp's.

    Attributes:
        path: the model file.
        gpu_layers: ``-ngl``: a count taken literally, ``"all"``, or ``"auto"`` for as many as fit the devices.
        template: replaces the file's own chat template when not None; ``""`` asks for plain completion prompts.
        template_options: variables for the template, such as ``{"enable_thinking": False}``.
        date: ISO date that templates see instead of today's, frozen per run.
        server: where the model is served; None for a file.  ``path`` is then its address, for messages.
    """

    path: str
    gpu_layers: int | Literal["auto", "all"]
    template: str | None
    template_options: dict[str, bool | int | str]
    date: str
    server: Server | None = None


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """The shape of the computation; equal shapes give equal numbers.

    Attributes:
        width: sequences decoded at once, ``-np``: 1, 2, 3 or a multiple of 4.
        context: tokens per answer, prompt included, ``-c``; enforced exactly by the engine.  None leaves it to a
            server.
        batch, micro_batch: ``-b`` and ``-ub``, tokens.
        threads: ``-t``; None lets the engine choose and report.
        flash_attention: ``-fa``.
        key_type, value_type: ``-ctk``, ``-ctv``: ``f32 f16 bf16 q8_0 q4_0 …``.
        check: the exactness check: none, the quick one of every run, or in full.
        layers: blocks, from 0, whose activations requests may ask for; () installs nothing.
        cache_mb: ``--cache-mb``, main memory for beginnings that requests share, in 2**20 bytes; changes no number.
    """

    width: int
    context: int | None
    batch: int
    micro_batch: int
    threads: int | None
    flash_attention: Literal["auto", "on", "off"]
    key_type: str
    value_type: str
    check: Literal["none", "quick", "full"] = "quick"
    layers: tuple[int, ...] = ()
    cache_mb: int = CACHE_MB

    @property
    def room(self) -> int:
        """Tokens per answer, for an engine that has to know; raises `ContextError`."""
        if self.context is None:
            raise ContextError("this engine needs a context: give -c")
        return self.context


@dataclass(frozen=True, slots=True)
class NextTurn:
    """How a conversation goes on after a reply: drop ids at its end, then append tokens.

    Attributes:
        dropped: how many ids at the end of the reply go, because the template writes its own end of turn.
        tokens: the end of the reply's turn, the next turn, and the beginning of the next reply.
    """

    dropped: int
    tokens: tuple[int, ...]


# --- answers to loading -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Device:
    """A computing device that the build can use; memory in bytes, None where unknown."""

    name: str
    description: str
    kind: str
    memory_free: int | None
    memory_total: int | None


@dataclass(frozen=True, slots=True)
class Build:
    """What the engine is made of and what it can use; part of a run's environment."""

    engine: str
    versions: dict[str, str]
    supports_gpu: bool
    devices: tuple[Device, ...]
    system_information: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do with a model.

    Attributes:
        statistics: over what log-probabilities and entropies are known: the whole vocabulary, the most probable tokens
            only, or not at all.
        activation_layers, activation_width: shape of the activations of one token; 0 where there are none.
        vocabulary: tokens have ids, and the bytes of every id are known; without it prompts are conversations.
        forced: tokens can be forced.
        cut: a sequence can be cut back to an earlier position.
    """

    statistics: Literal["vocabulary", "top_k", "none"]
    activation_layers: int
    activation_width: int
    vocabulary: bool
    forced: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model.

    Attributes:
        description: architecture, size and quantisation in words, e.g. ``llama 135M Q4_1``.
        architecture: the GGUF's ``general.architecture``; None where the engine does not tell.
        name: the GGUF's ``general.name`` or None.
        quantisation: e.g. ``Q4_1``; None where unknown.
        parameters, file_bytes: counts; None where the engine does not tell.
        vocabulary_size: number of token ids; None where the engine does not tell.
        trained_context: tokens; 0 where the engine does not tell.
        layers: layers that can be offloaded, the output layer included.
        gpu_layers: layers that were offloaded.
        template: the chat template in use, None for plain completion prompts.
        thinking_open: the rendered prompt ends inside an open ``<think>``, so a reply begins as thinking.
        warnings: sentences the user must see, e.g. layers asked for and no device.
        capabilities: what the engine can do with it.
        identity: what tells this model from others; None: the hash of its file does.
        end_tokens: ids that end a generation, ascending; empty where the engine gives no ids.
        sent: of a server: what every request holds beside prompt, limit and seed, see `RunPlan.sent`.
    """

    description: str
    architecture: str | None
    name: str | None
    quantisation: str | None
    parameters: int | None
    file_bytes: int | None
    vocabulary_size: int | None
    trained_context: int
    layers: int
    gpu_layers: int
    template: str | None
    thinking_open: bool
    warnings: tuple[str, ...]
    build: Build
    capabilities: Capabilities
    identity: str | None
    end_tokens: tuple[int, ...] = ()
    sent: dict[str, Any] | None = None


INCOMPARABLE = sys.float_info.max
"""Marks logits that cannot be compared, such as NaN; JSON has no infinity."""


@dataclass(frozen=True, slots=True)
class Exactness:
    """Result of the exactness check: largest absolute logit difference per comparison, 0.0 when bit-identical.

    Attributes:
        differences: e.g. ``{"company": 0.0}``, in full ``{"warm_cold": 0.0, "slots": 0.0, "neighbours": 0.0,
            "fork": 0.0, "snapshot": 0.0}``; empty when not checked.
        exact: all of them are 0.0; None when not checked.
    """

    differences: dict[str, float]
    exact: bool | None


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """The context as it was made, after every automatic choice.

    Attributes:
        gpu_layers: layers that are offloaded now; with ``-ngl auto`` perhaps fewer than after loading, because the
            KV cache takes room too.
    """

    width: int
    context: int | None
    batch: int
    micro_batch: int
    threads: int
    gpu_layers: int
    flash_attention: bool
    key_type: str
    value_type: str
    exactness: Exactness


@dataclass(frozen=True, slots=True)
class Speed:
    """Times of one measurement, seconds.

    Attributes:
        prompt_tokens: tokens that were evaluated in one stream, in chunks, as prompts are.
        prompt: for all of them.
        bare: of each block of `steps_per_block` steps, one token in every slot: the library's call only.
        full: of each block with the statistics of every slot; ``full[i]`` was measured just after ``bare[i]``.
        steps_per_block: steps in a block.
    """

    prompt_tokens: int
    prompt: float
    bare: tuple[float, ...]
    full: tuple[float, ...]
    steps_per_block: int


# --- events -----------------------------------------------------------------------------------------------------


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


# --- errors -----------------------------------------------------------------------------------------------------


class EngineError(Exception):
    """The engine failed; the message is one line for the user."""


class ModelError(EngineError):
    """The model cannot be used (missing, broken, unsupported): exit code 2; the message is one line."""


class ContextError(EngineError):
    """The context cannot be made with these options (width, memory, types): exit code 2; one line."""


def check_width(width: int) -> None:
    """Refuse widths at which a slot's numbers depend on its place in the batch.

    Measured on a CPU with a 262,144-token vocabulary: at widths 5, 6 and 7 the last slot differs by 1.3 logits, at
    1, 2, 3, 4, 8 and 12 not at all.

    Raises:
        ContextError: unless the width is 1, 2, 3 or a multiple of 4.
    """
    if width < 1 or (width > 3 and width % 4):
        raise ContextError(f"-np {width}: the width must be 1, 2, 3 or a multiple of 4")


def check_layers(layers: Sequence[int], blocks: int) -> None:
    """Refuse layers that a model of so many blocks lacks, or that are named twice; raises `ContextError`."""
    for place, layer in enumerate(layers):
        if not 0 <= layer < blocks:
            raise ContextError(f"there is no layer {layer}: the model has layers 0 to {blocks - 1}")
        if layer in layers[:place]:
            raise ContextError(f"layer {layer} is asked for twice")


# --- the handle -------------------------------------------------------------------------------------------------


class Engine(Protocol):
    """The parent's side of an engine.

    Used from one thread; only `cancel`, `suspend` and `wake` may be called from any thread.
    """

    @property
    def log_path(self) -> str:
        """The file that everything the child prints goes to."""
        ...

    def call_while_waiting(self, call: Callable[[], None] | None) -> None:
        """Call this at least once a second while a method waits for its answer; it may raise to stop the waiting.

        Loading a model takes minutes.  `events` returns by itself and does not call it.  None calls nothing.
        """
        ...

    def build(self) -> Build:
        """Describe the engine's build and devices, without a model."""
        ...

    def load(self, options: LoadOptions, progress: Callable[[LoadProgress], None] | None = None) -> ModelInfo:
        """Load a model; raises `ModelError`."""
        ...

    def vocabulary(self) -> tuple[bytes, ...]:
        """The bytes of every token id, special tokens spelled out, as the model's own detokeniser gives them."""
        ...

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Render conversations by the template, generation prompt added, and tokenise each."""
        ...

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Tokenise bytes that continue a text: nothing added, special tokens not parsed."""
        ...

    def next_turn(self, reply: Sequence[int], turn: ChatTurn) -> NextTurn:
        """Continue a conversation after a reply, by the template, as a user's turn and the beginning of a reply.

        An end-of-generation token at the reply's end gives way to the template's own.  A ``<think>`` that the reply
        left open, or that the template opens for the next reply, is closed, so the next reply begins as an answer.

        Args:
            reply: all ids after the prompt, earlier turns included.
            turn: what the user says next.

        Raises:
            ModelError: the template cannot show a reply that another turn follows.
        """
        ...

    def define_set(self, name: str, ids: Sequence[int]) -> None:
        """Name a set of token ids for `Readout.mass_of`; replaces one of that name and outlives a restart.

        Raises:
            EngineError: an id is outside the vocabulary.
        """
        ...

    def open_context(self, options: ContextOptions) -> ContextInfo:
        """Make the context, replacing an earlier one, and check its exactness; raises `ContextError`."""
        ...

    def submit(self, request: Generate) -> None:
        """Queue a sequence; at most ``width`` run at once, the others wait in order of submission."""
        ...

    def events(self, timeout: float) -> list[Event]:
        """Return what happened, waiting at most ``timeout`` seconds for the first event; empty when nothing did."""
        ...

    def cancel(self, key: int | None = None) -> None:
        """Stop one sequence, or all; each ends with a `SequenceEnded` within a second, inside long prompts too."""
        ...

    def suspend(self) -> None:
        """Stop computing where it stands, as `cancel` from any thread; numbers stay as they would have been."""
        ...

    def wake(self) -> None:
        """Go on after `suspend`; without effect on a running engine."""
        ...

    def restart(self) -> None:
        """Start a new child, loaded and opened as before but unchecked: after `EngineDied`; raises `EngineError`."""
        ...

    def close(self) -> None:
        """End the child within two seconds, by force if need be; may be called twice."""
        ...

    def __enter__(self) -> Self:
        """Return itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        ...
