"""One run copied into a database of its own, which every command can open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from salt_tui.store import migrations
from salt_tui.store.errors import explain
from salt_tui.store.queries import Queries

_COPIED_WITH_RUN = (
    ("model", "id = (SELECT model FROM source.run WHERE id = :run)"),
    ("vocabulary", "model = (SELECT model FROM source.run WHERE id = :run)"),
    ("run", "id = :run"),
    ("problem", "run = :run"),
    ("generation", "problem IN (SELECT id FROM source.problem WHERE run = :run)"),
)
_COPIED_WITH_GENERATION = ("token", "unit", "probe", "intervention")


def copy_run(queries: Queries, run: int, path: Path) -> None:
    """Write a run with its model, problems, answers, tokens and units to a new database file.

    Args:
        queries: the database to read.
        run: the run's number.
        path: of the new file; a lease of the run is not copied, and ``running`` becomes ``interrupted``.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        _copy(queries.path, run, path)
    except sqlite3.Error as error:
        raise explain(error, path) from error


def _copy(source: Path, run: int, path: Path) -> None:
    with closing(sqlite3.connect(path.absolute().as_uri(), uri=True, isolation_level=None)) as connection:
        migrations.apply(connection)
        connection.execute("ATTACH ? AS source", (f"{source.absolute().as_uri()}?mode=ro",))
        connection.execute("BEGIN IMMEDIATE")
        for table, condition in _copies():
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table} WHERE {condition}", {"run": run})
        connection.execute(
            "UPDATE run SET state = iif(state = 'running', 'interrupted', state), lease_pid = NULL,"
            " lease_host = NULL, lease_process_start = NULL, lease_heartbeat = NULL"
        )
        connection.execute("COMMIT")


def _copies() -> Iterator[tuple[str, str]]:
    yield from _COPIED_WITH_RUN
    for table in _COPIED_WITH_GENERATION:
        yield table, "generation IN (SELECT id FROM main.generation)"
