"""`tasks check` and `tasks export`: every bad row is named, streams end, and what is written can be asked elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.inputs import question_files
from tasks.registry import TASKS

pytestmark = pytest.mark.quick

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.jsonl"))
ROW = {"id": 1, "kind": "numbers", "prompt": "Count to two.", "reference": [1, 2]}


def check(capsys: pytest.CaptureFixture[str], file: Path, code: int) -> dict[str, Any]:
    assert run_command_line(["tasks", "check", str(file), "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    data = json.loads(captured.out)
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_the_examples_of_the_documentation_are_good(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    assert check(capsys, file, 0)["errors"] == []
    assert run_command_line(["tasks", "check", str(file)]) == 0
    assert f"run --tasks file:{file}" in capsys.readouterr().err


def test_the_examples_of_the_documentation_hold_every_kind() -> None:
    found = {json.loads(line)["kind"] for file in EXAMPLES for line in file.read_text(encoding="utf-8").splitlines()}
    assert found == {"choice", "json", "numbers", "words", "lines", "text"}


def test_every_bad_row_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good = json.dumps(ROW)
    lines: list[tuple[bytes, str | None]] = [
        (b"\xef\xbb\xbf" + good.encode(), None),
        (b"", None),
        (b"{", "not JSON"),
        (b"[1]", "a JSON object is wanted, not list"),
        (b'{"id": "\xff"}', "not UTF-8 text (invalid start byte at byte 8)"),
        (good.encode(), "'id' '1' is that of line 1"),
        (json.dumps({**ROW, "id": 2}).encode(), "asks the same as line 1"),
        (b'{"id": 3, "id": 4}', "the key 'id' stands here twice"),
        (b'{"id": 3, "kind": "json", "prompt": "x", "reference": NaN}', "NaN is no JSON value"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (json.dumps({**ROW, "id": 5, "prompt": "\x1b[31m\ud800"}).encode(), None),
        (json.dumps({**ROW, "id": 6, "kind": "\x1b[31m"}).encode(), "'kind' is '\\x1b[31m'"),
    ]
    file = tmp_path / "own.jsonl"
    file.write_bytes(b"\n".join(line for line, _ in lines))
    data = check(capsys, file, 2)
    assert data["rows"] == len(lines) - 1
    wanted = {number: what for number, (_, what) in enumerate(lines, 1) if what is not None}
    assert [error["line"] for error in data["errors"]] == list(wanted)
    for error in data["errors"]:
        assert wanted[error["line"]] in error["what"]
    assert run_command_line(["tasks", "check", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].startswith(f"{file}:3: not JSON")
    assert "\x1b" not in captured.out
    assert captured.err == f"salt-tui: {len(wanted)} bad rows of {len(lines) - 1}\n"


def test_a_file_without_a_problem_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for content in ("", "\n\n", json.dumps({**ROW, "example": True})):
        (tmp_path / "x.jsonl").write_text(content, encoding="utf-8")
        (error,) = check(capsys, tmp_path / "x.jsonl", 2)["errors"]
        assert error["what"] == "the file holds no problem"
    (tmp_path / "x.jsonl").write_text("", encoding="utf-8")
    assert run_command_line(["tasks", "check", str(tmp_path / "x.jsonl")]) == 2
    assert capsys.readouterr().err == "salt-tui: no row was read\n"


@pytest.mark.parametrize("stream", ["/dev/zero", "/dev/full"])
def test_a_stream_without_an_end_is_refused(capsys: pytest.CaptureFixture[str], stream: str) -> None:
    if not Path(stream).exists():
        pytest.skip(f"no {stream} here")
    (error,) = check(capsys, Path(stream), 2)["errors"]
    assert error == {"line": 1, "what": "a line longer than 1,000,000 bytes; nothing after it was read"}


def test_reading_stops_at_too_many_rows_bytes_and_bad_rows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps({**ROW, "id": i, "prompt": f"{i}"}) + "\n" for i in range(20)), encoding="utf-8")
    monkeypatch.setattr(question_files, "MOST_ROWS", 10)
    (error,) = check(capsys, file, 2)["errors"]
    assert error == {"line": 11, "what": "more than 10 rows; nothing after this one was read"}
    monkeypatch.setattr(question_files, "MOST_BYTES", 300)
    (error,) = check(capsys, file, 2)["errors"]
    assert error["what"] == "more than 300 bytes; nothing after it was read"
    monkeypatch.setattr(question_files, "MOST_FAULTS", 3)
    file.write_text("x\n" * 9, encoding="utf-8")
    assert [error["line"] for error in check(capsys, file, 2)["errors"]] == [1, 2, 3, 3]


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_what_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    assert run_command_line(["tasks", "check", str(tmp_path / name)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path) in line


def test_exported_problems_are_those_of_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    arguments = ["tasks", "export", "dna_translation", "--difficulty", "trivial", "--limit", "3", "--seed", "5"]
    assert run_command_line([*arguments, "-o", str(file)]) == 0
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [row["position"] for row in rows] == [0, 1, 2]
    task = TASKS["dna_translation"]
    for row in rows:
        assert row["reference"] == task.solve(row["problem"])
        assert row["messages"][-1] == {"role": "user", "content": row["problem"]}
        assert [message["role"] for message in row["messages"]] == ["system", *["user", "assistant"] * 3, "user"]
    capsys.readouterr()
    assert (
        run_command_line(["tasks", "show", "dna_translation", "--difficulty", "trivial", "--seed", "5", "--json"]) == 0
    )
    shown = json.loads(capsys.readouterr().out)
    assert (shown["id"], shown["prompt"]) == (rows[0]["id"], rows[0]["messages"])
    assert run_command_line([*arguments, "-o", "-"]) == 0
    assert capsys.readouterr().out == file.read_text(encoding="utf-8")
    assert run_command_line([*arguments, "-o", str(file)]) == 2
    assert "exists; choose another name or overwrite it with --force" in capsys.readouterr().err
    assert run_command_line([*arguments, "-o", str(file), "--force"]) == 0


def test_own_problems_are_exported_with_their_prompts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my questions.jsonl"
    rows = [{**ROW, "topic": "counting"}, {**ROW, "id": 2, "prompt": "Count on.", "example": True}]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run_command_line(["tasks", "export", f"file:{file}", "-o", "-"]) == 0
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["task"], row["name"], row["kind"]) == ("file:my_questions", "1", "numbers")
    assert (row["reference"], row["columns"]) == ("1 2", {"topic": "counting"})
    assert [message["content"] for message in row["messages"][1:]] == [
        "Count on.",
        "********\n1 2\n********",
        "Count to two.",
    ]
    file.write_text("{\n{\n", encoding="utf-8")
    assert run_command_line(["tasks", "export", f"file:{file}", "-o", "-"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"salt-tui: {file}:1: not JSON")
    assert captured.err.endswith("; 1 more, all in `salt-tui tasks check`\n")


def test_a_file_is_not_shown_but_exported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["tasks", "show", "file:x.jsonl"]) == 2
    assert "`tasks export FILE -o -` writes a file's prompts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "what"),
    [(["--limit", "0"], "--limit 0"), (["--shots", "99"], "--shots 99"), (["--method", "x"], "unknown method")],
)
def test_a_wrong_option_leaves_no_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: list[str], what: str
) -> None:
    file = tmp_path / "x.jsonl"
    assert run_command_line(["tasks", "export", "maze", "-o", str(file), *more]) == 2
    assert what in capsys.readouterr().err
    assert list(tmp_path.glob("*.jsonl")) == []
