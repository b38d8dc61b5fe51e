"""`run` and `resume` as a user calls them: stdout is data, stderr is talk, exit codes mean something."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.runner.loop import Loop
from salt_tui.store.errors import StoreFailure
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
    # Another file at another time, the same run.
    for result in results:
        assert result["header"].pop("created_at") <= result["header"].pop("finished_at")
    assert results[0] == results[1]
    assert {"run", "model", "plan", "tasks", "mean"} <= set(results[0])
    task = results[0]["tasks"]["kronecker_product"]
    assert set(task) >= {
        "answers", "atoms", "correct", "precision", "recall", "redundancy", "ece", "auroc_macro", "auroc_micro",
        "statuses", "reasons",
    }  # fmt: skip


def test_a_context_beyond_what_the_model_was_trained_on_is_a_warning(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted_model(*TASKS.split(","))
    found = []
    for context in ("8192", "8193"):
        assert run_command_line(arguments(model, tmp_path / f"{context}.db", "--json", "-c", context)) == 0
        found.append(json.loads(capsys.readouterr().out)["warnings"])
    assert found == [[], ["-c 8193: the model was trained on 8192 tokens"]]


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
    return start_command(arguments(model, database, "--json"), database)


def start_command(command: list[str], database: Path) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own and wait until it has stored an atom."""
    process = subprocess.Popen(
        [sys.executable, "-m", "salt_tui", *command],
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
    model = scripted_model(*TASKS.split(","), seconds_per_step=0.03)
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
    output, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"salt-tui resume 1" in talk
    assert b"Traceback" not in talk
    assert json.loads(output)["state"] == "interrupted"
    assert rows(database, "SELECT state FROM run") == [("interrupted",)]


def test_a_second_signal_breaks_off_and_leaves_the_run_interrupted(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("salt_tui.runner.answering.AnswerAttempt.take", interrupted)
    database = tmp_path / "x.db"
    assert run_command_line(arguments(scripted_model(*TASKS.split(",")), database, "--display", "none")) == 130
    assert capsys.readouterr().err == (f"salt-tui: run 1 interrupted; go on with: salt-tui resume 1 --db {database}\n")
    assert rows(database, "SELECT state, message, lease_pid FROM run") == [("interrupted", None, None)]


def test_a_signal_while_loading_says_so_and_names_what_is_stored(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_signal(*arguments: object, **options: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    model, database = scripted_model(*TASKS.split(",")), tmp_path / "x.db"
    with monkeypatch.context() as patched:
        patched.setattr("salt_tui.runner.preparation.load_model", send_signal)
        assert run_command_line(arguments(model, database, "--display", "none")) == 130
        assert capsys.readouterr().err == "salt-tui: interrupted\n"
        assert not database.exists()
        patched.undo()
        # Between the claim and the loop.
        patched.setattr("salt_tui.runner.opened_model.RunStarted", send_signal)
        assert run_command_line(arguments(model, database, "--display", "none")) == 130
        assert rows(database, "SELECT state, lease_pid FROM run") == [("interrupted", None)]
        patched.undo()
        capsys.readouterr()
        patched.setattr("salt_tui.runner.stored_model.load_model", send_signal)
        assert run_command_line(["resume", "--db", str(database), "--display", "none"]) == 130
        assert "salt-tui resume 1 --db" in capsys.readouterr().err
    assert run_command_line(["resume", "--db", str(database), "--json"]) == 0


@pytest.mark.parametrize("display", ["none", "plain", "rich"])
def test_a_failed_run_says_why_once_in_every_display(
    scripted_model: ScriptedModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    display: str,
) -> None:
    model = scripted_model(*TASKS.split(","), crash={"after": 1, "signal": 11, "times": 99}, crash_always=True)
    database = tmp_path / "it's mine.db"
    assert run_command_line(arguments(model, database, "--display", display, "-np", "1", "--json")) == 1
    captured = capsys.readouterr()
    command = shlex.join(["salt-tui", "resume", "1", "--db", str(database)])
    (line,) = [line for line in captured.err.splitlines() if "run 1 failed" in line]
    assert line.startswith("salt-tui: run 1 failed: ")
    assert "SIGSEGV" in line
    assert captured.err.count("without finishing an answer") == 1
    assert line.endswith(command)
    data = json.loads(captured.out)
    assert data["state"] == "failed"
    assert "SIGSEGV" in data["message"]


def test_a_store_that_fails_at_work_is_no_wrong_usage(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*arguments: object) -> None:
        raise StoreFailure("x.db is locked by another program")

    monkeypatch.setattr("salt_tui.store.store.Store.add_tokens", locked)
    database = tmp_path / "x.db"
    assert run_command_line(arguments(scripted_model(*TASKS.split(",")), database, "--display", "none")) == 1
    assert capsys.readouterr().err == (
        f"salt-tui: run 1 failed: x.db is locked by another program; go on with: salt-tui resume 1 --db {database}\n"
    )
    assert rows(database, "SELECT state FROM run") == [("failed",)]


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_database_that_is_deleted_stops_the_run(scripted_model: ScriptedModel, tmp_path: Path, suffix: str) -> None:
    database = tmp_path / "x.db"
    process = start(scripted_model(*TASKS.split(","), seconds_per_step=0.2), database)
    database.with_name(database.name + suffix).unlink()
    output, talk = process.communicate(timeout=30)
    assert process.returncode == 1
    assert output == b""
    line = talk.decode().splitlines()[-1]
    assert line.startswith(f"salt-tui: run 1 failed: {database}{suffix} was deleted or moved away")
    assert "nothing after that could be kept" in line
    assert b"Traceback" not in talk
    assert b"finished" not in talk


def test_a_run_whose_database_is_replaced_at_its_end_is_not_finished(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "x.db"
    end = Loop._end

    def replaced(self: Loop, *arguments: Any) -> str:
        shutil.copy(database, tmp_path / "other")
        (tmp_path / "other").replace(database)
        return end(self, *arguments)

    monkeypatch.setattr(Loop, "_end", replaced)
    assert run_command_line(arguments(scripted_model(*TASKS.split(",")), database)) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"salt-tui: run 1 failed: {database} was replaced")


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
    assert not (tmp_path / "x.db").exists()


def test_a_run_can_be_repeated_on_another_day(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = scripted_model(
        *TASKS.split(","), template="{{ strftime_now('%d') }} {% for m in messages %}{{ m.content }} {% endfor %}"
    )
    plain = tmp_path / "plain.scripted.json"
    plain.write_text(
        json.dumps(json.loads(model.read_text()) | {"template": "{% for m in messages %}{{ m.content }} {% endfor %}"})
    )
    hashes = {}
    for path in (model, plain):
        for day in ("2026-01-02", "2026-01-03"):
            assert run_command_line(arguments(path, tmp_path / "x.db", "--date", day, "--display", "plain")) == 0
            hashes[path, day] = rows(tmp_path / "x.db", "SELECT plan_hash FROM run ORDER BY id DESC LIMIT 1")
    assert hashes[model, "2026-01-02"] != hashes[model, "2026-01-03"]
    assert hashes[plain, "2026-01-02"] == hashes[plain, "2026-01-03"]
    assert "--date 2026-01-02 has no effect" in capsys.readouterr().err
    for wrong in ("2026-13-01", "tomorrow", "20260102"):
        assert run_command_line(arguments(plain, tmp_path / "x.db", "--date", wrong)) == 2
        assert f"--date {wrong}: a day as YYYY-MM-DD" in capsys.readouterr().err
