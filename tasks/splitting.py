"""Splitting an answer region into atoms and lines while it streams (SALT section 4.3).

A splitter is fed the region in pieces of any size and reports every atom once, as soon as no later text can change
it.  Feeding the whole region at once gives the same spans as feeding it character by character.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range ``[start, end)`` of characters within the region.

    Attributes:
        start: the first character.
        end: the character after the last one.
        index: place of the unit among those of its kind; None: it follows the unit before it.
    """

    start: int
    end: int
    index: int | None = None


class Splitter(Protocol):
    """Splits one region; stateful, used once."""

    def feed(self, text: str) -> list[Span]:
        """Take the next piece and return the units that it completed, in order."""
        ...

    def finish(self) -> list[Span]:
        """Say that the region has ended and return the units that this completed.

        The caller drops the last one when the region was cut by a limit instead of closed (a cut atom is
        missing, not wrong); `pending` says whether there is such a unit.
        """
        ...

    @property
    def pending(self) -> Span | None:
        """The unit that has begun and is not complete yet, as far as it goes; None when there is none."""
        ...


def fold_whitespace(text: str) -> str:
    """Trim and replace every inner run of white space by one space."""
    return " ".join(text.split())


class _DelimitedSplitter:
    """Splits at characters of a kind; units are trimmed of white space and never empty."""

    def __init__(self) -> None:
        self._position = 0
        self._start: int | None = None
        self._end = 0

    def _is_separator(self, character: str) -> bool:
        raise NotImplementedError

    def feed(self, text: str) -> list[Span]:
        """Take the next piece and return the completed spans."""
        spans: list[Span] = []
        for character in text:
            if self._is_separator(character):
                spans.extend(self._take())
            elif not character.isspace():
                if self._start is None:
                    self._start = self._position
                self._end = self._position + 1
            self._position += 1
        return spans

    def finish(self) -> list[Span]:
        """Return the last unit, if one has begun."""
        return self._take()

    @property
    def pending(self) -> Span | None:
        """The unit that has begun and not ended."""
        return None if self._start is None else Span(self._start, self._end)

    def _take(self) -> list[Span]:
        if self._start is None:
            return []
        span = Span(self._start, self._end)
        self._start = None
        return [span]


class WhitespaceSplitter(_DelimitedSplitter):
    """Units are maximal runs of characters that are not white space (``str.isspace``)."""

    def _is_separator(self, character: str) -> bool:
        return character.isspace()


class WholeSplitter(_DelimitedSplitter):
    """The whole region, trimmed, is one unit."""

    def _is_separator(self, character: str) -> bool:
        return False


class NoSplitter:
    """For answers that have no units of a kind."""

    def feed(self, text: str) -> list[Span]:
        """Return no units."""
        return []

    def finish(self) -> list[Span]:
        """Return no units."""
        return []

    @property
    def pending(self) -> Span | None:
        """No unit ever begins."""
        return None


class LineSplitter(_DelimitedSplitter):
    """Units are non-empty lines, trimmed; a line ends at a line feed or a carriage return."""

    def _is_separator(self, character: str) -> bool:
        return character in "\n\r"
