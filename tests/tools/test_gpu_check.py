"""The check of machines with a GPU, on the CPU and with the tiny model."""

from __future__ import annotations

import json

import pytest

from tools.gpu_check import main

pytestmark = pytest.mark.model


def test_everything_is_checked_on_a_cpu_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "nano", "--short", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] is False
    assert found["versions"]["llama-cpp-python"]
    assert found["exactness, width 1"] == dict.fromkeys(("warm_cold", "fork", "snapshot", "activations"), 0.0)
    assert set(found["exactness, width 4"]) == {
        *("warm_cold", "slots", "neighbours", "fork", "snapshot", "activations"),
    }
    assert not any(found["exactness, width 4"].values())
    assert {"cancel in a prompt, s", "cancel between steps, s"} <= set(found)
    memory = found["memory, width 4, MiB"]
    assert memory["weights"] + memory["cache"] <= memory["taken"]
    paces = {name: value for name, value in found.items() if name.startswith("CPU")}
    assert len(paces) in (2, 4)
    assert all(value["own_to_bare"] > 0 for value in paces.values())


def test_what_no_time_is_left_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "nano", "--short", "--seconds", "-1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.endswith("not measured: no time is left") for line in lines)


def test_without_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "no-such-model"]) == 2
    assert "no-such-model" in capsys.readouterr().err
