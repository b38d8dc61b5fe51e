"""What memory a run takes, from the header alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from salt_tui.engine.gguf_header import read_header
from salt_tui.engine.memory_need import BUFFERS, memory_needed

NANO = Path(__file__).parents[2] / "salt_tui" / "nano" / "salt-nano.gguf"


def test_weights_cache_and_buffers_add_up() -> None:
    header = read_header(NANO)
    size = NANO.stat().st_size
    # 5 streams of 1,000 tokens, rounded up to 1,024; 4 layers; 4 heads of 32, keys and values, two bytes each.
    cache = 5 * 1024 * 4 * (128 + 128) * 2
    assert memory_needed(header, size, 1000, 4) == size + cache + BUFFERS


def test_what_the_header_does_not_say_is_unknown() -> None:
    header = read_header(NANO)
    without = {key: value for key, value in header.metadata.items() if not key.endswith("block_count")}
    assert memory_needed(replace(header, metadata=without), 1, 1000, 4) is None
    compressed = {**header.metadata, "llama.attention.kv_lora_rank": 512}
    assert memory_needed(replace(header, metadata=compressed), 1, 1000, 4) is None
