"""`run` and `resume` as a user calls them: stdout is data, stderr is talk, exit codes mean something."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.conftest import ScriptedModel

TASKS = "kronecker_product,dna_translation"


def arguments(model: Path, database: Path, *more: str) -> list[str]:
    return [
        "run", "-m", str(model), "--tasks", TASKS, "--difficulty", "trivial", "--limit", "3", "--seed", "1",
        "--db", str(database), *more,
    ]  # fmt: skip


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()


def test_json_is_one_object_and_equal_on_another_file(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted_model(*TASKS.split(","))
    results = []
    for name in ("a.db", "b.db"):
        assert run_command_line(arguments(model, tmp_path / name, "--json")) == 0
        captured = capsys.readouterr()
        results.append(json.loads(captured.out))
        assert captured.out.count("\n") == 1
        assert "run 1" in captured.err
    assert results[0] == results[1]
    assert {"run", "model", "plan", "tasks", "mean"} <= set(results[0])
    task = results[0]["tasks"]["kronecker_product"]
    assert set(task) >= {
        "answers", "atoms", "correct", "precision", "recall", "redundancy", "ece", "auroc_macro", "auroc_micro",
        "statuses", "reasons",
    }  # fmt: skip


def test_display_none_is_silent_until_the_result(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(arguments(scripted_model(*TASKS.split(",")), tmp_path / "x.db", "--display", "none")) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "mean of tasks" in captured.out


def test_a_finished_run_resumed_is_a_no_op(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    run_command_line(arguments(scripted_model(*TASKS.split(",")), database, "--json"))
    before = json.loads(capsys.readouterr().out)
    content = database.read_bytes()
    assert run_command_line(["resume", "--db", str(database), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == before
    assert "nothing to do" in captured.err
    assert database.read_bytes() == content


def start(model: Path, database: Path) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own and wait until it has stored an atom."""
    process = subprocess.Popen(
        [sys.executable, "-m", "salt_tui", *arguments(model, database, "--json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if database.exists():
            try:
                if rows(database, "SELECT count(*) FROM unit")[0][0]:
                    return process
            except sqlite3.OperationalError:
                time.sleep(0.01)  # the tables are being made
        time.sleep(0.01)
    process.kill()
    raise AssertionError(process.communicate())


def test_kill_9_then_resume_gives_every_problem_once_with_equal_numbers(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted_model(*TASKS.split(","), seconds_per_step=0.01)
    run_command_line(arguments(model, tmp_path / "whole.db", "--json"))
    whole = json.loads(capsys.readouterr().out)
    database = tmp_path / "killed.db"
    process = start(model, database)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert rows(database, "SELECT count(*) FROM generation WHERE stop_reason IS NULL")[0][0] > 0
    assert run_command_line(["resume", "--db", str(database), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == whole["tasks"]
    assert rows(database, "SELECT count(*), count(DISTINCT problem) FROM generation") == [(6, 6)]
    tokens = (
        "SELECT problem.content_id, token.position, token.id, log_probability, entropy FROM token"
        " JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
        " ORDER BY 1, 2"
    )
    assert rows(database, tokens) == rows(tmp_path / "whole.db", tokens)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_in_order_and_names_the_resume_command(
    scripted_model: ScriptedModel, tmp_path: Path, number: signal.Signals
) -> None:
    database = tmp_path / "x.db"
    process = start(scripted_model(*TASKS.split(","), seconds_per_step=0.05), database)
    process.send_signal(number)
    output, talk = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"salt-tui resume 1" in talk
    assert b"Traceback" not in talk
    assert json.loads(output)["state"] == "interrupted"
    assert rows(database, "SELECT state FROM run") == [("interrupted",)]


def test_two_programs_do_not_compute_one_run(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    process = start(scripted_model(*TASKS.split(","), seconds_per_step=0.05), database)
    try:
        assert run_command_line(["resume", "--db", str(database)]) == 2
        assert f"process {process.pid}" in capsys.readouterr().err
    finally:
        process.kill()
        process.communicate()


def test_context_too_small_for_any_prompt_names_what_is_needed(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted_model(*TASKS.split(","))
    assert run_command_line(arguments(model, tmp_path / "x.db", "-c", "64")) == 2
    assert "use -c " in capsys.readouterr().err
    assert rows(tmp_path / "x.db", "SELECT count(*) FROM run") == [(0,)]
