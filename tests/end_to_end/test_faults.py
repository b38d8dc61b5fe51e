"""Faults of whole programs: two hosts, two containers; `db check` says what was lost."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.conftest import ScriptedModel
from tests.end_to_end.stored_state import rows, until

pytestmark = pytest.mark.process

PROGRAM = [sys.executable, "-m", "salt_tui"]
ELSEWHERE = {
    "host": ["unshare", "--uts", "sh", "-c", 'hostname elsewhere; exec "$@"', "-"],
    "container": ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"],
}
ASKED = ["--tasks", "dna_translation", "--difficulty", "easy", "--limit", "6", "--seed", "1"]


def by_problem(database: Path) -> list[tuple[object, ...]]:
    """Return all units of answers, free of row numbers, which depend on what was begun twice."""
    return rows(
        database,
        'SELECT task, position, unit.kind, "index", unit.text, status, max_probability FROM problem'
        " JOIN generation ON generation.problem = problem.id AND study IS NULL"
        " JOIN unit ON unit.generation = generation.id ORDER BY 1, 2, 3, 4",
    )


def checked(database: Path) -> None:
    assert run_command_line(["db", "check", str(database)]) == 0


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.soak)])
def test_a_holder_elsewhere_that_was_stopped_writes_nothing_more(
    where: str, times: int, scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("unshare") is None or subprocess.run([*ELSEWHERE[where], "true"], check=False).returncode:
        pytest.skip("namespaces cannot be made here")
    whole = tmp_path / "whole.db"
    fast = scripted_model("dna_translation", difficulty="easy", limit=6)
    assert run_command_line(["run", "-m", str(fast), *ASKED, "--db", str(whole), "--display", "none"]) == 0
    slow = scripted_model("dna_translation", difficulty="easy", limit=6, seconds_per_step=0.05)
    for number in range(times):
        database = tmp_path / f"{number}.db"
        words = ["run", "-m", str(slow), *ASKED, "--db", str(database), "--display", "none"]
        holder = subprocess.Popen([*ELSEWHERE[where], *PROGRAM, *words], stderr=subprocess.PIPE, text=True)
        try:
            until(database, "SELECT count(*) FROM token")
            resumed = ["resume", "1", "--db", str(database), "--display", "none"]
            assert run_command_line(resumed) == 2
            assert "is being computed" in capsys.readouterr().err
            program = _program(holder.pid)
            _stop_between_writes(program, database)
            assert run_command_line(resumed) == 0
            done = by_problem(database)
            signal_to(program, signal.SIGCONT)
            _, said = holder.communicate(timeout=60)
        finally:
            holder.kill()
            holder.wait()
        assert holder.returncode == 1
        assert "was taken over by" in said
        assert by_problem(database) == done == by_problem(whole)
        assert rows(database, "SELECT state FROM run") == [("finished",)]
        checked(database)


def _stop_between_writes(program: int, database: Path) -> None:
    """Stop a program and let its lease look old; one that is stopped inside a transaction would lock the file."""
    end = time.monotonic() + 30
    while True:
        signal_to(program, signal.SIGSTOP)
        connection = sqlite3.connect(database, timeout=0.2)
        try:
            with connection:
                connection.execute("UPDATE run SET lease_heartbeat = '2020-01-01T00:00:00.000+00:00'")
            return
        except sqlite3.OperationalError:
            assert time.monotonic() < end, "it was never stopped between two writes"
            signal_to(program, signal.SIGCONT)
            time.sleep(0.01)
        finally:
            connection.close()


def _program(process: int) -> int:
    """Return the process of the program: the one started, or the first inside its namespace."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    name = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
    return int(children[0]) if name.endswith(b"unshare") else process


def signal_to(process: int, number: signal.Signals) -> None:
    subprocess.run(["kill", f"-{int(number)}", str(process)], check=True)
