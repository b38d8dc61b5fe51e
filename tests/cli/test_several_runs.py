"""Several runs from one command: models in turn, repeats with other sampler seeds, and floors for scripts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from tests.conftest import ScriptedModel

TASK = "dna_translation"


def arguments(database: Path, *more: str) -> list[str]:
    return [
        "run", "--tasks", TASK, "--difficulty", "trivial", "--limit", "3", "--seed", "1", "--db", str(database),
        "--display", "none", *more,
    ]  # fmt: skip


def test_models_run_in_turn_and_json_holds_them_all(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = scripted_model(TASK)
    second = tmp_path / "other.scripted.json"
    shutil.copy(first, second)
    assert run_command_line(arguments(tmp_path / "x.db", "-m", str(first), "-m", str(second), "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in data["runs"]] == [1, 2]
    assert data["runs"][0]["mean"] == data["runs"][1]["mean"]
    assert data["spread"] == {} or set(data["spread"]) == {data["runs"][0]["model"]["name"]}


def test_repeats_have_their_own_seeds_and_a_spread(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(scripted_model(TASK))
    more = ("-m", model, "--repeat", "3", "--temp", "0.7", "--sampler-seed", "5")
    assert run_command_line(arguments(tmp_path / "x.db", *more, "--json")) == 0
    data = json.loads(capsys.readouterr().out)
    assert [run["plan"]["sampling"]["seed"] for run in data["runs"]] == [5, 6, 7]
    (spread,) = data["spread"].values()
    values = [run["mean"]["precision"] for run in data["runs"]]
    assert spread["precision"]["runs"] == 3
    assert spread["precision"]["mean"] == pytest.approx(sum(values) / 3)
    assert spread["precision"]["lowest"] == min(values)
    assert run_command_line(arguments(tmp_path / "y.db", *more)) == 0
    text = capsys.readouterr().out
    assert text.count("mean of tasks") == 3
    assert "spread between runs with other sampler seeds" in text


def test_a_value_below_its_floor_is_exit_1_and_said(
    scripted_model: ScriptedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(scripted_model(TASK))
    assert run_command_line(arguments(tmp_path / "x.db", "-m", model, "--fail-under", "precision=0", "--json")) == 0
    precision = json.loads(capsys.readouterr().out)["mean"]["precision"]
    assert 0.0 < precision < 1.0
    assert run_command_line(arguments(tmp_path / "y.db", "-m", model, "--fail-under", "precision=1", "--json")) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["mean"]["precision"] == precision, "the result is printed all the same"
    assert f"precision {precision:.4g} is below 1" in captured.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--fail-under", "precison=.4"), "did you mean precision"),
        (("--fail-under", "precision"), "NAME=NUMBER"),
        (("--fail-under", "precision=2"), "from 0 to 1"),
        (("--fail-under", "precision=x"), "no number"),
        (("--repeat", "2"), "--temp above 0"),
        (("--repeat", "0"), "--repeat 0"),
        (("--display", "app", "--repeat", "2", "--temp", "1"), "--repeat"),
    ],
)
def test_what_cannot_be_is_one_line_and_makes_no_run(
    options: tuple[str, ...],
    named: str,
    scripted_model: ScriptedModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    database = tmp_path / "x.db"
    assert run_command_line(arguments(database, "-m", str(scripted_model(TASK)), *options)) == 2
    assert named in capsys.readouterr().err
    assert not database.exists()
