"""The connection that reads: it can neither create nor change anything."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from salt_tui.store.errors import StoreError, explain
from salt_tui.store.opened_file import identity
from salt_tui.store.stored_values import Place


class Reader:
    """The file, open for reading; used by one thread at a time.  Every method raises `StoreError` on trouble."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Take over a connection from `salt_tui.store.opening.connect_reader`; use `open_queries`."""
        self.path = path
        self._identity = identity(path)
        self._connection = connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every query inside see the file as it is now; what is written meanwhile does not show."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def version(self) -> int:
        """Return a number that is another whenever another connection has written to the file."""
        return int(self._rows("PRAGMA data_version")[0][0])

    def close(self) -> None:
        """Close; may be called twice."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _place(self, row: str) -> Place:
        return Place(self.path, row)

    def _rows(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def _row(self, statement: str, parameters: tuple[Any, ...], what: str) -> tuple[Any, ...]:
        rows = self._rows(statement, parameters)
        if not rows:
            raise StoreError(f"there is no {what} in {self.path}")
        return rows[0]

    def _stream(self, statement: str, parameters: tuple[Any, ...]) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Return the names of the columns, and the rows, read while they are consumed."""
        try:
            cursor = self._connection.execute(statement, parameters)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        return [column[0] for column in cursor.description], self._consume(cursor)

    def _consume(self, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
        try:
            # Not ``yield from``: a consumer that stops early closes the generator.  That would close the cursor too,
            # which fails once the database is closed.
            for row in cursor:  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
