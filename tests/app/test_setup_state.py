"""What Setup offers, what it refuses, what it estimates and remembers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from rich.cells import cell_len

from salt_tui.app import setup_state
from salt_tui.app.dialogs import completed_path
from salt_tui.app.help_text import NUMBERS, VERDICTS, help_text, key_names_text
from salt_tui.app.runs_state import (
    RunNumbers,
    begun,
    column_widths,
    details,
    matching,
    measure_run,
    ordered,
    run_cells,
    why_not,
)
from salt_tui.app.settings import Choices, choices_path, keys_path, load_choices, load_keys, save_choices
from salt_tui.app.setup_state import (
    estimate,
    estimate_words,
    field_problems,
    first_problem,
    look_around,
    make_request,
    model_at,
    problem_with,
    quick_check,
    task_example,
    whole_number,
)
from salt_tui.app.text_rows import broken_lines
from salt_tui.engine.errors import ModelError
from salt_tui.measure.run_report import report_run
from salt_tui.palette import GLYPHS, DrawingMode, Look
from salt_tui.paths import user_models_file
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
        ({"limit": 0}, "Samples: at least 1"),
        ({"width": 5}, "Width: 1, 2, 3 or a multiple of 4"),
        ({"seed": -1}, "Seed: at least 0"),
        ({"limit": 100_001}, "Samples: at most 100,000"),
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
    assert "at the pace of its last run" in estimate(CHOICES, stored)[0]


def test_an_estimate_in_words() -> None:
    known = "about 1:01, at most 1:01:40 at the pace of its last run; 40 answers, about 900, at most 2.5 k tokens"
    assert estimate_words(CostEstimate(40, 12_000, 900, 2_500, 61.0, 3_700.0)) == (
        f"{known} after 12.0 k of prompts",
        known,
        "about 1:01, at most 1:01:40; 40 answers, about 900, at most 2.5 k tokens",
    )
    unknown = estimate_words(CostEstimate(1, 12_000, 900, 2_500, None, None))
    assert unknown[1] == "time unknown before the first run of this model; 1 answer, about 900, at most 2.5 k tokens"


def test_a_model_that_was_given_as_a_file_is_known_by_the_name_of_its_runs(stored: Path) -> None:
    assert earlier_pace(stored, "/elsewhere/tiny.scripted.json") == earlier_pace(stored, "tiny.scripted.json")


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
    row = run_cells(runs[0])
    assert [row[name].strip() for name in ("run", "model", "tasks", "level", "answers", "state")] == [
        "1", "tiny.scripted.json", "2 tasks", "trivial", "8/8", "finished",
    ]  # fmt: skip
    assert details(runs[0], 200, 1).startswith("tiny.scripted.json · trivial · finished · exact · 20")
    assert details(runs[0], 200, 1).endswith(" · kronecker_product, dna_translation")


def test_details_lose_the_names_of_the_tasks_before_anything_else(stored: Path) -> None:
    with open_queries(stored) as queries:
        (run,) = queries.list_runs()
    many = replace(run, model="Some-Very-Long-Model-Name-Instruct-Q4_K_M", tasks=tuple(TASKS))
    for width, rows in ((78, 2), (78, 1), (58, 1)):
        words = details(many, width, rows)
        assert all(cell_len(row) <= width for row in words.split("\n"))
        for part in ("Some-V", "finished", "exact", "20", *((f"{len(TASKS)} tasks",) if width > 60 else ())):
            assert part in words
    assert "maze" in details(many, 200, 2)


def test_the_precision_of_a_run_is_that_of_the_report(stored: Path) -> None:
    with open_queries(stored) as queries:
        (run,) = queries.list_runs()
    report = report_run(stored, "1")
    assert run.precision == pytest.approx(report.mean["precision"].mean.value)
    assert run.precision != pytest.approx(run.correct / run.atoms)
    assert run_cells(run)["right"] == f"{run.precision:.2f}".removeprefix("0")
    assert run_cells(replace(run, precision=None))["right"] == "–"
    measured = measure_run(stored, 1)
    assert measured.recall == report.mean["recall"].mean.value
    row = run_cells(run, numbers=measured, marked=True)
    assert (row["run"], row["asked"]) == ("*1", f"{measured.recall:.2f}".removeprefix("0"))
    assert run_cells(run)["AUROC"] == "…"


def test_runs_are_sorted_by_numbers_with_undefined_ones_last(stored: Path) -> None:
    with open_queries(stored) as queries:
        (run,) = queries.list_runs()
    runs = [
        replace(run, run=number, precision=precision, model=model)
        for number, precision, model in ((3, 0.5, "b"), (2, None, "C"), (1, 0.9, "a"))
    ]
    numbers = {3: RunNumbers(0.1, None), 1: RunNumbers(0.4, 0.6)}

    def order(name: str) -> list[int]:
        return [run.run for run in ordered(runs, numbers, name)]

    assert order("newest") == [3, 2, 1]
    assert order("right") == [1, 3, 2]
    assert order("asked") == [1, 3, 2]
    assert order("AUROC") == [1, 3, 2]
    assert order("model") == [1, 3, 2]
    assert order("state") == [3, 2, 1]
    assert order("atoms") == [3, 2, 1]


@pytest.mark.parametrize(
    ("what", "state", "words"),
    [
        ("resume", "finished", "run 3 is finished: nothing is left to do"),
        ("stop", "finished", "run 3 is finished: there is nothing to stop"),
        ("stop", "interrupted", "has stopped"),
        ("resume", "running", "is being computed"),
        ("resume", "reading", "is being read"),
        ("stop", "running", "another process"),
    ],
)
def test_why_a_run_is_not_resumed_or_stopped(what: str, state: str, words: str) -> None:
    assert words in why_not(what, 3, state)


def test_a_place_where_no_database_can_be_is_said(stored: Path) -> None:
    for place, words in (
        (stored / "below" / "salt.db", "is no folder"),
        (stored.parent, "is a folder"),
        (stored.with_name("tiny.scripted.json"), "not a database"),
    ):
        offer = look_around(place)
        assert words in (offer.problem or "")
        assert problem_with(CHOICES, offer) == offer.problem
    assert look_around(stored.parent / "new" / "salt.db").problem is None
    assert not (stored.parent / "new").exists()


@pytest.mark.parametrize("width", [60, 79, 80, 81, 120, 200])
def test_the_columns_of_the_runs_fit_every_width(width: int) -> None:
    widths = column_widths(width)
    assert sum(widths.values()) + len(widths) <= width - 1
    assert ("atoms" in widths) == (width >= 100)
    assert ("level" in widths) == (width >= 80)
    assert {"right", "asked", "AUROC"} <= set(widths)
    assert widths["state"] >= len("interrupted")


def test_a_run_of_today_shows_its_time_and_another_its_day() -> None:
    now = datetime(2026, 3, 5, 12, 0).astimezone()
    assert begun("2026-03-05T11:30:00+00:00".replace("+00:00", f"{now:%z}"), now) == "11:30"
    assert begun("2026-03-04T11:30:00+00:00".replace("+00:00", f"{now:%z}"), now) == "03-04"
    assert begun("no time", now) == "no time"


def test_a_quick_check_has_every_task_and_fits_into_two_minutes(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = str(stored.with_name("tiny.scripted.json"))
    unknown = quick_check(replace(CHOICES, model="smollm2"), stored)
    assert (unknown.tasks, unknown.difficulty, unknown.limit) == (tuple(TASKS), "trivial", 2)
    for rate, least, most in ((1e6, 20, 20), (1.0, 1, 19), (0.001, 1, 1)):
        pace = Pace(1, rate, rate, 4)
        monkeypatch.setattr(setup_state, "earlier_pace", lambda *_, pace=pace: pace)
        found = quick_check(replace(CHOICES, model=model), stored)
        seconds = estimate_cost(make_request(found), pace).seconds
        assert least <= found.limit <= most
        assert seconds is not None
        assert seconds <= 120 or found.limit == 1


def test_a_path_is_completed_to_folders_and_models(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name in ("models/a.gguf", "models/a.txt", "models/b.scripted.json", "models/.hidden.gguf"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert completed_path(f"{tmp_path}/mo") == f"{tmp_path}/models/"
    assert completed_path(f"{tmp_path}/models/") == f"{tmp_path}/models/a.gguf"
    assert completed_path(f"{tmp_path}/models/", (".jsonl",)) is None
    assert completed_path(f"{tmp_path}/models/b") == f"{tmp_path}/models/b.scripted.json"
    for nothing in (f"{tmp_path}/models/a.t", f"{tmp_path}/nowhere/x", "smollm2", "", f"{tmp_path}/models/a.gguf"):
        assert completed_path(nothing) is None


def test_numbers_are_refused_by_the_name_of_their_field() -> None:
    def said(limit: str, seed: str, width: str) -> str | None:
        return first_problem(field_problems({"limit": limit, "seed": seed, "width": width}))

    assert said("20", "+3", "4") is None
    assert said("20", "0", "") == "Width: a whole number is needed"
    assert said("", "0", "4") == "Samples: a whole number is needed"
    assert said("20", str(2**63), "4") == "Seed: a whole number of at most 63 bits"
    assert set(field_problems({"limit": "0", "seed": "0", "width": "5"})) == {"limit", "width"}
    assert whole_number("+3") == 3


def test_beside_a_damaged_models_file_shipped_models_and_paths_stay_usable(stored: Path) -> None:
    user_models_file().parent.mkdir(parents=True, exist_ok=True)
    user_models_file().write_text("[broken", encoding="utf-8")
    offer = look_around(stored)
    assert offer.runs == 1
    assert len(offer.tasks) == len(TASKS)
    assert offer.model("smollm2") is not None, "the shipped models stay"
    assert "models.toml is not valid TOML" in (offer.models_problem or "")
    assert problem_with(replace(CHOICES, model="smollm2"), offer) is None
    assert model_at(str(stored.with_name("tiny.scripted.json"))).usable


def test_a_file_is_listed_before_the_named_models(stored: Path) -> None:
    path = str(stored.with_name("tiny.scripted.json"))
    offer = look_around(stored, (path, "smollm2", path, "/none.gguf"))
    assert offer.models[0].name == path
    assert [model.usable for model in offer.models] == sorted((model.usable for model in offer.models), reverse=True)
    assert offer.models[0].line.startswith("tiny.scripted.json   ")
    unusable = offer.model("/none.gguf")
    assert unusable is not None
    assert "unusable" in unusable.line
    assert "/none.gguf" in (problem_with(replace(CHOICES, model="/none.gguf"), offer) or "")
    assert model_at(path).usable
    assert model_at("smollm2").name == "smollm2"
    with pytest.raises(ModelError, match=r"none\.gguf"):
        model_at("/none.gguf")


@pytest.mark.parametrize(
    ("keys", "right"),
    [("n", True), ("ctrl+n", True), ("slash", True), ("?", True), ("f5,G", True), ("+", True), ("pagedown", True),
     ("ctrl+", False), ("nonsense", False), ("a,,b", False), ("hyperactive+a", False)],
)  # fmt: skip
def test_what_is_no_key_is_refused_in_one_line(keys: str, right: bool) -> None:
    keys_path().parent.mkdir(parents=True, exist_ok=True)
    keys_path().write_text(f'"map.left" = "{keys}"\n', encoding="utf-8")
    known, ignored = load_keys({"map.left"})
    assert known == ({"map.left": keys} if right else {})
    assert len(ignored) == (0 if right else 1)
    assert all("is no key" in line for line in ignored)


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_help_explains_every_glyph_and_every_number_with_its_direction(mode: DrawingMode) -> None:
    text = help_text([("Map", [("w", "Next wrong")])], Look(mode), "keys.toml", 70)
    assert set(VERDICTS) == set(GLYPHS)
    for status, glyph in GLYPHS.items():
        assert f"{glyph}  {status}: {VERDICTS[status]}" in text
    for name, (what, direction) in NUMBERS.items():
        assert f"{name}: {what} {direction}" in text
        assert "better" in direction or name in {"undefined", "clear"}
    for name in ("right", "asked", "along", "confidently wrong", "right but unsure", "undefined", "exact"):
        assert name in NUMBERS
    for words in (
        "sure", "^p", "streaming", "truncated", "unclosed", "end follows", "fence", "20,000 units",
        "v what colours say",
    ):  # fmt: skip
        assert words in text
    lines = text.splitlines()
    assert lines.index("Map") < lines.index("Marks") < lines.index("Colours") < lines.index("Numbers")
    assert len(broken_lines(text, 70).splitlines()) <= 80
    assert any("keys.toml" in line for line in lines)


@pytest.mark.parametrize("width", [50, 70])
def test_no_row_of_keys_in_help_is_broken(width: int) -> None:
    keys = [("↑ k", "Previous study"), ("↓ j", "Next study"), ("M", "Previous calibration map"), ("m", "Next")]
    rows = help_text([("Map", keys)], Look(DrawingMode.PLAIN), "keys.toml", width).splitlines()
    assert max(map(len, rows[1 : rows.index("In every window")])) <= width
    assert rows[1] == ("  ↑ k       Previous study          ↓ j       Next study" if width == 70 else rows[1])


def test_names_of_keys_are_lines_of_the_file_of_keys() -> None:
    lines = key_names_text([("map.left", "left,h", "Previous atom")], "keys.toml").splitlines()
    assert lines[0].startswith("Lines for keys.toml")
    keys_path().parent.mkdir(parents=True, exist_ok=True)
    keys_path().write_text("\n".join(lines[1:]), encoding="utf-8")
    assert load_keys({"map.left"}) == ({"map.left": "left,h"}, [])


def test_lines_of_a_window_are_broken_between_words_and_indented() -> None:
    assert broken_lines("a bb ccc\n\n  dd eee f", 7) == "a bb\n  ccc\n\n  dd\n    eee\n    f"
    assert broken_lines("  · short", 20) == "  · short"
