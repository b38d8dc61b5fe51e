"""The interface of an engine, which is all that the rest of the program knows of it.

What it is asked and what it answers are dataclasses: `salt_tui.engine.options`, `model_info`, `requests` and `events`.
Nothing in them names llama.cpp.  A llama.cpp child, a scripted child and other engines all look like this.
The order of use is `Engine.load`, `Engine.encode` (as often as wanted), `Engine.open_context`, then any number of
`Engine.submit` and `Engine.events`.  Loading and opening are two steps because a plan can only know the context it
needs after its prompts are tokenised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from salt_tui.engine.events import Event, LoadProgress
from salt_tui.engine.model_info import Build, ContextInfo, ModelInfo
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.requests import ChatTurn, Generate


@dataclass(frozen=True, slots=True)
class NextTurn:
    """How a conversation goes on after a reply: drop ids at its end, then append tokens.

    Attributes:
        dropped: how many ids at the end of the reply go, because the template writes its own end of turn.
        tokens: the end of the reply's turn, the next turn, and the beginning of the next reply.
    """

    dropped: int
    tokens: tuple[int, ...]


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
