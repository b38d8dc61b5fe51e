"""`signals add` and `signals remove`: scores of other programs, their direction, and every way a table can be wrong."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.store import open_store
from tests.stored_runs import store_run

HEADER = "task,position,kind,index,score"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    store_run(path, tasks=("maze", "dna_translation"), answers=6, atoms=20)
    return path


def outcome(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run_command_line([*map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def data(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    code, out, err = outcome(capsys, *arguments)
    assert code == 0, err
    return json.loads(out)


def atoms(database: Path, tmp_path: Path) -> list[dict[str, str]]:
    file = tmp_path / "atoms.csv"
    if not file.exists():
        assert run_command_line(["export", "1", "-o", str(file), "--db", str(database)]) == 0
    return list(csv.DictReader(file.read_text().splitlines()))


def written(file: Path, rows: Sequence[Sequence[object]], header: str = HEADER) -> Path:
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return file


def raw_row(capsys: pytest.CaptureFixture[str], database: Path, function: str, calibrator: str) -> dict[str, Any]:
    options = ("--unit", "atom", "--function", function, "--calibrator", calibrator, "--draws", 0)
    (row,) = data(capsys, "report", 1, "--format", "json", "--db", database, *options)["rows"]
    return {name: value for name, value in row.items() if name != "function"}


@pytest.mark.parametrize(("name", "flags"), [("mean_entropy", ["--lower-is-confident"]), ("joint_probability", [])])
def test_a_column_of_an_own_export_read_back_ranks_as_the_function_does(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, flags: list[str]
) -> None:
    atoms(database, tmp_path)
    added = data(
        capsys, "signals", "add", 1, tmp_path / "atoms.csv", "--name", "mine", "--score-column", name, *flags,
        "--db", database, "--json",
    )  # fmt: skip
    assert added["units"] == {"atom": {"scores": 240, "undefined": 0, "others": 0}}
    for calibrator in ("isotonic",):
        mine, own = (raw_row(capsys, database, function, calibrator) for function in ("mine", name))
        assert mine == own
    mine, own = (raw_row(capsys, database, function, "none") for function in ("mine", name))
    for metric in ("auroc", "auroc_micro", "aurc", "prr", "auprc"):
        assert mine[metric] == own[metric], metric
    # The policy's file keeps the direction, so that it reads later tables alike.
    policy = tmp_path / "policy.json"
    chosen = ("--risk", ".4", "--confidence", ".6", "-o", policy, "--db", database, "--json")
    found = {
        function: data(capsys, "policy", 1, "--function", function, *chosen)["thresholds"]
        for function in (name, "mine")
    }
    assert found["mine"] == found[name]
    if found["mine"]:
        scores = written(tmp_path / "scores.csv", [["0"], ["1e6"]], "mine")
        assert outcome(capsys, "policy", "--apply", policy, scores)[1].split() == (
            ["trust", "withhold"] if flags else ["withhold", "trust"]
        )


def test_two_runs_are_compared_each_in_its_own_direction(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_run(database, tasks=("maze", "dna_translation"), answers=6, atoms=20)
    rows = atoms(database, tmp_path)
    for run, sign, flags in ((1, 1, ["--lower-is-confident"]), (2, -1, [])):
        table = [[row["task"], row["position"], "atom", row["index"], sign * float(row["max_entropy"])] for row in rows]
        file = written(tmp_path / f"{run}.csv", table)
        assert (
            data(capsys, "signals", "add", run, file, "--name", "u", *flags, "--db", database, "--json")["rows"] == 240
        )
    row = raw_row(capsys, database, "u", "none")
    assert row["auroc"] == raw_row(capsys, database, "max_entropy", "none")["auroc"] > 0.5
    with open_queries(database) as queries:
        directions = [
            {signal.name: signal.lower_is_confident for signal in queries.signal_names(run)}["u"] for run in (1, 2)
        ]
    assert directions == [True, False]
    copy = tmp_path / "copy.db"
    assert outcome(capsys, "export", 1, "-o", copy, "--db", database)[0] == 0
    assert raw_row(capsys, copy, "u", "none")["auroc"] == row["auroc"]


def test_empty_scores_are_undefined_with_a_reason(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[list[object]] = [
        ["maze", 0, "line", 0, "", "too long"],
        ["maze", "1.0", "line", 1, "", ""],
        ["maze", 2, "generation", 0, -3, "x"],
    ]
    file = written(tmp_path / "t.csv", rows, f"{HEADER},reason")
    assert outcome(capsys, "signals", "add", "latest", file, "--name", "s", "--db", database)[0] == 0
    with open_queries(database) as queries:
        generations = [answer.generation for answer in queries.answers(1)]
        assert queries.signals(1, "s", "line") == [
            SignalRecord(generations[0] or 0, "line", 0, "s", None, "too long"),
            SignalRecord(generations[1] or 0, "line", 1, "s", None, "no score"),
        ]
        assert [row.value for row in queries.signals(1, "s", "generation")] == [-3.0]


BAD = [
    (["labyrinth", 0, "atom", 0, 1], "run 1 has no task 'labyrinth', there are dna_translation, maze"),
    (["maze", 6, "atom", 0, 1], "no position 6 of maze, the last is 5"),
    (["maze", -1, "atom", 0, 1], "position is '-1', not a whole number from 0"),
    (["maze", 0.5, "atom", 0, 1], "position is '0.5', not a whole number from 0"),
    (["maze", 0, "atom", 20, 1], "no atom 20: position 0 of maze has 20, counted from 0"),
    (["maze", 0, "atom", 2**52, 1], "no atom 4503599627370496: position 0 of maze has 20, counted from 0"),
    (["maze", 0, "generation", 1, 1], "no answer 1: position 0 of maze has 1, counted from 0"),
    (["maze", 0, "word", 0, 1], "kind is 'word', not token, atom, line or generation"),
    (["maze", 0, "atom", 0, "nan"], "score is 'nan', not a finite number"),
    (["maze", 0, "atom", 0, "-Infinity"], "score is '-Infinity', not a finite number"),
    (["maze", 0, "atom", 0, "1e999"], "score is 'inf', too large for a double"),
    (["maze", 0, "atom", 3, 1], "atom 3 of position 0 of maze has a row already, line 2"),
    (["\x1b[2J", 0, "atom", 0, 1], "run 1 has no task '\\x1b[2J', there are dna_translation, maze"),
]  # fmt: skip


def test_every_bad_row_is_named_and_nothing_is_stored(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ["maze", 0, "atom", 3, 0.5]
    file = written(tmp_path / "t.csv", [good, *(row for row, _ in BAD)])
    code, out, _ = outcome(capsys, "signals", "add", 1, file, "--name", "s", "--db", database, "--json")
    assert code == 2
    assert json.loads(out)["errors"] == [{"line": line, "what": what} for line, (_, what) in enumerate(BAD, 3)]
    code, out, err = outcome(capsys, "signals", "add", 1, file, "--name", "s", "--db", database)
    assert code == 2
    assert [line.partition(": ")[2] for line in out.splitlines()] == [what for _, what in BAD]
    assert err == f"salt-tui: {len(BAD)} bad rows of {len(BAD) + 1}; nothing was stored\n"
    with open_queries(database) as queries:
        assert "s" not in [signal.name for signal in queries.signal_names(1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no rows"),
        (f"{HEADER}\n", "holds no rows"),
        ("task,position,kind,index\nmaze,0,atom,0\n", "no column 'score'"),
        (f"{HEADER}\nmaze,0,atom\n", ":2: 3 cells, but the header has 5"),
        (f'{HEADER}\n"maze,0,atom', "not CSV"),
        (f"{HEADER}\n" + "maze,0,atom,0,1\n" * 1000, "more than 540 rows; nothing after this one was read"),
    ],
)
def test_a_table_that_is_none_is_one_line(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    code, out, err = outcome(capsys, "signals", "add", 1, file, "--name", "s", "--db", database)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("max_probability", "is called so"), ("p_true", "is called so"), ("mean_rank", "is called so"),
        ("kept", "run 1 has a signal of that name; `salt-tui signals remove 1 kept` takes it away"),
        ("a,b", "a letter, then"), ("x@1.2", "a letter, then"), ("", "a letter, then"), ("[red]x", "a letter, then"),
        ("\x1b[2Jx", "a letter, then"), ("x" * 61, "a letter, then"), ("=1+1", "a letter, then"),
    ],
)  # fmt: skip
def test_a_name_that_means_something_else_or_nothing_is_refused(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    with open_store(database) as store:
        store.add_signals(Work(1), [SignalRecord(1, "atom", 0, "kept", 1.0)])
    file = written(tmp_path / "t.csv", [["maze", 0, "atom", 3, 0.5]])
    code, out, err = outcome(capsys, "signals", "add", 1, file, f"--name={name}", "--db", database)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert "\x1b" not in err


def test_a_missing_atom_has_no_score_and_what_is_removed_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "y.db"
    store_run(database, tasks=("maze",), answers=2, statuses=["correct", "missing"])
    scored = written(tmp_path / "t.csv", [["maze", 0, "atom", 1, 0.5]])
    code, out, _ = outcome(capsys, "signals", "add", 1, scored, "--name", "s", "--db", database)
    assert code == 2
    assert "atom 1 of position 0 of maze was not written; leave its score empty" in out
    empty = written(tmp_path / "t.csv", [["maze", 0, "atom", 0, 0.5], ["maze", 0, "atom", 1, ""]])
    assert outcome(capsys, "signals", "add", 1, empty, "--name", "s", "--db", database)[0] == 0
    assert outcome(capsys, "signals", "remove", 1, "s", "--db", database)[0] == 0
    code, _, err = outcome(capsys, "signals", "remove", 1, "s", "--db", database)
    assert code == 2
    assert "has no signal 's' of its own" in err
    assert outcome(capsys, "signals", "add", 1, empty, "--name", "s", "--lower-is-confident", "--db", database)[0] == 0


def test_a_compressed_table_is_read_from_standard_input(database: Path) -> None:
    table = gzip.compress(f"{HEADER}\nmaze,0,atom,3,0.5\n".encode())
    command = [sys.executable, "-m", "salt_tui", "signals", "add", "1", "-", "--name", "s", "--db", str(database)]
    done = subprocess.run(command, input=table, capture_output=True, check=False, env={**os.environ})
    assert (done.returncode, done.stdout.decode()) == (
        0,
        f"salt-tui report 1 --unit atom --function s,max_probability --calibrator none --db {database}\n",
    )
