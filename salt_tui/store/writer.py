"""The connection that writes: transactions, the hold on runs and studies, and the buffer.

A process that computes a run or study holds it under a fencing number.  Every later claim raises the number.  Each
transaction compares the number in the file with the holder's.  So a process that was stopped, lost its lease and woke
up writes nothing to a run that another process has taken over.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from salt_tui.store.errors import StoreError, StoreFailure, explain
from salt_tui.store.lease import (
    LEASE_COLUMNS,
    WITHOUT_LEASE,
    Lease,
    is_live,
    is_ours,
    own_lease,
    put_down,
    stored_lease,
    take_in_hand,
)
from salt_tui.store.opened_file import OpenedFile, identity
from salt_tui.store.records import RunState, Work
from salt_tui.store.rows import Row
from salt_tui.store.stored_values import Place

CLAIMED_BUSY_TIMEOUT = 60.0
"""Seconds to wait for another program's write lock while something is claimed: giving up would end hours of work."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """What this store holds a run or study under."""

    lease: Lease
    fence: int


class Writer:
    """The file, open for writing; used by one thread at a time.

    Rows are buffered until `flush` or a transaction that says so writes them; `oldest_unwritten` tells the caller when
    to flush.  Every method that writes raises `StoreError` and then has changed nothing; what was buffered stays
    buffered, unless the run or study was taken over.  None writes to a file that is no longer the one at its path.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, busy_timeout: float) -> None:
        """Take over a connection from `salt_tui.store.opening.connect_writer`; use `open_store`."""
        self.path = path
        self._connection = connection
        self._busy_timeout = busy_timeout
        self._opened = OpenedFile.at(path)
        self._identity = identity(path)
        self._claimed: dict[Work, _Claim] = {}
        self._lost: dict[Work, str] = {}
        self._buffered: dict[Work, dict[str, list[Row]]] = {}
        self._oldest: float | None = None

    # --- who works on what --------------------------------------------------------------------------------------

    def claim(self, work: Work) -> None:
        """Take the lease of a run or study with a new fencing number, and mark it ``running``.

        Raises:
            StoreError: there is none, or another process, or another store of this one, is computing it; the message
                names process and host.
        """
        lease = own_lease()
        try:
            with self._transaction() as connection:
                self._refuse_missing_or_live(work)
                taken = connection.execute(
                    f"UPDATE {_table(work)} SET state = 'running', message = NULL, finished_at = NULL,"
                    " fence = fence + 1, lease_pid = ?, lease_host = ?, lease_namespace = ?, lease_process_start = ?,"
                    " lease_heartbeat = ? WHERE id = ? RETURNING fence",
                    (
                        lease.pid,
                        lease.host,
                        lease.namespace,
                        lease.process_start,
                        as_text(lease.heartbeat),
                        _row_id(work),
                    ),
                ).fetchone()
                # Before the commit: a thread that sees the row must find the lease in hand.
                take_in_hand(lease, self._identity, work)
        except BaseException:
            put_down(lease, self._identity, work)
            raise
        self._claimed[work] = _Claim(lease, int(taken[0]))
        self._lost.pop(work, None)
        self._wait_for_locks(CLAIMED_BUSY_TIMEOUT)

    def heartbeat(self, work: Work) -> None:
        """Show a sign of life for what is claimed; at least every ten seconds, as the lease dies after thirty.

        Raises:
            StoreError: another process has taken it over; what was buffered for it is dropped.
        """
        self._held(work)
        with self._transaction() as connection:
            connection.execute(
                f"UPDATE {_table(work)} SET lease_heartbeat = ? WHERE id = ?", (now_text(), _row_id(work))
            )

    def release(self, work: Work, state: RunState, message: str | None = None) -> None:
        """Write what is buffered, set the final state of a claimed run or study and give the lease back.

        Args:
            work: the run or study.
            state: ``interrupted``, ``failed`` or ``finished``.
            message: why, one line, None when there is nothing to say.
        """
        if state == "running":
            raise ValueError("what is given back is no longer running")
        self._held(work)
        with self._transaction() as connection:
            self._write_buffered()
            connection.execute(
                f"UPDATE {_table(work)} SET state = ?, message = ?, finished_at = ?, {WITHOUT_LEASE} WHERE id = ?",
                (state, message, now_text() if state == "finished" else None, _row_id(work)),
            )
        self._clear_buffer()
        self._put_down(work)

    def _held(self, work: Work) -> _Claim:
        claim = self._claimed.get(work)
        if claim is None:
            if work in self._lost:
                raise StoreFailure(self._lost[work])
            raise StoreError(f"{work.title} is not held by this process")
        return claim

    def _put_down(self, work: Work) -> None:
        put_down(self._claimed.pop(work).lease, self._identity, work)

    def _refuse_missing_or_live(self, work: Work) -> None:
        """See that no live process is computing a run or study; this store counts as well.

        Raises:
            StoreError: there is none, or somebody is; the message names process and host.
        """
        row = self._connection.execute(
            f"SELECT {LEASE_COLUMNS} FROM {_table(work)} WHERE id = ? AND run = ? AND state <> 'deleted'"
            if work.study is not None
            else f"SELECT {LEASE_COLUMNS} FROM run WHERE id = ? AND id = ? AND state <> 'deleted'",
            (_row_id(work), work.run),
        ).fetchone()
        if row is None:
            raise StoreError(f"there is no {work.title} in {self.path}; `salt-tui report latest` shows the last run")
        holder = stored_lease(row, Place(self.path, work.title))
        if holder is not None and is_live(holder, datetime.now(UTC), self._identity, work):
            here = "this very process" if is_ours(holder) else "process"
            raise StoreError(f"{work.title} is being computed by {here} {holder.pid} on {holder.host}; stop it first")

    def _check_claims(self) -> None:
        """See that nothing that this store holds was taken over; inside a transaction, so that it stays so.

        Raises:
            StoreFailure: something was; it is no longer held and what was buffered for it is dropped.
        """
        for work, claim in list(self._claimed.items()):
            row = self._connection.execute(
                f"SELECT fence, lease_pid, lease_host FROM {_table(work)} WHERE id = ? AND state <> 'deleted'",
                (_row_id(work),),
            ).fetchone()
            if row is not None and row[0] == claim.fence:
                continue
            self._put_down(work)
            self._drop(work)
            how = "was deleted by another process"
            if row is not None:
                who = "another process" if row[1] is None else f"process {row[1]} on {row[2]}"
                how = f"was taken over by {who}"
            self._lost[work] = f"{work.title} {how}; this one stops writing to it"
            raise StoreFailure(self._lost[work])

    # --- the buffer ---------------------------------------------------------------------------------------------

    @property
    def oldest_unwritten(self) -> float | None:
        """Time, as of `time.monotonic`, since when something is buffered; None when nothing is."""
        return self._oldest

    def flush(self) -> None:
        """Write everything buffered in one transaction; nothing happens when nothing is."""
        if self._oldest is None:
            return
        with self._transaction():
            self._write_buffered()
        self._clear_buffer()

    def _buffer(self, work: Work, statement: str, rows: list[Row]) -> None:
        if not rows:
            return
        if self._oldest is None:
            self._oldest = time.monotonic()
        self._buffered.setdefault(work, {}).setdefault(statement, []).extend(rows)

    def _drop(self, work: Work) -> None:
        self._buffered.pop(work, None)
        if not self._buffered:
            self._oldest = None

    def _write_buffered(self) -> None:
        for statements in self._buffered.values():
            for statement, rows in statements.items():
                self._connection.executemany(statement, rows)

    def _clear_buffer(self) -> None:
        self._buffered.clear()
        self._oldest = None

    # --- the connection -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what is buffered, give back leases still held (state ``interrupted``) and close; may be called twice.

        Raises:
            StoreError: something could not be written; the file is closed all the same.
        """
        try:
            for work in list(self._claimed):
                self.release(work, "interrupted")
            self.flush()
        finally:
            # A lease that could not be given back stays in the file; this process no longer works under it.
            for work in list(self._claimed):
                self._put_down(work)
            self._clear_buffer()
            if not self._opened.is_lost:
                # While somebody reads, closing does not do this, and a copy of the file alone would lack the last rows.
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._connection.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; an error on the way out does not hide the one that led here."""
        if error is None:
            self.close()
            return
        with contextlib.suppress(StoreError):
            self.close()

    def _wait_for_locks(self, seconds: float) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._opened.check()
                self._check_claims()
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError):
                # After a lock timeout, the failure is recorded with the short timeout.
                self._wait_for_locks(self._busy_timeout)
            raise explain(error, self.path) from error
        except (UnicodeError, OverflowError) as error:
            raise StoreFailure(f"{self.path} refused a row ({error}); nothing of that transaction was kept") from error

    def _rows(self, statement: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error


def _table(work: Work) -> str:
    return "run" if work.study is None else "study"


def _row_id(work: Work) -> int:
    return work.run if work.study is None else work.study


def now_text() -> str:
    """Return the time as it is stored."""
    return as_text(datetime.now(UTC))


def as_text(moment: datetime) -> str:
    """Return a time as it is stored: ISO 8601 with milliseconds."""
    return moment.isoformat(timespec="milliseconds")
