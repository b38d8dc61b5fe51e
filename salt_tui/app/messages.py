"""What screens ask of the app.  A screen posts one of these; it neither knows the app nor calls it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual.message import Message

from salt_tui.app.settings import Choices

if TYPE_CHECKING:
    from salt_tui.measure.two_runs import RunName

Severity = Literal["information", "warning", "error"]


class Say(Message):
    """Tell the user one line.

    Attributes:
        line: what to say; untrusted text is made visible before it is shown.
        severity: how it is shown.
    """

    def __init__(self, line: str, severity: Severity = "information") -> None:
        super().__init__()
        self.line = line
        self.severity = severity


class ShowScreen(Message):
    """Go to a screen of the registry, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class StartRun(Message):
    """Begin the run that was chosen in Setup, and show it."""

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self.choices = choices


class ResumeRun(Message):
    """Go on with a stored run and show it; a finished one is only shown."""

    def __init__(self, run: int, *, allow_environment_change: bool = False) -> None:
        super().__init__()
        self.run = run
        self.allow_environment_change = allow_environment_change


class OpenRun(Message):
    """Show a stored run, or the one that computes."""

    def __init__(self, run: int) -> None:
        super().__init__()
        self.run = run


class OpenAnswer(Message):
    """Show an answer, from one of its atoms on.

    Attributes:
        generation: number of the answer.
        atom: index of the atom.
        origin: name of the screen that escape leads back to.
        run: that it is of; None for the run on the screen.
        database: file of that run; None for the file of the app.
    """

    def __init__(
        self,
        generation: int,
        atom: int,
        origin: str = "live",
        *,
        run: int | None = None,
        database: Path | None = None,
    ) -> None:
        super().__init__()
        self.generation = generation
        self.atom = atom
        self.origin = origin
        self.run = run
        self.database = database


class CompareRuns(Message):
    """Show what changed between two runs."""

    def __init__(self, first: RunName, second: RunName) -> None:
        super().__init__()
        self.first = first
        self.second = second


class OpenStudies(Message):
    """Show the studies of a run."""

    def __init__(self, run: int) -> None:
        super().__init__()
        self.run = run


class ExportRuns(Message):
    """Ask for a file, and export runs to it.

    Attributes:
        runs: their numbers.
        database: file of these; None for the file of the app.
    """

    def __init__(self, runs: tuple[int, ...], database: Path | None = None) -> None:
        super().__init__()
        self.runs = runs
        self.database = database


class RunsDeleted(Message):
    """Runs are not stored any more."""

    def __init__(self, runs: tuple[int, ...]) -> None:
        super().__init__()
        self.runs = runs
