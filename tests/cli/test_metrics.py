"""`metrics` on tables that came from elsewhere: golden numbers, stable names, and every bad row by its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salt_tui.cli import run_command_line

pytestmark = pytest.mark.quick

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))["metrics"]
NAMES = [
    "n", "accuracy", "ece", "mce", "ace", "smooth_ece", "brier", "brier_reliability", "brier_resolution",
    "brier_uncertainty", "brier_remainder", "nll", "auroc", "auroc_micro", "auprc", "prr", "aurc", "euro_auc",
    "euro_auc_low", "euro_auc_medium", "euro_auc_high", "reasons",
]  # fmt: skip
GOLDEN_NAMES = {"ece": "ece_15", "mce": "mce_15", "ace": "ace_15", "auprc": "average_precision"}
ROWS = "confidence,correct,group\n0.9,1,a\n0.2,0,a\n0.6,1,b\n"


def refuse_constant(name: str) -> None:
    raise AssertionError(f"JSON holds {name}")


def measured(capsys: pytest.CaptureFixture[str], file: Path, content: str | bytes, *more: str) -> dict[str, Any]:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run_command_line(["metrics", str(file), "--json", *more]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    data = json.loads(captured.out, parse_constant=refuse_constant)
    assert list(data)[: len(NAMES)] == NAMES
    assert set(data["reasons"]) == {name for name in NAMES if data[name] is None}
    return dict(data)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command_line(["metrics", *arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["kind"])
def test_golden_numbers(case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = case["group_size"]
    rows = [
        f"{confidence!r},{int(correct)},g{row // size}"
        for row, (confidence, correct) in enumerate(zip(case["confidence"], case["correct"], strict=True))
    ]
    data = measured(capsys, tmp_path / "t.csv", "\n".join(["confidence,correct,group", *rows]))
    assert data["n"] == len(rows)
    for name in NAMES[1:-1]:
        golden = GOLDEN_NAMES.get(name, name)
        if golden in case and isinstance(case[golden], float):
            tolerance = 2e-3 if name == "smooth_ece" else 1e-9
            assert data[name] == pytest.approx(case[golden], abs=tolerance), name


@pytest.mark.parametrize(
    "content",
    [
        ROWS,
        ROWS.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + ROWS.encode(),
        ROWS.rstrip("\n"),
        ROWS.replace("\n", "\n\n"),
        'group,"confidence", correct \n"a\nx",9e-1,TRUE\n"a\nx",.2,false\nb, 0.6 ,1.0\n',
    ],
)
def test_what_csv_may_look_like(content: str | bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = measured(capsys, tmp_path / "t.csv", content)
    assert (data["n"], data["auroc"], data["auroc_micro"]) == (3, 1.0, 1.0)
    assert data["ece"] == pytest.approx(0.7 / 3)


def test_columns_by_other_names_and_uncertainties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = "id,ppl,label,answer\n1,1.5,1,a\n2,90,0,a\n3,7,1,b\n"
    names = ("--confidence-column", "ppl", "--correct-column", "label", "--group-column", "answer")
    data = measured(capsys, tmp_path / "t.csv", content, *names, "--not-probability", "--lower-is-confident")
    assert (data["auroc"], data["prr"], data["ece"]) == (1.0, 1.0, None)
    assert data["reasons"]["ece"] == "not a probability"
    flipped = measured(capsys, tmp_path / "t.csv", "confidence,correct\n0.1,1\n0.8,0\n", "--lower-is-confident")
    assert flipped["ece"] == pytest.approx((0.1 + 0.2) / 2)


def test_error_probabilities_are_ranked_as_they_were_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1 − 1e-17 and 1 − 5e-17 are one double; the errors themselves are not."""
    rows = "confidence,correct\n1e-17,1\n2e-17,1\n3e-17,0\n5e-17,0\n"
    data = measured(capsys, tmp_path / "t.csv", rows, "--lower-is-confident")
    assert data["auroc"] == 1.0
    assert data["brier"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rows", "undefined"),
    [
        ("0.5,1,a\n", {"auroc", "auroc_micro", "prr"}),
        ("0.5,0,a\n0.5,0,b\n", {"auroc", "auroc_micro", "prr", "auprc"}),
        ("0.3,1,a\n0.3,0,a\n", set()),
        ("1,0,a\n0,1,a\n", set()),
        ("0,0,a\n1,1,a\n", set()),
        ("0.99999994,1,a\n1,1,a\n1,0,b\n", {"auroc_micro"}),
        ("0.9,1,a\n0.1,0,b\n", {"auroc_micro"}),
    ],
)
def test_degenerate_tables(rows: str, undefined: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = measured(capsys, tmp_path / "t.csv", f"confidence,correct,group\n{rows}")
    assert {name for name in NAMES if data[name] is None} == undefined
    assert (data["nll"] == "Infinity") == rows.endswith(("0,1,a\n", "\n1,0,b\n"))


def test_without_groups_micro_auroc_has_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = measured(capsys, tmp_path / "t.csv", "confidence,correct\n0.9,1\n0.1,0\n")
    assert data["reasons"] == {"auroc_micro": "no groups"}


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("nan,1,a", "not a finite number"),
        ("NaN,1,a", "not a finite number"),
        ("inf,1,a", "not a finite number"),
        ("1e999,1,a", "too large"),
        ("1_0,1,a", "not a finite number"),
        ("٣,1,a", "not a finite number"),
        (",1,a", "not a finite number"),
        ("1.01,1,a", "outside [0, 1]"),
        ("-0.01,1,a", "outside [0, 1]"),
        ("0.5,2,a", "not 0, 1, true or false"),
        ("0.5,,a", "not 0, 1, true or false"),
        ("0.5,yes,a", "not 0, 1, true or false"),
        ("0.5,1,", "empty"),
        ("0.5,1", "2 cells"),
        ("0.5,1,a,b", "4 cells"),
        ("\x1b[31m,1,a", "not a finite number"),
    ],
)
def test_a_bad_row_is_named_by_its_line(
    row: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_text(f'confidence,correct,group\n0.5,1,"a\nb"\n\n{row}\n0.5,1,a\n', encoding="utf-8")
    line = refused(capsys, str(file))
    assert "t.csv:5: " in line
    assert named in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "holds no rows"),
        (b"\n\n", "holds no rows"),
        (b"confidence,correct\n", "holds no rows"),
        (b"a,b\n1,2\n", "no column 'confidence'"),
        (b"confidence\n0.5\n", "no column 'correct'"),
        (b"confidence;correct\n0.5;1\n", "'confidence;correct'"),
        (b"confidence,confidence,correct\n1,1,1\n", "two columns"),
        (b'confidence,correct\n"0.5,1\n', "not CSV"),
        (b'confidence,correct\n"0.5"x,1\n', "not CSV"),
        (b"confidence,correct\n" + b"1" * 200_000 + b",1\n", "field larger"),
        (b"\xff\xfe\x00c", "not UTF-8"),
        (b"\x00\x01\x02", "no column"),
    ],
)
def test_a_hostile_file_is_one_line(
    content: bytes, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(content)
    line = refused(capsys, str(file))
    assert named in line
    assert "t.csv" in line


def test_no_file_a_folder_and_a_missing_group_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none.csv" in refused(capsys, str(tmp_path / "none.csv"))
    assert "directory" in refused(capsys, str(tmp_path)).lower()
    (tmp_path / "t.csv").write_text("confidence,correct\n0.5,1\n")
    assert "no column 'answer'" in refused(capsys, str(tmp_path / "t.csv"), "--group-column", "answer")


def test_the_table_states_n_and_every_direction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    assert run_command_line(["metrics", str(tmp_path / "t.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "n 3"
    assert next(line for line in lines if line.startswith("ECE")).split()[1:] == [".233", "↓", "0..1"]


def test_a_large_table_is_read_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(1)
    confidence = generator.random(20_000)
    correct = generator.random(20_000) < confidence
    rows = "\n".join(
        f"{p!r},{int(y)},{row // 20}" for row, (p, y) in enumerate(zip(confidence.tolist(), correct, strict=True))
    )
    data = measured(capsys, tmp_path / "t.csv", f"confidence,correct,group\n{rows}\n")
    assert data["ece"] < 0.02
    assert data["auroc"] == pytest.approx(5 / 6, abs=0.02)


def test_rewards_give_a_threshold_and_yardsticks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: trust above 3/(1 + 3) = 0.75, so 0.9 alone, which is right: 1 of 3; a perfect decider earns 2 of 3."""
    file = tmp_path / "x.csv"
    file.write_text(ROWS)
    assert run_command_line(["metrics", str(file), "--json", "--rewards", "1,-3,0,0"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data)[-2:] == ["utility", "yardsticks"]
    assert data["utility"]["threshold"] == 0.75
    assert data["utility"]["mean"] == pytest.approx(1 / 3)
    assert data["utility"]["oracle"] == pytest.approx(2 / 3)
    assert (data["utility"]["trusted"], data["utility"]["trusted_right"]) == (1, 1)
    assert data["yardsticks"]["brier"] == {"oracle": 0.0, "base_rate": pytest.approx(2 / 9)}
    assert run_command_line(["metrics", str(file), "--rewards", "1,-3,0,0"]) == 0
    assert "trust above 0.750" in capsys.readouterr().out


@pytest.mark.parametrize("rewards", ["1,2", "a,b,c,d", "0,0,1,0", "1,0,0,-1", ""])
def test_rewards_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], rewards: str) -> None:
    file = tmp_path / "x.csv"
    file.write_text(ROWS)
    assert "--rewards" in refused(capsys, str(file), "--rewards", rewards)
    assert "--rewards" in refused(capsys, str(file), "--rewards", "1,-3,0,0", "--not-probability")


def test_weights_count_rows_as_often_as_they_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(0.9, 1, 3), (0.2, 0, 1), (0.6, 1, 2), (0.7, 0, 2)]
    weighted = "confidence,correct,w\n" + "".join(f"{p},{y},{w}\n" for p, y, w in rows)
    repeated = "confidence,correct\n" + "".join(f"{p},{y}\n" * w for p, y, w in rows)
    data = measured(capsys, tmp_path / "w.csv", weighted, "--weight-column", "w", "--draws", "50")
    plain = measured(capsys, tmp_path / "r.csv", repeated)
    assert (data["n"], data["weight"], plain["n"]) == (4, 8.0, 8)
    for name in ("accuracy", "ece", "mce", "brier", "nll", "auroc", "auprc", "prr", "euro_auc", "brier_remainder"):
        assert data[name] == pytest.approx(plain[name], abs=1e-12), name
    assert data["reasons"]["aurc"] == data["reasons"]["ace"] == "not defined with weights"
    half = measured(capsys, tmp_path / "h.csv", weighted.replace(",3\n", ",1.5\n"), "--weight-column", "w")
    assert half["accuracy"] == pytest.approx(3.5 / 6.5)
    (tmp_path / "z.csv").write_text("confidence,correct,w\n0.5,1,0\n")
    assert "z.csv:2" in refused(capsys, str(tmp_path / "z.csv"), "--weight-column", "w")
    for weight in ("1e308", "1e-320"):  # two of them have no finite sum, or no digits
        (tmp_path / "z.csv").write_text(f"confidence,correct,w\n.5,1,{weight}\n.4,0,{weight}\n")
        assert "z.csv:2: w is" in refused(capsys, str(tmp_path / "z.csv"), "--weight-column", "w")


def test_bins_intervals_and_ece_over_bin_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = measured(capsys, tmp_path / "t.csv", ROWS, "--bins", "2", "--draws", "100")
    assert data["bins"] == [
        {"lower": 0.0, "upper": 0.5, "n": 1.0, "confidence": 0.2, "accuracy": 0.0, "gap": 0.2},
        {"lower": 0.5, "upper": 1.0, "n": 2.0, "confidence": 0.75, "accuracy": 1.0, "gap": -0.25},
    ]
    assert data["ece_by_bins"]["15"] == data["ece"]
    low, high = data["intervals"]["ece"]
    assert 0.0 <= low <= data["ece"] <= high <= 1.0
    assert data["intervals"]["auroc"] is None
    assert data["interval_reasons"]["auroc"].startswith("fewer than two answers")


@pytest.mark.parametrize(
    ("curve", "head", "rows"),
    [
        ("risk-coverage", "threshold,coverage,risk", 3),
        ("euro", "utility,euro", 101),
        ("bins", "lower,upper,n,confidence,accuracy,gap", 3),
        ("bin-counts", "bins,ece", 7),
        ("densities", "lower,upper,right,wrong", 40),
        ("label-noise", "wrong_labels,expected_shift,largest_shift,auroc,deviation", 4),
    ],
)
def test_curves_are_csv(curve: str, head: str, rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    assert run_command_line(["metrics", str(tmp_path / "t.csv"), "--curve", curve]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == head
    assert len(lines) == 1 + rows
    if curve == "risk-coverage":
        assert [line.split(",")[2] for line in lines[1:]] == ["0.0", "0.0", "0.3333333333333333"]
    assert "--curve nothing" in refused(capsys, str(tmp_path / "t.csv"), "--curve", "nothing")
    if curve == "euro":
        assert "probabilities" in refused(capsys, str(tmp_path / "t.csv"), "--curve", curve, "--not-probability")
