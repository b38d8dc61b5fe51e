"""What somebody who used the app found wrong stays right."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, OptionList

from salt_tui.app.answer_cells import FUNCTIONS
from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun
from salt_tui.app.settings import Choices, load_view, save_choices
from salt_tui.app.setup_screen import SetupScreen
from salt_tui.app.terminal import terminal_look
from salt_tui.palette import DrawingMode, Shading
from salt_tui.paths import user_models_file
from salt_tui.runner.events import RunEnded
from tests.app.conftest import compute
from tests.app.pilot import drive, footer, screen_text, shown, until
from tests.app.unit_events import answer_events, started
from tests.app.written_run import session_of, show
from tests.stored_runs import store_run


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
def test_the_chosen_model_is_in_view_and_named_where_a_run_starts(size: tuple[int, int], tmp_path: Path) -> None:
    save_choices(Choices(model="gemma3-270m", tasks=("maze",)))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names))
        models = screen.query_one("#models", OptionList)

        def in_view() -> bool:
            rows = [models.render_line(y).text for y in range(models.size.height)]
            return any(row.startswith(screen.read_choices().model) for row in rows)

        await until(pilot, in_view)
        await pilot.resize_terminal(100, 40)
        await pilot.resize_terminal(*size)
        await until(pilot, in_view)
        assert screen.read_choices().model in str(screen.query_one("#start", Button).label)

    drive(scenario, tmp_path / "salt.db", size=(120, 40))


def test_a_model_that_is_not_offered_any_more_leaves_another_chosen_in_view(tmp_path: Path) -> None:
    save_choices(Choices(model="gone", tasks=("maze",)))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names))
        await until(pilot, lambda: screen.query_one("#models", OptionList).highlighted is not None)
        await until(pilot, lambda: screen.read_choices().model in screen_text(app))

    drive(scenario, tmp_path / "salt.db")


def test_a_run_begins_beside_a_damaged_models_file(stored: Path) -> None:
    user_models_file().parent.mkdir(parents=True, exist_ok=True)
    user_models_file().write_text("[broken", encoding="utf-8")
    assert compute(stored, stored.with_name("tiny.scripted.json")).state.phase == "finished"


def test_the_last_row_is_of_now(stored: Path, script: Callable[..., Path]) -> None:
    compute(stored, script(seconds_per_step=0.02), stop_after=6)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "u Resume" in footer(app))
        await pilot.press("u")
        await until(pilot, lambda: shown(app) is not None and shown(app).state.phase == "finished")  # type: ignore[union-attr]
        await until(pilot, lambda: not shown(app).computing)  # type: ignore[union-attr]
        await pilot.press("1")
        await until(pilot, lambda: "u Resume" not in footer(app))

    drive(scenario, stored, size=(140, 24))


def test_the_key_that_copies_is_shown_when_there_is_something_to_copy(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: "Filter" in footer(app) and shown(app) is not None)
        await until(pilot, lambda: not shown(app).reading)  # type: ignore[union-attr]
        assert "y Copy" not in footer(app)
        await pilot.press("home")
        await until(pilot, lambda: "y Copy" in footer(app))

    drive(scenario, stored, size=(200, 24))


def test_a_locked_database_is_said(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("salt_tui.store.opening.BUSY_TIMEOUT", 0.1)
    monkeypatch.setattr("salt_tui.store.queries.open_queries.__defaults__", (0.1,))
    with sqlite3.connect(stored, isolation_level=None) as lock:
        lock.execute("PRAGMA locking_mode = EXCLUSIVE")
        lock.execute("BEGIN EXCLUSIVE")
        lock.execute("UPDATE run SET note = 'mine'")

        async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
            await until(pilot, lambda: "looking at" in screen_text(app) or "is locked" in screen_text(app))
            await until(pilot, lambda: "is locked by another program" in " ".join(screen_text(app).split()))
            await pilot.press("3")
            await until(pilot, lambda: "is locked by another" in screen_text(app))

        drive(scenario, stored)
        lock.execute("ROLLBACK")


def test_what_a_stored_run_said_is_not_said_at_every_opening(stored: Path) -> None:
    with sqlite3.connect(stored) as connection:
        connection.execute("""UPDATE run SET warnings = '["a model for tests"]'""")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: shown(app) is not None and not shown(app).reading)  # type: ignore[union-attr]
        await pilot.press("o")
        await until(pilot, lambda: "a model for tests" in screen_text(app))
        assert not app._notifications

    drive(scenario, stored)


def test_the_task_whose_numbers_are_shown_is_marked_and_can_be_clicked(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: shown(app) is not None)
        await until(pilot, lambda: not shown(app).reading)  # type: ignore[union-attr]
        await pilot.press("home", "t", "t")
        await until(pilot, lambda: ">dna_translation" in screen_text(app))
        await pilot.click("#tasks", offset=(4, 0))
        await until(pilot, lambda: ">kronecker_product" in screen_text(app))
        session = shown(app)
        assert session is not None
        assert session.state.map.task == "kronecker_product"

    drive(scenario, stored)


def test_a_task_that_stands_beside_others_can_be_clicked(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    store_run(database, answers=1, atoms=4)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "maze" in screen_text(app))
        session = shown(app)
        assert session is not None
        await until(pilot, lambda: not session.reading)
        row = next(line for line in screen_text(app).splitlines()[2:5] if "maze" in line)
        place = screen_text(app).splitlines().index(row)
        await pilot.click(offset=(row.index("maze") + 1, place))
        await until(pilot, lambda: session.state.map.task == "maze")
        await until(pilot, lambda: ">maze" in screen_text(app))

    drive(scenario, database)


def test_a_run_that_stopped_before_any_atom_offers_nothing_to_look_at(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, [], status=None)[:1])

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        run.ends = True
        run.mailbox.append(RunEnded(7, "interrupted", None))
        await until(pilot, lambda: session.state.phase == "interrupted")
        await until(pilot, lambda: "Stop" not in footer(app))
        assert not {"Open", "wrong", "Answer", "Play"} & set(footer(app).split()), footer(app)

    drive(scenario, tmp_path / "salt.db")


def test_without_a_run_live_has_no_line_of_shades(tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: "No run is open" in screen_text(app))
        assert "──" not in screen_text(app)
        assert "×" not in screen_text(app)

    drive(scenario, tmp_path / "x.db")


def test_function_and_colours_are_remembered(stored: Path) -> None:
    async def choose(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        await pilot.press("f", "v")
        await until(pilot, lambda: app.desk.look.shading is Shading.STRENGTH)

    drive(choose, stored)
    assert load_view().function in FUNCTIONS[1:] + FUNCTIONS[:1]
    assert terminal_look({"TERM": "xterm-256color"}).shading is Shading.STRENGTH

    async def come_back(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        assert shown(app).state.map.function == load_view().function  # type: ignore[union-attr]

    drive(come_back, stored)


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_menus_leave_the_last_row_free(mode: DrawingMode, tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names))
        screen.query_one("#difficulty").focus()
        await pilot.press("enter")
        await until(pilot, lambda: "medium" in screen_text(app) and "paper" in screen_text(app))
        assert "Help" in footer(app)

    drive(scenario, tmp_path / "salt.db", mode=mode)
