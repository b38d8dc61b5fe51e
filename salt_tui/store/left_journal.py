"""A log beside a database that no program is using: does it belong to that database?

When a database is replaced by another file while a program writes to it, and the program is then killed, its log stays
beside the new file.  SQLite would write the log's pages into it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from salt_tui.store.connection import Mode, connect
from salt_tui.store.errors import StoreError
from salt_tui.store.lease import LEASE_COLUMNS, is_live, stored_lease
from salt_tui.store.opened_file import Identity, identity
from salt_tui.store.placing import standing
from salt_tui.store.records import Work
from salt_tui.store.stored_values import Place

_BUSY_TIMEOUT = 5.0
_fitting: set[tuple[Identity, Identity]] = set()
"""Databases and logs that this process has looked at before: looking reads the whole file."""


def refuse_foreign(path: Path, *, reading: bool = False) -> None:
    """See that the log beside a database, if there is one, fits it, before anything is done; changes nothing.

    A log is taken to be in use, and not looked at, while somebody computes into the database.

    Args:
        path: of the database.
        reading: a database that is damaged with and without its log is let pass, so that it can be looked at.

    Raises:
        StoreError: with the log the database is damaged; the message says whether it is without.
    """
    real = Path(os.path.realpath(path))
    log = Path(f"{real}-wal")
    if standing(log) != "file":
        return
    found, left = identity(real), identity(log)
    if found is None or left is None or (found, left) in _fitting:
        return
    damage = _damage(path, "ro")
    if damage is None:
        _fitting.add((found, left))
        return
    if _damage(path, "ro&immutable=1") is None:
        raise StoreError(
            f"{path} does not fit {log.name} beside it, which a program left that wrote another file of that name;"
            f" nothing was changed; move {log.name} away and try again"
        )
    if not reading:
        raise StoreError(f"{path} is damaged ({damage}); restore a copy or choose another file with --db")


def _damage(path: Path, mode: Mode) -> str | None:
    """Say what is wrong with a database, None when nothing is or when somebody is at work."""
    try:
        with closing(connect(path, mode, _BUSY_TIMEOUT)) as connection:
            if mode == "ro" and _is_in_use(connection, path):
                return None
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            return None if found == "ok" else " ".join(found.split())
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return " ".join(str(error).split())
        return None


def _is_in_use(connection: sqlite3.Connection, path: Path) -> bool:
    rows = connection.execute(
        f"SELECT id, NULL, NULL, {LEASE_COLUMNS} FROM run WHERE lease_pid IS NOT NULL"
        f" UNION ALL SELECT run, id, number, {LEASE_COLUMNS} FROM study WHERE lease_pid IS NOT NULL"
    ).fetchall()
    database = identity(path)
    for row in rows:
        work = Work(*row[:3])
        lease = stored_lease(row[3:], Place(path, work.title))
        if lease is not None and is_live(lease, datetime.now(UTC), database, work):
            return True
    return False
