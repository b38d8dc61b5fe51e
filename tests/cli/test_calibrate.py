"""`calibrate`: golden values through files, one value per row, null with a reason where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from salt_tui.cli import run_command_line
from scoring.calibrators import CALIBRATORS

pytestmark = pytest.mark.quick

CASES = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))["calibrators"][
    "cases"
]
METHODS = [("z_sigmoid", "z_sigmoid", 1e-9), ("minmax", "minmax_q0.01", 1e-9), ("isotonic", "isotonic", 1e-9),
           ("platt", "platt", 5e-4)]  # fmt: skip


def table(file: Path, scores: list[Any], correct: list[Any] | None = None, header: str = "score,correct") -> Path:
    labels = ["" for _ in scores] if correct is None else [int(value) for value in correct]
    file.write_text("\n".join([header, *(f"{score},{label}" for score, label in zip(scores, labels, strict=True))]))
    return file


def calibrated(
    capsys: pytest.CaptureFixture[str], method: str, fit: Path, target: Path, *more: str
) -> tuple[list[float | None], str]:
    assert run_command_line(["calibrate", method, "--fit", str(fit), "--apply", str(target), *more]) == 0
    captured = capsys.readouterr()
    return [json.loads(line) for line in captured.out.splitlines()], captured.err


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
@pytest.mark.parametrize(("method", "block", "tolerance"), METHODS)
def test_golden_values(
    case: dict[str, Any], method: str, block: str, tolerance: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = table(tmp_path / "fit.csv", case["train_scores"], case["train_correct"])
    target = table(tmp_path / "apply.csv", case["test_scores"])
    more = () if case["higher_is_confident"] else ("--lower-is-confident",)
    values, _ = calibrated(capsys, method, fit, target, *more)
    assert values == pytest.approx(case[block], abs=tolerance)


@pytest.mark.parametrize("method", [*CALIBRATORS, "binned:3", "histogram:2"])
@pytest.mark.parametrize(
    ("scores", "correct"),
    [
        ([0.5], [1]),
        ([0.5, 0.5, 0.5], [1, 0, 1]),
        ([0.1, 0.9], [0, 1]),
        ([0.0, 1.0, 1.0], [1, 1, 1]),
        ([0.0, 1.0, 0.5], [0, 0, 0]),
        ([0.2, 0.8, 0.99999994], [0, 1, 1]),
        ([], []),
    ],
)
def test_degenerate_training_gives_values_in_range_or_null_with_a_reason(
    method: str, scores: list[float], correct: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit, target = table(tmp_path / "fit.csv", scores, correct), table(tmp_path / "apply.csv", [0, 0.5, 1])
    values, talk = calibrated(capsys, method, fit, target)
    assert len(values) == 3
    for value in values:
        assert value is not None or talk
        assert value is None or 0.0 <= value <= 1.0
    assert "Warning" not in talk
    assert (None in values) == (not scores)


def test_scores_that_are_no_probabilities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = table(tmp_path / "fit.csv", [0.1, 0.9, 0.4, 0.6], [0, 1, 1, 0])
    target = table(tmp_path / "apply.csv", [0.5, 7, 0.2, -1])
    values, talk = calibrated(capsys, "temperature", fit, target)
    assert [value is None for value in values] == [False, True, False, True]
    assert "2 of 4 rows are null" in talk
    assert "apply.csv:3" in talk
    values, talk = calibrated(capsys, "beta", target_with_outcomes(tmp_path), target)
    assert values == [None] * 4
    assert talk.count("\n") == 1
    assert "needs scores in [0, 1]" in talk


def target_with_outcomes(folder: Path) -> Path:
    return table(folder / "wide.csv", [3, 4, 5], [0, 1, 1])


def test_scores_beyond_the_training_range_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A map of log-probabilities applied to probabilities: it has seen nothing like them."""
    fit = table(tmp_path / "fit.csv", [-8.1, -3.0, -2.0, -0.5], [0, 1, 0, 1])
    _, talk = calibrated(capsys, "isotonic", fit, table(tmp_path / "apply.csv", [0.97, 0.2, 0.5]))
    assert "3 of 3 scores lie outside the range it was fitted on, -8.1 to -0.5" in talk
    assert calibrated(capsys, "isotonic", fit, table(tmp_path / "inside.csv", [-8.1, -1.0, -0.5]))[1] == ""


