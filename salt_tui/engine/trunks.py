"""Beginnings of sequences that others share: computed once, then forked.

A beginning is a prompt, evaluated in chunks behind its preamble, and the tokens of a reply that were walked one per
step.  The newest one stands in a stream of its own; older ones are copies in main memory, the least recently used of
which go first.  Each is kept with its last row of logits, so a fork needs no evaluation.
"""

from __future__ import annotations

import itertools
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
        pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self.walked, other.walked, strict=False))
        return sum(1 for _ in pairs)


@dataclass(slots=True)
class Trunk:
    """A kept beginning: the row of logits after it, and its state where it is not in the stream."""

    beginning: Beginning
    logits: Logits
    vectors: Vectors | None
    state: bytearray | None = None

    @property
    def size(self) -> int:
        """Bytes in main memory."""
        vectors = self.vectors.nbytes if self.vectors is not None else 0
        return self.logits.nbytes + vectors + (len(self.state) if self.state is not None else 0)


class Trunks:
    """The kept beginnings of one context."""

    def __init__(self, streams: Streams, room: int) -> None:
        """Begin with none.

        Args:
            streams: where sequences are; the last stream is the store.
            room: bytes of main memory that may be used.
        """
        self._streams = streams
        self._store = streams.width + 1
        self._room = room
        self._kept: OrderedDict[Beginning, Trunk] = OrderedDict()  # the most recently used last
        self._stored: Trunk | None = None  # the one in the stream

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
        if trunk is self._stored:
            self._streams.copy(self._store, slot)
            return True
        assert trunk.state is not None
        if self._streams.restore(slot, trunk.state):
            return True
        self._streams.clear(slot)
        del self._kept[trunk.beginning]
        return False

    def keep(self, beginning: Beginning, slot: int, logits: Logits, vectors: Vectors | None) -> None:
        """Keep the state of a slot, with the row of logits after it and the activations that belong to the row."""
        if beginning in self._kept:
            return
        self._put_away()
        trunk = Trunk(beginning, logits.copy(), None if vectors is None else vectors.copy())
        self._streams.clear(self._store)
        self._streams.copy(slot, self._store)
        self._kept[beginning] = self._stored = trunk
        self._make_room()

    def forget_stream(self) -> None:
        """Take the store stream as lost: somebody else has used it."""
        if self._stored is not None:
            del self._kept[self._stored.beginning]
            self._stored = None

    def _put_away(self) -> None:
        """Copy what stands in the stream to main memory."""
        if self._stored is not None:
            self._stored.state = self._streams.save(self._store)
            self._stored = None

    def _make_room(self) -> None:
        """Drop the least recently used in main memory; the one in the stream stays."""
        size = sum(trunk.size for trunk in self._kept.values())
        for beginning, trunk in list(self._kept.items()):
            if size <= self._room:
                return
            if trunk is not self._stored:
                size -= trunk.size
                del self._kept[beginning]


def chunk_start(prompt: Sequence[int], preamble: int, chunk: int) -> int:
    """Return where the last chunk of a prompt begins."""
    own = len(prompt) - preamble
    return preamble + (own - 1) // chunk * chunk
