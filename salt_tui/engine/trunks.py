"""Beginnings of sequences that others share: computed once, then forked.

A beginning is a prompt, evaluated in chunks behind its preamble, and the tokens of a reply that were walked one per
step.  It is kept in main memory with its last row of logits, so a fork needs no evaluation; the least recently used go
first.

It is never a copy in another stream: llama.cpp copies streams when it next evaluates, so a state that is saved, or a
stream that is restored, before that gives the numbers of another text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.engine.statistics import Logits
from salt_tui.engine.streams import Streams, Vectors


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a state of the KV cache was computed from.

    Attributes:
        prompt: token ids.
        preamble: how many of them were evaluated apart from the others.
        walked: reply tokens behind them, appended one per step.
    """

    prompt: tuple[int, ...]
    preamble: int
    walked: tuple[int, ...]

    def same_prompt(self, other: Beginning) -> bool:
        """Both go on behind the same prompt, cut alike."""
        return self.preamble == other.preamble and self.prompt == other.prompt

    def shared(self, other: Beginning) -> int:
        """Return how many walked tokens both begin with, -1 when the prompts differ."""
        if not self.same_prompt(other):
            return -1
        shortest = min(len(self.walked), len(other.walked))
        # Every waiting sequence is compared with every running one, so without a call for each token.
        pairs = enumerate(zip(self.walked, other.walked, strict=False))
        return next((place for place, (one, another) in pairs if one != another), shortest)


@dataclass(slots=True)
class Trunk:
    """A kept beginning: its state, the row of logits after it and the activations that belong to the row."""

    beginning: Beginning
    logits: Logits
    vectors: Vectors | None
    state: bytearray

    @property
    def size(self) -> int:
        """Bytes in main memory."""
        vectors = self.vectors.nbytes if self.vectors is not None else 0
        return self.logits.nbytes + vectors + len(self.state)


class Trunks:
    """The kept beginnings of one context."""

    def __init__(self, streams: Streams, room: int) -> None:
        """Begin with none.

        Args:
            streams: where sequences are.
            room: bytes of main memory that may be used; the newest is kept in any case.
        """
        self._streams = streams
        self._room = room
        self._kept: OrderedDict[Beginning, Trunk] = OrderedDict()  # the most recently used last

    def find(self, wanted: Beginning) -> tuple[Trunk, int] | None:
        """Return the kept beginning that saves most work and how many of its walked tokens are of use.

        Where nothing can be cut back, only whole states are of use.
        """
        best: tuple[int, bool] = (-1, False)
        found: Trunk | None = None
        for beginning, trunk in self._kept.items():
            shared = beginning.shared(wanted)
            whole = shared == len(beginning.walked)
            if shared >= 0 and (whole or self._streams.can_cut) and (shared, whole) >= best:
                best, found = (shared, whole), trunk
        if found is None:
            return None
        self._kept.move_to_end(found.beginning)
        return found, best[0]

    def fork(self, trunk: Trunk, slot: int) -> bool:
        """Make a slot, which must be empty, equal to a kept beginning; False when its state could not be restored."""
        if self._streams.restore(slot, trunk.state):
            return True
        self._streams.clear(slot)
        del self._kept[trunk.beginning]
        return False

    def keep(self, beginning: Beginning, slot: int, logits: Logits, vectors: Vectors | None) -> None:
        """Keep the state of a slot, with the row of logits after it and the activations that belong to the row."""
        if beginning in self._kept:
            return
        vectors = None if vectors is None else vectors.copy()
        self._kept[beginning] = Trunk(beginning, logits.copy(), vectors, self._streams.save(slot))
        self._make_room()

    def forget(self, beginning: Beginning) -> None:
        """Keep a beginning no longer."""
        self._kept.pop(beginning, None)

    def _make_room(self) -> None:
        """Drop the least recently used; the newest stays."""
        size = sum(trunk.size for trunk in self._kept.values())
        while size > self._room and len(self._kept) > 1:
            _, trunk = self._kept.popitem(last=False)
            size -= trunk.size


def chunk_start(prompt: Sequence[int], preamble: int, chunk: int) -> int:
    """Return where the last chunk of a prompt begins."""
    own = len(prompt) - preamble
    return preamble + (own - 1) // chunk * chunk
