"""Putting a complete file in its place: written beside it under another name first, and only ever a regular file.

A symbolic link stays a link; what it leads to is looked at and replaced.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from salt_tui.store.errors import StoreError

Standing = Literal["absent", "empty", "file", "folder", "special"]
"""What is at a path: nothing, an empty regular file, another regular file, a folder, or a device, pipe or socket."""

_BESIDE_A_DATABASE = ("-journal", "-wal", "-shm")
_SCRATCH = "salt-tui-scratch-"
"""Beginning of the name of a folder for files that nobody keeps."""
_UNFINISHED = (".salt-tui-", ".new")
"""Beginning and end of the name of a file that is being written."""


def standing(path: Path) -> Standing:
    """Say what is at a path, symbolic links followed, without opening it: opening a pipe would wait for ever.

    Raises:
        OSError: the name is too long, a folder on the way may not be searched, or links lead round in a circle.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    if not stat.S_ISREG(found.st_mode):
        return "special"
    return "file" if found.st_size else "empty"


@contextlib.contextmanager
def complete_file(path: Path, replaced: tuple[Standing, ...], *, database: bool) -> Iterator[Path]:
    """Give an empty file in the folder of ``path``; what was written there takes its place when the block ends.

    Files that a killed program left unfinished in that folder are removed first.

    Args:
        path: where the file is to be.
        replaced: what may stand there and is replaced.  Nothing else is: ``absent`` goes without saying.
        database: it is a database, beside which no journal of another may lie.

    Raises:
        FileExistsError: something else stands there, before the block or after it; it was left as it is.
        OSError: the file could not be put in place.
        StoreError: a journal of another database lies beside the place; SQLite would mix it into the new file.

    Whatever is raised, in the block too, nothing new is left behind.
    """
    place = Path(os.path.realpath(path))
    journals = [Path(f"{place}{suffix}") for suffix in ("-wal", "-journal")] if database else []
    _look(path, place, replaced, journals)
    remove_unfinished(place.parent)
    # Not made of the name of the place: that may be as long as a name can be.
    temporary = place.with_name(f"{_UNFINISHED[0]}{uuid.uuid4().hex}{_UNFINISHED[1]}")
    with _held_open(temporary):
        try:
            yield temporary
            if _look(path, place, replaced, journals) == "absent":
                _link(temporary, place)
            else:
                temporary.replace(place)
        finally:
            _remove(temporary)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed programs left unfinished in a folder; what a living one is writing stays.

    Every writer holds a lock on its file, which ends with its process.  Where the file system has no such locks,
    nothing is removed.
    """
    try:
        left = [place for place in folder.iterdir() if _is_unfinished(place)]
    except OSError:
        return
    for place in left:
        # What is no regular file, or what nobody may open, is not ours.
        with contextlib.suppress(OSError):
            descriptor = os.open(place, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    _remove(place)
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give an empty folder among the system's temporary files that is gone after the block.

    Those of one's own that killed programs left are removed first: a living one holds a lock on its folder.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.getuid():
                    shutil.rmtree(left)
            finally:
                os.close(descriptor)
    while True:
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, ignore_cleanup_errors=True) as name:
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Between making and locking it, another program may have taken it for one that was left.
                if os.path.isdir(name):
                    yield Path(name)
                    return
            finally:
                os.close(descriptor)


def _is_unfinished(place: Path) -> bool:
    return place.name.startswith(_UNFINISHED[0]) and place.name.endswith(_UNFINISHED[1])


@contextlib.contextmanager
def _held_open(temporary: Path) -> Iterator[None]:
    """Make an empty file and hold a lock on it, so that no other program takes it for what a killed one left.

    SQLite's own locks are of another kind.  Closing the descriptor ends those that this process has on the file, so it
    is closed last.
    """
    while True:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Between making and locking it, another program may have taken it for one that was left.
            if temporary.exists():
                yield
                return
        finally:
            os.close(descriptor)


def _remove(temporary: Path) -> None:
    for suffix in ("", *_BESIDE_A_DATABASE):
        # A read-only disk refuses even what is not there; that must not hide the error that led here.
        with contextlib.suppress(OSError):
            temporary.with_name(temporary.name + suffix).unlink()


def _look(path: Path, place: Path, replaced: tuple[Standing, ...], journals: list[Path]) -> Standing:
    # The journal first: a program that makes the same database now begins one only after the database is there.
    left = [journal for journal in journals if standing(journal) == "file"]
    found = standing(place)
    if found != "absent" and found not in replaced:
        raise FileExistsError(f"{path} exists")
    if left:
        raise StoreError(
            f"{path} cannot be written: {left[0].name} beside it belongs to another database, in use or gone;"
            " move that away or choose another name"
        )
    return found


def _link(temporary: Path, place: Path) -> None:
    try:
        place.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: renaming would replace what came meanwhile, so look once more.
        if standing(place) != "absent":
            raise FileExistsError(f"{place} exists") from None
        temporary.rename(place)
