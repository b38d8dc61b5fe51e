"""What Setup says a run will cost, against what a run of the same choices then took."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.runner.cost_estimate import Pace, earlier_pace, estimate_cost
from salt_tui.runner.loop import Loop
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from tests.conftest import ScriptedModel

TASKS = ("kronecker_product", "dna_translation")


def test_after_a_run_the_answers_are_expected_to_be_as_long_as_they_were(
    scripted_model: ScriptedModel, tmp_path: Path
) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS)
    asked = RunRequest(str(model), TASKS, "trivial", 3, 1)
    ready = prepare_run(asked, database, lambda event: None)
    try:
        Loop(ready, lambda event: None, threading.Event()).run()
    finally:
        ready.close()
    pace = earlier_pace(database, model.name)
    assert pace is not None
    assert set(pace.tokens_per_character) == {(task, "regular") for task in TASKS}
    with sqlite3.connect(database) as connection:
        took = dict(
            connection.execute(
                "SELECT task, count(*) FROM token JOIN generation ON generation.id = token.generation"
                " JOIN problem ON problem.id = generation.problem GROUP BY task"
            )
        )
    for task in TASKS:
        assert estimate_cost(replace(asked, tasks=(task,)), pace).answer_tokens == took[task]
    cost = estimate_cost(asked, pace)
    assert cost.answer_tokens == sum(took.values())
    assert cost.answer_tokens <= cost.most_tokens
    assert cost.seconds is not None
    assert cost.seconds > 0


def test_the_pace_of_prompts_counts_a_shared_preamble_once(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS)
    ready = prepare_run(RunRequest(str(model), TASKS, "trivial", 3, 1), database, lambda event: None)
    try:
        Loop(ready, lambda event: None, threading.Event()).run()
    finally:
        ready.close()
    prompts = [job.prompt for job in ready.jobs]
    assert all(encoded.preamble > 0 for encoded in prompts)
    evaluated = sum(len(encoded.prompt) - encoded.preamble for encoded in prompts)
    evaluated += prompts[0].preamble + prompts[3].preamble  # three problems of each task
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE generation SET prompt_seconds = 0.5")
    pace = earlier_pace(database, model.name)
    assert pace is not None
    assert pace.prompt_tokens_per_second == evaluated / 3.0


def test_a_task_that_was_not_measured_takes_the_mean_of_those_that_were() -> None:
    pace = Pace(1, 10.0, None, 1, {("maze", "regular"): 0.5, ("code", "regular"): 1.5, ("maze", "cot"): 9.0})
    assert pace.expected_tokens("maze", "regular", 100) == 50
    assert pace.expected_tokens("dna_translation", "regular", 100) == 100
    assert pace.expected_tokens("dna_translation", "cot", 100) == 900
    assert Pace(1, 10.0, None, 1).expected_tokens("maze", "regular", 100) is None


@pytest.mark.parametrize("ratio", [0.1, 1.0, 100.0])
def test_an_estimate_stays_below_the_limit(ratio: float) -> None:
    pace = Pace(1, 10.0, None, 1, {("maze", "regular"): ratio})
    asked = RunRequest("nano", ("maze",), "easy", 4, 1)
    for request in (asked, replace(asked, max_tokens=20)):
        cost = estimate_cost(request, pace)
        assert 0 < cost.answer_tokens <= cost.most_tokens
    assert estimate_cost(replace(asked, max_tokens=20), pace).most_tokens == 80
