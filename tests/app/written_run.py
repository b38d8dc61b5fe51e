"""A run whose events a test writes, and the app that shows it."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.run_session import RunSession
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import RunEvent
from tests.app.pilot import until


class WrittenRun(BackgroundRun):
    """A run whose events the test writes; it works until `ends`."""

    def __init__(self, *events: RunEvent) -> None:
        self.mailbox: deque[RunEvent] = deque(events)
        self.failure: BaseException | None = None
        self.cancelled: list[int] = []
        self.ends = False

    @property
    def alive(self) -> bool:
        """Whether it works."""
        return not self.ends

    def start(self) -> None:
        """Nothing is computed."""

    def stop(self) -> None:
        """End."""
        self.ends = True

    def join(self, timeout: float) -> bool:
        """Return whether it ended."""
        return self.ends

    def cancel_answer(self, generation: int) -> None:
        """Take note."""
        self.cancelled.append(generation)


def session_of(database: Path, *events: RunEvent) -> tuple[RunSession, WrittenRun]:
    session, run = RunSession(database), WrittenRun(*events)
    session.log_path = database.with_name("engine-own.log")
    session._compute(run)
    return session, run


async def show(app: SaltApp, pilot: Pilot[int], session: RunSession) -> LiveScreen:
    app.desk.load()
    app.desk.runs.show(session, computed=session.computing)
    app.switch_mode("live")
    await until(pilot, lambda: isinstance(app.screen, LiveScreen) and app.screen._session is session)
    await until(pilot, lambda: not session.reading)
    await pilot.pause(0.05)
    assert isinstance(app.screen, LiveScreen)
    return app.screen
