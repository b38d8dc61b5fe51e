"""A run of a million atoms for tests and for a process of its own: what it says, and what the report must say of it.

``python -m tests.end_to_end.long_run SCRIPT PROBLEMS DATABASE ANSWERS`` computes it in the app and prints, as JSON, how
late the event loop was, in time and in processor time of the whole process, and how the memory of the process and of
its child grew.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.palette import DrawingMode, Look
from salt_tui.runner.request import RunRequest

ATOMS = 500
"""Of an answer."""

REPLIES = 20
"""Different ones, given in turns."""

TICK_SECONDS = 0.005
SAMPLE_SECONDS = 0.5
SHARES = (0.5, 0.95, 0.99, 0.999, 1.0)


def drawn_replies() -> list[list[tuple[bool, float]]]:
    """Draw for each atom of each reply whether it is right and its log-probability, exact in single precision."""
    random = Random(11)
    return [
        [(right := random.random() < 0.6, -random.randint(1, 96 if right else 160) / 64) for _ in range(ATOMS)]
        for _ in range(REPLIES)
    ]


def write_inputs(folder: Path, answers: int) -> tuple[Path, Path]:
    """Write a script and a file of problems whose right answer is always the same numbers."""
    reference = [atom % 10 for atom in range(ATOMS)]
    problems = folder / "numbers.jsonl"
    with problems.open("w", encoding="utf-8") as file:
        for number in range(answers):
            row = {
                "id": number,
                "kind": "numbers",
                "prompt": f"Say the numbers, time {number}.",
                "reference": reference,
            }
            file.write(f"{json.dumps(row)}\n")
    replies = []
    for reply in drawn_replies():
        tokens: list[list[object]] = [["********\n", -0.125]]
        for atom, (right, logarithm) in enumerate(reply):
            said = reference[atom] if right else (reference[atom] + 3) % 10
            end = "\n" if atom % 25 == 24 else " "
            tokens.append([f"{said}{end}", logarithm, 0.5, [[f"{(said + 1) % 10}{end}", -5.0]]])
        tokens.append(["********", -0.125])
        replies.append({"tokens": tokens})
    script = folder / "long.scripted.json"
    script.write_text(json.dumps({"replies": replies}), encoding="utf-8")
    return script, problems


def expected(answers: int) -> dict[str, float]:
    """Return what a report must say, worked out from what was drawn."""
    atoms = [atom for reply in drawn_replies() for atom in reply]
    right = np.array([atom[0] for atom in atoms])
    sure = np.exp([atom[1] for atom in atoms])
    pairs = sum(np.sum(one > sure[~right]) + np.sum(one == sure[~right]) / 2 for one in sure[right])
    bins = np.maximum(1, np.ceil(sure * 15 - 1e-12)).astype(int)
    gaps = sum(abs(np.sum(sure[bins == place]) - np.sum(right[bins == place])) for place in range(1, 16))
    return {
        "atoms": answers * ATOMS,
        "precision": float(right.mean()),
        "auroc": float(pairs / right.sum() / (~right).sum()),
        "ece": float(gaps / right.size),
        "brier": float(np.mean((sure - right) ** 2)),
    }


def memory_of(process: int | str) -> int:
    """Return the resident bytes of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _compute(app: SaltApp, pilot: Pilot[int], answers: int) -> dict[str, object]:
    while not app.desk.loaded or app.desk.runs.computed is None:
        await pilot.pause(0.05)
    session = app.desk.runs.computed
    while session.state.map.last() is None:
        await pilot.pause(0.05)
    engine = max(_children_of_all_threads(), key=memory_of)
    late: list[float] = []
    busy: list[float] = []
    samples: list[tuple[int, int, int]] = []
    begun = sampled = time.monotonic()
    while session.computing:
        before, used = time.monotonic(), time.process_time()
        await asyncio.sleep(TICK_SECONDS)
        now = time.monotonic()
        late.append(now - before - TICK_SECONDS)
        busy.append(time.process_time() - used)
        if now - sampled > SAMPLE_SECONDS:
            sampled = now
            done = sum(len(answer.units["atom"]) for answer in session.state.map.answers)
            try:
                samples.append((done, memory_of("self"), memory_of(engine)))
            except (FileNotFoundError, IndexError):
                break  # the child has ended
    session.pull()
    return {
        "seconds": time.monotonic() - begun,
        "phase": session.state.phase,
        "atoms": sum(len(answer.units["atom"]) for answer in session.state.map.answers),
        "samples": samples,
        "late": _quantiles(late),
        "busy": _quantiles(busy),
        "ticks": len(late),
        "answers": answers,
    }


def _quantiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {str(share): ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in SHARES}


def _children_of_all_threads() -> list[int]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(word) for word in (task / "children").read_text(encoding="ascii").split()]
    return found


def main(script: str, problems: str, database: str, answers: str) -> None:
    """Compute the run in the app and print what was measured."""
    request = RunRequest(script, (f"file:{problems}",), "easy", int(answers), 1, max_tokens=ATOMS + 8)
    app = SaltApp(Path(database), Look(DrawingMode.COLOUR), lambda desk: desk.runs.begin(request))
    measured: dict[str, object] = {}

    async def run() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            measured.update(await _compute(app, pilot, int(answers)))

    sys.setswitchinterval(0.001)  # as the app does
    asyncio.run(run())
    json.dump(measured, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
