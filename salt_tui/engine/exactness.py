"""Does a sequence's arithmetic depend on what else the run does?  Measured on the machine that runs.

On CPUs with separate streams and a fixed width every difference is 0.0.  Some GPU kernels choose their way of adding
by the shape of the whole batch; there a resumed run cannot repeat its numbers, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from salt_tui.engine.engine import Exactness
from salt_tui.engine.streams import Streams

_PREAMBLE, _OWN, _STEPS = 24, 9, 3
_LONG = 264  # llama.cpp looks at KV cells in blocks of 256: a neighbour this long makes it look at two
_LONG_SECONDS = 4.0  # where evaluating that many tokens takes longer, neighbours are short
_SHORT = 40

_Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Text:
    """Arbitrary tokens to compute with, the same on every machine."""

    preamble: tuple[int, ...]
    own: tuple[int, ...]
    steps: tuple[int, ...]
    long: tuple[int, ...]


def check_exactness(streams: Streams) -> Exactness:
    """Compare logits of one short sequence computed in different company; leaves all streams empty.

    - ``warm_cold``: preamble copied from its stream, against evaluated in the slot;
    - ``slots``: the same sequence in every slot at once, against alone in the first (widths above 1);
    - ``neighbours``: the other slots idle, against full of long other sequences (widths above 1).

    About 400 prompt tokens and a dozen steps, a second or less for a small model on two cores; half as many where
    the model is slow.

    Raises:
        DecodeError: the model cannot be evaluated at all.
    """
    text = _text(streams)
    slots = range(streams.width)
    try:
        begin = time.monotonic()
        warm = _compute(streams, text, (0,), copied=True)[0]
        seconds_per_token = (time.monotonic() - begin) / (len(text.preamble) + len(text.own) + len(text.steps))
        if seconds_per_token * _LONG > _LONG_SECONDS:
            text = replace(text, long=text.long[:_SHORT])
        differences = {"warm_cold": _largest(warm, _compute(streams, text, (0,), copied=False))}
        if streams.width > 1:
            differences["slots"] = _largest(warm, _compute(streams, text, slots, copied=True))
            differences["neighbours"] = _largest(warm, _compute(streams, text, (0,), copied=True, crowded=True))
    finally:
        for stream in range(streams.width + 1):
            streams.clear(stream)
    return Exactness(differences, all(difference == 0.0 for difference in differences.values()))


def _text(streams: Streams) -> _Text:
    room = streams.context
    preamble = max(1, min(_PREAMBLE, room // 4))
    own = max(1, min(_OWN, room // 4, streams.chunk))
    steps = max(1, min(_STEPS, room // 4))
    long = max(1, min(_LONG, room - steps))

    def ids(count: int, first: int) -> tuple[int, ...]:
        return tuple((first + 61 * number) % min(streams.vocabulary_size, 997) for number in range(count))

    return _Text(ids(preamble, 5), ids(own, 300), ids(steps, 500), ids(long, 700))


def _compute(streams: Streams, text: _Text, slots: Sequence[int], copied: bool, crowded: bool = False) -> list[_Rows]:
    """Return, per slot in ``slots``, the logits after the prompt and after each step; the other slots idle."""
    store, width = streams.width, streams.width
    for stream in range(width + 1):
        streams.clear(stream)
    others = [slot for slot in range(width) if slot not in slots]
    if crowded:
        _evaluate(streams, store, text.long, 0)
        for slot in others:
            streams.copy(store, slot)
        streams.clear(store)
    if copied:
        _evaluate(streams, store, text.preamble, 0)
    rows: dict[int, list[_Rows]] = {}
    for slot in slots:
        if copied:
            streams.copy(store, slot)
        else:
            _evaluate(streams, slot, text.preamble, 0)
        logits = streams.evaluate(slot, text.own, len(text.preamble), logits=True)
        rows[slot] = [] if logits is None else [logits.copy()]
    begin = len(text.preamble) + len(text.own)
    for number, token in enumerate(text.steps):
        tokens, positions = [token] * width, [begin + number] * width
        for slot in others:
            tokens[slot], positions[slot] = text.long[number % len(text.long)], len(text.long) + number
            if not crowded:
                streams.clear(slot)
                positions[slot] = 0
        logits_of_all = streams.advance(tokens, positions)
        for slot in slots:
            rows[slot].append(logits_of_all[slot].copy())
    return [np.stack(rows[slot]) for slot in slots]


def _evaluate(streams: Streams, stream: int, tokens: Sequence[int], position: int) -> None:
    for start in range(0, len(tokens), streams.chunk):
        streams.evaluate(stream, tokens[start : start + streams.chunk], position + start, logits=False)


def _largest(rows: _Rows, others: Sequence[_Rows]) -> float:
    """Return the largest absolute difference, NaN counted as infinite; equal infinities do not differ."""
    return max(_difference(rows, other) for other in others)


def _difference(one: _Rows, other: _Rows) -> float:
    with np.errstate(invalid="ignore"):
        differences = np.where(one == other, 0.0, np.abs(one.astype(np.float64) - other))
    return float(np.nan_to_num(differences, nan=np.inf, posinf=np.inf).max())
