"""`report` as a user calls it: stable names, 80 columns, every format, one line for what cannot be done."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from salt_tui.commands.report import print_summary
from salt_tui.measure.run_report import report_run
from salt_tui.store.records import ModelRecord, ProblemRecord, RunRecord
from salt_tui.store.store import open_store
from scoring.metrics import METRICS
from tests.stored_runs import EIGHT_TASKS, store_run


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "x.db"
    store_run(path, answers=6, atoms=10)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "x.db"
    store_run(path, tasks=EIGHT_TASKS[:2], answers=6, atoms=10)
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
    assert [line for line in lines if len(line) > 80] == []
    questions = [line for line in lines if line.endswith("?") or line.startswith("Does it know?")]
    assert len(questions) == 7
    for start in ("How right", "Does it know", "Which signal", "Recalibrate", "Which unit"):
        assert any(line.startswith(start) for line in lines)
    assert any(line.startswith("mean of tasks") for line in lines)
    assert not [line for line in output(capsys, database, "--draws", "0").splitlines() if line.endswith(" .")]


@pytest.mark.parametrize(
    "more", [("--unit", "atom", "--calibrator", "none,platt"), ("--by", "position"), ("--by", "line"), ("--by", "task")]
)
def test_other_tables_fit_80_columns(database: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    lines = output(capsys, database, *more).splitlines()
    assert max(len(line) for line in lines) <= 80


def test_what_cannot_be_told_apart_from_the_best_is_marked_with_the_statistic_of_its_column(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, small, "--draws", "200")
    data = json_of(output(capsys, small, "--draws", "200", "--format", "json"))
    findings = {finding["question"]: finding for finding in data["findings"]}
    for title, question, metric in (
        ("Which confidence function?", "function", "auroc"),
        ("Which calibration map?", "map", "brier"),
    ):
        table = text.split(title)[1].split("\n\n")[0].splitlines()
        marked = {line.split()[0] for line in table[2:] if " ●" in line}
        best = {"raw" if name == "none" else name for name in findings[question]["best"]}
        assert marked == best
        kind = "calibrator" if question == "map" else "function"
        rows = [row for row in data["rows"] if row["granularity"] == "atom"]
        rows = [
            row for row in rows if row["function" if question == "map" else "calibrator"] in ("max_probability", "none")
        ]
        values = {row[kind]: row[metric] for row in rows}
        shown = {line.split()[0]: line.split()[1].lstrip("●") for line in table[2 : 2 + len(values)]}
        assert (
            shown["raw" if kind == "calibrator" else "perplexity"]
            == f"{values['none' if kind == 'calibrator' else 'perplexity']:.3f}"[1:]
        )
        order = sorted(values, key=values.__getitem__, reverse=metric == "auroc")
        assert order[0] in findings[question]["best"], "the best mean is always in the set"
    assert " ".join(text.split()).count("cannot be told apart from the best of its column") == 1


def test_the_head_says_what_shaped_the_run_and_answers_in_sentences_in_every_format(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json_of(output(capsys, small, "--draws", "50", "--format", "json"))
    assert [finding["question"] for finding in data["findings"]][:4] == ["right", "calibrated", "function", "map"]
    assert data["header"]["difficulty"] == "easy"
    assert data["header"]["sampling"]["temperature"] == 0.0
    assert (data["header"]["plan_hash"], data["header"]["environment_hash"]) == ("plan-hash", "environment-hash")
    table, md, latex = (
        " ".join(output(capsys, small, "--draws", "50", "--format", f).split()) for f in ("table", "md", "latex")
    )
    for finding in data["findings"]:
        assert finding["sentence"] in table
        assert finding["sentence"] in md
        assert " ".join(finding["sentence"].split()) in latex
    for text in (table, md):
        assert "easy · regular, 3 examples · seed 1 · greedy · width 4 · CPU ×2 · exact" in text
    rows = list(csv.DictReader(io.StringIO(output(capsys, small, "--draws", "0", "--format", "csv", "--unit", "atom"))))
    assert {row["sampling"] for row in rows} == {"greedy"}
    assert {(row["difficulty"], row["seed"]) for row in rows} == {("easy", "1")}


def test_latex_tables_hold_every_cell_escaped(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, small, "--draws", "20", "--format", "latex")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 7
    lines = [line for line in text.splitlines() if line and not line.startswith(("%", "\\"))]
    assert all(line.endswith(r" \\") for line in lines)
    assert not re.search(r"(?<!\\)[_&%#](?=\w)", " ".join(lines).replace(" & ", "  "))
    assert r"matrix\_multiplication" in text


def test_a_wide_terminal_gets_wide_tables(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = {}
    for columns in (60, 80, 150):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = output(capsys, small, "--draws", "0").splitlines()
        widths[columns] = max(map(len, lines))
        assert ("AUPRC ↑" in " ".join(lines)) == (columns == 150)
    assert widths[60] < widths[80] <= 80 < widths[150] <= 150


def test_json_has_the_analyses_that_the_tables_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "x.db"
    tasks = EIGHT_TASKS[:2]
    store_run(database, tasks=tasks, answers=4, atoms=10)
    more = ("--draws", "20", "--unit", "line", "--function", "perplexity")
    analyses = json_of(output(capsys, database, "--format", "json", *more))["analyses"]
    position, history = analyses["position"], analyses["history"]
    assert len(position["edges"]) == 11
    assert position["n"] == [8] * 10
    assert len(position["accuracy"]) == len(position["ece"]) == 10
    assert list(position["tasks"]) == list(history["tasks"]) == list(tasks)
    for curve in position["tasks"].values():
        assert curve["n"] == [4] * 10
    means = [sum(curve["accuracy"][place] for curve in position["tasks"].values()) / 2 for place in range(10)]
    assert position["accuracy"] == pytest.approx(means)
    assert len(history["edges"]) == 6
    assert sum(history["n"]) == 8 * 9


def test_lines_end_at_words_at_the_width_of_the_terminal(
    database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns, width in (("60", 60), ("400", 160)):
        monkeypatch.setenv("COLUMNS", columns)
        print_summary(report_run(database, "1"))
        lines = capsys.readouterr().out.splitlines()
        notes = lines[[line.startswith("mean of tasks") for line in lines].index(True) + 1 :]
        assert max(map(len, notes)) <= width
        assert " ".join(" ".join(notes).split()).endswith("recall and AUROC (0.5 is chance; micro: inside answers).")


def test_means_that_leave_out_a_task_are_marked_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "x.db"
    store_run(database, tasks=("code", "maze"), answers=4, atoms=10)
    with sqlite3.connect(database) as connection:  # nothing is written in maze: a recall and nothing else
        maze = "generation IN (SELECT generation.id FROM generation JOIN problem ON problem.id = problem"
        maze += " WHERE task = 'maze')"
        connection.execute(f"DELETE FROM unit WHERE {maze} AND kind <> 'atom'")
        kept = {"generation", "kind", "index", "reference", "status"}
        empty = [row[1] for row in connection.execute("PRAGMA table_info(unit)") if row[1] not in kept]
        connection.execute(
            f"UPDATE unit SET status = 'missing', {', '.join(f'{name} = NULL' for name in empty)} WHERE {maze}"
        )
    text = output(capsys, database, "--draws", "50")
    right, knows = (line for line in text.splitlines() if line.startswith("mean of tasks"))
    assert re.fullmatch(r"mean of tasks +\*\.\d+ \[.*\] +\.\d+ \[.*\] +\*\.000", right)
    assert re.fullmatch(r"mean of tasks 40 \*\.\d+ \*\.\d+ \*\.\d+ \[.*\] +\*\.\d+ \[.*\] +\*\.\d+", knows)
    tables = text.split("\n\n")
    for title in ("How right is it?", "Does it know?", "Atoms, lines"):
        (table,) = [table for table in tables if table.startswith(title)]
        assert "\nundefined: " in table
    assert re.search(r"^atom +40 \*\.\d+ .*\*\.\d+ +\*\.\d+$", text, re.MULTILINE)
    assert "(n 40 in 8 answers, mean of 1 of 2 tasks; of those asked for 2 tasks)." in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    print_summary(report_run(database, "1"))
    summary = capsys.readouterr().out
    assert re.search(r"^mean of tasks +\*\.\d+ +\.\d+ +\*\.000 \*\.\d+ +\*\.\d+ +\*\.\d+$", summary, re.MULTILINE)
    assert "\n* mean of the other tasks\n" in summary


def test_means_of_all_tasks_are_not_marked(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(report_run(database, "1"))
    assert "*" not in capsys.readouterr().out
    assert "in 48 answers, mean of 8 tasks)" in " ".join(output(capsys, database, "--draws", "0").split())


def test_a_task_without_an_answer_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ModelRecord(
        "a" * 64,
        "a" * 64,
        "tiny",
        "/models/tiny.gguf",
        1000,
        "llama 1M Q4_1",
        "llama",
        "Q4_1",
        10**6,
        256,
        2048,
        None,
        "{}",
    )
    plan = RunRecord('{"limit": 1}', "plan-hash", "{}", "environment-hash", True, ())
    problem = ProblemRecord("maze", 0, "maze0", "easy", 1, "regular", "text", "U L", 2, 2)
    with open_store(tmp_path / "x.db") as store:
        store.create_run(model, tuple(bytes([value]) for value in range(256)), plan, [problem])
    report = report_run(tmp_path / "x.db", "latest")
    assert [task.answers for task in report.tasks] == [0]
    assert {value.reason for value in report.tasks[0].values.values()} == {"no finished answer"}
    print_summary(report)
    assert "no prec., recall, redun., ECE, AUROC, micro: no finished answer" in capsys.readouterr().out


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


def test_markdown_tables_have_one_width(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, small, "--format", "md", "--draws", "0")
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
