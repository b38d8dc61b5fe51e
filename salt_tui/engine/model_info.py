"""What an engine answers when it has loaded a model, made a context or been timed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Device:
    """A computing device that the build can use; memory in bytes, None where unknown."""

    name: str
    description: str
    kind: str
    memory_free: int | None
    memory_total: int | None


@dataclass(frozen=True, slots=True)
class Build:
    """What the engine is made of and what it can use; part of a run's environment."""

    engine: str
    versions: dict[str, str]
    supports_gpu: bool
    devices: tuple[Device, ...]
    system_information: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do with a model.

    Attributes:
        statistics: over what log-probabilities and entropies are known: the whole vocabulary, the most probable tokens
            only, or not at all.
        activation_layers, activation_width: shape of the activations of one token; 0 where there are none.
        vocabulary: tokens have ids, and the bytes of every id are known; without it prompts are conversations.
        forced: tokens can be forced.
        cut: a sequence can be cut back to an earlier position.
    """

    statistics: Literal["vocabulary", "top_k", "none"]
    activation_layers: int
    activation_width: int
    vocabulary: bool
    forced: bool
    cut: bool


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model.

    Attributes:
        description: architecture, size and quantisation in words, e.g. ``llama 135M Q4_1``.
        architecture: the GGUF's ``general.architecture``; None where the engine does not tell.
        name: the GGUF's ``general.name`` or None.
        quantisation: e.g. ``Q4_1``; None where unknown.
        parameters, file_bytes: counts; None where the engine does not tell.
        vocabulary_size: number of token ids; None where the engine does not tell.
        trained_context: tokens; 0 where the engine does not tell.
        layers: layers that can be offloaded, the output layer included.
        gpu_layers: layers that were offloaded.
        template: the chat template in use, None for plain completion prompts.
        thinking_open: the rendered prompt ends inside an open ``<think>``, so a reply begins as thinking.
        warnings: sentences the user must see, e.g. layers asked for and no device.
        capabilities: what the engine can do with it.
        identity: what tells this model from others; None: the hash of its file does.
        end_tokens: ids that end a generation, ascending; empty where the engine gives no ids.
        sent: of a server: what every request holds beside prompt, limit and seed, see `RunPlan.sent`.
    """

    description: str
    architecture: str | None
    name: str | None
    quantisation: str | None
    parameters: int | None
    file_bytes: int | None
    vocabulary_size: int | None
    trained_context: int
    layers: int
    gpu_layers: int
    template: str | None
    thinking_open: bool
    warnings: tuple[str, ...]
    build: Build
    capabilities: Capabilities
    identity: str | None
    end_tokens: tuple[int, ...] = ()
    sent: dict[str, Any] | None = None


INCOMPARABLE = sys.float_info.max
"""Marks logits that cannot be compared, such as NaN; JSON has no infinity."""


@dataclass(frozen=True, slots=True)
class Exactness:
    """Result of the exactness check: largest absolute logit difference per comparison, 0.0 when bit-identical.

    Attributes:
        differences: e.g. ``{"company": 0.0}``, in full ``{"warm_cold": 0.0, "slots": 0.0, "neighbours": 0.0,
            "fork": 0.0, "snapshot": 0.0}``; empty when not checked.
        exact: all of them are 0.0; None when not checked.
    """

    differences: dict[str, float]
    exact: bool | None


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """The context as it was made, after every automatic choice.

    Attributes:
        gpu_layers: layers that are offloaded now; with ``-ngl auto`` perhaps fewer than after loading, because the
            KV cache takes room too.
    """

    width: int
    context: int | None
    batch: int
    micro_batch: int
    threads: int
    gpu_layers: int
    flash_attention: bool
    key_type: str
    value_type: str
    exactness: Exactness


@dataclass(frozen=True, slots=True)
class Speed:
    """Times of one measurement, seconds.

    Attributes:
        prompt_tokens: tokens that were evaluated in one stream, in chunks, as prompts are.
        prompt: for all of them.
        bare: of each block of `steps_per_block` steps, one token in every slot: the library's call only.
        full: of each block with the statistics of every slot; ``full[i]`` was measured just after ``bare[i]``.
        steps_per_block: steps in a block.
    """

    prompt_tokens: int
    prompt: float
    bare: tuple[float, ...]
    full: tuple[float, ...]
    steps_per_block: int
