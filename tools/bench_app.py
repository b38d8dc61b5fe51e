"""Time the app beside what it promises: `python -m tools.bench_app`, under eight minutes on two idle cores.

On a pseudo-terminal of its own, from outside: first paint, ``--help``, opening a database of 1,000,000 atoms, the
time from a key to the screen while the bundled model decodes on all cores, from each selector of Reliability and
Compare to the screen, and tokens per second with the app open beside ``--display none`` in turns. From inside, where
a terminal would only add noise: what a key costs the screen's thread at 1,000,000 atoms, and how late the event loop
is during a run. Everything lies in a temporary folder. A part that does not come to its end says so in one line, and
the next part begins.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from statistics import median

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.messages import OpenRun
from salt_tui.palette import DrawingMode, Look
from salt_tui.runner.request import EngineOptions, RunRequest
from salt_tui.store.queries import open_queries
from salt_tui.store.records import (
    GenerationEnd,
    GenerationStart,
    ModelRecord,
    ProblemRecord,
    RunRecord,
    UnitRecord,
    Work,
)
from salt_tui.store.store import open_store
from scoring.confidence import unit_confidences
from tools.terminal_driver import TerminalDriver
from tools.whole_evaluation import terminal_environment

ATOMS_PER_ANSWER = 1_000
LINE = 25
ANSWER_VARIANTS = 20
LARGE, MIDDLE = 1_000_000, 100_000
TASKS = ("maze", "code", "dna_translation", "arc_grid")
PROGRAM = ["-m", "salt_tui"]
MAP_KEYS = ("right", "down", "w", "c", "f", "g", "t", "]")
PARTS = ("start", "open", "inside", "keys", "selectors", "late", "pace")
TITLE, VIEW = slice(1, 2), slice(12, 23)
"""Rows of Reliability: what is chosen, and what is drawn of it."""

SELECTORS = {
    "f, F: signal": (("f", "F"), TITLE),
    "m, M: map": (("m", "M"), TITLE),
    "g: unit": (("g",), TITLE),
    "t, T: task": (("t", "T"), TITLE),
    "., ,: part of a slice": ((".", ","), TITLE),
    "b: bins": (("b",), VIEW),
    "k: what is drawn": (("k",), VIEW),
    "left, right: threshold": (("right", "left"), VIEW),
}
"""What they choose, with the keys there and back, and the rows in which the choice is seen."""
PACES = {
    "smollm2": ("--tasks", "kronecker_product", "--difficulty", "easy", "--limit", "12", "-np", "4", "-n", "64"),
    "nano": ("--tasks", "kronecker_product,dna_translation", "--difficulty", "easy", "--limit", "100", "-np", "16"),
}
"""What is run to compare paces: some seconds each."""

PACE_SECONDS = 120.0
LATENESS_SECONDS = 12.0
TICK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was measured, its unit, the target, and the measurements."""

    what: str
    unit: str
    target: str
    values: Sequence[float]

    def __str__(self) -> str:
        """Median, 95th percentile and range beside the target."""
        ordered = sorted(self.values)
        digits = 3 if self.unit == "×" else 0 if ordered[-1] >= 100 else 1
        p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        numbers = (f"{value:.{digits}f}" for value in (median(ordered), p95))
        spread = f"{ordered[0]:.{digits}f} to {ordered[-1]:.{digits}f}"
        middle, high = numbers
        return f"{self.what:<58}{self.target:>9}{middle:>9}{high:>9}  {spread:<16} {self.unit:<3} n {len(ordered)}"


def show(what: str, unit: str, target: str, values: Sequence[float]) -> None:
    """Print one line of the table at once."""
    print(Row(what, unit, target, values), flush=True)


# --- stored runs -------------------------------------------------------------------------------------------------


