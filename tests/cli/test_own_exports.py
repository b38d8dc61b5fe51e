"""Exports are read back by `metrics`, `calibrate` and `score` as they are, with the numbers of the report."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from tests.stored_runs import store_run

STATUSES = ["correct", "wrong", "abstained", "correct", "redundant"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    store_run(path, tasks=("dna_translation",), answers=6, statuses=[*STATUSES[:4], "missing"])
    return path


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run_command_line([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_metrics_of_an_export_are_those_of_the_report(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    output(capsys, "export", "latest", "-o", file, "--db", database)
    data: dict[str, Any] = json.loads(output(capsys, "metrics", file, "--json"))
    more = ("--unit", "atom", "--function", "max_probability", "--calibrator", "none", "--draws", "0")
    report = json.loads(output(capsys, "report", "--format", "json", "--db", database, *more))["rows"][0]
    assert data["skipped"] == {"abstained": 6, "missing": 6}
    assert data["n"] == report["n"] == 18
    for name in ("accuracy", "ece", "brier", "auroc", "auroc_micro", "nll", "euro_auc"):
        assert data[name] == pytest.approx(report[name], abs=1e-12), name
    options = ("--confidence-column", "mean_entropy", "--not-probability", "--lower-is-confident", "--json")
    lower = json.loads(output(capsys, "metrics", file, *options))
    more = ("--unit", "atom", "--function", "mean_entropy", "--calibrator", "none", "--draws", "0")
    report = json.loads(output(capsys, "report", "--format", "json", "--db", database, *more))["rows"][0]
    assert lower["auroc"] == pytest.approx(report["auroc"], abs=1e-12)


def test_an_export_is_calibrated_row_by_row(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.csv"
    output(capsys, "export", "latest", "-o", file, "--db", database)
    printed = output(capsys, "calibrate", "platt", "--fit", file, "--apply", file)
    values = [json.loads(line) for line in printed.splitlines()]
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [value is None for value in values] == [row["status"] == "missing" for row in rows]


def test_answers_of_an_export_are_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fence = "*" * 8
    rows = [
        {"task": "dna_translation", "reply": f"{fence}\nACG TTT\n{fence}", "reference": "ACG TTA"},
        {"task": "dna_translation", "reply": None, "reference": "ACG"},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = json.loads(output(capsys, "score", file, "--json"))["rows"]
    assert [row["statuses"] for row in found] == [["correct", "wrong"], ["missing"]]


def test_every_answer_of_a_real_export_is_labelled(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.jsonl"
    output(capsys, "export", "latest", "-o", file, "--db", database)
    assert len(json.loads(output(capsys, "score", file, "--json"))["rows"]) == 6
    first = json.loads(file.read_text().splitlines()[0])
    assert first["prompt_length"] == 2
    assert "prompt_tokens" not in first


@pytest.mark.parametrize(
    "method", ["z_sigmoid", "minmax", "binned:5", "histogram:5", "platt", "isotonic", "beta", "temperature"]
)
def test_a_saved_map_gives_the_values_of_the_fitted_one(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit, target, saved = tmp_path / "fit.csv", tmp_path / "apply.csv", tmp_path / "map.json"
    fit.write_text("score,correct\n" + "".join(f"{n / 40},{int(n * 7 % 11 < n / 4)}\n" for n in range(1, 40)))
    target.write_text("score\n0.1\n0.33\n0.8\n0.97\n")
    direct = output(capsys, "calibrate", method, "--fit", fit, "--apply", target, "--save", saved)
    assert output(capsys, "calibrate", "--map", saved, "--apply", target) == direct
    saved.write_text(saved.read_text().replace('"format": 1', '"format": 2'))
    assert run_command_line(["calibrate", "--map", str(saved), "--apply", str(target)]) == 2
    assert "format 2" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "{", "{}", '{"format": 1, "shape": "logistic", "parameters": {"slope": 1}}'])
def test_a_file_that_is_no_map_is_one_line(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.json").write_text(content)
    (tmp_path / "apply.csv").write_text("score\n0.1\n")
    arguments = ["--map", str(tmp_path / "map.json"), "--apply", str(tmp_path / "apply.csv")]
    assert run_command_line(["calibrate", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "map.json" in error


@pytest.mark.parametrize(
    "options",
    [
        ("platt", "--map", "map.json", "--apply", "a.csv"),
        ("--apply", "a.csv"),
        ("platt", "--fit", "a.csv"),
        ("--map", "map.json", "--apply", "a.csv", "--lower-is-confident"),
    ],
)
def test_options_that_do_not_go_together(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("score,correct\n0.1,1\n0.2,0\n")
    assert run_command_line(["calibrate", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_an_export_goes_to_stdout_as_to_a_file(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / f"a.{name}"
    output(capsys, "export", "latest", "-o", file, "--db", database)
    assert output(capsys, "export", "latest", "-o", "-", "--format", name, "--db", database) == file.read_text()


def test_stdout_takes_rows_of_tokens_and_no_database(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "export", "1", "-o", "-", "--tokens", "--db", database).startswith("run,study,task,position,")
    assert run_command_line(["export", "1", "-o", "-", "--format", "db", "--db", str(database)]) == 2
    assert "cannot go to stdout" in capsys.readouterr().err
    for option in ("--tokens", "--excel-safe"):
        assert run_command_line(["export", "1", "-o", "-", "--format", "jsonl", option, "--db", str(database)]) == 2
        assert capsys.readouterr().err.endswith(", not for .jsonl\n")
    assert run_command_line(["export", "1", "-o", "a.csv", "--format", "csv", "--db", str(database)]) == 2
    assert "the name of a file says its format" in capsys.readouterr().err
