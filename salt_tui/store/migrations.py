"""Named functions that bring a file from one version of the schema to the next, each applied once.

A migration gets a `sqlite_utils.Database`, whose ``table.transform`` rebuilds tables where SQLite's ALTER TABLE
cannot.  sqlite-utils costs 0.3 s to import, so it is imported only when a migration is pending.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from salt_tui.store import schema

if TYPE_CHECKING:
    from sqlite_utils import Database

Migration: TypeAlias = "Callable[[Database], None]"


def create_first_schema(database: Database) -> None:
    """Create every table, index and view of version 1 and mark the file as ours."""
    for statement in _statements(schema.TABLES + schema.VIEWS):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")


MIGRATIONS: tuple[Migration, ...] = (create_first_schema,)
"""In order; the position of a migration, from 1, is the version it leads to."""


def version(connection: sqlite3.Connection) -> int:
    """Return the version of the schema in a file, 0 for an empty one."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone() is None:
        return 0
    found = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0]
    return int(found)


def is_of_this_text(connection: sqlite3.Connection) -> bool:
    """Say whether the first schema of a file was made from the text that this program knows; one of version 0 was not.

    Files from before the text was remembered have no such column.
    """
    columns = [row[1] for row in connection.execute("PRAGMA table_info(schema_version)")]
    if "schema_hash" not in columns:
        return False
    found = connection.execute("SELECT schema_hash FROM schema_version WHERE version = 1").fetchone()
    return found is not None and found[0] == schema.SCHEMA_HASH


def apply(connection: sqlite3.Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> list[str]:
    """Apply what is missing, each migration in its own transaction, and return the names of those applied.

    The version is read again inside the transaction, so that two programs opening one file apply each once.  Foreign
    keys are off meanwhile, because rebuilding a table drops the old one, and are checked before each commit.

    Raises:
        sqlite3.Error: from SQLite; the failed migration is rolled back.
        sqlite3.IntegrityError: a migration left a row that refers to nothing.
    """
    applied: list[str] = []
    if version(connection) >= len(migrations):
        return applied
    from sqlite_utils import Database

    database = Database(connection, execute_plugins=False)
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        for number, migration in enumerate(migrations, start=1):
            connection.execute("BEGIN IMMEDIATE")
            try:
                if version(connection) < number:
                    _apply_one(database, number, migration)
                    applied.append(migration.__name__)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
    finally:
        connection.execute("PRAGMA foreign_keys = ON")
    return applied


def _apply_one(database: Database, number: int, migration: Migration) -> None:
    connection = database.conn
    if number == 1:
        connection.execute(
            "CREATE TABLE schema_version"
            " (version INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, applied_at TEXT NOT NULL, schema_hash TEXT)"
            " STRICT"
        )
    migration(database)
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise sqlite3.IntegrityError(f"migration {migration.__name__} broke a foreign key")
    connection.execute(
        "INSERT INTO schema_version (version, name, applied_at, schema_hash) VALUES (?, ?, ?, ?)",
        (
            number,
            migration.__name__,
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            schema.SCHEMA_HASH if number == 1 else None,
        ),
    )


def _statements(script: str) -> list[str]:
    """Cut a script at its semicolons, because `executescript` would commit the transaction around it."""
    return [statement for part in script.split(";") if (statement := part.strip())]
