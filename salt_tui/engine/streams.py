"""What the decoding loop needs of a computing library: separate KV streams and two ways of evaluating.

Stream numbers 0 to ``width - 1`` are slots; stream ``width`` holds the preamble that slots are copied from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from salt_tui.engine.statistics import Logits

STORES = 1
"""Streams beside the slots."""

Vectors = npt.NDArray[np.float32]
"""Activations of one row, shape ``(layers, width of a layer)``."""


class DecodeError(Exception):
    """An evaluation did not take place.

    Attributes:
        code: llama.cpp's: 1 no room and -1 invalid batch, both of which leave the streams as they were; 2 aborted
            and below -1 failed, after which the streams that took part hold an unknown part of the batch.
    """

    def __init__(self, code: int) -> None:
        """Keep the code."""
        super().__init__(_MEANINGS.get(code, f"the model's computation failed (llama_decode returned {code})"))
        self.code = code


_MEANINGS = {
    1: "the context has no room left (llama_decode returned 1)",
    -1: "the computation was refused (llama_decode returned -1)",
    2: "the computation was stopped (llama_decode returned 2)",
}


class Streams(Protocol):
    """KV streams of one context.  Logits are views that hold until the next evaluation."""

    @property
    def width(self) -> int:
        """Number of slots."""
        ...

    @property
    def context(self) -> int:
        """Tokens that one stream may hold, exactly as the user asked."""
        ...

    @property
    def chunk(self) -> int:
        """Most tokens that one `evaluate` takes."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """Length of a row of logits."""
        ...

    @property
    def layers(self) -> tuple[int, ...]:
        """Blocks, from 0, whose outputs `vectors` returns."""
        ...

    @property
    def can_cut(self) -> bool:
        """Whether `cut` is possible: not where the model keeps a recurrent state."""
        ...

    def clear(self, stream: int) -> None:
        """Empty a stream."""
        ...

    def copy(self, source: int, target: int) -> None:
        """Make one stream, which must be empty, equal to another."""
        ...

    def cut(self, stream: int, length: int) -> None:
        """Keep the first ``length`` tokens of a stream, which holds more."""
        ...

    def save(self, stream: int) -> bytearray:
        """Return a stream's state."""
        ...

    def restore(self, stream: int, state: bytearray) -> bool:
        """Give a stream, which must be empty, a state that was saved; False when that is not possible."""
        ...

    def evaluate(self, stream: int, tokens: Sequence[int], position: int, logits: bool) -> Logits | None:
        """Append at most `chunk` tokens at a position; return the logits after the last where asked.

        Raises:
            DecodeError: it did not take place.
        """
        ...

    def advance(self, tokens: Sequence[int], positions: Sequence[int]) -> Logits:
        """Append one token to every slot at once; return the logits, shape ``(width, vocabulary size)``.

        Raises:
            DecodeError: it did not take place.
        """
        ...

    def vectors(self, row: int) -> Vectors | None:
        """Return the outputs of the blocks that belong to a row of the last logits, until the next evaluation.

        None where the context takes none.
        """
        ...