def test_a_temperature_is_certain_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = table(tmp_path / "fit.csv", [0.9, 0.8, 0.7], [1, 1, 1])
    values, _ = calibrated(capsys, "temperature", fit, table(tmp_path / "apply.csv", [0.9, 0.4]))
    assert values == pytest.approx([1 - 1e-6, 1e-6], abs=1e-12)


def test_columns_by_other_names_and_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = table(tmp_path / "fit.csv", [3, 2, 1], [0, 1, 1], header="ppl,label")
    target = tmp_path / "apply.csv"
    target.write_text("ppl\n3\n1\n")
    more = ("--lower-is-confident", "--score-column", "ppl", "--correct-column", "label")
    low, high = calibrated(capsys, "isotonic", fit, target, *more)[0]
    assert (low, high) == (0.0, 1.0)
    target.write_text("ppl\n")
    assert calibrated(capsys, "isotonic", fit, target, *more)[0] == []


@pytest.mark.parametrize(
    ("method", "fit", "target", "named"),
    [
        ("isotonc", "score,correct\n1,1\n", "score\n1\n", "did you mean isotonic"),
        ("binned", "score,correct\n1,1\n", "score\n1\n", "binned:10"),
        ("binned:0", "score,correct\n1,1\n", "score\n1\n", "number of bins"),
        ("platt", "score,correct\n1,1\nnan,0\n", "score\n1\n", "fit.csv:3"),
        ("platt", "score,correct\n1,1\ninf,0\n", "score\n1\n", "fit.csv:3"),
        ("platt", "score,correct\n1,2\n", "score\n1\n", "fit.csv:2"),
        ("platt", "score,correct\n1,1\n", "score\nx\n", "apply.csv:2"),
        ("platt", "score,correct\n1,1\n", "other\n1\n", "no column 'confidence' or 'score'"),
        ("platt", "score\n1\n", "score\n1\n", "no column 'correct'"),
    ],
)
def test_bad_input_is_one_line(
    method: str, fit: str, target: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fit.csv").write_text(fit)
    (tmp_path / "apply.csv").write_text(target)
    arguments = ["calibrate", method, "--fit", str(tmp_path / "fit.csv"), "--apply", str(tmp_path / "apply.csv")]
    assert run_command_line(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err


def without(record: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    return {**record, "parameters": {**record["parameters"], **parameters}}


@pytest.mark.parametrize("method", [*CALIBRATORS, "histogram:1"])
def test_a_saved_map_that_was_changed_is_refused_and_one_that_was_not_is_read(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = table(tmp_path / "fit.csv", [0.1, 0.3, 0.6, 0.8, 0.9], [0, 1, 0, 1, 1])
    target, saved = table(tmp_path / "apply.csv", [0.2, 0.7, 0.85]), tmp_path / "map.json"
    assert run_command_line(["calibrate", method, "--fit", str(fit), "--save", str(saved)]) == 0
    record = json.loads(saved.read_text())
    again = ["calibrate", "--map", str(saved), "--apply", str(target)]
    assert run_command_line(again) == 0
    changed = [{**record, "lowest": 10**400}, {**record, "highest": float("nan")}, {**record, "lowest": True}]
    for name, value in record["parameters"].items():
        if isinstance(value, list):
            changed += [without(record, **{name: [*value, 7.0, 0.4]}), without(record, **{name: 0.5})]
            changed += [without(record, **{name: [[0.5]]}), without(record, **{name: [10**400]})]
        else:
            # Two numbers would be added to two scores, and only to two.
            changed += [without(record, **{name: bad}) for bad in ([0.5, 0.5, 0.5], 10**400, float("nan"), None, "x")]
        if name in ("width", "deviation", "temperature"):
            changed.append(without(record, **{name: 0.0}))
        if name == "rates":
            changed.append(without(record, rates=[7.0] * len(value)))
    capsys.readouterr()
    for one in changed:
        saved.write_text(json.dumps(one))
        assert run_command_line(again) == 2, one
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert "map.json" in captured.err
