"""Every column of every table replaced by what no program of ours writes: an answer, or one line."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from salt_tui.cli import run_command_line
from salt_tui.store.schema import TABLES
from tests.cli.every_command import MAKE_A_FILE, READING, WRITING, command_lines, commands_with_a_database
from tests.conftest import ScriptedModel
from tests.examples import examples

pytestmark = pytest.mark.process

HOSTILE = {
    "TEXT": (
        "'\x1b[2J\x1b]0;x\x07'",
        "CAST(x'ff00fe' AS TEXT)",
        "''",
        "'{}'",
        "'[]'",
        "'[[1, 2], null, {\"a\": NaN}]'",
        "'[1e999]'",
        "'" + "[" * 3000 + "'",
        "'" + "9" * 5000 + "'",
        "'../../../x\n\u202e'",
        "'2026-13-45T99:00:00'",
    ),
    "INTEGER": ("-1", "0", "7", "9223372036854775807", "-9223372036854775808"),
    "REAL": ("9e999", "-9e999", "-1.5", "1e308", "1e-320"),
    "BLOB": ("x''", "x'ff'", "zeroblob(100000)"),
}
COMMANDS = (*command_lines(READING), *command_lines(WRITING))


def columns() -> list[tuple[str, str, str]]:
    """Return table, column and type of every column."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = [
        (table, row[1], row[2])
        for table in names
        if not table.startswith("sqlite_")
        for row in connection.execute(f"PRAGMA table_info({table})")
    ]
    connection.close()
    return found


CASES = [(table, column, value) for table, column, kind in columns() for value in HOSTILE[kind]]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a place for two runs and a study; filled by the first test that needs it."""
    return tmp_path_factory.mktemp("stored") / "x.db"


@pytest.fixture
def original(stored: Path, scripted_model: ScriptedModel) -> Path:
    """Return a file with two runs, a study and every kind of row."""
    if stored.exists():
        return stored
    model = scripted_model("dna_translation", limit=2)
    kept = stored.with_name(model.name)
    shutil.copy(model, kept)
    asked = ["--tasks", "dna_translation", "--difficulty", "trivial", "--limit", "2", "--seed", "1"]
    written = ["--db", str(stored), "--display", "none"]
    for _ in range(2):
        assert run_command_line(["run", "-m", str(kept), *asked, *written]) == 0
    assert run_command_line(["study", "samples", "1", "-k", "2", "--temp", "0.7", *written]) == 0
    with sqlite3.connect(stored) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("UPDATE run SET note = 'mine', state = 'interrupted', finished_at = NULL WHERE id = 1")
        connection.execute("DELETE FROM generation WHERE id = 2")
        connection.execute("UPDATE run SET lease_pid = 1, lease_host = 'h', lease_heartbeat = '2020-01-01T00:00:00'")
        connection.execute(
            'INSERT INTO activation (study, generation, kind, "index", layer, positions, scale, vector)'
            " VALUES (1, 1, 'atom', 0, 0, 'own', 1, x'0000')"
        )
    connection.close()
    return stored


def check_case(original: Path, folder: Path, case: tuple[str, str, str], command: list[str], capsys) -> None:
    """Replace a column and run a command."""
    table, column, value = case
    database = folder / "y.db"
    for name in (database, folder / "y.db-wal", folder / "y.db-shm"):
        name.unlink(missing_ok=True)
    shutil.copy(original, database)
    connection = sqlite3.connect(database)
    try:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f'UPDATE {table} SET "{column}" = {value}')
        connection.commit()
    except sqlite3.IntegrityError:
        connection.execute(
            f'UPDATE OR IGNORE {table} SET "{column}" = {value} WHERE rowid = 1'
            if table not in ("vocabulary", "token", "unit")
            else f'UPDATE OR IGNORE {table} SET "{column}" = {value}'
        )
        connection.commit()
    finally:
        connection.close()
    (folder / "scores.csv").write_text("generation,index,score\n1,0,0.5\n")
    model = original.parent / "model.scripted.json"
    words = [word.format(folder=folder, answer="dna_translation:1", model=model) for word in command]
    words = words if words[:2] == ["db", "check"] else [*words, "--db", str(database)]
    capsys.readouterr()
    code = run_command_line(words)
    captured = capsys.readouterr()
    said = f"{table}.{column} = {value[:60]!r}: {' '.join(words)}: {code}: {captured.err[-1500:]}"
    assert "internal error" not in captured.err, said
    assert "Traceback" not in captured.err, said
    assert "\x1b" not in captured.err + captured.out, said
    if "json" in words or "--json" in words:
        assert "NaN" not in captured.out, said
    if code:
        assert code in (1, 2), said


def test_every_command_is_tried():
    assert {*READING, *WRITING, *MAKE_A_FILE} == set(commands_with_a_database())


CHECK = ["db", "check", "{folder}/y.db"]


@given(st.sampled_from(CASES), st.sampled_from([*COMMANDS, CHECK]))
@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
    phases=[Phase.generate],
)
def test_any_column_may_hold_anything(original, tmp_path, capsys, case, command):
    check_case(original, tmp_path, case, command, capsys)


INSIDE = (
    ("run", "plan", "$.tasks[0].difficulty", '"x"', ["resume", "1", "--display", "none"]),
    ("run", "plan", "$.tasks[0].max_tokens", "{}", ["study", "samples", "2", "--display", "none"]),
    ("run", "environment", "$.batch", '"9"', ["resume", "1", "--display", "none"]),
    ("run", "plan", "$.tasks[0]", "[]", ["report", "1", "--draws", "0", "--format", "json"]),
    ("run", "plan", "$.tasks", '"\\u001b"', ["runs", "--json"]),
    ("run", "plan", "$.tasks", "true", ["report", "1", "--draws", "0"]),
    ("study", "plan", "$.jobs", "null", ["report", "1.1"]),
)


@pytest.mark.parametrize(("table", "column", "path", "value", "command"), INSIDE)
def test_values_inside_plans_and_environments(table, column, path, value, command, original, tmp_path, capsys):
    case = table, column, f"json_set({column}, '{path}', json('{value}'))"
    check_case(original, tmp_path, case, command, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("table", sorted({case[0] for case in CASES}))
def test_every_column_with_every_command(table, original, tmp_path, capsys):
    for case in CASES:
        if case[0] == table:
            for command in [*COMMANDS, CHECK]:
                check_case(original, tmp_path, case, command, capsys)
