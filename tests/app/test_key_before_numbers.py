"""A key is drawn before anything is measured for it."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from tests.app.pilot import drive, until


def test_numbers_are_measured_when_keys_have_rested(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.open_run(1)
        session = app.session
        assert session is not None
        await until(pilot, lambda: not session.reading and session.measured is not None)
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        begun: list[str] = []
        measure = session.measure

        def noted() -> None:
            begun.append(session.choice.function)
            measure()

        session.measure = noted  # type: ignore[method-assign]
        screen.action_function(1)
        screen.action_function(1)
        assert begun == [], "the drawing comes first"
        await until(pilot, lambda: session.measured is not None)
        assert set(begun) == {session.choice.function}, "the function passed over is not measured"

    drive(scenario, stored)
