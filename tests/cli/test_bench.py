"""The commands that time and examine, as far as no model is needed."""

from __future__ import annotations

import json

import pytest

from salt_tui.cli import run_command_line
from salt_tui.commands import bench, doctor
from salt_tui.engine.engine_kinds import SCRIPTED_COMMAND
from salt_tui.engine.model_info import ContextInfo, Exactness, ModelInfo


def test_a_script_has_no_speed(scripted_model, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["bench", "-m", str(scripted_model("kronecker_product"))]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "is a script" in said.err


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("-np", "²"), "-np ²: whole numbers joined by commas"),
        (("-np", ","), "-np ,: whole numbers joined by commas"),
        (("-np", ""), "-np : whole numbers joined by commas"),
        (("-np", "1,,4"), "-np 1,,4: whole numbers joined by commas"),
        (("-np", "1,5"), "-np 5: the width must be 1, 2, 3 or a multiple of 4"),
        (("-np", "4,0"), "-np 0: the width must be"),
        (("-t", "0"), "-t 0: 1 to "),
        (("-t", "1000000"), "-t 1000000: 1 to "),
        (("-ngl", "-1"), "auto, all"),
        (("-r", "0"), "-r"),
    ],
)
def test_options_are_checked_before_the_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], named: str
) -> None:
    def loading(*arguments: object) -> None:
        raise AssertionError("the model was looked for")

    monkeypatch.setattr(bench, "resolve_model", loading)
    assert run_command_line(["bench", *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert named in said.err


def test_rates_and_costs_are_printed_per_width(capsys: pytest.CaptureFixture[str]) -> None:
    context = ContextInfo(4, 64, 512, 512, 2, 0, True, "f16", "f16", Exactness({}, None))
    times = bench.WidthTimes(context, (100.0, 300.0), (50.0, 50.0), (1.01, 1.03, 1.02), (1.5,), (1.0,), (12.0, 6.0))
    info = ModelInfo(
        "llama 1B Q4", "llama", None, None, 1_500_000, 3 << 20, 9, 9, 3, 0, None, False, (), None, None, None
    )  # type: ignore[arg-type]
    lines = list(bench.result_tables(info, [times]))
    assert lines[2] == "| llama 1B Q4 | 3.00 MiB | 1.50 M | CPU | 0 | 2 | 4 | pp256 | 200.00 ± 100.00 |"
    assert lines[3].endswith("| tg48 | 50.00 ± 0.00 |")
    assert "+2.0 % (+1 to +3)" in lines[6]
    assert "+50.0 %" in lines[6]
    assert "12.0" in lines[6]
    assert "6.0" in lines[6]


def test_a_restart_is_part_of_the_check() -> None:
    context = ContextInfo(4, 64, 512, 512, 2, 0, True, "f16", "f16", Exactness({"slots": 0.0}, True))
    assert doctor.with_restart(context, 0.0).exactness == Exactness({"slots": 0.0, "restart": 0.0}, True)
    assert doctor.with_restart(context, 0.5).exactness == Exactness({"slots": 0.0, "restart": 0.5}, False)


def test_doctor_says_what_it_measured(scripted_model, capsys: pytest.CaptureFixture[str]) -> None:
    model = scripted_model("kronecker_product")
    assert run_command_line(["doctor", "-m", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["context"]["exactness"] == {"differences": {"company": 0.0}, "exact": True}
    inexact = scripted_model("kronecker_product", exactness={"slots": 0.5})
    assert run_command_line(["doctor", "-m", str(inexact)]) == 0
    assert "NOT exact" in capsys.readouterr().out


def test_doctor_tells_build_and_devices_without_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "LLAMA_COMMAND", SCRIPTED_COMMAND)
    assert run_command_line(["doctor", "-m", "nosuchmodel"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("engine     scripted: ") for line in lines)
    assert any(line.startswith("features   ") for line in lines)
    assert lines[-1].startswith('problem    no model or file is called "nosuchmodel"')
    assert run_command_line(["doctor", "-m", "nosuchmodel", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["build"]["engine"], found["model"], found["context"]) == ("scripted", None, None)
    assert "nosuchmodel" in found["failure"]
