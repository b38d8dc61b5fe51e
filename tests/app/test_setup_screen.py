"""Setup: models that are there or not, fields, and windows that open where the user is."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, Select, Static

from salt_tui.app.application import SaltApp
from salt_tui.app.dialogs import TextToRead
from salt_tui.app.setup_screen import SetupScreen
from salt_tui.paths import user_models_file
from tests.app.pilot import drive, screen_text, shown, until
from tests.app.test_hostile_text import unwrapped
from tests.app.test_keys import press

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def test_a_damaged_models_file_is_said_on_setup_and_mended_by_coming_back(tmp_path: Path) -> None:
    user_models_file().parent.mkdir(parents=True, exist_ok=True)
    user_models_file().write_text("[broken", encoding="utf-8")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "is not valid TOML" in " ".join(screen_text(app).split()))
        assert "arc_grid" in screen_text(app)
        user_models_file().write_text("", encoding="utf-8")
        await pilot.press("3")
        await pilot.pause()
        await pilot.press("1")
        await until(pilot, lambda: "smollm2" in screen_text(app))
        assert "is not valid TOML" not in screen_text(app)

    drive(scenario, tmp_path / "salt.db")


def test_a_model_that_is_no_file_is_refused_at_once_and_one_that_is_stays(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await pilot.press("m", *"/none.gguf", "enter")
        await until(pilot, lambda: "! " in screen_text(app))
        assert app.screen.query_one(Input).value == "/none.gguf", "to be corrected"
        await pilot.press("escape")
        screen.use_model(str(stored.with_name("tiny.scripted.json")))
        await until(pilot, lambda: "tiny.scripted.json" in screen_text(app))
        await pilot.press("down", "3")
        await pilot.pause()
        await pilot.press("1")
        await pilot.pause(0.2)
        assert "tiny.scripted.json" in screen_text(app)

    drive(scenario, stored)


def test_an_emptied_field_is_named_and_cannot_be_started(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        await pilot.press("a")
        app.screen.query_one("#width", Input).value = ""
        await until(pilot, lambda: "Width: a whole number is needed" in screen_text(app))
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert shown(app) is None

    drive(scenario, stored)


def test_the_cost_is_broken_anew_for_another_width(tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: screen._offer is not None)
        screen._say_cost("about 0:29, at most 1:11 at the pace of its last run; " * 2)
        await pilot.pause()
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        rows = str(screen.query_one("#cost", Static).render()).split("\n")
        assert [row.strip() for row in rows] == ["about 0:29, at most 1:11 at the pace of its last run;"] * 2
        screen._say_cost("one word after the other for too long " * 4, "few words")
        await pilot.pause()
        assert str(screen.query_one("#cost", Static).render()) == "few words"

    drive(scenario, tmp_path / "x.db")


def test_asking_twice_for_an_example_opens_one_window(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "arc_grid" in screen_text(app))
        app.screen.query_one("#task-list").focus()
        await pilot.press("e", "e", "e")
        await until(pilot, lambda: isinstance(app.screen, TextToRead))
        await pilot.pause(0.3)
        assert len(app.screen_stack) == 2

    drive(scenario, stored)


@pytest.mark.parametrize("key", ["3", "question_mark"])
def test_no_window_opens_over_a_screen_to_which_the_user_has_gone(tmp_path: Path, key: str) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names))
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not screen)
        gone_to = app.screen
        screen.use_model(str(tmp_path / "nothing.gguf"))
        await until(pilot, lambda: any("nothing.gguf" in note.message for note in app._notifications))
        assert app.screen is gone_to

    drive(scenario, tmp_path / "salt.db")


def test_a_file_of_ones_own_problems_becomes_a_task_and_a_bad_one_is_asked_for_again(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": 1, "kind": "choice", "prompt": "?", "reference": "C", "choices": ["a", "b"]}\n', "utf-8")
    good = EXAMPLES / "choice.jsonl"

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "smollm2" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await press(pilot, "setup.own_file")
        app.screen.query_one(Input).value = str(bad)
        await pilot.press("enter")
        await until(pilot, lambda: "isneitheraletterfromAtoB" in unwrapped(app))
        assert app.screen.query_one(Input).value == str(bad), "to be corrected"
        app.screen.query_one(Input).value = str(good)
        await pilot.press("enter")
        await until(pilot, lambda: screen.tasks.marked == (f"file:{good}",))
        assert "1 of 9 marked" in screen_text(app)
        screen.tasks.focus()
        await until(pilot, lambda: "[x] file:choice" in screen_text(app))
        assert "problems of your own: choice" in screen_text(app)
        await press(pilot, "setup.explain")
        await until(pilot, lambda: ": choice" in screen_text(app) and isinstance(app.screen, TextToRead))
        await pilot.press("escape")
        screen.query_one("#method", Select).value = "cot"
        await until(pilot, lambda: "choose the method regular" in screen_text(app))
        screen.query_one("#method", Select).value = "regular"
        await until(pilot, lambda: not screen.query_one("#start", Button).disabled)
        assert "choose the method regular" not in screen_text(app)

    drive(scenario, tmp_path / "salt.db")
