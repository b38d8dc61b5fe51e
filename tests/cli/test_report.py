"""`report` as a user calls it: stable names, 80 columns, every format, one line for what cannot be done."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from scoring.metrics import METRICS
from tests.stored_runs import EIGHT_TASKS, store_run


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "x.db"
    store_run(path, answers=6, atoms=10)
    return path


def output(capsys: pytest.CaptureFixture[str], database: Path, *more: str) -> str:
    assert run_command_line(["report", "--db", str(database), *more]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refuse_constant(name: str) -> None:
    raise AssertionError(f"JSON holds {name}")


def json_of(text: str) -> dict[str, Any]:
    assert text.count("\n") == 1
    data = json.loads(text, parse_constant=refuse_constant)
    assert isinstance(data, dict)
    return data


def test_json_has_the_stable_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=4, atoms=10)
    data = json_of(output(capsys, database, "--format", "json", "--draws", "50"))
    assert {"run", "model", "plan", "tasks", "mean", "rows"} <= set(data)
    assert set(data["tasks"]) == set(EIGHT_TASKS[:2])
    for row in data["rows"]:
        assert {"granularity", "function", "calibrator", "n", "intervals", "reasons", *METRICS} <= set(row)
        assert all(row[name] is not None or row["reasons"][name] for name in METRICS)
    raw = next(row for row in data["rows"] if (row["function"], row["calibrator"]) == ("max_probability", "none"))
    low, high = raw["intervals"]["auroc"]
    assert low < raw["auroc"] < high


def test_filters_choose_the_product_of_what_they_name(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--unit", "atom,line", "--function", "perplexity", "--calibrator", "none,binned:7")
    data = json_of(output(capsys, database, "--format", "json", "--draws", "0", *names))
    assert [(row["granularity"], row["function"], row["calibrator"]) for row in data["rows"]] == [
        ("atom", "perplexity", "none"),
        ("atom", "perplexity", "binned:7"),
        ("line", "perplexity", "none"),
        ("line", "perplexity", "binned:7"),
    ]
    assert data["rows"][0]["intervals"] == {}
    assert "rows_left_out" not in data


def test_the_table_fits_80_columns_and_answers_every_question(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = output(capsys, database, "--draws", "50").splitlines()
    notes = ("↑", "▲", "atoms by", "ECE", "[95", "–", "n ", "Map", "Unit", "Calib", "Funct", "Right", "raw")
    too_long = [line for line in lines if len(line) > 80 and not line.startswith(notes)]
    assert [line for line in too_long if "  " in line] == []
    questions = [line for line in lines if line.endswith("?") or line.startswith("Does it know?")]
    assert len(questions) == 7
    for start in ("Right:", "Calibrated:", "Function:", "Map:", "Unit:", "Along the answer:"):
        assert any(line.startswith(start) for line in lines)
    assert any(line.startswith("mean of tasks") for line in lines)
    assert not [line for line in output(capsys, database, "--draws", "0").splitlines() if line.endswith(" .")]


@pytest.mark.parametrize(
    "more", [("--unit", "atom", "--calibrator", "none,platt"), ("--by", "position"), ("--by", "line")]
)
def test_other_tables_fit_80_columns(database: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    lines = output(capsys, database, *more).splitlines()
    assert max(len(line) for line in lines if not line.startswith(("–", "▲", "left out"))) <= 80


def test_a_single_row_shows_every_metric_with_its_direction(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, database, "--unit", "atom", "--function", "max_probability", "--calibrator", "none")
    for metric in METRICS.values():
        assert any(line.startswith(metric.title) for line in text.splitlines()), metric.name
    assert "↑ 0..1" in text
    assert re.search(r"atoms · max_probability · raw · n 4\d\d in 48 answers", text)


def test_csv_has_one_line_per_row_with_equal_names(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, database, "--format", "csv", "--unit", "atom", "--function", "perplexity,max_probability")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2 * 11
    assert {"granularity", "function", "calibrator", "n", *METRICS, "ece_low", "ece_high", "reasons"} <= set(rows[0])
    raw = next(row for row in rows if (row["function"], row["calibrator"]) == ("perplexity", "none"))
    assert raw["ece"] == ""
    assert "ece: not a probability" in raw["reasons"]


def test_markdown_tables_have_one_width(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, database, "--format", "md", "--draws", "0")
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 7
    for table in tables:
        assert len({line.count("|") for line in table}) == 1


@pytest.mark.parametrize("statuses", [["correct"] * 3, ["wrong"] * 3, ["abstained"], ["missing"] * 2, ["redundant"]])
@pytest.mark.parametrize(("answers", "form"), [(1, "table"), (2, "table"), (2, "json"), (1, "csv"), (2, "md")])
def test_degenerate_runs_are_reported_without_a_word_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], statuses: list[str], answers: int, form: str
) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=EIGHT_TASKS[:2], answers=answers, statuses=statuses)
    text = output(capsys, database, "--format", form, "--draws", "20")
    assert "nan" not in text.lower().replace("–", "")
    if form == "json":
        json_of(text)


def test_a_run_without_any_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "x.db", tasks=EIGHT_TASKS[:1], answers=0)
    for form in ("table", "json", "csv", "md"):
        assert output(capsys, tmp_path / "x.db", "--format", form) != ""


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--function", "perplexit"), "did you mean perplexity"),
        (("--calibrator", "plat"), "did you mean platt"),
        (("--calibrator", "binned:0"), "number of bins"),
        (("--unit", "atoms"), "did you mean atom"),
        (("--by", "dificulty"), "did you mean difficulty"),
        (("--draws", "-1"), "--draws"),
        (("--draws", "many"), "--draws"),
        (("--format", "xml"), "xml"),
        (("7",), "there is no run"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    database: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], named: str
) -> None:
    assert run_command_line(["report", "--db", str(database), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err
