"""How many layers fit: a pure function of sizes and free memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.gguf_header import TensorInfo
from salt_tui.engine.gpu_layers import (
    RESERVE,
    LayerSizes,
    fewer_layers,
    free_for_layers,
    layer_sizes,
    layers_that_fit,
)
from salt_tui.engine.model_info import Device

pytestmark = pytest.mark.quick


def tensor(name: str, size: int | None) -> TensorInfo:
    return TensorInfo(name, (1,), "F32", 0, size)


def test_tensors_are_added_up_by_layer() -> None:
    tensors = [
        tensor("token_embd.weight", 1000),
        tensor("blk.0.attn_q.weight", 10),
        tensor("blk.1.attn_q.weight", 20),
        tensor("blk.0.ffn_up.weight", 30),
        tensor("output_norm.weight", 1),
    ]
    tied = layer_sizes(tensors)
    assert tied == LayerSizes((40, 20), 1001)  # the embedding does the output matrix's work
    assert layer_sizes([*tensors, tensor("output.weight", 500)]) == LayerSizes((40, 20), 501)
    assert layer_sizes([*tensors, tensor("blk.1.new", None)]) is None
    assert layer_sizes(tensors[:1]) is None


def test_layers_are_counted_from_the_end_with_the_output_first() -> None:
    sizes = LayerSizes((40, 30, 20), 100)
    assert [sizes.offloaded(layers) for layers in range(6)] == [0, 100, 120, 150, 190, 190]
    # With 5 bytes of cache per block: 100, 125, 160, 205.
    fits = {99: 0, 100: 1, 124: 1, 125: 2, 159: 2, 160: 3, 204: 3, 205: 4, 10_000: 4}
    assert {free: layers_that_fit(sizes, 5, free) for free in fits} == fits


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=40),
    st.integers(0, 1000),
    st.integers(0, 300),
    st.integers(0, 60_000),
)
def test_what_fits_fits_and_one_more_does_not(blocks: list[int], output: int, cache: int, free: int) -> None:
    sizes = LayerSizes(tuple(blocks), output)
    layers = layers_that_fit(sizes, cache, free)
    assert 0 <= layers <= sizes.layers
    assert layers == 0 or sizes.offloaded(layers) + (layers - 1) * cache <= free
    if layers < sizes.layers:
        assert sizes.offloaded(layers + 1) + layers * cache > free
    assert layers_that_fit(sizes, cache + 1, free) <= layers


def test_free_memory_is_that_of_the_gpus_less_a_reserve_each() -> None:
    gpu = Device("CUDA0", "", "gpu", 3 * RESERVE, 4 * RESERVE)
    small = replace(gpu, name="Vulkan1", kind="integrated gpu", memory_free=RESERVE // 2)
    cpu = Device("CPU", "", "cpu", 100 * RESERVE, 100 * RESERVE)
    assert free_for_layers([gpu, small, cpu]) == 2 * RESERVE
    assert free_for_layers([cpu]) == 0
    assert free_for_layers([gpu, replace(gpu, memory_free=None)]) is None


@pytest.mark.parametrize("start", [1, 4, 33, 81])
def test_stepping_down_ends_at_none(start: int) -> None:
    tried = [start]
    while tried[-1]:
        tried.append(fewer_layers(tried[-1]))
        assert tried[-1] < tried[-2]
    assert len(tried) < 15
