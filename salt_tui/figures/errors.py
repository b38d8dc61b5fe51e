"""What can go wrong with a figure, in one line."""

from __future__ import annotations

from collections.abc import Iterable

from salt_tui.usage_error import UsageError


class FigureError(UsageError, ValueError):
    """A figure that cannot be drawn or written: the message says why, and what to do where something can be done."""


class UnknownFigureError(FigureError):
    """There is no figure of that name; carries it and those there are, for "did you mean"."""

    def __init__(self, name: str, known: Iterable[str], message: str) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(message)
