"""How many threads to compute with: the physical cores that this process may use, or one for a tiny model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")

_TINY_PARAMETERS = 8_000_000
"""Below this, threads wait for each other at every node of the graph longer than they compute: with a million
parameters at width 16, beside a busy process on two cores, one thread made 1,450 tokens/s and two made 320."""


def suitable_threads(parameters: int) -> int:
    """Return the threads for a model of so many parameters: `physical_cores`, or 1 where that is faster."""
    return 1 if parameters < _TINY_PARAMETERS else physical_cores()


def physical_cores() -> int:
    """Return the number of physical cores, at least 1; logical processors where the system does not tell.

    Two threads on one core are no faster for llama.cpp, and a thread on a core that is not ours waits.  On Apple
    machines the efficiency cores are left out, since every step would wait for them.
    """
    if sys.platform == "darwin":
        for name in ("hw.perflevel0.physicalcpu", "hw.physicalcpu"):
            answer = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False)
            if answer.returncode == 0 and answer.stdout.strip().isdigit():
                return max(1, int(answer.stdout))
    if sys.platform == "linux":
        return linux_cores(_TOPOLOGY, os.sched_getaffinity(0))
    return os.cpu_count() or 1


def linux_cores(topology: Path, processors: set[int]) -> int:
    """Count the cores that these processors belong to, by Linux's description; without one, the processors."""
    try:
        cores = {
            tuple(
                (topology / f"cpu{number}/topology/{name}").read_text() for name in ("physical_package_id", "core_id")
            )
            for number in processors
        }
    except OSError:
        return max(1, len(processors))
    return max(1, len(cores))
