"""`db check`: a file is compared with itself, and whatever was edited is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.conftest import ScriptedModel

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checked") / "x.db"


@pytest.fixture
def database(stored: Path, scripted_model: ScriptedModel, tmp_path: Path) -> Path:
    """Return a copy of a file with four answers."""
    copy = tmp_path / "y.db"
    if not stored.exists():
        model = scripted_model("dna_translation", "words_collection", limit=2)
        tasks = ["--tasks", "dna_translation,words_collection", "--difficulty", "trivial", "--limit", "2"]
        words = ["run", "-m", str(model), *tasks, "--seed", "1", "--db", str(stored), "--display", "none"]
        assert run_command_line(words) == 0
    shutil.copy(stored, copy)
    return copy


def edit(database: Path, *statements: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def check(database: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    capsys.readouterr()
    code = run_command_line(["db", "check", str(database), "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, json.loads(captured.out)


def test_what_the_program_wrote_fits_together(database, capsys):
    code, found = check(database, capsys)
    assert found["differences"] == []
    assert code == 0
    assert found["answers"] == 4
    assert found["units"] > 12
    assert run_command_line(["db", "check", str(database)]) == 0
    assert "everything fits together" in capsys.readouterr().out


EDITS = {
    "verdict": ("UPDATE unit SET status = 'wrong' WHERE kind = 'atom' AND \"index\" = 0", "status of atom 1"),
    "unit gone": ("DELETE FROM unit WHERE kind = 'atom'", "atom 1"),
    "confidence": ("UPDATE unit SET max_probability = 0.123 WHERE kind = 'line'", "max_probability of line 1"),
    "confidence gone": ("UPDATE unit SET mean_entropy = NULL WHERE kind = 'line'", "mean_entropy of line 1"),
    "log-probability": ("UPDATE token SET log_probability = -9", "logprob_sum of atom 1"),
    "token gone": ("DELETE FROM token WHERE position = 1", "tokens, reply and units"),
    "reply": ("UPDATE generation SET reply = CAST('x' AS BLOB)", "tokens, reply and units"),
    "reference of units": ("UPDATE problem SET reference = 'A'", "reference of generation 1"),
    "status of the answer": ("UPDATE generation SET answer_status = 'unclosed'", "answer_status"),
    "state": ("DELETE FROM generation WHERE id = 1", "problems without an answer in a finished run"),
    "problem of another place": (
        "UPDATE problem SET position = 9 WHERE id = 2",
        "a problem that the plan does not ask",
    ),
    "problem of another task": (
        "UPDATE problem SET task = 'words_collection', position = 5 WHERE id = 2",
        "a problem that the plan does not ask",
    ),
    "another problem": ("UPDATE problem SET content_id = 'x' WHERE id = 2", "content_id of the problem"),
    "text of a problem": ("UPDATE problem SET text = 'ATG' WHERE id = 1", "text of the problem, by its hash"),
    "reference": ("UPDATE problem SET reference = reference || ' TAA' WHERE id = 1", "reference of the problem"),
    "level": ("UPDATE problem SET difficulty = 'paper'", "difficulty of the problem"),
    "method": ("UPDATE problem SET method = 'cot'", "method of the problem"),
    "atoms of a reference": ("UPDATE problem SET reference_atoms = reference_atoms + 1", "reference_atoms"),
    "lines of a reference": ("UPDATE problem SET reference_lines = 7", "reference_lines"),
    "plan": ("UPDATE run SET plan = json_set(plan, '$.width', 7)", "plan_hash"),
    "foreign key": ("UPDATE unit SET generation = 77 WHERE generation = 1 AND kind = 'line'", "foreign_key_check"),
    "type": ("UPDATE run SET exact = 7", "integrity_check"),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON unit BEGIN SELECT 1; END", "schema"),
    "task": ("UPDATE problem SET task = 'no_such' WHERE id = 1", "scoring"),
    "alternatives": ("UPDATE token SET alternatives = '{'", "rows"),
    "hostile": ("UPDATE unit SET text = '\x1b[2J' WHERE kind = 'atom'", "text of atom 1"),
}


@pytest.mark.parametrize("kind", EDITS)
def test_what_was_edited_is_named(kind, database, capsys):
    statement, what = EDITS[kind]
    edit(database, statement)
    code, found = check(database, capsys)
    assert code == 1
    assert what in {difference["what"] for difference in found["differences"]}, found
    assert run_command_line(["db", "check", str(database)]) == 1
    captured = capsys.readouterr()
    assert what in captured.out
    assert "\x1b" not in captured.out + captured.err


def test_a_verdict_is_shown_as_it_is_stored_and_as_it_is_found(database, capsys):
    before = sqlite3.connect(database)
    chosen = "kind = 'atom' AND status = 'correct'"
    generation, right = before.execute(f'SELECT generation, "index" FROM unit WHERE {chosen}').fetchone()
    task, position = before.execute(
        "SELECT task, position FROM generation JOIN problem ON problem.id = problem WHERE generation.id = ?",
        (generation,),
    ).fetchone()
    before.close()
    edit(
        database,
        f"UPDATE unit SET status = 'wrong' WHERE {chosen} AND generation = {generation} AND \"index\" = {right}",
    )
    _, found = check(database, capsys)
    assert found["differences"] == [
        {
            "run": 1,
            "study": None,
            "answer": f"{task}:{position + 1}",
            "what": f"status of atom {right + 1}",
            "stored": "wrong",
            "found": "correct",
        }
    ]


def test_a_problem_that_was_deleted_with_its_answer_is_missed(database, capsys):
    edit(database, "PRAGMA foreign_keys = ON", "DELETE FROM problem WHERE id = 2")
    code, found = check(database, capsys)
    assert code == 1
    (difference,) = found["differences"]
    assert (difference["what"], difference["answer"]) == ("a problem that the plan asks", "dna_translation:2")
    assert difference["stored"] is None


@pytest.mark.parametrize("kind", ["samples", "interventions"])
def test_what_studies_generate_fits_together(kind, scripted_model, tmp_path, capsys):
    database = tmp_path / "z.db"
    asked = ["--tasks", "dna_translation", "--difficulty", "easy", "--limit", "2", "--seed", "1"]
    model = scripted_model("dna_translation", difficulty="easy", limit=2)
    written = ["--db", str(database), "--display", "none"]
    assert run_command_line(["run", "-m", str(model), *asked, *written]) == 0
    options = ["-k", "2", "--temp", "0.7"] if kind == "samples" else ["--targets", "1", "--variants", "2"]
    assert run_command_line(["study", kind, "1", *options, *written]) == 0
    code, found = check(database, capsys)
    assert (code, found["differences"]) == (0, [])
    assert found["answers"] > 4
    edit(database, "UPDATE unit SET status = 'wrong' WHERE status = 'correct' AND generation > 2")
    code, found = check(database, capsys)
    assert code == 1
    assert {difference["study"] for difference in found["differences"]} == {"1.1"}
