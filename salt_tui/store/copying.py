"""One run copied into a database of its own, which every command can open."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from salt_tui.store import migrations
from salt_tui.store.errors import StoreError, explain
from salt_tui.store.lease import WITHOUT_LEASE
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work

_SOURCE_FAILURES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_MODELS = "(SELECT model FROM source.run WHERE id = :run UNION SELECT model FROM source.study WHERE run = :run)"
_COPIES: dict[str, str] = {
    "model": f"id IN {_MODELS}",
    "vocabulary": f"model IN {_MODELS}",
    "run": "id = :run",
    "study": "run = :run AND state <> 'deleted' AND id = coalesce(:study, id)",
    "problem": "run = :run",
    "generation": "problem IN (SELECT id FROM source.problem WHERE run = :run)"
    " AND (study IS NULL OR study IN (SELECT id FROM main.study))",
    "token": "generation IN (SELECT id FROM main.generation)",
    "unit": "generation IN (SELECT id FROM main.generation)",
    "signal": "run = :run AND (study IS NULL OR study IN (SELECT id FROM main.study))",
    "foreign_signal": "run = :run",
    "activation": "study IN (SELECT id FROM main.study)",
    "intervention": "study IN (SELECT id FROM main.study)",
}
"""Tables in an order in which no row comes before what it refers to, and which of their rows belong to a run."""


def copy_run(queries: Queries, run: int, path: Path) -> None:
    """Write a run with its model, problems, answers, studies and all that hangs on them to a new file.

    Args:
        queries: the database to read.
        run: the run's number.
        path: of the new file; a lease is not copied, and ``running`` becomes ``interrupted``.

    Raises:
        StoreError: the database is damaged, or the file cannot be written.
    """
    _copy_or_explain(queries, Work(run), path)


def copy_questions(queries: Queries, run: int, problems: Sequence[int], path: Path) -> None:
    """Write a run with some of its problems and no answers to a new file, where they can be answered again.

    Args:
        queries: the database to read.
        run: the run's number; it is ``interrupted`` there.
        problems: rows of ``problem``; their numbers stay.
        path: of the new file.

    Raises:
        StoreError: the database is damaged, or the file cannot be written.
    """
    numbers = ", ".join(str(int(problem)) for problem in problems)
    conditions = {table: condition for table, condition in _COPIES.items() if table in ("model", "vocabulary", "run")}
    _copy_or_explain(queries, Work(run), path, {**conditions, "problem": f"run = :run AND id IN ({numbers})"})


def copy_study(queries: Queries, study: Work, path: Path) -> None:
    """Write the run of a study as `copy_run` does, without its other studies."""
    _copy_or_explain(queries, study, path)


def _copy_or_explain(queries: Queries, work: Work, path: Path, tables: Mapping[str, str] | None = None) -> None:
    try:
        _copy(queries.path, work, path, tables or _COPIES)
    except sqlite3.Error as error:
        # Nobody else has the new file, so these are the database's.
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code == sqlite3.SQLITE_CONSTRAINT:
            raise StoreError(
                f"{queries.path} holds a row of run {work.run} that salt-tui did not write ({error});"
                " it cannot be copied"
            ) from error
        raise explain(error, queries.path if code in _SOURCE_FAILURES else path) from error


def _copy(source: Path, work: Work, path: Path, tables: Mapping[str, str]) -> None:
    with closing(sqlite3.connect(path.absolute().as_uri(), uri=True, isolation_level=None)) as connection:
        migrations.apply(connection)
        connection.execute("ATTACH ? AS source", (f"{source.absolute().as_uri()}?mode=ro",))
        connection.execute("BEGIN IMMEDIATE")
        parameters = {"run": work.run, "study": work.study}
        for table, condition in tables.items():
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table} WHERE {condition}", parameters)
        for table in ("run", "study"):
            connection.execute(
                f"UPDATE {table} SET state = iif(state = 'running', 'interrupted', state), {WITHOUT_LEASE}"
            )
        if "generation" not in tables:
            connection.execute("UPDATE run SET state = 'interrupted', finished_at = NULL")
        connection.execute("COMMIT")
