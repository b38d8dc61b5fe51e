"""How much memory a KV cache takes and how much there is.

Asking the system for more than it has does not fail: the pages are promised, and the kernel ends a process when they
are written, perhaps another one than ours.  So the size is estimated first.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

BYTES_PER_VALUE = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
    "q4_1": 20 / 32,
    "iq4_nl": 18 / 32,
    "q5_0": 22 / 32,
    "q5_1": 24 / 32,
}
"""KV cache types of llama.cpp's own programs (``-ctk``, ``-ctv``); quantised ones hold blocks of 32 with scales."""

_CELLS = 256  # llama.cpp rounds a stream up to a multiple


def kv_cache_bytes(
    streams: int, context: int, layers: int, key_width: int, value_width: int, key_type: str, value_type: str
) -> int:
    """Return the bytes of a cache in which every layer keeps every token.

    Args:
        streams: separate streams.
        context: tokens per stream.
        layers: layers with attention.
        key_width: values of keys per token and layer.
        value_width: values of values per token and layer.
        key_type: a name in `BYTES_PER_VALUE`.
        value_type: a name in `BYTES_PER_VALUE`.
    """
    cells = streams * -(-context // _CELLS) * _CELLS
    per_cell = key_width * BYTES_PER_VALUE[key_type] + value_width * BYTES_PER_VALUE[value_type]
    return int(cells * layers * per_cell)


def available_memory(source: Path = Path("/proc/meminfo")) -> int | None:
    """Return the bytes of main memory that can be used without swapping; None where the system does not tell."""
    with contextlib.suppress(OSError):  # only Linux has this file
        for line in source.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
