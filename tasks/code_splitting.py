"""Splitting what Python prints for an int, a str, a list or a list of lists into atoms while it streams.

Atoms are the words outside brackets, the elements of a list, whole inner lists, and an empty list.
"""

from __future__ import annotations

import re

from tasks.splitting import Span, fold_whitespace

_MARKS = "'\"`"
"""Quotes and back quotes around a unit are left out; within it, as in ``it's``, they stay."""

_SPACED = re.compile(r"\s*([\[\],])\s*")


def normalise_literal(unit: str) -> str:
    """Return the form in which units are compared: without outer quotes and without spaces that Python ignores.

    Spaces at brackets and commas are removed from a unit that starts with a bracket; elsewhere white space is folded,
    so that ``[1, 2]`` equals ``[1,2]`` and no two different words or numbers become equal.
    """
    folded = fold_whitespace(unit.strip().strip(_MARKS))
    return _SPACED.sub(r"\1", folded) if folded.startswith("[") else folded


class LiteralSplitter:
    """Splits by bracket depth, in one pass and constant memory.

    Outside brackets units end at white space and at commas, inside the first bracket at commas only; a deeper bracket
    starts a unit that lasts until it closes.  ``[`` directly followed by ``]`` is the unit ``[]``.  A reply that breaks
    these rules (prose, a bracket too many or too few) still splits: a bracket that closes nothing separates, and a
    deeper one that never closes makes one long unit.
    """

    def __init__(self) -> None:
        """Stand before the first character."""
        self._position = 0
        self._depth = 0
        self._opened: int | None = None
        self._start: int | None = None
        self._end = 0

    def feed(self, text: str) -> list[Span]:
        """Take the next piece and return the completed spans."""
        spans: list[Span] = []
        for character in text:
            spans.extend(self._take_character(character))
            self._position += 1
        return spans

    def finish(self) -> list[Span]:
        """Return the last unit, if one has begun."""
        return self._complete()

    @property
    def pending(self) -> Span | None:
        """The unit that has begun and not ended; none after an opening bracket, which may or may not be ``[]``."""
        return None if self._start is None else Span(self._start, self._end)

    def _take_character(self, character: str) -> list[Span]:
        opened = self._opened
        if not character.isspace():
            self._opened = None
        if self._depth >= 2:
            return self._take_inner(character)
        if character == "[":
            return self._open()
        if character == "]":
            self._depth = 0
            return self._complete() if opened is None else [Span(opened, self._position + 1)]
        if character == "," or (character.isspace() and self._depth == 0):
            return self._complete()
        if not character.isspace() and (self._start is not None or character not in _MARKS):
            if self._start is None:
                self._start = self._position
            if character not in _MARKS:
                self._end = self._position + 1
        return []

    def _open(self) -> list[Span]:
        spans = self._complete()
        self._depth += 1
        if self._depth == 1:
            self._opened = self._position
        else:
            self._start, self._end = self._position, self._position + 1
        return spans

    def _take_inner(self, character: str) -> list[Span]:
        if not character.isspace():
            self._end = self._position + 1
        if character == "[":
            self._depth += 1
        elif character == "]":
            self._depth -= 1
            if self._depth == 1:
                return self._complete()
        return []

    def _complete(self) -> list[Span]:
        if self._start is None:
            return []
        span = Span(self._start, self._end)
        self._start = None
        return [span]
