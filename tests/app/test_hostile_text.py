"""Text that would move the cursor, hide itself or be read as markup is spelled out in every widget."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from salt_tui.app import runs_state
from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.app.settings import Choices, save_choices
from salt_tui.app.setup_screen import SetupScreen
from salt_tui.palette import DrawingMode
from salt_tui.store.queries import open_queries
from tests.app.pilot import drive, screen_text, shown, until

HOSTILE = "[/red][[1, 2]\x1b]0;x\x07\x9b31m\u202e\u200b\x00\ud800\n😀漢字[@click=app.quit]q[/]"
FORBIDDEN = ("\x1b", "\x07", "\x9b", "\u202e", "\u200b", "\x00", "\ud800")


def spoil(database: Path) -> None:
    """Put hostile text wherever the file holds a text that a screen shows."""
    text = HOSTILE.replace("\ud800", "")
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("UPDATE run SET model_name = ?, message = ?, warnings = json_array(?)", (text, text, text))
        connection.execute("UPDATE run SET model_path = ?", (text,))
        connection.execute(
            "UPDATE run SET environment = json_set(environment, '$.devices', json_array(?)),"
            " plan = json_set(plan, '$.tasks[0].difficulty', ?)",
            (text, text),
        )
        connection.execute("UPDATE problem SET task = ? || task, difficulty = ?", (text, text))
        connection.execute("UPDATE model SET name = ?, description = ?", (text, text))
        connection.execute(
            "UPDATE unit SET text = ? || replace(hex(zeroblob(5000)), '00', 'aa'), reference = ?, status = 'wrong'"
            " WHERE text IS NOT NULL AND kind = 'atom'",
            (text, text),
        )


def check(app: SaltApp) -> str:
    """Look for what must never be drawn, and for rows that are not as wide as the screen."""
    text = screen_text(app)
    for character in FORBIDDEN:
        assert character not in text, f"{character!r} is on the screen"
    for strip in app.screen._compositor.render_strips():
        assert strip.cell_length == app.size.width
    return text


def unwrapped(app: SaltApp) -> str:
    """Return what is on the screen without white space and frames, as lines may break anywhere."""
    return "".join(check(app).replace("│", "").split())


@pytest.mark.parametrize("mode", [DrawingMode.COLOUR, DrawingMode.PLAIN])
def test_a_stored_run_full_of_hostile_text(stored: Path, mode: DrawingMode) -> None:
    spoil(stored)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.chosen is not None)
        await pilot.pause()
        assert "[/red][[1, 2]" in check(app)
        await pilot.press("d")
        await until(pilot, lambda: "[/red][[1,2]\\x1b]0;x" in unwrapped(app))
        await pilot.press("n", "enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
        await pilot.press("home", "w", "o")
        await pilot.pause(0.7)
        assert "said“[/red][[1,2]\\x1b]0…”" in unwrapped(app)
        await pilot.press("t", "c", "g", "y", "e")
        await pilot.pause()
        app.screen.query_one(Input).value = f"/nowhere/{HOSTILE}.csv"
        await pilot.press("enter")
        await until(pilot, lambda: "nowhere" in str(app.screen.query_one("#problem", Static).render()))
        await pilot.pause()
        check(app)
        await pilot.press("escape")
        app.say(HOSTILE, severity="error")
        await pilot.pause()
        assert "[/red]" in check(app)
        assert "\x1b" not in app.clipboard

    drive(scenario, stored, mode=mode)


def test_a_row_of_runs_and_its_details_are_visible(stored: Path) -> None:
    spoil(stored)
    with open_queries(stored) as queries:
        (run,) = queries.list_runs()
    one = replace(run, tasks=run.tasks[:1])
    text = " ".join((*runs_state.run_cells(one).values(), runs_state.details(one, 500, 2)))
    assert "kronecker_product" in text
    assert not any(character in text for character in FORBIDDEN)


def test_setup_with_hostile_names(tmp_path: Path) -> None:
    save_choices(Choices(model=HOSTILE.replace("\ud800", ""), difficulty="[/red]", tasks=("[/red]",)))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names))
        await pilot.pause()
        assert "[/red][[1, 2]\\x1b]0;x" in check(app)
        await pilot.press("a", "ctrl+r")
        await until(pilot, lambda: "\n ! " in check(app))
        assert shown(app) is None
        check(app)

    drive(scenario, tmp_path / "[red].db")


def test_a_database_that_is_none_is_one_line_and_the_app_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = Path("[red] no database.db")  # a row of 80 columns has no room for a long path and the reason
    database.write_bytes(b"\x1b]0;x\x07 not a database" * 100)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: "isnotadatabase" in unwrapped(app))
        await pilot.press("3")
        await pilot.pause(0.2)
        assert isinstance(app.screen, RunsScreen)
        check(app)

    drive(scenario, database)
