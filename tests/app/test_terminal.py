"""The app on a real pseudo-terminal: quitting, signals, a closed window, Ctrl+Z, and where it refuses to open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from salt_tui.app.terminal import drawing_mode, refusal
from salt_tui.palette import DrawingMode
from salt_tui.store.queries import open_queries
from tools.terminal_driver import TerminalDriver

ROOT = Path(__file__).parents[2]
STOPS_WITHIN = 2.0
LEEWAY = 20.0
"""Seconds for starting interpreters and for a busy machine, on top of what is promised."""


def environment(**changes: str) -> dict[str, str]:
    """Return an environment of a terminal with all colours."""
    wanted = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **wanted, **changes}


LOADED = """
import sys
from salt_tui.app import launch
from salt_tui.app.application import SaltApp
launch.refusal = lambda *_, **__: None
SaltApp.run = lambda self: print(self.desk.database, [name for name in {heavy} if name in sys.modules])
from salt_tui.__main__ import main
main()
"""


@pytest.mark.parametrize("arguments", [[], ["--db", "here.db"]])
def test_the_app_opens_without_what_it_does_not_need(arguments: list[str], tmp_path: Path) -> None:
    code = LOADED.format(heavy=("typer", "pydantic", "numpy", "sqlite3"))
    settings = environment(SALT_TUI_DB="default.db", SALT_TUI_HOME=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=settings, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{(arguments or ['', 'default.db'])[1]} []\n"


LINUX = "reads the states of processes in /proc"


def run_arguments(database: Path, script: Path, limit: int) -> list[str]:
    """Open the app on a run of its own."""
    return [
        "-m", "salt_tui", "run", "-m", str(script), "--tasks", "kronecker_product,dna_translation", "--difficulty",
        "trivial", "--limit", str(limit), "--seed", "1", "--display", "app", "--db", str(database),
    ]  # fmt: skip


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found.extend(map(int, (task / "children").read_text("ascii").split()))
    return found


def process_state(pid: int) -> str:
    """Return the letter of the state of a process, Z for one that is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def exists(pid: int) -> bool:
    """Say whether a process is there and not merely unreaped."""
    return process_state(pid) != "Z"


def state_of_run(database: Path) -> str:
    """Return the state of run 1."""
    with open_queries(database) as queries:
        return queries.run_record(1).state


@pytest.fixture
def computing(script: Callable[..., Path], tmp_path: Path) -> tuple[list[str], Path]:
    """Arguments that open the app on a run of some ten seconds, and its database."""
    if sys.platform != "linux":
        pytest.skip(LINUX)
    return run_arguments(tmp_path / "salt.db", script(30, seconds_per_step=0.05), 30), tmp_path / "salt.db"


def wait_until_atoms(terminal: TerminalDriver) -> list[int]:
    """Wait until the run writes atoms and return the children of the app."""
    terminal.wait_for("tok/s", 30)
    found = children(terminal.process.pid)
    assert found
    return found


def check_end(terminal: TerminalDriver, kids: list[int], database: Path, code: int) -> None:
    """Check that the app ends in time, leaves no child, and leaves the run resumable."""
    begun = time.monotonic()
    assert terminal.wait_for_end(STOPS_WITHIN + LEEWAY) == code
    while any(map(exists, kids)) and time.monotonic() - begun < STOPS_WITHIN + LEEWAY:
        time.sleep(0.02)
    assert not any(map(exists, kids))
    assert state_of_run(database) == "interrupted"


def test_quitting_without_a_run_restores_the_terminal(tmp_path: Path) -> None:
    with TerminalDriver(["-m", "salt_tui", "--db", str(tmp_path / "salt.db")], environment()) as terminal:
        before = terminal.settings()
        terminal.wait_for("arc_grid", 30)
        assert terminal.settings() != before
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert terminal.settings() == before
        assert "\x1b[?1049l" in terminal.written
        assert "\x1b[?25h" in terminal.written.rpartition("\x1b[?25l")[2]


