"""How much main memory a process holds, the child of an engine above all."""

from __future__ import annotations

import contextlib
from pathlib import Path

from salt_tui.engine.engine import Engine
from salt_tui.engine.process import EngineProcess


def resident_bytes(process_id: int) -> int | None:
    """Return the memory of a process that is in RAM now; None where the system does not tell."""
    with contextlib.suppress(OSError):  # only Linux has this file
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return None


def engine_memory(engine: Engine) -> int | None:
    """Return the memory of an engine's child, what lies on a device apart; None where nobody tells."""
    return resident_bytes(engine.process_id) if isinstance(engine, EngineProcess) else None
