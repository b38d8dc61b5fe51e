"""Does a sequence's arithmetic depend on what else the run does?  Measured on the machine that runs.

On CPUs with separate streams and a fixed width every difference is 0.0.  Some GPU kernels choose their way of adding
by the shape of the whole batch; there a resumed run cannot repeat its numbers, and its record says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from salt_tui.engine.errors import ModelError
from salt_tui.engine.model_info import INCOMPARABLE, Exactness
from salt_tui.engine.streams import STORES, DecodeError, Streams

_PREAMBLE, _OWN, _STEPS = 24, 9, 3
_LONG = 264  # llama.cpp looks at KV cells in blocks of 256: a neighbour this long makes it look at two
_QUICK_PREAMBLE, _QUICK_OWN, _QUICK_STEPS = 16, 6, 2

_Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Text:
    """Arbitrary tokens to compute with, the same on every machine."""

    preamble: tuple[int, ...]
    own: tuple[int, ...]
    steps: tuple[int, ...]
    long: tuple[int, ...]


def check_quickly(streams: Streams) -> Exactness:
    """Compute one short sequence twice, beside neighbours as different as possible; leaves all streams empty.

    First warm (the preamble copied) in the first slot beside idle ones, then cold in every other slot at once, beside
    another sequence in the first; the last slot's state went through main memory.  If all logits are equal, none of
    what `check_exactness` compares made a difference here, and the only entry is ``company``: 0.0.  Else that check is
    made too, to say what made it.

    Under 60 prompt tokens and four steps: 0.3 s for the bundled model on two cores.

    Raises:
        DecodeError: the model cannot be evaluated at all.
        ModelError: its logits are not numbers.
    """
    text = _text(streams, _QUICK_PREAMBLE, _QUICK_OWN, _QUICK_STEPS, _QUICK_PREAMBLE)
    try:
        alone = _compute(streams, text, (0,), copied=True)[0]
        slots = range(1, streams.width) if streams.width > 1 else (0,)
        difference = _largest(alone, _compute(streams, text, slots, copied=False, crowded=True, restored=True))
    finally:
        _empty(streams)
    if difference == 0.0:
        return Exactness({"company": 0.0}, True)
    return Exactness({"company": difference, **check_exactness(streams).differences}, False)


def check_exactness(streams: Streams) -> Exactness:
    """Compare logits of one short sequence computed beside different neighbours; leaves all streams empty.

    - ``warm_cold``: preamble copied from its stream, against evaluated in the slot;
    - ``slots``: the same sequence in every slot at once, against alone in the first (widths above 1);
    - ``neighbours``: the other slots idle, against full of long other sequences (widths above 1);
    - ``fork``: going on, against going on in another slot from a copy that was cut back by a token;
    - ``snapshot``: the same from a copy in main memory.

    About 300 prompt tokens, and 33 for every slot, with a dozen steps: 1 to 2 s for the bundled model on two cores.

    Raises:
        DecodeError: the model cannot be evaluated at all.
        ModelError: its logits are not numbers.
    """
    text = _text(streams, _PREAMBLE, _OWN, _STEPS, _LONG)
    try:
        warm = _compute(streams, text, (0,), copied=True)[0]
        differences = {"warm_cold": _largest(warm, _compute(streams, text, (0,), copied=False))}
        if streams.width > 1:
            differences["slots"] = _largest(warm, _compute(streams, text, range(streams.width), copied=True))
            differences["neighbours"] = _largest(warm, _compute(streams, text, (0,), copied=True, crowded=True))
        for name in ("fork", "snapshot"):
            differences[name] = _difference(warm, _branched(streams, text, in_memory=name == "snapshot"))
    finally:
        _empty(streams)
    return Exactness(differences, all(difference == 0.0 for difference in differences.values()))


def _empty(streams: Streams) -> None:
    for stream in range(streams.width + STORES):
        streams.clear(stream)


def _text(streams: Streams, preamble: int, own: int, steps: int, long: int) -> _Text:
    """Return texts of these lengths, or of what the context has room for."""
    room = streams.context
    preamble = max(1, min(preamble, room // 4))
    own = max(1, min(own, room // 4, streams.chunk))
    steps = max(1, min(steps, room // 4))
    long = max(1, min(long, room - steps))

    def ids(count: int, first: int) -> tuple[int, ...]:
        return tuple((first + 61 * number) % min(streams.vocabulary_size, 997) for number in range(count))

    return _Text(ids(preamble, 5), ids(own, 300), ids(steps, 500), ids(long, 700))


def _compute(
    streams: Streams,
    text: _Text,
    slots: Sequence[int],
    *,
    copied: bool,
    crowded: bool = False,
    restored: bool = False,
) -> list[_Rows]:
    """Return, per slot in ``slots``, the logits after the prompt and after each step.

    Args:
        streams: where to compute.
        text: what to compute.
        slots: where the sequence stands.
        copied: its preamble comes from the store; else it is evaluated in the first of the slots, with the rest of
            the prompt, and the other slots are copies of that.
        crowded: the other slots hold other sequences; else they idle.
        restored: where the preamble is not copied, the last slot's state goes through main memory.
    """
    store, width = streams.width, streams.width
    _empty(streams)
    others = [slot for slot in range(width) if slot not in slots]
    if crowded and others:
        _evaluate(streams, store, text.long, 0)
        for slot in others:
            streams.copy(store, slot)
        streams.clear(store)
    rows: dict[int, list[_Rows]] = {}
    if copied:
        _evaluate(streams, store, text.preamble, 0)
        for slot in slots:
            streams.copy(store, slot)
            rows[slot] = [_last(streams, slot, text.own, len(text.preamble))]
    else:
        _evaluate(streams, slots[0], text.preamble, 0)
        logits = _last(streams, slots[0], text.own, len(text.preamble))
        for slot in slots:
            rows[slot] = [logits]
            if slot == slots[-1] and restored:
                state = streams.save(slots[0])
                streams.clear(slot)
                _restore(streams, slot, state)
            elif slot != slots[0]:
                streams.copy(slots[0], slot)
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
    return [_checked(rows[slot]) for slot in slots]


def _branched(streams: Streams, text: _Text, *, in_memory: bool) -> _Rows:
    """Return what `_compute` does for the first slot, the second half of the steps from a copy in the last slot."""
    store, slot, last = streams.width, 0, streams.width - 1
    _empty(streams)
    _evaluate(streams, store, text.preamble, 0)
    streams.copy(store, slot)
    rows = [_last(streams, slot, text.own, len(text.preamble))]
    begin, half = len(text.preamble) + len(text.own), len(text.steps) // 2
    for number in range(half):
        rows.append(_step(streams, slot, text.steps[number], begin + number))
    if in_memory:
        state = streams.save(slot)
        streams.clear(slot)
        streams.clear(last)
        _restore(streams, last, state)
    else:
        streams.clear(store)
        streams.copy(slot, store)
        streams.clear(last)
        streams.copy(store, last)
    if streams.can_cut and half:
        half -= 1
        rows.pop()
        streams.cut(last, begin + half)
    for number in range(half, len(text.steps)):
        rows.append(_step(streams, last, text.steps[number], begin + number))
    return _checked(rows)


def _step(streams: Streams, slot: int, token: int, position: int) -> _Rows:
    """Append one token in one slot, all others idle."""
    positions = [0] * streams.width
    positions[slot] = position
    for other in range(streams.width):
        if other != slot:
            streams.clear(other)
    row: _Rows = streams.advance([token] * streams.width, positions)[slot].copy()
    return row


def _restore(streams: Streams, stream: int, state: bytearray) -> None:
    if not streams.restore(stream, state):
        raise DecodeError(-3)


def _checked(rows: Sequence[_Rows]) -> _Rows:
    """Return the rows as one array; raises `ModelError` when they are not numbers."""
    stacked = np.stack(rows)
    largest = stacked.max(axis=1)
    if not np.isfinite(largest).all():
        raise ModelError("the model's logits are not numbers: its weights are damaged, or it overflows on this device")
    return stacked


def _evaluate(streams: Streams, stream: int, tokens: Sequence[int], position: int) -> None:
    for start in range(0, len(tokens), streams.chunk):
        streams.evaluate(stream, tokens[start : start + streams.chunk], position + start, logits=False)


def _last(streams: Streams, stream: int, tokens: Sequence[int], position: int) -> _Rows:
    logits = streams.evaluate(stream, tokens, position, logits=True)
    assert logits is not None
    return logits.copy()


def _largest(rows: _Rows, others: Sequence[_Rows]) -> float:
    """Return the largest absolute difference, NaN counted as `INCOMPARABLE`; equal infinities do not differ."""
    return max(_difference(rows, other) for other in others)


def _difference(one: _Rows, other: _Rows) -> float:
    with np.errstate(invalid="ignore"):
        differences = np.where(one == other, 0.0, np.abs(one.astype(np.float64) - other))
    return float(np.nan_to_num(differences, nan=INCOMPARABLE, posinf=INCOMPARABLE).max())