def test_quitting_during_a_run_asks_and_leaves_it_resumable(computing: tuple[list[str], Path]) -> None:
    arguments, database = computing
    with TerminalDriver(arguments, environment()) as terminal:
        kids = wait_until_atoms(terminal)
        terminal.press("q")
        terminal.wait_for("Quit while a run computes?")
        terminal.press("n")
        terminal.wait_for(lambda text: "Quit while" not in text)
        assert terminal.process.poll() is None
        terminal.press("q")
        terminal.wait_for("Quit while a run computes?")
        terminal.press("y")
        check_end(terminal, kids, database, 0)
        assert f"go on with: salt-tui resume 1 --db {database}"[:60] in terminal.text.replace("\n", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_stops_the_run_and_restores_the_terminal(
    computing: tuple[list[str], Path], number: signal.Signals, code: int
) -> None:
    arguments, database = computing
    with TerminalDriver(arguments, environment()) as terminal:
        before = terminal.settings()
        kids = wait_until_atoms(terminal)
        terminal.process.send_signal(number)
        check_end(terminal, kids, database, code)
        assert terminal.settings() == before
        assert "\x1b[?1049l" in terminal.written


def test_ctrl_c_does_not_ask(computing: tuple[list[str], Path]) -> None:
    arguments, database = computing
    with TerminalDriver(arguments, environment()) as terminal:
        kids = wait_until_atoms(terminal)
        terminal.press("ctrl+c")
        check_end(terminal, kids, database, 130)


def test_a_paused_run_can_be_quit(computing: tuple[list[str], Path]) -> None:
    arguments, database = computing
    with TerminalDriver(arguments, environment()) as terminal:
        kids = wait_until_atoms(terminal)
        terminal.press("space")
        terminal.wait_for("PAUSED")
        terminal.press("ctrl+c")
        check_end(terminal, kids, database, 130)


@pytest.mark.parametrize("hang_ups", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_closed_window_stops_the_run(computing: tuple[list[str], Path], hang_ups: signal.Handlers) -> None:
    arguments, database = computing
    ours = signal.signal(signal.SIGHUP, hang_ups)  # the program inherits it
    with TerminalDriver(arguments, environment()) as terminal:
        signal.signal(signal.SIGHUP, ours)
        kids = wait_until_atoms(terminal)
        terminal.hang_up()
        terminal.process.wait(STOPS_WITHIN + LEEWAY)
        deadline = time.monotonic() + LEEWAY
        while any(map(exists, kids)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(map(exists, kids))
        assert state_of_run(database) == "interrupted"


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX)
def test_ctrl_z_gives_the_terminal_back_and_coming_back_redraws(tmp_path: Path) -> None:
    with TerminalDriver(["-m", "salt_tui", "--db", str(tmp_path / "salt.db")], environment()) as terminal:
        before = terminal.settings()
        terminal.wait_for("arc_grid", 30)
        terminal.press("ctrl+z")
        deadline = time.monotonic() + LEEWAY
        while terminal.process_state() != "T" and time.monotonic() < deadline:
            terminal.read(0.02)
        assert terminal.process_state() == "T"
        while terminal.read(0.05):
            pass
        assert terminal.settings() == before
        terminal.screen.reset()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for("arc_grid")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_ctrl_z_stops_the_child_too_and_coming_back_wakes_it(computing: tuple[list[str], Path]) -> None:
    arguments, database = computing
    with TerminalDriver(arguments, environment()) as terminal:
        kids = wait_until_atoms(terminal)
        terminal.press("ctrl+z")
        deadline = time.monotonic() + LEEWAY
        while terminal.process_state() != "T" and time.monotonic() < deadline:
            terminal.read(0.02)
        assert terminal.process_state() == "T"
        while "T" not in [process_state(kid) for kid in kids] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert "T" in [process_state(kid) for kid in kids]
        terminal.process.send_signal(signal.SIGCONT)
        while "T" in [process_state(kid) for kid in kids] and time.monotonic() < deadline:
            terminal.read(0.02)
        assert "T" not in [process_state(kid) for kid in kids]
        terminal.wait_for("running")
        terminal.press("ctrl+c")
        check_end(terminal, kids, database, 130)


@pytest.mark.parametrize("changes", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_dumb_terminal_is_refused_with_one_line(tmp_path: Path, changes: Mapping[str, str]) -> None:
    with TerminalDriver(["-m", "salt_tui", "--db", str(tmp_path / "salt.db")], environment(**changes)) as terminal:
        assert terminal.wait_for_end(20) == 2
        words = "".join(terminal.text.split())
    assert "`salt-tuirun`workswithoutone" in words
    assert "\x1b" not in terminal.written


def test_without_a_terminal_it_is_refused_with_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "salt_tui", "--db", str(tmp_path / "salt.db")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "salt.db").exists()


@pytest.mark.parametrize(
    ("variables", "mode"),
    [
        ({"TERM": "xterm-256color"}, DrawingMode.COLOUR),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, DrawingMode.COLOUR),
        ({"TERM": "xterm"}, DrawingMode.ANSI),
        ({"TERM": "linux"}, DrawingMode.ANSI),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, DrawingMode.PLAIN),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, DrawingMode.COLOUR),
    ],
)
def test_the_drawing_mode_follows_the_terminal(variables: dict[str, str], mode: DrawingMode) -> None:
    assert drawing_mode(variables) is mode


def test_only_a_terminal_that_can_move_its_cursor_is_fit() -> None:
    assert refusal({"TERM": "xterm"}, terminal=True) is None
    assert "TERM is dumb" in (refusal({"TERM": "dumb"}, terminal=True) or "")
    assert "TERM is not set" in (refusal({}, terminal=True) or "")
    assert "this is no terminal" in (refusal({"TERM": "xterm"}, terminal=False) or "")


@pytest.mark.parametrize(("variables", "colours"), [({"NO_COLOR": "1"}, 0), ({"TERM": "xterm", "COLORTERM": ""}, 16)])
def test_no_more_colours_are_sent_than_the_terminal_has(stored: Path, variables: dict[str, str], colours: int) -> None:
    with TerminalDriver(["-m", "salt_tui", "--db", str(stored)], environment(**variables)) as terminal:
        terminal.wait_for("arc_grid", 30)
        terminal.press("3")
        terminal.wait_for("finished")
        terminal.press("enter")
        terminal.wait_for("end follows", 10)
        terminal.press("home", "w", "c")
        terminal.wait_for("of the surest errors")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    assert "38;2;" not in terminal.written
    assert "48;2;" not in terminal.written
    assert "38;5;" not in terminal.written
    used = terminal.colours()
    assert bool(used) == bool(colours), used
