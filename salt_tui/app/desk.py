"""What every screen is handed: the file of runs, how cells look, the other screens, and the runs that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from salt_tui.palette import Look


@dataclass(frozen=True, slots=True)
class Tab:
    """A screen as the first line lists it: its name in the registry, its title, and the key that shows it."""

    name: str
    title: str
    key: str


class Desk:
    """Made once by the app and given to the constructor of every screen.

    Attributes:
        database: the file; it need not exist.
        look: how cells are drawn now.
        tabs: the screens that a key shows.
        loaded: whether `runs` is there.
        runs: the runs that are open, a `salt_tui.app.open_runs.OpenRuns`; there after `load`.
        keeper: of the engine that edits are computed with, a `salt_tui.runner.kept_engine.EngineKeeper`; there after
            `load`.  Whoever loads a model calls its `release` first.
    """

    def __init__(self, database: Path, look: Look, tabs: Sequence[Tab]) -> None:
        self.database = database
        self.look = look
        self.tabs = tuple(tabs)
        self.loaded = False

    def load(self) -> None:
        """Import what computes and reads runs.  It takes 0.4 s, so the first paint does without it."""
        if not self.loaded:
            from salt_tui.app.open_runs import OpenRuns
            from salt_tui.runner.kept_engine import EngineKeeper

            self.keeper = EngineKeeper()
            self.runs = OpenRuns(self.database, self.keeper)
            self.loaded = True

    @property
    def working(self) -> str:
        """What computes here at this moment, in words such as ``a study``; empty where nothing does."""
        return self.runs.working if self.loaded else ""

    @property
    def computing(self) -> bool:
        """Whether a run is computed here at this moment."""
        return self.loaded and self.runs.is_computing
