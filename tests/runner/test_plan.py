"""Plans and environments: canonical, hashed, readable again, and able to say what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from salt_tui.engine.device_words import device_in_words
from salt_tui.runner.plan import (
    Environment,
    RunPlan,
    SamplingPlan,
    TaskPlan,
    canonical_json,
    content_hash,
    differences,
    reads_date,
)

pytestmark = pytest.mark.quick

TASK = TaskPlan("maze", 1, "easy", {"rows": "3..5"}, "regular", 3, ("e",), ("a", "b"), 90)
PLAN = RunPlan("sha256:0f", "{{ x }}", {"enable_thinking": False}, "2026-01-02", 1, 2, (TASK,), SamplingPlan(), 512, 4)
ENVIRONMENT = Environment(
    "0.1", "3.11", "llama.cpp", {"llama_cpp": "1"}, ("CPU",), "auto", 0, False, 2, 512, 512, "f16", "f16", True,
    {"slots": 0.0}, True,
)  # fmt: skip


def test_reading_back_gives_the_same() -> None:
    assert RunPlan.from_json(canonical_json(PLAN)) == PLAN
    assert Environment.from_json(canonical_json(ENVIRONMENT)) == ENVIRONMENT


def test_the_hash_is_pinned() -> None:
    assert content_hash(canonical_json(PLAN))[:16] == "502a1e58cc09c179"


def test_differences_name_the_leaf() -> None:
    other = replace(PLAN, width=8, tasks=(replace(TASK, problem_ids=("a", "c")),))
    assert differences(canonical_json(PLAN), canonical_json(other)) == (
        'tasks[0].problem_ids[1]: "b" -> "c"',
        "width: 4 -> 8",
    )
    assert differences(canonical_json(PLAN), canonical_json(PLAN)) == ()


def test_differences_shorten_and_survive_another_shape() -> None:
    found = differences('{"a": [1], "b": "x"}', '{"a": [1, 2], "c": "' + "y" * 500 + '"}')
    assert len(found) == 3
    assert all(len(line) < 100 for line in found)


def test_the_device_is_named_alike_from_a_running_and_from_a_stored_run() -> None:
    running, stored = ("CPU", "CUDA0"), ("CPU some processor", "CUDA0 NVIDIA H200")
    assert device_in_words(running, 30, 2) == device_in_words(stored, 30, 2) == "CUDA0 30 layers"
    assert device_in_words(running, 0, 2) == device_in_words(stored, 0, 2) == "CPU ×2"
    assert device_in_words((), 30, 2) == "GPU 30 layers"


def test_only_a_template_that_reads_the_date_makes_a_plan_depend_on_it() -> None:
    assert reads_date("{{ strftime_now('%d %b %Y') }}")
    assert not reads_date("{{ messages[0].content }}")
    assert not reads_date(None)
