"""Where a model is computed, in two words."""

from __future__ import annotations

from collections.abc import Sequence

SERVER = "server "
"""What the name of a server as a device begins with; its address follows."""


def device_in_words(devices: Sequence[str], gpu_layers: int, threads: int) -> str:
    """Return where a model is computed: ``CPU ×2``, ``CUDA0 30 layers``, ``server host:8000``, or ``not here``.

    Args:
        devices: their names, whatever follows a space is left out, but for a server its address.
        gpu_layers: how many layers are not on the CPU.
        threads: of the CPU; 0 where nothing was computed.
    """
    server = next((device for device in devices if device.startswith(SERVER)), None)
    if server is not None:
        return server
    if not threads and not gpu_layers:
        return "not here"
    if not gpu_layers:
        return f"CPU ×{threads}"
    names = [device.partition(" ")[0] for device in devices if not device.upper().startswith("CPU")]
    return f"{names[0] if names else 'GPU'} {gpu_layers} layers"
