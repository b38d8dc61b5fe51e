"""A key is drawn before anything is measured for it."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun
from tests.app.pilot import drive, shown, until


def test_numbers_are_measured_when_keys_have_rested(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(OpenRun(1))
        await until(pilot, lambda: shown(app) is not None)
        session = shown(app)
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
