"""Problems of one's own through the whole program: asked, judged, stored, killed and resumed without the file."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from tests.cli.test_run import rows, start_command

ROWS: list[dict[str, Any]] = [
    {"id": "e", "kind": "choice", "example": True, "prompt": "Odd?", "choices": ["2", "3"], "reference": "B"},
    {"id": "c1", "kind": "choice", "prompt": "Capital of France?", "choices": ["Rome", "Paris"], "reference": "Paris",
     "topic": "cities"},
    {"id": "c2", "kind": "choice", "prompt": "Is 4 even?", "choices": ["yes", "no"], "reference": "A", "topic": "sums"},
    {"id": "j", "kind": "json", "prompt": "Add 2 and 3.", "reference": {"tool": "add", "a": 2, "b": 3}},
    {"id": "n", "kind": "numbers", "prompt": "Count to three.", "reference": [1, 2, 3]},
    {"id": "w", "kind": "words", "prompt": "Name the days.", "reference": ["Friday", "Sunday"]},
    {"id": "l", "kind": "lines", "prompt": "Name the cities.", "reference": ["New York", "Rome"]},
    {"id": "t", "kind": "text", "prompt": "What do bees make?", "reference": ["Bees make honey."]},
]  # fmt: skip

REPLIES = {
    "Capital of France?": [["B", -0.3]],
    "Is 4 even?": [[" B", -0.2]],
    "Add 2 and 3.": [
        ["****\n", -0.1],
        ['{"b": ', -0.2],
        ["3", -0.3],
        [', "a": ', -0.1],
        ["5}", -0.9],
        ["\n****", -0.1],
    ],
    "Count to three.": [["****\n", -0.1], ["1.0 ", -0.2], ["7 ", -0.3], ["3", -0.1], ["\n****", -0.1]],
    "Name the days.": [["****\n", -0.1], ["friday", -0.2], [" Sunday", -0.3], ["\n****", -0.1]],
    "Name the cities.": [["****\n", -0.1], ["New  York\n", -0.2], ["Paris", -0.3], ["\n****", -0.1]],
    "What do bees make?": [["Bees", -0.1], [" make", -0.2], [" honey", -0.3], [" quickly.", -0.3]],
}

VERDICTS = [
    ("c1", ["correct"]),
    ("c2", ["wrong"]),
    ("j", ["missing", "wrong", "correct"]),
    ("n", ["correct", "wrong", "correct"]),
    ("w", ["correct", "correct"]),
    ("l", ["correct", "wrong"]),
    ("t", ["correct"]),
]
"""Worked out by hand from `ROWS` and `REPLIES`."""


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """The problems as a file."""
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return file


def script(folder: Path, **keys: object) -> Path:
    """A model that answers them, with a token for each letter."""
    replies = [{"match": match, "tokens": tokens} for match, tokens in REPLIES.items()]
    file = folder / "own.scripted.json"
    pieces = ["A", " A", "B", " B"]
    file.write_text(json.dumps({"replies": replies, "pieces": pieces, **keys}), encoding="utf-8")
    return file


def arguments(model: Path, questions: Path, database: Path) -> list[str]:
    return ["run", "-m", str(model), "--tasks", f"file:{questions}", "-np", "2", "--db", str(database), "--json"]


UNITS = (
    'SELECT problem.position, unit."index", unit.status FROM unit JOIN generation ON generation.id = unit.generation'
    " JOIN problem ON problem.id = generation.problem WHERE unit.kind = '{}' ORDER BY 1, 2"
)


def test_every_kind_is_asked_judged_and_stored(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    assert run_command_line(arguments(script(tmp_path), questions, database)) == 0
    data = json.loads(capsys.readouterr().out)
    (task,) = data["tasks"]
    assert task == "file:questions"
    assert data["tasks"][task]["statuses"] == {"complete": 7}
    found: dict[int, list[str]] = {}
    for position, _, status in rows(database, UNITS.format("atom")):
        found.setdefault(position, []).append(status)
    assert [found[position] for position in range(7)] == [statuses for _, statuses in VERDICTS]
    whole = [status for _, _, status in rows(database, UNITS.format("generation"))]
    assert whole == ["correct", "wrong", "wrong", "wrong", "correct", "wrong", "correct"]
    signals = rows(
        database,
        "SELECT problem.position, signal.kind, signal.name, value FROM signal JOIN generation ON"
        " generation.id = signal.generation JOIN problem ON problem.id = generation.problem",
    )
    found_signals = {(position, kind, name): value for position, kind, name, value in signals}
    assert {position for position, _, _ in found_signals} == {0, 1}
    for position, right in ((0, "B"), (1, "A")):
        letters = {letter: found_signals[position, "token", f"choice_{letter}"] for letter in "AB"}
        assert sum(letters.values()) == pytest.approx(1)
        assert (letters[right] > 0.5) == (position == 0)
        assert found_signals[position, "atom", "choice_probability"] == max(letters.values())
        assert 0 < found_signals[position, "token", "choice_mass"] < 1
    stored = rows(database, "SELECT answer_kind, choices, slices FROM problem ORDER BY position")
    assert [kind for kind, _, _ in stored] == ["choice", "choice", "json", "numbers", "words", "lines", "text"]
    assert [json.loads(value) for value in stored[0][1:]] == [["Rome", "Paris"], {"topic": "cities"}]
    assert json.loads(rows(database, "SELECT plan FROM run")[0][0])["tasks"][0]["shots"] == 1
    messages = json.loads(rows(database, "SELECT messages FROM problem WHERE position = 0")[0][0])
    assert [message["content"] for message in messages[1:]] == [
        "Odd?\n\nA. 2\nB. 3",
        "B",
        "Capital of France?\n\nA. Rome\nB. Paris",
    ]


def test_a_killed_run_goes_on_without_the_file(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = script(tmp_path, seconds_per_step=0.05)
    whole, database = tmp_path / "whole.db", tmp_path / "killed.db"
    assert run_command_line(arguments(model, questions, whole)) == 0
    process = start_command(arguments(model, questions, database), database)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    questions.unlink()
    assert rows(database, "SELECT count(*) FROM generation WHERE answer_status IS NOT NULL")[0][0] < len(VERDICTS)
    capsys.readouterr()
    assert run_command_line(["resume", "--db", str(database), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "finished"
    tokens = (
        "SELECT problem.position, token.position, token.id, log_probability FROM token"
        " JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
        " ORDER BY 1, 2"
    )
    assert rows(database, tokens) == rows(whole, tokens)
    for kind in ("atom", "line", "generation"):
        assert rows(database, UNITS.format(kind)) == rows(whole, UNITS.format(kind))


def test_files_stand_beside_built_in_tasks_and_a_limit_takes_the_first_rows(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = shutil.copy(questions, tmp_path / "others.jsonl")
    model, database = script(tmp_path), tmp_path / "x.db"
    tasks = f"file:{questions},file:{other},maze"
    assert run_command_line([*arguments(model, questions, database), "--tasks", tasks, "--limit", "2"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {name: sum(task["statuses"].values()) for name, task in data["tasks"].items()} == {
        "maze": 2,
        "file:questions": 2,
        "file:others": 2,
    }


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--tasks", "file:missing.jsonl"], "missing.jsonl: No such file"),
        (["--method", "cot"], "--method cot: problems of a file are asked directly"),
        (["--shots", "1"], "1 worked examples asked for, the file has 0 of kind json"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_stores_nothing(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str], more: list[str], what: str
) -> None:
    database = tmp_path / "x.db"
    assert run_command_line([*arguments(script(tmp_path), questions, database), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert what in captured.err
    with sqlite3.connect(database) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        assert "run" not in tables or connection.execute("SELECT count(*) FROM run").fetchone() == (0,)
    connection.close()


def test_two_files_of_one_name_are_refused(tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    other = shutil.copy(questions, tmp_path / "other" / questions.name)
    more = ["--tasks", f"file:{questions},file:{other}"]
    assert run_command_line([*arguments(script(tmp_path), questions, tmp_path / "x.db"), *more]) == 2
    assert "two files would both be file:questions: rename one" in capsys.readouterr().err


def test_samples_of_json_agree_leaf_by_leaf_where_one_is_missing(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions.write_text(json.dumps(ROWS[3]), encoding="utf-8")
    answers = ['{"a": 2, "b": 4}', '{"b": 4, "tool": "add"}']  # the answer lacks the first leaf, its sample the second
    replies = [{"match": "Add 2 and 3.", "tokens": [[f"****\n{text}\n****", -0.1]]} for text in answers]
    file = tmp_path / "json.scripted.json"
    file.write_text(json.dumps({"replies": replies}), encoding="utf-8")
    database = tmp_path / "x.db"
    assert run_command_line(arguments(file, questions, database)) == 0
    statuses = [status for _, _, status in rows(database, UNITS.format("atom"))]
    assert statuses == ["missing", "correct", "wrong"]
    study = ["study", "samples", "1", "-k", "12", "--db", str(database), "--json"]
    assert run_command_line(study) == 0
    signals = rows(
        database, "SELECT \"index\", value FROM signal WHERE kind = 'atom' AND name = 'agreement' ORDER BY 1"
    )
    assert [index for index, _ in signals] == [1, 2]
    (_, second), (_, third) = signals
    assert 0 < second < 1, "a sample without the leaf disagrees"
    assert third == 1


@pytest.mark.parametrize(
    ("column", "labels"),
    [("topic", ["cities", "sums", "–"]), ("level", ["1", "2.5", "10"]), ("answer_kind", ["choice"])],
)
def test_reports_are_sliced_by_the_columns_of_the_file(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str], column: str, labels: list[str]
) -> None:
    choices = [{**ROWS[1], "level": 10}, {**ROWS[2], "level": 1}, {**ROWS[1], "id": "x", "topic": None, "level": 2.5}]
    questions.write_text("\n".join(map(json.dumps, choices)), encoding="utf-8")
    database = str(tmp_path / "x.db")
    assert run_command_line(arguments(script(tmp_path), questions, Path(database))) == 0
    capsys.readouterr()
    assert run_command_line(["report", "--db", database, "--by", column, "--draws", "0", "--format", "json"]) == 0
    slices = [row["part"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert list(dict.fromkeys(slices)) == labels
