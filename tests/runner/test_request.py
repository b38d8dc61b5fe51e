"""Requests: what is refused before anything is loaded, and which task takes which parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from salt_tui.engine.errors import ContextError
from salt_tui.runner.plan import SamplingPlan
from salt_tui.runner.request import EngineOptions, RunRequest, check_request, read_gpu_layers
from salt_tui.usage_error import UsageError
from tasks.task import IntegerRange

pytestmark = pytest.mark.quick

REQUEST = RunRequest("m", ("kronecker_product", "dna_translation"), "trivial", 3, 1)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1.0])
def test_temperatures_that_are_none(value: float) -> None:
    with pytest.raises(UsageError, match="--temp"):
        check_request(replace(REQUEST, sampling=SamplingPlan(temperature=value)))


@pytest.mark.parametrize("limit", [0, -1, 100_001, 10**30])
def test_limits_out_of_range(limit: int) -> None:
    with pytest.raises(UsageError, match="at least 1, at most 100000"):
        check_request(replace(REQUEST, limit=limit))


@pytest.mark.parametrize("threads", [0, -1, 100_000])
def test_threads_out_of_range(threads: int) -> None:
    with pytest.raises(UsageError, match="on this machine"):
        check_request(replace(REQUEST, engine=EngineOptions(threads=threads)))


@pytest.mark.parametrize("width", [0, -4, 5, 6, 7, 10])
def test_widths_at_which_slots_differ(width: int) -> None:
    with pytest.raises(ContextError, match="1, 2, 3 or a multiple of 4"):
        check_request(replace(REQUEST, engine=EngineOptions(width=width)))


def test_a_parameter_goes_to_the_tasks_that_have_it() -> None:
    kronecker, dna = check_request(replace(REQUEST, parameters=("entries=1..2",)))
    assert kronecker.parameters["entries"] == IntegerRange(1, 2)
    assert "entries" not in dna.parameters


def test_a_parameter_of_no_task_names_those_of_all() -> None:
    with pytest.raises(UsageError, match=r"--param codon=2: key=value with one of .*entries.*did you mean codons\?"):
        check_request(replace(REQUEST, parameters=("codon=2",)))


def test_all_names_every_task_once() -> None:
    from tasks.registry import TASKS

    assert [item.task.name for item in check_request(replace(REQUEST, tasks=("all",)))] == list(TASKS)
    assert len(check_request(replace(REQUEST, tasks=("maze", "maze")))) == 1


def test_gpu_layers() -> None:
    assert (read_gpu_layers("auto"), read_gpu_layers("all"), read_gpu_layers("12")) == ("auto", "all", 12)
    for text in ("9" * 5000, "", "some", "-1", "1.5", "٤"):
        with pytest.raises(UsageError, match="-ngl"):
            read_gpu_layers(text)
