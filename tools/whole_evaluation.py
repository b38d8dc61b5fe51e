"""A person's first evaluation with the bundled model, typed on a pseudo-terminal; a test and the screenshots run it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tasks.registry import TASKS
from tools.terminal_driver import TerminalDriver

LOADS_WITHIN = 120.0
"""Seconds; llama.cpp reads the file from a cold disk on a busy machine."""

FINISHES_WITHIN = 240.0
PAGES_OF_HELP = 10
"""That are turned at most to reach what the numbers mean."""

TASKS_ASKED = ("kronecker_product", "words_collection")
"""In the order of the list."""

Look = Callable[[str, TerminalDriver], None]


def terminal_environment(home: Path, **changes: str) -> dict[str, str]:
    """Return an environment with all colours and with settings of its own."""
    root = str(Path(__file__).parents[1])
    wanted = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "SALT_TUI_HOME": str(home), "PYTHONPATH": root}
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "SALT_TUI_DB"}}
    return {**kept, **wanted, **changes}


def evaluate(
    database: Path,
    environment: Mapping[str, str],
    export: Path,
    look: Look,
    samples: int = 6,
    folder: Path | None = None,
) -> None:
    """Set up a run, watch it, find the surest wrong atoms, stop, come back, resume, export.

    Args:
        database: a file that is not there yet.
        environment: of the app.
        export: the file to export to.
        look: is called with the name of each step and the terminal.
        samples: problems per task.
        folder: to start the app in.
    """
    arguments = ["-m", "salt_tui", "--db", str(database)]
    with TerminalDriver(arguments, environment, folder=folder) as terminal:
        terminal.wait_for("  here  ", 60)
        _choose(terminal, samples)
        look("setup", terminal)
        terminal.press("ctrl+r")
        terminal.wait_for("newest below", 30)
        terminal.wait_for(_has_precision, LOADS_WITHIN)
        look("running", terminal)
        terminal.press("space")  # a fast machine would be done before somebody has looked
        terminal.wait_for("paused", 30)
        terminal.press("c")
        terminal.wait_for("of the surest errors", 30)
        look("surest_wrong", terminal)
        terminal.press("enter")
        terminal.wait_for("entropy", 30)
        look("answer", terminal)
        terminal.press("escape")
        terminal.wait_for("AUROC", 30)
        terminal.press("q")
        terminal.wait_for("Quit while a run computes?", 30)
        terminal.press("y")
        look("stopped", terminal)
        if terminal.wait_for_end() != 0:
            raise AssertionError(terminal.text)
    with TerminalDriver(arguments, environment, folder=folder) as terminal:
        terminal.wait_for("Resume run 1", 60)
        terminal.press("u")
        terminal.wait_for("finished", FINISHES_WITHIN)
        terminal.press("home", "w")
        terminal.wait_for(_has_precision, 30)
        look("finished", terminal)
        terminal.press("e")
        terminal.wait_for("Export run 1 to", 30)
        terminal.press(*str(export), "enter")
        terminal.wait_for("run 1 is in", 30)
        terminal.press("?")
        terminal.wait_for("escape back", 30)
        for _ in range(PAGES_OF_HELP):
            if "asked: recall: right atoms" in terminal.text:
                break
            terminal.press("pagedown")
            terminal.settle()
        look("help", terminal)
        terminal.press("escape", "3")
        terminal.wait_for(lambda text: "1 run" in text and "Filter" in text, 30)
        look("runs", terminal)
        terminal.press("q")
        if terminal.wait_for_end() != 0:
            raise AssertionError(terminal.text)


def _has_precision(text: str) -> bool:
    return re.search(r"\bright( ↑)? [.1]\d* \[", text) is not None  # below the map, with its interval


def _choose(terminal: TerminalDriver, samples: int) -> None:
    """Mark two tasks, take the lowest level, and set the number of samples."""
    terminal.press("tab")
    place = 0
    for name in TASKS_ASKED:
        steps = [*TASKS].index(name) - place
        terminal.press(*["down"] * steps, "space")
        place += steps
    terminal.wait_for(f"[x] {TASKS_ASKED[-1]}", 30)
    terminal.press("tab", "enter")
    terminal.wait_for("paper", 30)
    terminal.press("home", "enter")
    terminal.wait_for(lambda text: "paper" not in text and "trivial" in text, 30)
    terminal.settle()
    terminal.press("tab")
    terminal.settle()
    terminal.press("tab")
    terminal.settle()
    terminal.press(*str(samples))  # what is typed replaces what the field held
    terminal.wait_for(f"{2 * samples} answers", 30)
