"""Running the app, or one widget, without a terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.run_session import RunSession
from salt_tui.palette import DrawingMode, Look
from salt_tui.runner.request import RunRequest

Scenario = Callable[[SaltApp, Pilot[int]], Awaitable[None]]


def drive(
    scenario: Scenario,
    database: Path,
    request: RunRequest | None = None,
    mode: DrawingMode = DrawingMode.COLOUR,
    size: tuple[int, int] = (80, 24),
) -> SaltApp:
    """Open the app, act, and return it after it was closed."""
    first = None if request is None else lambda desk: desk.runs.begin(request)
    app = SaltApp(database, Look(mode), first)

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            await scenario(app, pilot)
            if (session := computed(app)) is not None:
                session.stop()
                session.wait(5)

    asyncio.run(run())
    return app


def shown(app: SaltApp) -> RunSession | None:
    """Return the run on the screen."""
    return app.desk.runs.shown if app.desk.loaded else None


def computed(app: SaltApp) -> RunSession | None:
    """Return the run that is computed, or was."""
    return app.desk.runs.computed if app.desk.loaded else None


async def until(pilot: Pilot[int], condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Let the app work until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        await pilot.pause(0.02)


async def until_still(pilot: Pilot[int], count: Callable[[], int], still: float = 0.3, seconds: float = 20.0) -> None:
    """Let the app work until a count has stayed the same for a time."""
    deadline, since, last = time.monotonic() + seconds, time.monotonic(), count()
    while time.monotonic() - since < still:
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        await pilot.pause(0.02)
        if count() != last:
            since, last = time.monotonic(), count()


def screen_text(app: SaltApp) -> str:
    """Return what is on the screen, one line per row."""
    strips = app.screen._compositor.render_strips()  # the only view of the whole screen there is
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def footer(app: SaltApp) -> str:
    """Return the last row of the screen, where the keys stand."""
    return screen_text(app).splitlines()[-1]