def store_large_run(database: Path, atoms: int) -> None:
    """Store a finished run of so many drawn atoms, in answers of `ATOMS_PER_ANSWER`, through the store."""
    random = Random(5)
    variants = [_drawn_units(random) for _ in range(ANSWER_VARIANTS)]
    each = atoms // ATOMS_PER_ANSWER // len(TASKS)
    problems = [
        ProblemRecord(task, n, f"{task}{n}", "easy", n, "regular", "text", "A", ATOMS_PER_ANSWER, 1)
        for task in TASKS
        for n in range(each)
    ]
    model = ModelRecord(
        "a" * 64, "a" * 64, "drawn", "/models/drawn.gguf", 1, "drawn 1M Q4_1", "llama", "Q4_1", 1, 256, 2048, None, "{}"
    )
    tasks = [
        {"task": task, "difficulty": "easy", "method": "regular", "problem_ids": [f"{task}{n}" for n in range(each)]}
        for task in TASKS
    ]
    plan = json.dumps({"width": 4, "tasks": tasks})
    environment = '{"gpu_layers": 0, "threads": 2, "devices": []}'
    with open_store(database) as store:
        run = store.create_run(model, (b"A",) * 256, RunRecord(plan, "plan", environment, "here", True, ()), problems)
        store.claim(Work(run))
        for number, entry in enumerate(store.pending_problems(run)):
            generation = store.begin_generation(Work(run), GenerationStart(entry.id, (1, 2), 1))
            store.add_units(generation, variants[number % ANSWER_VARIANTS])
            store.end_generation(generation, GenerationEnd(b"", "end", "fenced", "complete", None, 0.1, 0.2))
        store.release(Work(run), "finished")


