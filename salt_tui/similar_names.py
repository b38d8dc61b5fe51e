"""Says "did you mean" in one way, wherever a name was given that nobody knows.

`tasks` and `scoring` do not know this module.  As Python's own ``NameError`` does, their errors carry the name that was
given and those there are; whoever shows the error adds the hint.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from salt_tui.visible_text import visible

SIMILAR = 0.5
"""Least similarity of a name worth a hint, as ``difflib`` measures it: from 0, nothing in common, to 1, equal."""


@runtime_checkable
class UnknownName(Protocol):
    """An error about a name that is not among the known ones."""

    name: str
    known: tuple[str, ...]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message: the known name most like ``name``, or nothing when none is like it.

    Case does not count, nor does a hyphen in place of an underscore.
    """
    by_form = {_form(candidate): candidate for candidate in known}
    nearest = difflib.get_close_matches(_form(name), by_form, n=1, cutoff=SIMILAR)
    return f"; did you mean {visible(by_form[nearest[0]])}?" if nearest else ""


def message_of(error: Exception) -> str:
    """Return what an error says, and the nearest known name where it is about an unknown one."""
    return f"{error}{did_you_mean(error.name, error.known)}" if isinstance(error, UnknownName) else str(error)


def _form(name: str) -> str:
    return name.casefold().replace("-", "_")
