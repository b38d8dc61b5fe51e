"""How many layers fit on the devices: ``-ngl auto``.

There is no call for this in the bindings, so it is estimated from the sizes of the tensors in the file's header, the
KV cache and the memory that the devices have free.  An estimate can be wrong: whoever uses it steps down when making
the model or the context fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from salt_tui.engine.gguf_header import TensorInfo
from salt_tui.engine.model_info import Device

RESERVE = 512 << 20
"""Bytes left free on each device for the driver's own needs and the buffers of the computation."""

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EMBEDDING = "token_embd."
_OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """Bytes of weights: of every repeating layer in order, and of what is offloaded with the output layer."""

    blocks: tuple[int, ...]
    output: int

    @property
    def layers(self) -> int:
        """Layers that can be offloaded, the output layer included, as ``-ngl`` counts them."""
        return len(self.blocks) + 1

    def offloaded(self, layers: int) -> int:
        """Return the bytes of weights on devices with ``-ngl layers``; more than there are counts as all."""
        if layers <= 0:
            return 0
        taken = min(layers, self.layers) - 1
        return self.output + sum(self.blocks[len(self.blocks) - taken :])


def layer_sizes(tensors: Iterable[TensorInfo]) -> LayerSizes | None:
    """Add up the tensors of a model's header, of all its parts; None where a tensor's size is not known.

    Without an output matrix of its own, the embedding does its work and is copied to the device too.
    """
    blocks: dict[int, int] = {}
    output = embedding = 0
    tied = True
    for tensor in tensors:
        if tensor.size is None:
            return None
        if match := _BLOCK.match(tensor.name):
            number = int(match[1])
            blocks[number] = blocks.get(number, 0) + tensor.size
        elif tensor.name.startswith(_EMBEDDING):
            embedding += tensor.size
        elif tensor.name.startswith(_OUTPUT):
            output += tensor.size
            tied = tied and tensor.name != "output.weight"
    if not blocks:
        return None
    ordered = tuple(blocks.get(number, 0) for number in range(max(blocks) + 1))
    return LayerSizes(ordered, output + (embedding if tied else 0))


def free_for_layers(devices: Sequence[Device]) -> int | None:
    """Return the bytes that weights and KV may take on all GPUs together; None where a GPU does not tell."""
    free = [device.memory_free for device in devices if "gpu" in device.kind]
    if any(memory is None for memory in free):
        return None
    return sum(max(0, (memory or 0) - RESERVE) for memory in free)


def layers_that_fit(sizes: LayerSizes, cache_per_block: int, free: int) -> int:
    """Return the largest ``-ngl`` whose weights and KV cache take at most ``free`` bytes, 0 to ``sizes.layers``.

    llama.cpp offloads from the end: the output layer first, then the last repeating layers.

    Args:
        sizes: of the model.
        cache_per_block: bytes of KV cache of one repeating layer, all streams together; it stands where the layer is.
        free: bytes, see `free_for_layers`.
    """
    for layers in range(sizes.layers, 0, -1):
        if sizes.offloaded(layers) + (layers - 1) * cache_per_block <= free:
            return layers
    return 0


def fewer_layers(layers: int) -> int:
    """Return what to try after ``layers`` (at least 1) were too many: a quarter less, and none from four on."""
    return layers * 3 // 4 if layers > 4 else 0
