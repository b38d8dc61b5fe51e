"""Files of answers and problems that this program did not write: marks, half characters, and errors with a line."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.inputs.answer_files import LabelOptions, label_file, labels_data
from salt_tui.inputs.json_lines import read_rows
from salt_tui.inputs.problem_files import solve_problems
from salt_tui.runner.brought_tokens import tokens_of_row
from salt_tui.usage_error import UsageError

ATOMS = LabelOptions(unit="atom", aligned=False, compat=False)
ALIGNED = LabelOptions(unit="atom", aligned=True, compat=False)
ROW = {"task": "dna_translation", "response": "****\nTAA GGG\n****", "reference": "TAA GGC"}
MARK = "\ufeff"


def test_rows_come_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('\n{"x": "1"}\n\n{"x": "2"}\n', encoding="utf-8")
    assert list(read_rows(file, ("x",))) == [(f"{file}:2", {"x": "1"}), (f"{file}:4", {"x": "2"})]


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(MARK + json.dumps(ROW) + "\n", encoding="utf-8")
    (labels,) = label_file(file, ATOMS, tokens_of_row)
    assert labels.statuses == ("correct", "wrong")
    file.write_text(MARK + json.dumps({"input": "ATT"}), encoding="utf-8")
    assert list(solve_problems("dna_translation", file)) == ["TAA"]
    file.write_text(MARK + "ATT CCC", encoding="utf-8")
    assert list(solve_problems("DNAProblem", file)) == ["TAA GGG"]


@pytest.mark.parametrize("options", [ATOMS, ALIGNED, LabelOptions("line", aligned=False, compat=True)])
@pytest.mark.parametrize("field", ["response", "reference", "delimiter"])
def test_half_a_surrogate_pair_is_an_unknown_character(tmp_path: Path, field: str, options: LabelOptions) -> None:
    file = tmp_path / "a.jsonl"
    row = {**ROW, field: "****\nTAA \ud800 \udfff\n****" if field == "response" else "TAA \udc80"}
    file.write_text(json.dumps(row), encoding="ascii")
    (labels,) = label_file(file, options, tokens_of_row)
    assert "correct" in labels.statuses or "wrong" in labels.statuses
    assert json.dumps(labels_data(labels))
    (content,) = (content for _, content in read_rows(file, ("task",)))
    assert "\ufffd" in content[field]
    assert content[field].encode()


def test_whole_surrogate_pairs_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"x": "\\ud83d\\ude00"}', encoding="ascii")
    assert [row["x"] for _, row in read_rows(file, ("x",))] == ["😀"]


@pytest.mark.parametrize(
    ("bad", "options", "named"),
    [
        ({**ROW, "task": "nosuch"}, ATOMS, "unknown task 'nosuch'; there are: arc_grid"),
        ({**ROW, "task": "\ud800" * 500}, ATOMS, "unknown task '"),
        ({**ROW, "response": None}, ATOMS, "'response' is not a text"),
        ({**ROW, "response": "****\n" + "TAA " * 30_000, "reference": "TAA " * 30_000}, ALIGNED, "too many to align"),
    ],
)
def test_a_row_that_cannot_be_labelled_is_named_by_file_and_line(
    tmp_path: Path, bad: dict[str, str], options: LabelOptions, named: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f"{json.dumps(ROW)}\n\n{json.dumps(bad)}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        list(label_file(file, options, tokens_of_row))
    message = str(caught.value)
    assert message.startswith(f"{file}:3: ")
    assert named in message
    assert "\n" not in message
    assert message.encode()
    assert len(message) < len(str(file)) + 300


@pytest.mark.parametrize("bad", ['{"input": "AXT"}', '{"input": 3}', "{", '{"input": "' + "Q" * 100_000 + '"}'])
def test_a_problem_that_cannot_be_solved_is_named_by_file_and_line(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"input": "ATT"}}\n\n{bad}\n', encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        list(solve_problems("dna_translation", file))
    assert str(caught.value).startswith(f"{file}:3: ")
    assert len(str(caught.value)) < len(str(file)) + 150


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(" \n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.csv is empty$"):
        list(solve_problems("maze", file))


def test_a_damaged_first_row_is_not_read_as_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"input": \n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.jsonl:1: not JSON"):
        list(solve_problems("dna_translation", file))


@pytest.mark.parametrize(
    "words",
    [
        ["tasks", "check", "{}"],
        ["tasks", "solve", "maze", "{}"],
        ["score", "{}"],
        ["metrics", "{}"],
        ["calibrate", "platt", "--fit", "{}", "--save", "map.json"],
        ["calibrate", "--map", "{}", "--apply", "x.csv"],
        ["import", "{}", "--db", "x.db"],
        ["run", "-m", "nano", "--tasks", "file:{}", "--db", "x.db"],
    ],
)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert run_command_line([word.format(pipe) for word in words]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        "",
        f"salt-tui: {pipe}: a pipe that has a name, and perhaps nobody writes to it; give a file\n",
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


@contextmanager
def piped(data: bytes) -> Iterator[str]:
    """Give the name of a pipe that somebody writes to, as a shell does for ``<(command)``."""
    reader, writer = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(writer, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        os.close(reader)
        thread.join()


@pytest.mark.parametrize("first", ["", "\n", "\ufeff"])
def test_problems_from_a_pipe_are_all_solved(first: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f'{{"input": "ATT CCC", "number": {number}}}\n' for number in range(3000))
    with piped(f"{first}{rows}".encode()) as name:
        assert run_command_line(["tasks", "solve", "dna_translation", name]) == 0
    assert capsys.readouterr().out.count("TAA GGG") == 3000


def test_a_broken_line_of_a_pipe_is_not_counted_in_what_is_left_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    row = b"0.5,1,\xff\n"
    with piped(b"confidence,correct,group\n" + row[:6] * 5 + row + b"0.5,1,a\n" * 30_000 + row) as name:
        assert run_command_line(["metrics", name]) == 2
    assert f"{name}: not UTF-8 text (invalid start byte, in line 1 or after it)" in capsys.readouterr().err
