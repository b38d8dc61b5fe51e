"""What a report says of all options of multiple-choice problems: hand-computed values, in every format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.store import open_store

ONE_ROW = ("--unit", "atom", "--function", "max_probability", "--calibrator", "none")
UNSEEN = "not among the tokens that the engine lists"


def stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: list[tuple[str, Mapping[str, float | None]]]
) -> Path:
    """Store answers to questions with as many options as letters; each is the right letter and all probabilities."""
    questions, database = tmp_path / "q.jsonl", tmp_path / "x.db"
    rows: list[dict[str, Any]] = [
        {"id": n, "kind": "choice", "prompt": f"{n}?", "choices": [f"option {x}" for x in given], "reference": right}
        for n, (right, given) in enumerate(answers)
    ]
    questions.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert run_command_line(["tasks", "export", f"file:{questions}", "-o", "-"]) == 0
    replies = [{**json.loads(line), "response": "A"} for line in capsys.readouterr().out.splitlines()]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in replies))
    assert run_command_line(["import", str(file), "--db", str(database)]) == 0
    capsys.readouterr()
    with open_store(database) as store:
        for letter in sorted({letter for _, given in answers for letter in given}):
            records = [
                SignalRecord(
                    n, "token", 0, f"choice_{letter}", given[letter], UNSEEN if given[letter] is None else None
                )
                for n, (_, given) in enumerate(answers, 1)
                if letter in given
            ]
            store.add_signals(Work(1), records)
    return database


def report(capsys: pytest.CaptureFixture[str], database: Path, form: str, *more: str) -> str:
    capsys.readouterr()
    assert run_command_line(["report", "1", "--db", str(database), "--format", form, *more]) == 0
    return capsys.readouterr().out


def test_a_report_measures_all_letters_and_leaves_out_what_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = stored(
        tmp_path,
        capsys,
        [
            ("A", {"A": 0.8, "B": 0.2}),
            ("B", {"A": 0.6, "B": 0.4}),
            ("C", {"A": 0.5, "B": 0.25, "C": 0.25}),
            ("A", {"A": 0.9, "B": 0.1, "C": None}),
        ],
    )
    found = json.loads(report(capsys, database, "json", "--draws", "200", *ONE_ROW))["choices"]
    task = found["tasks"]["file:q"]
    assert (task["n"], task["letters"], task["left_out"]) == (3, 3, {UNSEEN: 1})
    raw = task["raw"]
    assert raw["multiclass_brier"] == pytest.approx((0.08 + 0.72 + 0.875) / 3)
    # A: (.2 + .6 + .5)/3; B: .2, .6 and .25 over 3; C: .75 over the one problem that offers it.
    assert raw["classwise_ece"] == pytest.approx((1.3 / 3 + 1.05 / 3 + 0.75) / 3)
    assert raw["interval"][0] < raw["multiclass_brier"] < raw["interval"][1]
    assert found["mean"]["raw"]["multiclass_brier"] == raw["multiclass_brier"]
    assert task["temperature"]["reasons"] == {}
    assert 0.01 <= task["fitted_temperature"] <= 100.0
    text = report(capsys, database, "md", "--draws", "20")
    assert "### Multiple choice: how good are all probabilities?" in text
    assert "| file:q | 3 | 3 | .558 [" in text
    assert f"1 of 4 answers left out: {UNSEEN}" in " ".join(text.split())


def test_one_answer_an_impossible_letter_and_nothing_known_have_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = stored(tmp_path, capsys, [("B", {"A": 1.0, "B": 0.0})])
    task = json.loads(report(capsys, database, "json", "--draws", "200", *ONE_ROW))["choices"]["tasks"]["file:q"]
    assert (task["raw"]["multiclass_brier"], task["raw"]["multiclass_nll"]) == (2.0, "Infinity")
    assert task["raw"]["interval"] is None
    assert task["temperature"]["reasons"]["multiclass_brier"] == "fewer than two generations"
    other = tmp_path / "other"
    other.mkdir()
    unknown = stored(other, capsys, [("A", {"A": None, "B": 0.3}), ("A", {"A": 0.5, "B": None})])
    data = json.loads(report(capsys, unknown, "json", "--draws", "200", *ONE_ROW))["choices"]
    assert data["tasks"]["file:q"]["raw"]["reasons"]["classwise_ece"] == UNSEEN
    assert data["mean"]["raw"]["multiclass_brier"] is None
    assert "choices" not in json.loads(report(capsys, _without_choices(tmp_path), "json", "--draws", "0", *ONE_ROW))


def _without_choices(tmp_path: Path) -> Path:
    from tests.stored_runs import store_run

    path = tmp_path / "plain.db"
    store_run(path, tasks=("maze",), answers=2, atoms=5)
    return path
