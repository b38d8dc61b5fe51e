"""What can go wrong with the file, in one line for the user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from salt_tui.visible_text import visible


class StoreError(Exception):
    """The file or what was asked of it cannot be used; the message is one line: what, where, what to do."""


class StoreFailure(StoreError):
    """A usable file failed at work: locked, disk full, a refused row, a run taken over.  It may work the next time."""


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """Turn an error of SQLite into a `StoreError` that names the file and the way out."""
    name = getattr(error, "sqlite_errorname", None) or ""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    detail = visible(" ".join(str(error).split()), 300)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreFailure(f"{path} is locked by another program; close it or wait, then try again")
    # Even to read, SQLite makes a file of 32 kB beside a database in WAL mode.
    if code == sqlite3.SQLITE_FULL or name == "SQLITE_IOERR_SHMSIZE":
        return StoreFailure(
            f"the disk that holds {path} is full; nothing half-written was kept; free space and try again"
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreFailure(
            f"{path} could not be written or read ({name or detail}); check the disk's space and health"
        )
    if name == "SQLITE_READONLY_DBMOVED":
        return StoreFailure(f"{path} was moved or deleted while it was open; put it back and try again")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"{path} cannot be written; change its permissions or choose another place")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError(f"{path} cannot be opened; check that it and its folder exist and may be written")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(f"{path} is damaged ({detail}); restore a copy or choose another file with --db")
    if "Could not decode to UTF-8" in detail or detail == "malformed JSON":
        return StoreError(
            f"{path} holds a text that cannot be read ({visible(detail, 100)}); restore a copy or choose another file"
            " with --db"
        )
    if code == sqlite3.SQLITE_CONSTRAINT:
        return StoreFailure(f"{path} refused a row ({detail}); nothing of that transaction was kept")
    return StoreFailure(f"{path}: {detail}")
