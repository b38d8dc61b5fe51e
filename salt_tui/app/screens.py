"""The registry of screens: a new one is a file and a line here.

A screen is imported when it is shown first, so that none costs the first paint of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from salt_tui.app.framed_screen import FramedScreen


@dataclass(frozen=True, slots=True)
class ScreenEntry:
    """One screen.

    Attributes:
        name: of its mode, as in the screen's `NAME`.
        title: in the first line and in help.
        keys: that show it, joined by commas; the first one stands in the first line.  Without any it is opened from
            another screen.
        shows: what it shows and what that needs, for help.
        load: imports its class.
    """

    name: str
    title: str
    keys: str
    shows: str
    load: Callable[[], type[FramedScreen]]


def _setup() -> type[FramedScreen]:
    from salt_tui.app.setup_screen import SetupScreen

    return SetupScreen


def _live() -> type[FramedScreen]:
    from salt_tui.app.live_screen import LiveScreen

    return LiveScreen


def _answer() -> type[FramedScreen]:
    from salt_tui.app.answer_screen import AnswerScreen

    return AnswerScreen


def _replay() -> type[FramedScreen]:
    from salt_tui.app.replay_screen import ReplayScreen

    return ReplayScreen


def _studies() -> type[FramedScreen]:
    from salt_tui.app.studies_screen import StudiesScreen

    return StudiesScreen


def _compare() -> type[FramedScreen]:
    from salt_tui.app.compare_screen import CompareScreen

    return CompareScreen


def _runs() -> type[FramedScreen]:
    from salt_tui.app.runs_screen import RunsScreen

    return RunsScreen


def _reliability() -> type[FramedScreen]:
    from salt_tui.app.reliability_screen import ReliabilityScreen

    return ReliabilityScreen


SCREENS: dict[str, ScreenEntry] = {
    entry.name: entry
    for entry in (
        ScreenEntry("setup", "Setup", "1,f2", "choose and start an evaluation", _setup),
        ScreenEntry("live", "Live", "2,f3", "a run, while it is computed or as it was stored", _live),
        ScreenEntry("answer", "Answer", "", "one answer, token by token; enter on an atom of Live opens it", _answer),
        ScreenEntry("replay", "Replay", "", "an answer with atoms changed; i in an answer opens it", _replay),
        ScreenEntry("studies", "Studies", "", "further work on a run; S in the list of runs opens it", _studies),
        ScreenEntry("runs", "Runs", "3,f4", "the stored runs", _runs),
        ScreenEntry(
            "reliability",
            "Reliability",
            "4,f5",
            "confidence beside what was right, of the run in Live or the one chosen in Runs",
            _reliability,
        ),
        ScreenEntry("compare", "Compare", "5,f6", "what changed between two runs", _compare),
    )
}
"""By name, in the order of the first line."""
