"""How fast is this model here?  Measured in the child, on the open context, for ``salt-tui bench``."""

from __future__ import annotations

import time

from salt_tui.engine.model_info import Speed
from salt_tui.engine.statistics import Statistics
from salt_tui.engine.streams import STORES, Streams

_BLOCK = 8
"""Steps timed together: alternating single steps would charge one kind with what the other does to the caches."""


def measure_speed(streams: Streams, prompt_tokens: int, steps: int) -> Speed:
    """Evaluate arbitrary tokens; leaves all streams empty.

    Args:
        streams: nothing may be running on them.
        prompt_tokens: 0 to the context; 0 measures no prompt.
        steps: of each of the two kinds; rounded up to whole blocks and at most what the context has room for.

    Raises:
        DecodeError: the model cannot be evaluated.
    """
    for stream in range(streams.width + STORES):
        streams.clear(stream)
    tokens = [7 + 61 * number % min(streams.vocabulary_size - 7, 997) for number in range(streams.context)]
    prompt_tokens = min(prompt_tokens, streams.context)
    begin = time.perf_counter()
    for start in range(0, prompt_tokens, streams.chunk):
        chunk = tokens[start : min(start + streams.chunk, prompt_tokens)]
        streams.evaluate(0, chunk, start, logits=start + len(chunk) == prompt_tokens)
    prompt = time.perf_counter() - begin
    streams.clear(0)
    statistics = Statistics(streams.vocabulary_size)
    seconds: tuple[list[float], list[float]] = ([], [])
    position = 0
    for number in range(2 * min(-(-steps // _BLOCK), streams.context // (2 * _BLOCK))):
        begin = time.perf_counter()
        for token in tokens[position : position + _BLOCK]:
            rows = streams.advance([token] * streams.width, [position] * streams.width)
            if number % 2:
                statistics.of(rows)
            position += 1
        seconds[number % 2].append(time.perf_counter() - begin)
    for stream in range(streams.width + STORES):
        streams.clear(stream)
    return Speed(prompt_tokens, prompt, tuple(seconds[0]), tuple(seconds[1]), _BLOCK)
