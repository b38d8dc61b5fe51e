"""What screens ask of the app.  A screen posts one of these; it neither knows the app nor calls it."""

from __future__ import annotations

from typing import Literal

from textual.message import Message

from salt_tui.app.settings import Choices

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
    """Show an answer of the run on the screen, from one of its atoms on.

    Attributes:
        generation: number of the answer.
        atom: index of the atom.
        origin: name of the screen that escape leads back to.
    """

    def __init__(self, generation: int, atom: int, origin: str = "live") -> None:
        super().__init__()
        self.generation = generation
        self.atom = atom
        self.origin = origin


class OpenStudies(Message):
    """Show the studies of a run."""

    def __init__(self, run: int) -> None:
        super().__init__()
        self.run = run


class ExportRuns(Message):
    """Ask for a file, and export runs to it."""

    def __init__(self, runs: tuple[int, ...]) -> None:
        super().__init__()
        self.runs = runs


class RunsDeleted(Message):
    """Runs are not stored any more."""

    def __init__(self, runs: tuple[int, ...]) -> None:
        super().__init__()
        self.runs = runs
