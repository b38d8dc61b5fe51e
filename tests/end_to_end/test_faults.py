"""Faults of whole programs: two hosts, two containers, kills at any moment; `db check` says what was lost."""

from __future__ import annotations

import contextlib
import random
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

pytestmark = pytest.mark.process

PROGRAM = [sys.executable, "-m", "salt_tui"]
ELSEWHERE = {
    "host": ["unshare", "--uts", "sh", "-c", 'hostname elsewhere; exec "$@"', "-"],
    "container": ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"],
}
ASKED = ["--tasks", "dna_translation", "--difficulty", "easy", "--limit", "6", "--seed", "1"]


def rows(database: Path, question: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database, timeout=30)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def by_problem(database: Path) -> list[tuple[object, ...]]:
    """Return all units of answers, free of row numbers, which depend on what was begun twice."""
    return rows(
        database,
        'SELECT task, position, unit.kind, "index", unit.text, status, max_probability FROM problem'
        " JOIN generation ON generation.problem = problem.id AND study IS NULL"
        " JOIN unit ON unit.generation = generation.id ORDER BY 1, 2, 3, 4",
    )


def until(database: Path, question: str, seconds: float = 60.0) -> None:
    """Wait until a question has an answer other than 0."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # The file or its tables may not be there yet.
        with contextlib.suppress(sqlite3.Error):
            if rows(database, question)[0][0]:
                return
        time.sleep(0.02)
    raise AssertionError(f"{question} stayed 0")


def checked(database: Path) -> None:
    assert run_command_line(["db", "check", str(database)]) == 0


@pytest.fixture
def slow(scripted_model: ScriptedModel) -> Path:
    """Return a model that takes about a second for six answers."""
    return scripted_model("dna_translation", difficulty="easy", limit=6, seconds_per_step=0.01)


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.soak)])
def test_a_holder_elsewhere_that_was_stopped_writes_nothing_more(
    where: str, times: int, scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("unshare") is None or subprocess.run([*ELSEWHERE[where], "true"], check=False).returncode:
        pytest.skip("namespaces cannot be made here")
    slow = scripted_model("dna_translation", difficulty="easy", limit=6, seconds_per_step=0.05)
    whole = tmp_path / "whole.db"
    assert run_command_line(["run", "-m", str(slow), *ASKED, "--db", str(whole), "--display", "none"]) == 0
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
            signal_to(program, signal.SIGSTOP)
            with sqlite3.connect(database, timeout=30) as connection:
                connection.execute("UPDATE run SET lease_heartbeat = '2020-01-01T00:00:00.000+00:00'")
            connection.close()
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


def _program(process: int) -> int:
    """Return the process of the program: the one started, or the first inside its namespace."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    name = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
    return int(children[0]) if name.endswith(b"unshare") else process


def signal_to(process: int, number: signal.Signals) -> None:
    subprocess.run(["kill", f"-{int(number)}", str(process)], check=True)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("what", ["run and resume", "study", "export"])
def test_killed_at_any_moment_nothing_is_lost(what: str, kills: int, slow: Path, tmp_path: Path) -> None:
    moments = random.Random(3)
    whole, database = tmp_path / "whole.db", tmp_path / "x.db"
    for path in (whole, database) if what == "study" else (whole,):
        assert run_command_line(["run", "-m", str(slow), *ASKED, "--db", str(path), "--display", "none"]) == 0
    written = ["--display", "none"]
    study = ["study", "samples", "1", "-k", "2", "--temp", "0.7", *written]
    if what == "study":
        assert run_command_line([*study, "--db", str(whole)]) == 0
        first = [*study, "--db", str(database)]
        again = ["resume", "1.1", *written, "--db", str(database)]
        begun = "SELECT count(*) FROM study"
    elif what == "run and resume":
        first = ["run", "-m", str(slow), *ASKED, *written, "--db", str(database)]
        again = ["resume", "1", *written, "--db", str(database)]
        begun = "SELECT count(*) FROM run"
    else:
        first = again = ["export", "1", "-o", str(tmp_path / "out.db"), "--force", "--db", str(whole)]
    for number in range(kills):
        process = subprocess.Popen([*PROGRAM, *(again if number else first)], stderr=subprocess.DEVNULL)
        if what == "export":
            time.sleep(moments.uniform(0.3, 1.5))
        elif number == 0:
            until(database, begun)
            time.sleep(moments.uniform(0.0, 0.5))
        else:
            time.sleep(moments.uniform(0.5, 2.0))
        process.kill()
        process.wait()
        checked(whole if what == "export" else database)
        target = tmp_path / "out.db"
        if what == "export" and target.exists():
            checked(target)
    assert run_command_line(again) == 0
    if what == "export":
        checked(tmp_path / "out.db")
        assert by_problem(tmp_path / "out.db") == by_problem(whole)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        return
    checked(database)
    assert by_problem(database) == by_problem(whole)
    signals = 'SELECT name, kind, "index", value FROM signal JOIN generation ON generation.id = signal.generation'
    assert sorted(rows(database, signals), key=repr) == sorted(rows(whole, signals), key=repr)
    assert rows(database, "SELECT count(*), count(DISTINCT problem) FROM generation WHERE study IS NULL") == [(6, 6)]
