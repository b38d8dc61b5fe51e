"""What Setup offers, what it refuses, what it estimates and remembers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.app.help_text import METRICS, VERDICTS, help_text
from salt_tui.app.runs_state import matching, run_cells
from salt_tui.app.settings import Choices, choices_path, load_choices, save_choices
from salt_tui.app.setup_state import estimate, estimate_line, look_around, make_request, problem_with, task_example
from salt_tui.palette import GLYPHS, DrawingMode
from salt_tui.runner.cost_estimate import CostEstimate, Pace, earlier_pace, estimate_cost
from salt_tui.store.queries import open_queries
from tasks.registry import TASKS

CHOICES = Choices(model="tiny.scripted.json", tasks=("maze", "code"), difficulty="trivial", limit=10)


def test_what_is_chosen_is_what_runs() -> None:
    asked = make_request(CHOICES)
    assert (asked.model, asked.tasks, asked.difficulty, asked.limit, asked.engine.width) == (
        "tiny.scripted.json", ("maze", "code"), "trivial", 10, 4,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tasks": ()}, "at least one task"),
        ({"limit": 0}, "--limit 0"),
        ({"width": 5}, "-np 5"),
        ({"difficulty": "absurd"}, "unknown difficulty"),
        ({"tasks": ("mazes",)}, "did you mean maze"),
    ],
)
def test_what_cannot_be_started_is_said_in_one_line(change: dict[str, object], words: str) -> None:
    problem = problem_with(replace(CHOICES, **change), None)  # type: ignore[arg-type]
    assert problem is not None
    assert words in problem
    assert "\n" not in problem
    assert problem_with(CHOICES, None) is None


def test_choices_are_remembered_and_a_damaged_file_gives_the_defaults() -> None:
    assert load_choices() == Choices()
    save_choices(CHOICES)
    assert load_choices() == CHOICES
    choices_path().write_text('{"limit": "many", "seed": 3, "tasks": ["maze", 4]}', encoding="utf-8")
    assert load_choices() == Choices(seed=3, tasks=("maze",))
    choices_path().write_bytes(b"\xff{")
    assert load_choices() == Choices()


def test_the_estimate_grows_with_the_number_of_samples_and_takes_time_from_a_pace() -> None:
    few = estimate_cost(make_request(CHOICES), None)
    many = estimate_cost(make_request(replace(CHOICES, limit=100)), Pace(1, 50.0, 200.0, 4))
    assert few.answers == 20
    assert few.answer_tokens < few.most_tokens
    assert few.seconds is None
    assert many.answer_tokens == pytest.approx(10 * few.answer_tokens, rel=0.05)
    assert many.seconds == pytest.approx(many.prompt_tokens / 200 + many.answer_tokens / 50)
    assert many.most_seconds == pytest.approx(many.prompt_tokens / 200 + many.most_tokens / 50)


def test_the_pace_is_that_of_the_last_run_of_the_model(stored: Path) -> None:
    pace = earlier_pace(stored, "tiny.scripted.json")
    assert pace is not None
    assert (pace.run, pace.width) == (1, 4)
    assert pace.tokens_per_second > 0
    assert earlier_pace(stored, "another") is None
    assert earlier_pace(stored.with_name("none.db"), "tiny.scripted.json") is None
    assert "at the pace of its last run" in estimate(CHOICES, stored)


def test_an_estimate_in_words() -> None:
    words = estimate_line(CostEstimate(40, 12_000, 900, 2_500, 61.0, 3_700.0))
    assert words == (
        "40 answers, about 900 to 2.5 k answer tokens after 12.0 k prompt tokens; 1:01 to 1:01:40 at the pace of its"
        " last run"
    )


def test_what_there_is(stored: Path) -> None:
    offer = look_around(stored)
    assert offer.runs == 1
    assert offer.unfinished == ()
    assert [task.name for task in offer.tasks] == list(TASKS)
    assert offer.models
    assert look_around(stored.with_name("none.db")).runs == 0
    assert not stored.with_name("none.db").exists()


@pytest.mark.parametrize("name", ["maze", "kronecker_product"])
def test_an_example_shows_the_problem_and_its_right_answer(name: str) -> None:
    text = task_example(name, replace(CHOICES, tasks=(name,)))
    assert text.startswith(TASKS[name].title)
    assert "\nasked\n" in text
    assert "\nright answer\n" in text
    assert "********" in text


def test_runs_are_filtered_by_every_word(stored: Path) -> None:
    with open_queries(stored) as queries:
        runs = queries.list_runs()
    assert matching(runs, "TINY dna finished") == runs
    assert matching(runs, "tiny interrupted") == []
    assert matching(runs, "") == runs
    assert run_cells(runs[0])[:5] == ("1", "tiny.scripted.j…", "2 tasks", "trivial", "8/8")


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_help_explains_every_glyph_and_every_number_with_its_direction(mode: DrawingMode) -> None:
    text = help_text([("Map", [("w", "Next wrong")])], mode, "keys.toml")
    assert set(VERDICTS) == set(GLYPHS)
    for status, glyph in GLYPHS.items():
        assert f"{glyph}  {status}:" in text
    for what, direction in METRICS.values():
        assert what in text
        assert direction in text
        assert "better" in direction
    assert "unsure" in text
    assert max(map(len, text.splitlines())) <= 120
