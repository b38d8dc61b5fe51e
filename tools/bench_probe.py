"""Time a whole `salt-tui probe` on drawn vectors: `python -m tools.bench_probe`.

The target is ten minutes on two cores.  `--quick` takes a tenth of the answers and a third of the layers.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from salt_tui.measure.probes import Subject, report_probes
from salt_tui.store.records import Work
from scoring.probes import ProbeUnits

ANSWERS, LAYERS, WIDTH, TASKS = 2000, 30, 576, 8
TARGET = 600.0


def subject(answers: int, layers: int) -> Subject:
    """Draw answers of which four in ten are right, with a weak trace of that in the middle layers."""
    draw = np.random.default_rng(20260424)
    correct = draw.random(answers) < 0.4
    pools = draw.normal(size=(layers, answers, WIDTH)).astype(np.float32)
    pools[layers // 2, :, :5] += correct[:, None]
    number = np.arange(answers)
    return Subject(
        study=Work(1, 1, 1),
        kind="generation",
        positions="producing",
        units=ProbeUnits(
            pools, tuple(range(1, layers + 1)), layers, draw.random(answers) ** (2.0 - correct), correct, number
        ),
        generation=number,
        index=np.zeros_like(number),
        task=number % TASKS,
        tasks=tuple(f"task {code}" for code in range(TASKS)),
        problems=tuple(map(str, number.tolist())),
        notes=(),
    )


def main(arguments: list[str]) -> None:
    """Print the time of each step and of all."""
    answers, layers = (ANSWERS // 10, LAYERS // 3) if "--quick" in arguments else (ANSWERS, LAYERS)
    start = last = time.perf_counter()
    step = "begin"

    def progress(text: str) -> None:
        nonlocal last, step
        now = time.perf_counter()
        print(f"{now - last:8.1f} s  {step}", flush=True)
        last, step = now, text

    report_probes(subject(answers, layers), progress=progress)
    progress("")
    whole = time.perf_counter() - start
    print(
        f"{whole:8.1f} s  {answers:,} answers, {layers} layers of {WIDTH};"
        f" target for {ANSWERS:,} × {LAYERS}: {TARGET:g} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