def _drawn_units(random: Random) -> list[UnitRecord]:
    statuses = ["correct" if random.random() < 0.5 else "wrong" for _ in range(ATOMS_PER_ANSWER)]
    units = [_drawn_unit(random, "atom", index, status) for index, status in enumerate(statuses)]
    for line in range(ATOMS_PER_ANSWER // LINE):
        right = set(statuses[line * LINE : (line + 1) * LINE]) == {"correct"}
        units.append(_drawn_unit(random, "line", line, "correct" if right else "wrong"))
    return units


def _drawn_unit(random: Random, kind: str, index: int, status: str) -> UnitRecord:
    logs = [-random.expovariate(2.0) for _ in range(2)]
    values = tuple(unit_confidences(logs, [random.expovariate(1.0) for _ in logs]).values())
    line = index // LINE if kind == "atom" else index
    reference = "A" if status == "correct" else "C"
    return UnitRecord(kind, index, line, "A", reference, status, None, None, None, None, values)


# --- from outside ------------------------------------------------------------------------------------------------


class Outside:
    """The program on a terminal, with settings and database in a folder.

    Args:
        folder: empty; everything goes there.
        large: database with a run of `LARGE` atoms.
    """

    def __init__(self, folder: Path, large: Path) -> None:
        self.folder = folder
        self.environment = terminal_environment(folder / "home")
        self.large = large

    def first_paint(self, rounds: int) -> None:
        """From starting the program to the form of Setup."""
        times = []
        for _ in range(rounds):
            with TerminalDriver([*PROGRAM, "--db", str(self.folder / "none.db")], self.environment) as terminal:
                terminal.wait_for("Difficulty", 20)
                times.append(1e3 * (terminal.arrived - terminal.begun))
                terminal.wait_for("  here  ", 20)
                terminal.press("q")
                terminal.wait_for_end()
        show("first paint of salt-tui", "ms", "< 700", times)

    def help(self, rounds: int) -> None:
        """The whole of ``--help``."""
        times = []
        for _ in range(rounds):
            begun = time.monotonic()
            subprocess.run([sys.executable, *PROGRAM, "--help"], env=self.environment, capture_output=True, check=True)
            times.append(1e3 * (time.monotonic() - begun))
        show("salt-tui --help", "ms", "< 250", times)

    def opening(self, rounds: int) -> None:
        """A large database: the list of runs, and the first screen of its run."""
        lists, maps = [], []
        for _ in range(rounds):
            with TerminalDriver([*PROGRAM, "--db", str(self.large)], self.environment) as terminal:
                terminal.wait_for("1 run in", 20)
                terminal.settle()
                lists.append(_until(terminal, "3", "finished"))
                terminal.settle()
                maps.append(_until(terminal, "enter", f"── {TASKS[0]} ──"))
                terminal.press("q")
                terminal.wait_for_end()
        show("database of 1,000,000 atoms: key 3 to the list of runs", "ms", "< 1000", lists)
        show("the same: enter to the map of the run", "ms", "< 1000", maps)

    def keys_during_a_run(self, presses: int) -> None:
        """From a key to the screen while a run decodes, on a stored run of `MIDDLE` atoms and on the run itself."""
        database = self.folder / "keys.db"
        store_large_run(database, MIDDLE)
        wanted = ["--tasks", "dna_translation", "--difficulty", "hard", "--limit", "40", "--db", str(database)]
        arguments = [*PROGRAM, "run", *wanted, "--display", "app"]
        random = Random(7)
        with TerminalDriver(arguments, self.environment) as terminal:
            terminal.wait_for("tok/s", 240)
            terminal.press("3")
            terminal.wait_for("2 runs", 20)
            terminal.press("down", "enter")
            terminal.wait_for("end follows", 90)
            terminal.settle(0.4, 5.0)
            times: dict[str, list[float]] = {key: [] for key in MAP_KEYS}
            for _ in range(presses):
                for key in MAP_KEYS:
                    times[key].append(_until(terminal, key, _changed(terminal)))
                    _rest(terminal, random)
            every = [value for values in times.values() for value in values]
            show("key to screen, 100,000 stored atoms, while a run decodes", "ms", "p95 < 50", every)
            for key, values in times.items():
                show(f"    of these, key {key}", "ms", "p95 < 50", values)
            terminal.press("2", "2")
            terminal.wait_for("tok/s", 20)
            terminal.press("home")
            terminal.wait_for("answer 1 · atom 1 ·", 20)
            show("key to screen, the run that decodes", "ms", "p95 < 50", _beside(terminal, random, presses))
            terminal.press("X")
            terminal.wait_for("Stop this run?", 10)
            terminal.press("y")
            terminal.wait_for("r resumes", 30)
            show("the same when it has stopped", "ms", "", _beside(terminal, random, presses))
            terminal.press("ctrl+c")
            terminal.wait_for_end(20)

    def selectors(self, rounds: int) -> None:
        """From each selector of Reliability and Compare to the screen: at first, and when all of it is known."""
        database = self.folder / "selectors.db"
        for _ in range(2):
            store_large_run(database, MIDDLE)
        random, every = Random(11), {False: list[float](), True: list[float]()}
        for name, (keys, rows) in SELECTORS.items():
            with TerminalDriver([*PROGRAM, "--db", str(database)], self.environment) as terminal:
                self._open_reliability(terminal)
                if "slice" in name:
                    terminal.press("s")
                    terminal.wait_for("Slice by", 10)
                    terminal.press("down", "enter")
                    terminal.wait_for(lambda text: "0.0–0.1" in text.split("\n")[1], 30)
                    terminal.settle()
                times: dict[bool, list[float]] = {False: [], True: []}
                for number in range(rounds):
                    if number == 1:
                        terminal.wait_for(_all_measured, 120)
                    for key in keys * 5:
                        times[number > 0].append(_until(terminal, key, _changed(terminal, rows=rows)))
                        _rest(terminal, random)
                for known, values in times.items():
                    every[known] += values
                    show(f"    {name}{', everything measured' if known else ', just opened'}", "ms", "< 100", values)
                terminal.press("ctrl+c")
                terminal.wait_for_end(20)
        show("Reliability, 100,000 atoms: selector to screen, just opened", "ms", "< 100", every[False])
        show("the same, everything measured", "ms", "< 100", every[True])
        self._compare_keys(database, rounds)

    def _open_reliability(self, terminal: TerminalDriver) -> None:
        terminal.wait_for("2 runs in", 20)
        terminal.settle()
        terminal.press("3")
        terminal.wait_for("finished", 20)
        terminal.press("enter")
        terminal.wait_for(f"── {TASKS[0]} ──", 20)
        terminal.press("4")
        terminal.wait_for("reliability diagram", 30)

    def _compare_keys(self, database: Path, rounds: int) -> None:
        """The same of Compare, on two runs of `MIDDLE` atoms."""
        random, times = Random(13), list[float]()
        with TerminalDriver([*PROGRAM, "--db", str(database)], self.environment) as terminal:
            terminal.wait_for("2 runs in", 20)
            terminal.settle()
            terminal.press("3")
            terminal.wait_for("finished", 20)
            terminal.press(" ", " ", "c")
            terminal.wait_for("problems in both", 60)
            for _ in range(rounds * 5):
                for key in ("m", "f", "t"):
                    times.append(_until(terminal, key, _changed(terminal)))
                    _rest(terminal, random)
            terminal.press("ctrl+c")
            terminal.wait_for_end(20)
        show("Compare, 100,000 atoms each: m, f and t to screen", "ms", "< 100", times)

    def pace(self, model: str, run: Sequence[str], rounds: int) -> None:
        """Tokens per second with the app open, as a share of ``--display none``, the same tokens in turns."""
        shares, rates = [], []
        for number in range(rounds):
            order = ("app", "none") if number % 2 else ("none", "app")
            measured = {
                display: self._rate(f"{model}-{number}-{display}", [*run, "-m", model], display) for display in order
            }
            if measured["app"][0] != measured["none"][0]:
                raise AssertionError(f"{measured['app'][0]} tokens with the app open, {measured['none'][0]} without")
            rates.append(measured["app"][1])
            shares.append(measured["app"][1] / measured["none"][1])
        show(f"tokens per second of {model}, app open / --display none", "×", "≥ 0.95", shares)
        show(f"    tokens per second of {model}, app open", "/s", "", rates)

    def _rate(self, name: str, run: Sequence[str], display: str) -> tuple[int, float]:
        """Return the tokens of a run and how many that is in a second."""
        database = self.folder / f"pace-{name}.db"
        arguments = [*PROGRAM, "run", *run, "--db", str(database), "--display", display]
        deadline = time.monotonic() + PACE_SECONDS
        with TerminalDriver(arguments, self.environment) as terminal:
            while not _has_ended(database):
                terminal.skip(0.3)
                if terminal.ended_output and not _has_ended(database):
                    raise AssertionError(f"the run ended early, with code {terminal.wait_for_end()}")
                if time.monotonic() > deadline:
                    raise AssertionError(f"a run took more than {PACE_SECONDS:.0f} s")
            if display == "app":
                terminal.skip(0.3)
                terminal.press("q")
            terminal.wait_for_end(20)
        with open_queries(database) as queries:
            tokens = sum(answer.tokens for answer in queries.answers(1))
            run = queries.list_runs()[0]
        assert run.finished_at is not None
        lasted = datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.created_at)
        return tokens, tokens / lasted.total_seconds()


