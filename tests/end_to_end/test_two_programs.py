"""Two programs on one file, real processes: nothing is lost, and each is told what the other does."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.end_to_end.stored_state import rows, stored_state, until
from tests.end_to_end.studied_run import ASKED, write_models
from tools.terminal_driver import TerminalDriver
from tools.whole_evaluation import terminal_environment

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PROGRAM = [sys.executable, "-m", "salt_tui"]
QUIET = ["--display", "none"]
TOKENS = "SELECT count(*) FROM token"
WITHIN = 60.0


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Return a model that takes some seconds for six answers."""
    return write_models(tmp_path, seconds_per_step=0.03)[0]


def begin(model: Path, database: Path) -> subprocess.Popen[str]:
    words = [*PROGRAM, "run", "-m", str(model), *ASKED, *QUIET, "--db", str(database)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(database, f"SELECT count(*) FROM run WHERE state = 'running' AND ({TOKENS}) > 0")
    return process


@contextlib.contextmanager
def held(process: int) -> Iterator[None]:
    """Stop the engine of a program, so that its run goes on only after the block, however busy the machine is."""
    engines = [
        int(word)
        for task in Path(f"/proc/{process}/task").iterdir()
        for word in (task / "children").read_text(encoding="ascii").split()
    ]
    assert engines, "the run was over before it was disturbed"
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for engine in engines:
            os.kill(engine, number)
        if number == signal.SIGSTOP:
            try:
                yield
            except BaseException:
                for engine in engines:
                    os.kill(engine, signal.SIGCONT)
                raise


def call(database: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words, "--db", str(database)], capture_output=True, text=True, check=False)


def test_while_one_computes_another_reads_and_is_refused_what_would_lose_something(slow: Path, tmp_path: Path) -> None:
    alone, database = tmp_path / "alone.db", tmp_path / "x.db"
    assert run_command_line(["run", "-m", str(slow), *ASKED, *QUIET, "--db", str(alone)]) == 0
    before = stored_state(alone)
    process = begin(slow, database)
    try:
        with held(process.pid):
            for refused in (["db", "delete", "1", "--yes"], ["db", "rescore", "1"], ["resume", "1", *QUIET]):
                done = call(database, *refused)
                assert done.returncode == 2, (refused, done.stderr)
                assert "is being computed" in done.stderr
                assert done.stderr.count("\n") == 1
            listed = call(database, "runs")
            assert "running" in listed.stdout
            half = tmp_path / "half.db"
            assert call(database, "export", "1", "-o", str(half)).returncode == 0
            assert call(half, "resume", "1", *QUIET).returncode == 0, "what was exported meanwhile is a run of its own"
            assert call(database, "report", "1", "--draws", "0").returncode in (0, 2)
            assert run_command_line(["db", "check", str(database)]) == 0
        _, said = process.communicate(timeout=WITHIN)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said) == (0, "")
    assert stored_state(database) == before
    assert stored_state(half) == before


@pytest.mark.soak
def test_two_compute_into_one_file_at_once(slow: Path, tmp_path: Path) -> None:
    alone, database = tmp_path / "alone.db", tmp_path / "x.db"
    assert run_command_line(["run", "-m", str(slow), *ASKED, *QUIET, "--db", str(alone)]) == 0
    one = begin(slow, database)
    try:
        two = call(database, "run", "-m", str(slow), *ASKED, *QUIET)
        assert two.returncode == 0, two.stderr
        _, said = one.communicate(timeout=WITHIN)
    finally:
        one.kill()
        one.wait()
    assert (one.returncode, said) == (0, "")
    found = stored_state(database)
    own = [[row for row in found if row[1] == run and row[0] != "run"] for run in (1, 2)]
    wanted = [row for row in stored_state(alone) if row[0] != "run"]
    assert own[0] == wanted
    assert [(row[0], *row[2:]) for row in own[1]] == [(row[0], *row[2:]) for row in wanted]
    assert run_command_line(["db", "check", str(database)]) == 0


@pytest.mark.soak
def test_of_two_that_resume_the_same_run_at_once_one_computes_it(slow: Path, tmp_path: Path) -> None:
    alone, database = tmp_path / "alone.db", tmp_path / "x.db"
    assert run_command_line(["run", "-m", str(slow), *ASKED, *QUIET, "--db", str(alone)]) == 0
    process = begin(slow, database)
    process.kill()
    process.communicate()
    words = [*PROGRAM, "resume", "1", *QUIET, "--db", str(database)]
    both = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(one.communicate(timeout=WITHIN)[1], one.returncode) for one in both]
    assert sorted(code for _, code in ends) in ([0, 2], [0, 0]), ends
    for said, code in ends:
        assert code == 0 or "is being computed" in said, ends
    assert stored_state(database) == stored_state(alone)
    assert run_command_line(["db", "check", str(database)]) == 0


def test_the_app_and_the_command_line_on_one_file(slow: Path, tmp_path: Path) -> None:
    alone, database = tmp_path / "alone.db", tmp_path / "x.db"
    asked = ["run", "-m", str(slow), *ASKED]
    assert run_command_line([*asked, *QUIET, "--db", str(alone)]) == 0
    environment = terminal_environment(tmp_path / "home")
    words = ["-m", "salt_tui", *asked, "--db", str(database), "--display", "app"]
    with TerminalDriver(words, environment) as app:
        until(database, TOKENS)
        with held(app.process.pid):
            for refused in (["db", "delete", "1", "--yes"], ["resume", "1", *QUIET]):
                done = call(database, *refused)
                assert done.returncode == 2
                assert "is being computed" in done.stderr
            # Another app on the same file shows the run and does not take it.
            with TerminalDriver(["-m", "salt_tui", "--db", str(database)], environment) as other:
                other.wait_for("1 run in", WITHIN)
                other.press("3")
                other.wait_for("running", WITHIN)
                other.press("d")
                other.wait_for("being computed", WITHIN)
                other.press("escape")
                other.press("q")
                assert other.wait_for_end(WITHIN) == 0
        second = call(database, *asked, *QUIET)
        assert second.returncode == 0, second.stderr
        end = time.monotonic() + WITHIN
        while rows(database, "SELECT count(*) FROM run WHERE state = 'finished'") != [(2,)]:
            assert time.monotonic() < end
            app.skip(0.1)
        assert call(database, "db", "delete", "2", "--yes").returncode == 0
        app.press("q")
        assert app.wait_for_end(WITHIN) == 0
    assert stored_state(database) == stored_state(alone)
    assert run_command_line(["db", "check", str(database)]) == 0


@pytest.mark.soak
def test_a_run_that_is_looked_at_is_deleted_by_another(slow: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    fast = write_models(tmp_path)[0]
    assert run_command_line(["run", "-m", str(fast), *ASKED, *QUIET, "--db", str(database)]) == 0
    kept = tmp_path / "kept.db"
    shutil.copy(database, kept)
    with TerminalDriver(["-m", "salt_tui", "--db", str(database)], terminal_environment(tmp_path / "home")) as app:
        app.wait_for("1 run in", WITHIN)
        app.press("3")
        app.wait_for("finished", WITHIN)
        assert call(database, "db", "delete", "1", "--yes").returncode == 0
        app.press("enter")
        app.settle(1.0, 5.0)
        assert "Traceback" not in app.text
        app.press("e")
        app.settle(0.5, 3.0)
        app.press("escape", "q")
        assert app.wait_for_end(WITHIN) == 0
    assert stored_state(database) == []
    assert run_command_line(["db", "check", str(database)]) == 0
