"""Writes the pictures of the README: ``python -m tools.screenshots [FOLDER]``, from a real evaluation."""

from __future__ import annotations

import re
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from pyte.screens import Char
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from tools.terminal_driver import TerminalDriver
from tools.whole_evaluation import evaluate, terminal_environment

PICTURES = {"setup": "app-setup", "runs": "app-runs"}
SAMPLES = 5

PICTURE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's picture without the fonts that it fetches from elsewhere."""


def picture(terminal: TerminalDriver, name: str) -> str:
    """Return the screen of a terminal as SVG; the name makes its classes unique in a page."""
    screen = terminal.screen
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(width=screen.columns, record=True, file=nowhere, force_terminal=True, legacy_windows=False)
        for y in range(screen.lines):
            row = screen.buffer[y]
            cells = [row[x] for x in range(screen.columns)]
            line = Text(no_wrap=True, end="")
            for style, run in groupby(cells, key=_style):
                line.append("".join(cell.data for cell in run), style)
            line.append(" " * (screen.columns - cell_len(line.plain)))
            console.print(line, soft_wrap=True)
        return console.export_svg(title="salt-tui", code_format=PICTURE, unique_id=name)


def _style(cell: Char) -> Style:
    return Style(
        color=_colour(cell.fg),
        bgcolor=_colour(cell.bg),
        bold=cell.bold,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    return f"#{name}" if len(name) == 6 and all(digit in "0123456789abcdef" for digit in name) else name


def run_nano(home: Path, name: str, *settings: str) -> Path:
    """Compute a run of the tiny model that comes with the program, into a file of its own or that of another."""
    database = home / name
    run = ["run", "-m", "nano", "--seed", "1", *settings, "--db", str(database)]
    with TerminalDriver(["-m", "salt_tui", *run], terminal_environment(home)) as terminal:
        if terminal.wait_for_end(240) != 0:
            raise AssertionError(terminal.text)
    return database


def live(home: Path, path: Path, of_answer: Path) -> None:
    """Write a picture of a run while the tiny model computes it, which is right as often as wrong, and of an answer."""
    wanted = ["--tasks", "kronecker_product,dna_translation,maze", "--difficulty", "easy", "--limit", "60"]
    arguments = ["run", "-m", "nano", "--seed", "1", *wanted, "--db", str(home / "live.db"), "--display", "app"]
    with TerminalDriver(["-m", "salt_tui", *arguments], terminal_environment(home)) as terminal:
        terminal.wait_for(lambda text: re.search(r"dna_translation +[1-5]\d/60", text) is not None, 120)
        terminal.press("c")
        terminal.wait_for("of the surest errors", 30)
        terminal.wait_for(lambda text: "benchmark" not in text, 30)  # what is said of the model has gone
        path.write_text(picture(terminal, path.stem), encoding="utf-8")
        print(path)
        terminal.wait_for("finished", 240)
        terminal.press("enter")
        terminal.wait_for("entropy", 30)
        keep(terminal, of_answer)


def replay(home: Path, path: Path) -> None:
    """Write a picture of an answer with an atom changed."""
    database = run_nano(home, "replay.db", "--tasks", "dna_translation", "--difficulty", "medium", "--limit", "2")
    with TerminalDriver(["-m", "salt_tui", "--db", str(database)], terminal_environment(home)) as terminal:
        terminal.wait_for("  here  ", 60)
        terminal.press("3")
        terminal.wait_for("finished", 30)
        terminal.press("enter")
        terminal.wait_for("end follows", 30)
        terminal.press("home", "w", "enter")
        terminal.wait_for("entropy", 30)
        terminal.press("i")
        terminal.wait_for("edits in brackets", 30)
        terminal.press("e", "enter")
        terminal.wait_for("target atom", 120)
        keep(terminal, path)


def compare(home: Path, path: Path) -> None:
    """Write a picture of what sampling changes in the answers of the tiny model."""
    settings = ("--tasks", "dna_translation,words_collection,maze,code", "--difficulty", "easy", "--limit", "20")
    run_nano(home, "compare.db", *settings)
    database = run_nano(home, "compare.db", *settings, "--temp", "0.7")
    with TerminalDriver(["-m", "salt_tui", "--db", str(database)], terminal_environment(home)) as terminal:
        terminal.wait_for("  here  ", 60)
        terminal.press("3")
        terminal.wait_for("finished", 30)
        terminal.press(" ", " ", "c")
        terminal.wait_for("mean of 4 tasks", 60)
        terminal.wait_for(lambda text: "Stop" not in text.split("\n")[-1], 60)
        terminal.press("n")
        terminal.wait_for("flip 2 of", 30)
        keep(terminal, path)


def keep(terminal: TerminalDriver, path: Path) -> None:
    """Write a picture of the screen, and quit."""
    terminal.settle()
    path.write_text(picture(terminal, path.stem), encoding="utf-8")
    print(path)
    terminal.press("q")
    terminal.wait_for_end(30)


def reliability(home: Path, path: Path) -> None:
    """Write a picture of the reliability of the tiny model on all tasks."""
    database = run_nano(home, "reliability.db", "--tasks", "all", "--difficulty", "easy", "--limit", "20")
    with TerminalDriver(["-m", "salt_tui", "--db", str(database)], terminal_environment(home)) as terminal:
        terminal.wait_for("  here  ", 60)
        terminal.press("3")
        terminal.wait_for("finished", 30)
        terminal.press("enter")
        terminal.wait_for("end follows", 30)
        terminal.press("4")
        terminal.wait_for(lambda text: "Promise  " in text and "measuring" not in text, 120)
        keep(terminal, path)


def main() -> None:
    """Write pictures of what the tiny model does; then evaluate, and write one of each step in `PICTURES`."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")

    def look(name: str, terminal: TerminalDriver) -> None:
        if name in PICTURES:
            path = folder / f"{PICTURES[name]}.svg"
            path.write_text(picture(terminal, PICTURES[name]), encoding="utf-8")
            print(path)

    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        live(home, folder / "app-live.svg", folder / "app-answer.svg")
        replay(home, folder / "app-replay.svg")
        compare(home, folder / "app-compare.svg")
        reliability(home, folder / "app-reliability.svg")
        evaluate(Path("demo.db"), terminal_environment(home), Path("demo.csv"), look, SAMPLES, home)


if __name__ == "__main__":
    main()
