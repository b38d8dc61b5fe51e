"""Which file was opened under a path, and whether the path still leads to it.

An open file can be written long after its name is gone, and SQLite asks for the name only now and then: a run would
compute for hours into a file that vanishes with it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Self, TypeAlias

from salt_tui.store.errors import StoreFailure

Identity: TypeAlias = "tuple[int, int]"
"""Device and inode."""


def identity(path: Path) -> Identity | None:
    """Return what is at a path, symbolic links followed; None where nothing is or nobody may look."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class OpenedFile:
    """A database that is open for writing, with the files that SQLite keeps beside it meanwhile.

    Another program that opens the database without the log and index of the first makes new ones, and then reads or
    writes another state.  A log that is left beside another database is worse: the next program that opens that one
    writes the log's pages into it.
    """

    def __init__(self, path: Path, real: Path) -> None:
        """Remember what is there now; use `at`."""
        self._real = real
        self._log, self._index = Path(f"{real}-wal"), Path(f"{real}-shm")
        places = (path, real, self._log, self._index)
        self._places = {place: found for place in places if (found := identity(place)) is not None}
        self._failure: str | None = None

    @classmethod
    def at(cls, path: Path) -> Self:
        """Remember a database that was just opened."""
        path = path.absolute()
        return cls(path, Path(os.path.realpath(path)))

    @property
    def is_lost(self) -> bool:
        """Whether a check has failed; every later one fails as well."""
        return self._failure is not None

    def check(self) -> None:
        """See that every file is where it was; takes some microseconds.

        When another file stands in the place of the database, or none does, the log that this process left there is
        moved aside and the index removed.

        Raises:
            StoreFailure: one was deleted, moved or replaced.
        """
        if self._failure is None:
            self._failure = self._look()
        if self._failure is not None:
            raise StoreFailure(self._failure)

    def _look(self) -> str | None:
        for place, opened in self._places.items():
            found = identity(place)
            if found == opened:
                continue
            how = "deleted or moved away" if found is None else "replaced by another file"
            lost = f"{place} was {how} while it was being written; nothing after that could be kept"
            return f"{lost}{self._disarm()}; put it back or begin anew"
        return None

    def _disarm(self) -> str:
        """Move the log away from a place where our database no longer is; return what to say of it."""
        if self._is_ours(self._real) or not self._is_ours(self._log):
            return ""
        aside = next(
            place
            for number in range(1, 1000)
            if not os.path.lexists(place := self._log.with_name(f"{self._log.name}.left-{number}"))
        )
        try:
            self._log.rename(aside)
        except OSError:
            return f"; {self._log.name} beside it belongs to the file before: move that away before anything opens it"
        if self._is_ours(self._index):
            with contextlib.suppress(OSError):
                self._index.unlink()
        return f"; its last changes are in {aside.name}"

    def _is_ours(self, place: Path) -> bool:
        return place in self._places and identity(place) == self._places[place]
