"""`compare` as a user calls it, and its numbers by hand."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from tests.stored_runs import EIGHT_TASKS, store_run

FORMATS = ("table", "json", "csv", "md", "latex", "html")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "x.db"
    sampling = {"temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 3}
    store_run(path, tasks=EIGHT_TASKS[:3], answers=8, atoms=10)
    store_run(path, tasks=EIGHT_TASKS[1:4], answers=8, atoms=10, seed=2, plan={"sampling": sampling})
    return path


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run_command_line(["compare", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def data_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    data = json.loads(output(capsys, *arguments, "--format", "json"))
    assert isinstance(data, dict)
    return data


def test_json_has_the_stable_names_and_says_what_differs(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, 1, 2, "--db", database)
    assert {"a", "b", "differs", "shared", "only_a", "only_b", "flips", "tasks", "mean"} <= set(data)
    assert set(data["differs"]) == {"temperature", "sampler_seed"}
    assert (data["shared"], data["only_a"], data["only_b"]) == (16, 8, 8)
    assert list(data["tasks"]) == list(EIGHT_TASKS[1:3])
    for found in (data["mean"], *data["tasks"].values()):
        assert set(found) == {"precision", "recall", "brier", "auroc_macro", "ece"}
        for numbers in found.values():
            names = {"a", "b", "difference", "relative", "interval", "p", "detectable", "problems_needed"}
            assert names <= set(numbers)
    mean = data["mean"]["precision"]
    tasks = [data["tasks"][task]["precision"] for task in data["tasks"]]
    assert mean["difference"] == pytest.approx(sum(task["b"] - task["a"] for task in tasks) / 2)
    low, high = mean["interval"]
    assert low <= mean["difference"] <= high
    assert 0.0 < mean["p"] <= 1.0


def test_flips_are_counted_both_ways_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.db"
    store_run(path, tasks=("maze",), answers=6, statuses=["correct", "wrong", "missing"])
    store_run(path, tasks=("maze",), answers=6, statuses=["wrong", "correct", "correct", "redundant"])
    data = data_of(capsys, 1, 2, "--db", path)
    assert data["flips"] == {"atoms": {"gained": 12, "lost": 6}, "problems": {"gained": 0, "lost": 0}}
    assert data["tasks"]["maze"]["precision"]["a"] == 1 / 2
    assert data["tasks"]["maze"]["precision"]["b"] == 2 / 4
    assert data["tasks"]["maze"]["recall"]["difference"] == pytest.approx(2 / 3 - 1 / 3)
    assert data["mean"]["recall"]["p"] == pytest.approx(2 / 2**6), "all six problems changed alike"
    assert data["mean"]["recall"]["relative"] == pytest.approx(1.0)
    store_run(path, tasks=("maze",), answers=6, statuses=["correct"] * 3)
    assert data_of(capsys, 1, 3, "--db", path)["flips"]["problems"] == {"gained": 6, "lost": 0}


def test_problems_of_one_run_alone_are_counted_where_there_are_any(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(output(capsys, 1, 2, "--db", database).split())
    assert "16 problems answered by both; only A 8, only B 8 left out; Brier" in text
    for _ in range(2):
        store_run(tmp_path / "equal.db", tasks=EIGHT_TASKS[:3], answers=8, atoms=10)
    text = " ".join(output(capsys, 1, 2, "--db", tmp_path / "equal.db").split())
    assert "24 problems answered by both; Brier" in text


def test_every_format_says_the_same(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, 1, 2, "--db", database)
    mean = f"{data['mean']['precision']['b']:.3f}".removeprefix("0").removesuffix("0")
    texts = {form: output(capsys, 1, 2, "--db", database, "--format", form) for form in FORMATS}
    assert [form for form, text in texts.items() if mean not in text] == []
    assert max(map(len, texts["table"].splitlines())) <= 80
    for task in data["tasks"]:
        # The first table is that of precision.
        verdict = re.search(rf"^ *{task}.*\] +(yes|maybe|no|small)\b", texts["table"], re.MULTILINE)
        assert verdict is not None
        assert (verdict[1] == "yes") is data["tasks"][task]["precision"]["clear"]
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert len(rows) == 5 * 3
    assert texts["html"].startswith("<!doctype html>")
    assert not re.search(r"""(?:href|src)=["']?http""", texts["html"])


def test_a_clear_difference_is_named_at_its_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.db"
    for seed, right in ((1, 9), (2, 4)):
        statuses = ["correct"] * right + ["wrong"] * (10 - right)
        store_run(path, tasks=EIGHT_TASKS[:2], answers=8, atoms=10, seed=seed, statuses=statuses)
    with closing(sqlite3.connect(path)) as connection, connection:
        # Differences that are the same everywhere have no spread.
        connection.execute("UPDATE unit SET status = 'wrong' WHERE kind = 'atom' AND \"index\" < generation % 3")
    data = data_of(capsys, 1, 2, "--db", path)
    assert [data["tasks"][task]["precision"]["clear"] for task in EIGHT_TASKS[:2]] == [True, True]
    for form in ("table", "md", "latex"):
        text = output(capsys, 1, 2, "--db", path, "--format", form)
        assert re.search(rf"{EIGHT_TASKS[1]}.*\][ |&]+yes\b".replace("_", r"\\?_"), text), form


def test_runs_of_two_files_and_several_pairs(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "y.db"
    store_run(other, tasks=EIGHT_TASKS[:3], answers=8, atoms=10, seed=5)
    data = data_of(capsys, f"{database}:1", f"{other}:latest")
    assert (data["shared"], data["differs"]) == (24, [])
    many = tmp_path / "z.db"
    for seed in (1, 2):
        store_run(many, answers=2, atoms=4, seed=seed)
    pairs = data_of(capsys, *[1, 2] * 3, "--db", many)
    assert len(pairs["pairs"]) == 3
    test = pairs["wilcoxon"]["precision"]
    assert test["cells"] == 24
    assert test["p_better"] <= test["p_better_holm"] <= 1.0
    few = data_of(capsys, 1, 2, 1, 2, "--db", database)["wilcoxon"]["precision"]
    assert (few["cells"], few["p_better"]) == (4, None)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("1",), "pairs of runs"),
        (("1", "2", "1"), "pairs of runs"),
        (("1", "1"), "with itself"),
        (("1", "9"), "there is no run"),
        (("1", "nowhere.db:1"), "nowhere.db"),
        (("1", "2", "--function", "max_probabilty"), "max_probability"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    database: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], named: str
) -> None:
    assert run_command_line(["compare", *arguments, "--db", str(database)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err


def test_too_few_shared_problems_are_refused_with_the_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.db"
    store_run(path, tasks=("maze",), answers=5, atoms=4)
    store_run(path, tasks=("maze",), answers=5, atoms=4, seed=3)
    assert run_command_line(["compare", "1", "2", "--db", str(path)]) == 2
    assert "share 5 answered problems" in capsys.readouterr().err
