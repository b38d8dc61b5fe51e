"""Where a model is computed, in two words."""

from __future__ import annotations

from collections.abc import Sequence


def device_in_words(devices: Sequence[str], gpu_layers: int, threads: int) -> str:
    """Return where a model is computed: ``CPU ×2`` or ``CUDA0 30 layers``.

    Args:
        devices: their names, whatever follows a space is left out.
        gpu_layers: how many layers are not on the CPU.
        threads: of the CPU.
    """
    if not gpu_layers:
        return f"CPU ×{threads}"
    names = [device.partition(" ")[0] for device in devices if not device.upper().startswith("CPU")]
    return f"{names[0] if names else 'GPU'} {gpu_layers} layers"
