"""What stdout and stderr are must not change what happens: closed, full, unread, or in a poor encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.commands.failures import report_failure, say
from tests.conftest import ScriptedModel


def called(arguments: list[str], redirection: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Call the program through a shell that closes or redirects its streams."""
    command = [sys.executable, "-m", "salt_tui", *arguments]
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *command],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.getcwd(), **environment},
    )


def run_arguments(model: Path, database: Path) -> list[str]:
    return ["run", "-m", str(model), "--tasks", "maze", "--difficulty", "trivial", "--limit", "1", "--seed", "1",
            "--db", str(database), "--json"]  # fmt: skip


@pytest.mark.parametrize("buffering", ["", "1"])
@pytest.mark.parametrize(
    ("redirection", "code", "error"),
    [
        (">&-", 1, b"salt-tui: standard output: closed\n"),
        (">/dev/full", 1, b"salt-tui: standard output: No space left on device\n"),
        ("| head -n 1 >/dev/null", 0, b""),
        ("2>&-", 0, b""),
        ("2>/dev/full", 0, b""),
        ("<&- >&- 2>&-", 1, b""),
    ],
)
def test_lost_streams(redirection: str, code: int, error: bytes, buffering: str) -> None:
    if "/dev/full" in redirection and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = called(["tasks", "list"], redirection, PYTHONUNBUFFERED=buffering)
    assert (done.returncode, done.stderr) == (code, error)


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_an_error_has_its_code_and_stays_out_of_the_data(redirection: str) -> None:
    done = called(["report", "--db", "none.db"], redirection)
    assert done.returncode == 2
    assert done.stdout == b""


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_computes_without_streams(scripted_model: ScriptedModel, tmp_path: Path, redirection: str) -> None:
    database = tmp_path / "x.db"
    arguments = run_arguments(scripted_model("maze", limit=1), database)
    done = called(arguments, redirection)
    assert done.returncode == (">&-" in redirection.split()), "what was asked for could not be written"
    assert run_command_line(["report", "--format", "json", "--db", str(database)]) == 0
    if redirection == "2>&-":
        assert json.loads(done.stdout)["state"] == "finished"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_json_is_json_in_every_encoding(scripted_model: ScriptedModel, tmp_path: Path, encoding: str) -> None:
    model = scripted_model("maze", limit=1, model={"description": "Größe ▲ 𝔸"})
    done = called(run_arguments(model, tmp_path / "x.db"), PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode(encoding))["model"]["description"] == "Größe ▲ 𝔸"


def test_a_table_is_whole_in_every_encoding() -> None:
    done = called(["score", "/dev/stdin"], f"<<'END'\n{ANSWER}\nEND", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"complete" in done.stdout
    assert done.stdout.rstrip().endswith(rb"\u00b7?\u00b7+")


ANSWER = json.dumps(
    {"task": "dna_translation", "response": "********\nTAA DK GGG CCC\n********", "reference": "TAA TGT GGG"}
)


def test_lines_of_talk_are_short(capsys: pytest.CaptureFixture[str]) -> None:
    say("what happened " + 1_000_000 * "\x1b" + " what to do")
    line = capsys.readouterr().err
    assert line.startswith("salt-tui: what happened \\x1b")
    assert line.endswith("x1b what to do\n")
    assert len(line) < 520


def test_a_bug_is_one_line_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SALT_TUI_HOME", str(tmp_path / "file"))
    assert report_failure(ZeroDivisionError("a bug")) == 1
    line = capsys.readouterr().err
    assert line.startswith("salt-tui: internal error, ZeroDivisionError: a bug; details could not be written: ")
    assert line.count("\n") == 1


def test_ctrl_c_while_modules_are_imported_is_one_line() -> None:
    program = (
        "import sys, salt_tui.__main__ as program\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "program.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, check=False, timeout=60)
    assert done.returncode == 130
    assert done.stderr == b"salt-tui: interrupted\n"


@pytest.mark.parametrize("group", ["models", "tasks"])
def test_a_group_alone_prints_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([group]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == f"Usage: salt-tui {group} [OPTIONS] COMMAND [ARGS]..."
    assert len(captured.out.splitlines()) > 5
    assert captured.err == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out.startswith("salt-tui 0.")


@pytest.mark.parametrize("command", [["models", "list"], ["tasks", "list"], ["tasks", "show", "code"],
                                     ["tasks", "show", "arc_grid"]])  # fmt: skip
def test_lists_fit_a_terminal(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command_line(command) == 0
    head = capsys.readouterr().out.partition("\n[")[0]  # prompts stay as they are
    own = [line for line in head.splitlines() if not line.startswith("Your own entries")]
    assert len(own) > 4
    assert max(map(len, own)) <= 80
