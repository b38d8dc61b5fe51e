"""The last row: in each state the keys that are of use, whole, and a way out of a field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from salt_tui.app.application import SaltApp
from salt_tui.app.messages import OpenRun
from salt_tui.app.setup_screen import SetupScreen
from tests.app.conftest import compute, request
from tests.app.pilot import drive, footer, screen_text, shown, until


def test_in_a_field_the_ways_out_are_shown_and_a_typed_number_replaces(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await until(pilot, lambda: bool(screen.tasks.names) and "c Quick check" in footer(app))
        assert "? Help q Quit" in footer(app)
        assert "Leave" not in footer(app)
        field = screen.query_one("#limit", Input)
        field.focus()
        await until(pilot, lambda: footer(app) == "^r Start esc Leave tab Next f1 Help")
        await pilot.press("3", "5")
        assert field.value == "35"
        await pilot.press("f1")
        await until(pilot, lambda: "Help" in screen_text(app).splitlines()[2])
        await pilot.press("f1", "f4")
        await until(pilot, lambda: app.current_mode == "runs")

    drive(scenario, stored)


STATES = {
    80: (
        "⏎ Open w Next wrong c Surest wrong [ Answer f Signal / Filter ? Help q Quit",
        "r Resume ⏎ Open w Next wrong c Surest wrong [ Answer f Signal ? Help q Quit",
    ),
    60: (
        "⏎ Open w Next wrong c Surest wrong [ Answer ? Help q Quit",
        "r Resume ⏎ Open w Next wrong c Surest wrong ? Help q Quit",
    ),
    140: (
        "/ Filter space Play t Task g Unit e Export o Log ? Help q Quit",
        "/ Filter space Play t Task g Unit e Export o Log ? Help q Quit",
    ),
}


def test_the_keys_of_a_stored_run_fit(stored: Path, script: Callable[..., Path]) -> None:
    compute(stored, script(seconds_per_step=0.02), stop_after=6)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        for run, place in ((1, 0), (2, 1)):
            app.post_message(OpenRun(run))
            await until(pilot, lambda run=run: shown(app) is not None and shown(app).run == run)  # type: ignore[misc,union-attr]
            await until(pilot, lambda: not shown(app).reading)  # type: ignore[union-attr]
            for width, states in STATES.items():
                await pilot.resize_terminal(width, 24)
                await until(pilot, lambda words=states[place]: words in footer(app))  # type: ignore[misc]
                assert "Pause" not in footer(app)

    drive(scenario, stored)


def test_the_keys_of_a_run_that_computes_and_of_the_list(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(
            pilot,
            lambda: footer(app).startswith("space Pause X Stop ⏎ Open w Next wrong"),
        )
        await pilot.press("space")
        await until(pilot, lambda: footer(app).startswith("space Go on X Stop"))
        await pilot.press("space")
        await until(pilot, lambda: footer(app).startswith("space Pause X Stop"))
        await pilot.press("3")
        await until(
            pilot, lambda: footer(app) == "⏎ Open space Mark c Compare S Studies / Filter s Sort e Export ? Help q Quit"
        )
        await pilot.press("slash")
        await until(pilot, lambda: "Leave" in footer(app))
        assert footer(app) == "esc Leave f1 Help"

    drive(scenario, tmp_path / "salt.db", request(script(30, seconds_per_step=0.05), 30))
