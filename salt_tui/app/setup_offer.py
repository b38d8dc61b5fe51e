"""What Setup offers, as it is shown; `setup_state` collects it beside the screen.  Nothing here is slow to load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model in the list.

    Attributes:
        name: for ``-m``.
        title: for the window that explains it.
        line: all of it in one row.
        details: some lines.
        usable: whether a run can begin with it.
        command: how to fetch it when it is not here; None otherwise.
        problem: why it cannot be used; None when it can.
        on_hub: it is not here and can be fetched from the model hub.
    """

    name: str
    title: str
    line: str
    details: str
    usable: bool
    command: str | None
    problem: str | None
    on_hub: bool = False

    def matches(self, words: str) -> bool:
        """Return whether every word occurs in the name, the title or the row, whatever the case."""
        text = f"{self.name} {self.title} {self.line}".casefold()
        return all(word in text for word in words.casefold().split())


@dataclass(frozen=True, slots=True)
class OfferedTask:
    """A task in the list.

    Attributes:
        name: for ``--tasks``.
        shown: the name in the list.
        words: what it is, or why it cannot be used.
        problem: why it cannot be used; None when it can.
    """

    name: str
    shown: str
    words: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that can be gone on with."""

    run: int
    done: int
    answers: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is.

    Attributes:
        tasks: the registered ones, and files of one's own.
        models: usable ones first.
        unfinished: newest first.
        runs: how many are stored.
        problem: why the database can be neither read nor made, None where it can.
        models_problem: what is wrong with the user's own ``models.toml``; the shipped models are offered all the same.
    """

    tasks: tuple[OfferedTask, ...]
    models: tuple[OfferedModel, ...]
    unfinished: tuple[UnfinishedRun, ...]
    runs: int
    problem: str | None
    models_problem: str | None

    def model(self, name: str) -> OfferedModel | None:
        """Return the model of that name, None where it is not offered."""
        return next((model for model in self.models if model.name == name), None)
