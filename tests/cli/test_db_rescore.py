"""`db rescore`: stored replies are scored again, whole answers at a time, whenever the program is killed."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.conftest import ScriptedModel

pytestmark = pytest.mark.process


@pytest.fixture
def database(scripted_model: ScriptedModel, tmp_path: Path) -> Path:
    """Return a file with a run of 40 answers."""
    path = tmp_path / "x.db"
    model = scripted_model("dna_translation", limit=40)
    asked = ["--tasks", "dna_translation", "--difficulty", "trivial", "--limit", "40", "--seed", "1"]
    assert run_command_line(["run", "-m", str(model), *asked, "--db", str(path), "--display", "none"]) == 0
    return path


def rows(database: Path, question: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def edit(database: Path, statement: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(statement)
    connection.close()


UNITS = 'SELECT * FROM unit ORDER BY generation, kind, "index"'


def rescore(database: Path, capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert run_command_line(["db", "rescore", "1", "--db", str(database), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_what_an_older_scorer_stored_becomes_what_this_one_finds(database, capsys):
    before = rows(database, UNITS)
    assert rescore(database, capsys) == {"differences": [], "failed": [], "answers": 40, "changed": 0}
    edit(
        database, "UPDATE unit SET status = 'wrong', max_probability = 0.5 WHERE status = 'correct' AND generation < 20"
    )
    edit(database, "DELETE FROM unit WHERE generation = 30 AND kind = 'atom' AND \"index\" = 0")
    touched = {row[0] for row in before if row[6] == "correct" and row[0] < 20} | {30}
    found = rescore(database, capsys)
    assert found["changed"] == len(touched)
    assert rows(database, UNITS) == before
    assert {row[0] for row in rows(database, "SELECT id FROM generation WHERE revision = 1")} == touched
    assert run_command_line(["db", "check", str(database)]) == 0


def test_signals_about_a_unit_that_is_another_now_say_so(database, capsys):
    edit(database, "UPDATE unit SET token_end = token_end - 1 WHERE generation = 1 AND kind = 'line' AND token_end > 1")
    edit(
        database,
        "INSERT INTO signal (run, generation, kind, \"index\", name, value) VALUES (1, 1, 'line', 0, 'mine', 1),"
        " (1, 1, 'atom', 0, 'mine', 1), (1, 2, 'line', 0, 'mine', 1)",
    )
    rescore(database, capsys)
    values = rows(database, "SELECT generation, kind, value, reason IS NOT NULL FROM signal ORDER BY generation, kind")
    assert values == [(1, "atom", 1.0, 0), (1, "line", None, 1), (2, "line", 1.0, 0)]


def test_a_run_that_is_being_computed_is_refused(database, capsys):
    edit(database, "UPDATE unit SET status = 'wrong' WHERE status = 'correct'")
    before = rows(database, UNITS)
    with open_store(database) as store:
        store.claim(Work(1))
        assert run_command_line(["db", "rescore", "1", "--db", str(database)]) == 2
    assert "is being computed" in capsys.readouterr().err
    assert rows(database, UNITS) == before


def test_an_answer_that_cannot_be_scored_stays_as_it_is(database, capsys):
    edit(database, "UPDATE problem SET task = 'no_such\x1b' WHERE id = 3")
    assert run_command_line(["db", "rescore", "1", "--db", str(database)]) == 1
    captured = capsys.readouterr()
    assert "39 answers" not in captured.out
    assert "1 left as they were" in captured.out
    assert "\x1b" not in captured.out


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_at_any_moment_every_answer_is_whole_before_or_after(kills, database, tmp_path):
    before = rows(database, UNITS)
    edit(database, "UPDATE unit SET status = 'wrong' WHERE status = 'correct'")
    old = rows(database, UNITS)
    moments = random.Random(5)
    command = [sys.executable, "-m", "salt_tui", "db", "rescore", "1", "--db", str(database)]
    subprocess.run(command, check=True, capture_output=True)
    assert rows(database, UNITS) == before
    partly = 0
    for _ in range(kills):
        edit(database, "UPDATE unit SET status = 'wrong' WHERE status = 'correct'")
        (revised,) = rows(database, "SELECT sum(revision) FROM generation")[0]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = revised + moments.randrange(len({row[0] for row in old}))
        while process.poll() is None and rows(database, "SELECT sum(revision) FROM generation")[0][0] < wanted:
            time.sleep(0.001)
        process.kill()
        process.wait()
        found = rows(database, UNITS)
        for generation in {row[0] for row in found}:
            mine = [row for row in found if row[0] == generation]
            assert mine in (
                [row for row in before if row[0] == generation],
                [row for row in old if row[0] == generation],
            )
        partly += found not in (before, old)
        assert rows(database, "PRAGMA integrity_check") == [("ok",)]
    subprocess.run(command, check=True, capture_output=True)
    assert rows(database, UNITS) == before
    if kills > 20:
        assert partly


def test_a_run_or_a_file_that_is_not_there_leaves_nothing_behind(database, tmp_path, capsys):
    absent = tmp_path / "folder" / "x.db"
    for words in (["99", "--json", "--db", str(database)], ["1", "--json", "--db", str(absent)]):
        assert run_command_line(["db", "rescore", *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
    assert not absent.parent.exists()
