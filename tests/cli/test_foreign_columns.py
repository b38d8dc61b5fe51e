"""Databases travel: whatever another program wrote into a column ends in one line that names the file."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.conftest import ScriptedModel

ESCAPE = "\x1b[2J"
NO_JSON = ("{", "{}")
COLUMNS = {
    "run.plan": (*NO_JSON, '{"tasks": []}', "[" * 5000, '{"tasks": [1]}', '{"seed": "x"}', '{"sampling": 3}'),
    "run.environment": ("{}", '{"threads": "x", "devices": 3, "gpu_layers": 1}'),
    "run.warnings": ("[1]",),
    "run.model_entry": ("[1]",),
    "run.template": ("{% for %}",),
    "run.created_at": (f"yesterday{ESCAPE}",),
    "run.lease_heartbeat": ("yesterday", "2020-01-01T00:00:00"),
    "run.message": (f"why{ESCAPE}",),
    "run.model_name": (f"name{ESCAPE}",),
    "problem.task": (f"task{ESCAPE}",),
    "problem.seed": ("x", "1" * 5000),
    "problem.choices": ("{",),
    "problem.slices": ("[1]",),
    "problem.messages": ("[1]",),
    "problem.difficulty": (f"easy{ESCAPE}",),
    "generation.prompt_tokens": ('["a"]',),
    "token.alternatives": ("{", '[["a", "b"]]'),
    "unit.text": (f"atom{ESCAPE}",),
}
COMMANDS = (
    ["report", "1", "--draws", "0"],
    ["resume", "1", "--display", "none"],
    ["export", "1", "-o", "{folder}/out.jsonl", "--force"],
    ["export", "1", "-o", "{folder}/out.db", "--force"],
)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a place for a run with open answers, whose holder is gone; filled by the first test that needs it."""
    return tmp_path_factory.mktemp("stored") / "x.db"


def store_interrupted(database: Path, scripted_model: ScriptedModel) -> None:
    model = scripted_model("dna_translation", seconds_per_step=0.0)
    kept = database.with_name(model.name)
    shutil.copytree(model.parent, database.parent, dirs_exist_ok=True)
    asked = [
        "--tasks",
        "dna_translation",
        "--difficulty",
        "trivial",
        "--limit",
        "2",
        "--seed",
        "1",
        "--db",
        str(database),
    ]
    assert run_command_line(["run", "-m", str(kept), *asked, "--db", str(database), "--display", "none"]) == 0
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM generation WHERE id = 2")
        connection.execute(
            "UPDATE run SET state = 'running', finished_at = NULL, lease_pid = 1, lease_host = 'elsewhere',"
            " lease_heartbeat = '2020-01-01T00:00:00.000+00:00'"
        )
    connection.close()


@pytest.mark.process
@pytest.mark.parametrize("column", COLUMNS)
def test_a_foreign_value_is_one_line_that_names_the_file(
    column: str, interrupted: Path, scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not interrupted.exists():
        store_interrupted(interrupted, scripted_model)
    table, name = column.split(".")
    database = tmp_path / "y.db"
    for value in COLUMNS[column]:
        for command in COMMANDS:
            shutil.copy(interrupted, database)
            with sqlite3.connect(database) as connection:
                connection.execute("PRAGMA ignore_check_constraints = ON")
                connection.execute(f"UPDATE {table} SET {name} = ?", (value,))
            connection.close()
            capsys.readouterr()
            words = [word.format(folder=tmp_path) for word in command]
            code = run_command_line([*words, "--db", str(database)])
            captured = capsys.readouterr()
            case = f"{column} = {value[:60]!r}: {' '.join(words)}: {captured.err}"
            assert "internal error" not in captured.err, case
            assert "Traceback" not in captured.err, case
            assert "\x1b" not in captured.err + captured.out, case
            if code:
                assert code in (1, 2), case
                assert captured.err.count("\n") == 1 or command[0] == "resume", case
                assert (
                    column.startswith(("run.template", "problem.task", "problem.difficulty"))
                    or str(database) in captured.err
                ), case


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [
        ["report", "1", "--draws", "0"],
        ["policy", "1", "--rewards", "1,-1,0,0"],
        ["policy", "1", "--risk", ".5", "--calibrator", "beta"],
    ],
)
def test_a_probability_that_is_none_is_one_line(command, interrupted, scripted_model, tmp_path, capsys):
    if not interrupted.exists():
        store_interrupted(interrupted, scripted_model)
    database = tmp_path / "x.db"
    with sqlite3.connect(interrupted) as source, sqlite3.connect(database) as copy:
        source.backup(copy)
        copy.execute("PRAGMA ignore_check_constraints = ON")
        copy.execute("UPDATE unit SET max_probability = 7 WHERE kind = 'atom' AND text IS NOT NULL")
    source.close()
    copy.close()
    capsys.readouterr()
    assert run_command_line([*command, "--db", str(database)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "max_probability of atom 1 of an answer of dna_translation is 7" in captured.err