def _has_ended(database: Path) -> bool:
    if not database.exists():
        return False
    with open_queries(database) as queries:
        return any(run.state == "finished" for run in queries.list_runs())


def _beside(terminal: TerminalDriver, random: Random, presses: int) -> list[float]:
    times = []
    for key in ("right", "left") * presses * 2:
        times.append(_until(terminal, key, _changed(terminal, "· atom ")))
        _rest(terminal, random)
    return times


def _until(terminal: TerminalDriver, key: str, wanted: str | Callable[[str], bool]) -> float:
    """Press a key and return the milliseconds until what was waited for had arrived."""
    begun = time.monotonic()
    terminal.type_key(key)
    terminal.wait_for(wanted, 20)
    return 1e3 * (terminal.arrived - begun)


def _changed(terminal: TerminalDriver, line: str = "", rows: slice = slice(None)) -> Callable[[str], bool]:
    """Return whether the lines of some rows that hold a text are others than they are now."""
    before = [shown for shown in terminal.lines[rows] if line in shown]
    return lambda text: [shown for shown in text.split("\n")[rows] if line in shown] != before


def _all_measured(text: str) -> bool:
    """Return whether nothing on Reliability is being measured: neither a conclusion nor a number of a signal."""
    return "Promise" in text and "measuring" not in text and re.search(r"(?<!\S)…(?!\S)", text) is None


def _rest(terminal: TerminalDriver, random: Random) -> None:
    """Read for a moment of no fixed length, so that keys do not keep step with frames."""
    until = time.monotonic() + random.uniform(0.08, 0.16)
    while (left := until - time.monotonic()) > 0:
        terminal.read(left)


# --- from inside -------------------------------------------------------------------------------------------------


