"""`db check --recompute`: stored answers come out again, and what was changed does not."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of salt-nano at a temperature, with a study that hangs on its answers."""
    path = tmp_path_factory.mktemp("computed") / "x.db"
    more = ("--difficulty", "easy", "--limit", "3", "--temp", "0.8", "--db", str(path), "--display", "none")
    assert run_command_line(["run", "-m", "nano", "--tasks", "dna_translation,maze", *more]) == 0
    return path


@pytest.fixture
def database(computed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(computed, tmp_path / "x.db"))


def check(capsys: pytest.CaptureFixture[str], path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run_command_line(["db", "check", str(path), "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_answers_come_out_again_bit_for_bit(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = database.read_bytes()
    code, data = check(capsys, database, "--recompute", "4")
    assert (code, data["recomputed"], data["differences"], data["failed"]) == (0, 4, [], [])
    assert database.read_bytes() == before
    code, data = check(capsys, database, "--recompute", "100", "-m", "nano")
    assert (code, data["recomputed"]) == (0, 6)


def test_a_number_that_no_other_row_contradicts_is_found(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The first token is the fence: no unit's confidence rests on it.
    change(database, "UPDATE token SET log_probability = log_probability - 0.001, entropy = entropy WHERE position = 0")
    assert check(capsys, database)[0] == 0
    code, data = check(capsys, database, "--recompute", "2")
    assert code == 1
    assert [row["what"] for row in data["differences"]] == ["computed again, log-probability of 1 tokens, the most"] * 2
    assert data["differences"][0]["stored"] == pytest.approx(data["differences"][0]["found"] - 0.001)


def test_another_model_is_refused_and_counted(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data = check(capsys, database, "--recompute", "2", "-m", "smollm2")
    assert (code, data["recomputed"]) == (1, 0)
    assert "needs another model than" in data["failed"][0]


def test_a_model_is_for_computing_again(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["db", "check", str(database), "-m", "nano"]) == 2
    assert "it is for --recompute N" in capsys.readouterr().err


def test_answers_from_elsewhere_are_named_and_left_out(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    more = ("--limit", "2", "--difficulty", "easy", "-o", str(prompts))
    assert run_command_line(["tasks", "export", "dna_translation", *more]) == 0
    rows = [json.loads(line) for line in prompts.read_text("utf-8").splitlines()]
    answered = "".join(json.dumps({**row, "response": "GAC"}) + "\n" for row in rows)
    (tmp_path / "answers.jsonl").write_text(answered, "utf-8")
    assert run_command_line(["import", str(tmp_path / "answers.jsonl"), "--db", str(database)]) == 0
    code, data = check(capsys, database, "--recompute", "1")
    assert (code, data["recomputed"], data["failed"]) == (0, 1, [])
    assert run_command_line(["import", str(tmp_path / "answers.jsonl"), "--db", str(tmp_path / "y.db")]) == 0
    code, data = check(capsys, tmp_path / "y.db", "--recompute", "1")
    assert (code, data["recomputed"]) == (1, 0)
    assert "its answers come from elsewhere" in data["failed"][0]
