"""How much memory a run of a model takes, from the header of its file alone."""

from __future__ import annotations

from salt_tui.engine.gguf_header import GGUFHeader
from salt_tui.engine.kv_memory import kv_cache_bytes
from salt_tui.engine.streams import STORES

BUFFERS = 128 << 20
"""What the child takes beside weights and cache: measured with SmolLM2, at ``-c 1024`` 115 MiB and at 32,768 128."""

_KV_TYPE = "f16"


def memory_needed(header: GGUFHeader, file_bytes: int, context: int, width: int) -> int | None:
    """Return about how many bytes of memory a run takes, on all devices together.

    Args:
        header: of the model's first file.
        file_bytes: of all its files; weights are mapped as they lie there.
        context: tokens per answer (``-c``).
        width: answers at once (``-np``).

    Returns:
        None where the header does not say how wide the KV cache is, or the model keeps another kind of memory.
    """
    name = header.architecture
    attention = f"{name}.attention"
    layers, embedding = header.integer(f"{name}.block_count"), header.integer(f"{name}.embedding_length")
    heads = header.integer(f"{attention}.head_count")
    groups = header.integer(f"{attention}.head_count_kv") or heads
    if layers is None or embedding is None or not heads or groups is None:
        return None
    if header.integer(f"{attention}.kv_lora_rank") is not None:
        return None
    keys = header.integer(f"{attention}.key_length") or embedding // heads
    values = header.integer(f"{attention}.value_length") or embedding // heads
    cache = kv_cache_bytes(width + STORES, context, layers, groups * keys, groups * values, _KV_TYPE, _KV_TYPE)
    return file_bytes + cache + BUFFERS
