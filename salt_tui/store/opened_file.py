"""Which file was opened under a path, and whether the path still leads to it.

An open file can be written long after its name is gone, and SQLite asks for the name only now and then: a run would
compute for hours into a file that vanishes with it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A database that is open for writing.

    Attributes:
        places: absolute paths of the database and of the files that SQLite keeps beside it while it is open, each
            with its identity at the opening.  Another program that opens the database without the first's log and
            index makes new ones and reads, or writes, another state.
    """

    places: tuple[tuple[Path, Identity], ...]

    @classmethod
    def at(cls, path: Path) -> Self:
        """Remember a database that was just opened."""
        path = path.absolute()
        real = os.path.realpath(path)
        places = (path, Path(f"{real}-wal"), Path(f"{real}-shm"))
        return cls(tuple((place, found) for place in places if (found := identity(place)) is not None))

    def check(self) -> None:
        """See that every file is where it was; takes some microseconds.

        Raises:
            StoreFailure: one was deleted, moved or replaced.
        """
        for place, opened in self.places:
            found = identity(place)
            if found != opened:
                how = "deleted or moved away" if found is None else "replaced by another file"
                raise StoreFailure(
                    f"{place} was {how} while it was being written; nothing after that could be kept; put it back"
                    " or begin anew"
                )