async def keys_inside(app: SaltApp, pilot: Pilot[int], rounds: int) -> None:
    """What keys cost the screen's thread on a run of `LARGE` atoms, drawing included."""
    app.post_message(OpenRun(1))
    begun = time.monotonic()
    session = app.desk.runs.shown
    assert session is not None
    while session.reading:
        await pilot.pause(0.05)
    show("reading the whole run of 1,000,000 atoms", "s", "", [time.monotonic() - begun])
    while session.measured is None:
        await pilot.pause(0.05)
    await pilot.press("home")
    bound = {binding.key for _, binding, *_ in app.screen.active_bindings.values()}
    for key in ("c", "f", "g", "w", "u"):
        if key not in bound:
            continue
        times = []
        for _ in range(rounds):
            await pilot.pause(0.1)
            before = time.thread_time()
            await pilot.press(key)
            times.append(1e3 * (time.thread_time() - before))
        show(f"key {key} at 1,000,000 atoms, thread of the screen", "ms", "< 33", times)


async def lateness_inside(app: SaltApp, pilot: Pilot[int]) -> None:
    """How late the event loop is while the bundled model decodes on all cores."""
    session = app.desk.runs.shown
    assert session is not None
    while session.state.map.last() is None:
        await pilot.pause(0.05)
    late, busy = [], []
    until = time.monotonic() + LATENESS_SECONDS
    while (begun := time.monotonic()) < until:
        before = time.thread_time()
        await asyncio.sleep(TICK_SECONDS)
        late.append(1e3 * (time.monotonic() - begun - TICK_SECONDS))
        busy.append(1e3 * (time.thread_time() - before))
    show("event loop late, the bundled model decoding", "ms", "p95 < 33", late)
    show("event loop busy at a stretch (CPU time)", "ms", "p95 < 33", busy)
    session.stop()
    while not session.wait(0):
        await pilot.pause(0.05)


def inside(database: Path, act: Callable[[SaltApp, Pilot[int]], object], request: RunRequest | None = None) -> None:
    """Run a scenario in an app without a terminal."""
    first = None if request is None else lambda desk: desk.runs.begin(request)
    app = SaltApp(database, Look(DrawingMode.COLOUR), first)

    async def run() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            result = act(app, pilot)
            assert asyncio.iscoroutine(result)
            await result

    asyncio.run(run())


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench_app", description=__doc__.partition("\n")[0])
    parser.add_argument("-r", type=int, default=4, help="rounds of each")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, joined by commas: {', '.join(PARTS)}")
    options = parser.parse_args(arguments)
    parts = options.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    failed = False
    sys.setswitchinterval(0.001)  # as the app does
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["SALT_TUI_HOME"] = str(folder / "home")
        print(f"{os.cpu_count()} processors; load at the start {os.getloadavg()[0]:.1f}")
        print(f"{'':<58}{'target':>9}{'median':>9}{'p95':>9}  range")
        outside = Outside(folder, folder / "large.db")
        for part in parts:
            begun = time.monotonic()
            try:
                measure_part(part, outside, options.r)
            except Exception as error:
                failed = True
                print(f"{part} did not end: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}", flush=True)
            print(f"{'':<58}{part} took {time.monotonic() - begun:.0f} s", flush=True)
    return 1 if failed else 0


def measure_part(part: str, outside: Outside, rounds: int) -> None:
    """Measure one of `PARTS`."""
    if part in {"open", "inside"} and not outside.large.exists():
        store_large_run(outside.large, LARGE)
    match part:
        case "start":
            outside.first_paint(rounds)
            outside.help(rounds)
        case "open":
            outside.opening(max(2, rounds // 2))
        case "inside":
            inside(outside.large, lambda app, pilot: keys_inside(app, pilot, rounds))
        case "keys":
            outside.keys_during_a_run(rounds * 4)
        case "selectors":
            outside.selectors(rounds)
        case "late":
            request = RunRequest("smollm2", TASKS, "easy", 20, 1, engine=EngineOptions(width=4))
            inside(outside.folder / "late.db", lateness_inside, request)
        case _:
            for model, run in PACES.items():
                outside.pace(model, run, max(3, rounds // 2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
