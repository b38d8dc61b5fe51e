"""`import`: answers of another program become a run like any other, or one line says why they do not."""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.inputs import json_lines
from salt_tui.measure.two_runs import _plan_differences
from salt_tui.runner.imports import importing
from salt_tui.store.queries import open_queries

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FENCE = "*" * 8

Row = dict[str, Any]


def outcome(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run_command_line([*map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def exported(capsys: pytest.CaptureFixture[str], task: str, *more: object) -> list[Row]:
    code, out, err = outcome(capsys, "tasks", "export", task, "-o", "-", *more)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def answered(row: Row, text: str | None = None, **more: object) -> Row:
    reply = row["reference"] if text is None else text
    bare = row["kind"] in ("choice", "text")
    return {**row, "response": reply if bare else f"{FENCE}\n{reply}\n{FENCE}", **more}


def spoken(response: str, size: int = 2) -> list[Row]:
    """Return tokens of a response: every second one surer than the one before."""
    parts = [response[place : place + size] for place in range(0, len(response), size)]
    return [
        {
            "token": part,
            "logprob": -0.1 * (1 + number % 7),
            "bytes": None,
            "top_logprobs": [{"token": part, "logprob": -0.1 * (1 + number % 7)}, {"token": "zz", "logprob": -6.0}],
        }
        for number, part in enumerate(parts)
    ]


def written(file: Path, rows: list[Row]) -> Path:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


@pytest.fixture
def mazes(capsys: pytest.CaptureFixture[str]) -> list[Row]:
    return exported(capsys, "maze", "--difficulty", "trivial", "--limit", 3, "--seed", 1)


def test_leaves_beyond_a_missing_one_have_their_place_among_those_that_were_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems = written(
        tmp_path / "calls.jsonl",
        [
            {"id": number, "kind": "json", "prompt": f"Add {number} and 3.", "reference": {"f": "add", "a": 2, "b": 3}}
            for number in range(4)
        ],
    )
    rows = [answered(row, '{"f": "add", "c": 7, "b": 3}') for row in exported(capsys, f"file:{problems}")]
    run = ["--db", tmp_path / "x.db"]
    assert outcome(capsys, "import", written(tmp_path / "answers.jsonl", rows), *run)[0] == 0

    code, out, err = outcome(capsys, "report", "1", "--format", "json", "--draws", 0, *run)
    assert code == 0, err
    analyses = json.loads(out)["analyses"]
    # Of each answer: "add" right, "a" missing, 3 right, 7 redundant, which stands last and has index 3.
    assert analyses["position"]["n"] == [0, 0, 0, 4, 0, 0, 4, 0, 0, 0]
    assert analyses["redundancy_by_position"]["n"] == [0, 0, 0, 4, 0, 0, 4, 0, 0, 4]
    assert analyses["redundancy_by_position"]["redundancy"][9] == 1
    assert (analyses["history"]["n"], analyses["history"]["accuracy"][4]) == ([0, 0, 0, 0, 4], 1)

    code, out, err = outcome(capsys, "report", "1", "--by", "position", "--format", "json", "--draws", 0, *run)
    assert code == 0, err
    assert {row["part"] for row in json.loads(out)["rows"]} >= {"0.3–0.4", "0.6–0.7", "0.9–1.0"}


def test_answers_of_every_kind_become_a_run(
    mazes: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [
        row
        for name in ("choice", "tool_calls", "lists", "text")
        for row in exported(capsys, f"file:{EXAMPLES / name}.jsonl")
    ]
    rows = [answered(mazes[0], "U"), *map(answered, [*mazes[1:], *own])]
    rows = [{**row, "model": "gpt-x", "logprobs": {"content": spoken(row["response"])}} for row in rows]
    rows[1]["finish_reason"] = "length"
    database = tmp_path / "x.db"
    code, out, err = outcome(capsys, "import", written(tmp_path / "a.jsonl", rows), "--db", database, "--json")
    assert code == 0, err
    data = json.loads(out)
    assert (data["model"]["name"], data["header"]["statistics"], data["header"]["seed"]) == ("gpt-x", "top_k", None)
    assert data["tasks"]["maze"]["statuses"] == {"complete": 2, "truncated": 1}
    assert all(task["precision"] == 1.0 for name, task in data["tasks"].items() if name != "maze")
    assert outcome(capsys, "db", "check", database)[0] == 0
    with open_queries(database) as queries:
        first = queries.answers(1)[0]
        assert [token.record.id for token in queries.tokens(first.generation or 0)] == [None] * 10
        atom = queries.units(first.generation or 0, "atom")[0]
        assert (atom.status, atom.token_end) == ("wrong", 5)
    # It is a run for everything else too.
    for command in (
        ["report", "1", "--unit", "atom", "--function", "max_probability,mean_rank", "--calibrator", "none"],
        ["show", "1", "maze:1", "--json"], ["runs", "--json"],
        ["export", "1", "-o", tmp_path / "x.csv"], ["export", "1", "-o", tmp_path / "y.db"],
    ):  # fmt: skip
        code, out, err = outcome(capsys, *command, "--db", database)
        assert code == 0, err
    code, _, err = outcome(capsys, "study", "samples", "1", "--db", database)
    assert (code, err) == (2, "salt-tui: the answers were imported: there is no model to ask further\n")


def test_without_log_probabilities_there_are_verdicts_and_no_confidences(
    mazes: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.jsonl.gz"
    file.write_bytes(gzip.compress(written(tmp_path / "a", [*map(answered, mazes)]).read_bytes()))
    database = tmp_path / "x.db"
    code, out, err = outcome(capsys, "import", file, "--db", database)
    assert code == 0
    assert "sampler not known" in " ".join(out.split())
    assert "no token statistics" in " ".join(out.split())
    assert "3 answers of answers, 0 with log-probabilities" in err
    with open_queries(database) as queries:
        units = queries.unit_columns(1, "atom", ("max_probability",))
        assert (units.status == 0).all()
        assert queries.signal_names(1) == []
    assert outcome(capsys, "db", "check", database)[0] == 0
    assert outcome(capsys, "study", "combine", "1", "--db", database)[0] == 0


def test_many_answers_without_log_probabilities_are_reported_and_no_confidence_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems = written(
        tmp_path / "quiz.jsonl",
        [
            {"id": number, "kind": "choice", "prompt": f"Is {number} even?", "choices": ["yes", "no"], "reference": "A"}
            for number in range(12)
        ],
    )
    rows = [answered(row, "AB"[number % 2]) for number, row in enumerate(exported(capsys, f"file:{problems}"))]
    run = ["--db", tmp_path / "x.db"]
    assert outcome(capsys, "import", written(tmp_path / "answers.jsonl", rows), *run)[0] == 0
    code, out, err = outcome(capsys, "report", "1", "--draws", 20, *run)
    assert code == 0, err
    assert "Does it know Cannot be said: no confidence function has enough values." in " ".join(out.split())


def test_a_character_that_a_server_lost_leaves_only_its_atom_without_confidences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = exported(capsys, f"file:{EXAMPLES / 'lists.jsonl'}", "--limit", 1)
    row = answered(row, "alpha β gamma")
    tokens = spoken(f"{FENCE}\nalpha ", 3) + spoken("\ufffd\ufffd", 1) + spoken(f" gamma\n{FENCE}", 3)
    database = tmp_path / "x.db"
    file = written(tmp_path / "a.jsonl", [{**row, "logprobs": tokens}])
    assert outcome(capsys, "import", file, "--db", database)[0] == 0
    with open_queries(database) as queries:
        units = queries.units(1, "atom")
        found = {unit.text: unit.confidences[4] is None for unit in units if unit.text is not None}
        assert found == {"alpha": False, "β": True, "gamma": False}
    assert outcome(capsys, "db", "check", database)[0] == 0


def changed(**more: object) -> Callable[[Row], Row]:
    return lambda row: {**row, **more}


def without(name: str) -> Callable[[Row], Row]:
    return lambda row: {key: value for key, value in row.items() if key != name}


BAD: dict[str, tuple[Callable[[Row], Row], str]] = {
    "no response": (without("response"), "'response' is missing"),
    "null": (changed(response=None), "'response' is no text"),
    "no task": (without("task"), "'task' is missing"),
    "unknown task": (changed(task="labyrinth"), "unknown task 'labyrinth'"),
    "unknown id": (changed(id="0123456789abcdef"), "'id' is '0123456789abcdef', and that of this 'problem' is"),
    "other problem": (changed(problem="no maze"), "leave both as `salt-tui tasks export` wrote them"),
    "wrong reference": (changed(reference="U U"), "'reference' is 'U U', which is not the right answer to problem"),
    "level": (changed(difficulty="harder"), "'difficulty' is 'harder'"),
    "method": (changed(method="guess"), "unknown method 'guess'"),
    "seed": (changed(seed=-1), "'seed' is no whole number from 0"),
    "messages": (changed(messages=[{"role": "tool"}]), "'messages' holds what is no object with a role"),
    "model": (changed(model="a\x1bb"), "'model' is no name"),
    "two models": (changed(model="other"), "'model' is 'other', and '' on line 1"),
    "finish": (changed(finish_reason="content_filter"), "'finish_reason' is 'content_filter'; stop or length"),
    "tokens": (changed(logprobs=spoken("U D L")), "a token says 'U ' where the text says"),
    "above 0": (changed(logprobs=[{"token": "*", "logprob": 0.5}]), "a log-probability is 0.5, above 0"),
    "file": (changed(task="file:../x"), "'task' is 'file:../x'"),
    "own kind": (changed(task="file:x", name="q", turns=[]), "'kind' is 'generated'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named_and_nothing_is_stored(
    name: str, mazes: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, said = BAD[name]
    database = tmp_path / "x.db"
    file = written(tmp_path / "a.jsonl", [answered(mazes[0]), spoil(answered(mazes[1]))])
    code, out, err = outcome(capsys, "import", file, "--db", database)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "a.jsonl:2: " in err
    assert said in err
    assert "\x1b" not in err
    assert list(tmp_path.glob("x.db*")) == [], "not even an empty database"


def test_an_export_is_told_where_it_belongs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "a.jsonl", [{"run": 1, "task": "maze", "content_id": "10f61a3d61eec997", "reply": "U"}])
    code, out, err = outcome(capsys, "import", file, "--db", tmp_path / "x.db")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "a.jsonl:1: a row of `salt-tui export`" in err


def test_a_comparison_lists_no_setting_that_an_import_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    rows = exported(capsys, "maze", "--difficulty", "trivial", "--limit", 8, "--seed", 7)
    for number in range(2):
        file = written(
            tmp_path / "a.jsonl", [answered(row, None if number else "U U", model=f"m{number}") for row in rows]
        )
        assert outcome(capsys, "import", file, "--db", database)[0] == 0
    with open_queries(database) as queries:
        plan = json.loads(queries.run_record(1).record.plan)
    assert _plan_differences(plan, {**plan, "seed": 7, "context": 512, "width": 4}) == ()
    other = {**plan, "identity": "sha256:1", "tasks": [{**task, "shots": 0} for task in plan["tasks"]]}
    assert _plan_differences(plan, other) == ("identity", "shots")
    code, out, err = outcome(capsys, "compare", 1, 2, "--db", database)
    assert (code, err) == (0, "")
    assert "differs in: identity\n" in out
    assert "no max_probability in A" in out


def test_files_that_are_none_are_one_line(
    mazes: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = json.dumps(answered(mazes[0]))
    again = json.dumps(answered(mazes[0], "U"))
    database = tmp_path / "x.db"
    file = tmp_path / "a.jsonl"
    for text, said in (
        ("", "holds no rows"), (f"{row}\n{{", "a.jsonl:2: not JSON"), ("[1]\n", "a.jsonl:1: a JSON object is needed"),
        (f"{row}\n\n{again}\n", "a.jsonl:3: answers problem"), ("\ud800", "not UTF-8"),
    ):  # fmt: skip
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        code, out, err = outcome(capsys, "import", file, "--db", database)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err
    with file.open("wb") as sparse:
        sparse.truncate(2 * 1024**3)
    code, _, err = outcome(capsys, "import", file, "--db", database)
    assert (code, err.count("\n")) == (2, 1)
    assert "2,147,483,648 bytes; at most 1,000,000,000" in err
    monkeypatch.setattr(importing, "MOST_ROWS", 1)
    written(file, [*map(answered, mazes)])
    assert "a.jsonl:2: more than 1 rows" in outcome(capsys, "import", file, "--db", database)[2]
    monkeypatch.setattr(importing, "MOST_CHARACTERS", 20)
    assert "at most 20: import it in parts" in outcome(capsys, "import", file, "--db", database)[2]
    file.write_bytes(gzip.compress(b" " * 10_000))
    monkeypatch.setattr(importing, "MOST_CHARACTERS", 5_000)
    assert (
        "more than 5,000 characters; nothing after it was read" in outcome(capsys, "import", file, "--db", database)[2]
    )
    monkeypatch.setattr(json_lines, "MOST_LINES", 100)
    file.write_bytes(b"\n" * 1_000)
    assert "a.jsonl:101: more than 100 lines" in outcome(capsys, "import", file, "--db", database)[2]
    assert list(tmp_path.glob("x.db*")) == [], "not even an empty database"


def test_answers_come_through_standard_input(mazes: list[Row], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "salt_tui", "import", "-", "--db", str(tmp_path / "x.db"), "--json"]
    text = "".join(f"{json.dumps(answered(row))}\n" for row in mazes)
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, env={**os.environ})
    assert (done.returncode, json.loads(done.stdout)["model"]["name"]) == (0, "imported")


def test_the_letters_of_a_choice_are_read_from_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = exported(capsys, f"file:{EXAMPLES / 'choice.jsonl'}", "--limit", 3)
    listed = [("A", -1.0), (" A", -3.0), ("B", -2.0), ("C", -2.5), ("D", -4.0)]
    tops = [{"token": name, "logprob": value, "bytes": None} for name, value in listed]
    token = {"token": "B", "logprob": -2.0, "bytes": None}
    answers = [
        {**rows[0], "response": "B", "logprobs": [{**token, "top_logprobs": tops}]},
        {**rows[1], "response": "B", "logprobs": [{**token, "top_logprobs": tops[:3]}]},
        {**rows[2], "response": "It is B", "logprobs": spoken("It is B")},
    ]
    database = tmp_path / "x.db"
    assert outcome(capsys, "import", written(tmp_path / "a.jsonl", answers), "--db", database)[0] == 0
    weights = [math.exp(-1) + math.exp(-3), math.exp(-2), math.exp(-2.5), math.exp(-4)]
    with open_queries(database) as queries:
        found = list(queries.letters(1))
    assert [value for generation, _, value, _ in found if generation == 1] == [
        pytest.approx(weight / sum(weights)) for weight in weights
    ]
    assert [(letter, value is None, reason is None) for n, letter, value, reason in found if n == 2] == [
        ("A", False, True), ("B", False, True), ("C", True, False), ("D", True, False)
    ]  # fmt: skip
    assert not [row for row in found if row[0] == 3]


def test_a_changed_own_problem_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = exported(capsys, f"file:{EXAMPLES / 'choice.jsonl'}", "--limit", 1)
    other = "B" if row["reference"] == "A" else "A"
    for spoilt in (
        {**row, "reference": other}, {**row, "columns": {**row["columns"], "topic": "other"}},
        {**row, "choices": row["choices"][::-1]}, {**row, "turns": [{"role": "user", "content": "?"}]},
    ):  # fmt: skip
        file = written(tmp_path / "a.jsonl", [answered(spoilt)])
        code, _, err = outcome(capsys, "import", file, "--db", tmp_path / "x.db")
        assert code == 2
        assert "and that of these turns, reference, choices and columns is" in err
