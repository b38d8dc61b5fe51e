"""How a model file is opened, and the shape in which it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from salt_tui.engine.errors import ContextError
from salt_tui.engine.remote_server import Server

CACHE_MB = 1024
"""Main memory for beginnings that requests share, where nothing else is asked for, in 2**20 bytes."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How the model file is opened; the names are llama.cpp's.

    Attributes:
        path: the model file.
        gpu_layers: ``-ngl``: a count taken literally, ``"all"``, or ``"auto"`` for as many as fit the devices.
        template: replaces the file's own chat template when not None; ``""`` asks for plain completion prompts.
        template_options: variables for the template, such as ``{"enable_thinking": False}``.
        date: ISO date that templates see instead of today's, frozen per run.
        server: where the model is served; None for a file.  ``path`` is then its address, for messages.
    """

    path: str
    gpu_layers: int | Literal["auto", "all"]
    template: str | None
    template_options: dict[str, bool | int | str]
    date: str
    server: Server | None = None


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """The shape of the computation; equal shapes give equal numbers.

    Attributes:
        width: sequences decoded at once, ``-np``: 1, 2, 3 or a multiple of 4.
        context: tokens per answer, prompt included, ``-c``; enforced exactly by the engine.  None leaves it to a
            server.
        batch, micro_batch: ``-b`` and ``-ub``, tokens.
        threads: ``-t``; None lets the engine choose and report.
        flash_attention: ``-fa``.
        key_type, value_type: ``-ctk``, ``-ctv``: ``f32 f16 bf16 q8_0 q4_0 …``.
        check: the exactness check: none, the quick one of every run, or in full.
        layers: blocks, from 0, whose activations requests may ask for, and their number for the state behind the
            final norm; () installs nothing.
        cache_mb: ``--cache-mb``, main memory for beginnings that requests share, in 2**20 bytes; changes no number.
    """

    width: int
    context: int | None
    batch: int
    micro_batch: int
    threads: int | None
    flash_attention: Literal["auto", "on", "off"]
    key_type: str
    value_type: str
    check: Literal["none", "quick", "full"] = "quick"
    layers: tuple[int, ...] = ()
    cache_mb: int = CACHE_MB

    @property
    def room(self) -> int:
        """Tokens per answer, for an engine that has to know; raises `ContextError`."""
        if self.context is None:
            raise ContextError("this engine needs a context: give -c")
        return self.context


def check_width(width: int) -> None:
    """Refuse widths at which a slot's numbers depend on its place in the batch.

    Measured on a CPU with a 262,144-token vocabulary: at widths 5, 6 and 7 the last slot differs by 1.3 logits, at
    1, 2, 3, 4, 8 and 12 not at all.

    Raises:
        ContextError: unless the width is 1, 2, 3 or a multiple of 4.
    """
    if width < 1 or (width > 3 and width % 4):
        raise ContextError(f"-np {width}: the width must be 1, 2, 3 or a multiple of 4")


def check_layers(layers: Sequence[int], count: int) -> None:
    """Refuse layers that a model with so many lacks, or that are named twice; raises `ContextError`.

    Args:
        layers: that are asked for, from 0.
        count: blocks, and one for the output layer, whose state is that behind the final norm.
    """
    for place, layer in enumerate(layers):
        if not 0 <= layer < count:
            raise ContextError(f"there is no layer {layer}: the model has layers 0 to {count - 1}")
        if layer in layers[:place]:
            raise ContextError(f"layer {layer} is asked for twice")
