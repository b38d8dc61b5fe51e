"""The one writer: every change to the file is a method here, and every method is one transaction."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from salt_tui.paths import expanded
from salt_tui.store import opening
from salt_tui.store.errors import StoreError, StoreFailure, explain
from salt_tui.store.lease import Lease, is_live, is_ours, own_lease, put_down, take_in_hand
from salt_tui.store.opened_file import OpenedFile, identity
from salt_tui.store.records import (
    GenerationEnd,
    ModelRecord,
    PendingProblem,
    ProblemRecord,
    RunRecord,
    RunState,
    TokenRecord,
    UnitRecord,
)
from salt_tui.store.rows import PROBLEM_FIELDS, Row, end_row, problem_record, token_ids_text, token_row, unit_row

__all__ = ["Store", "StoreError", "StoreFailure", "open_store"]

_INSERT_TOKEN = "INSERT INTO token VALUES (" + ", ".join("?" * 9) + ")"
_INSERT_UNIT = "INSERT INTO unit VALUES (" + ", ".join("?" * 20) + ")"
CLAIMED_BUSY_TIMEOUT = 60.0
"""Seconds to wait for another program's write lock while a run is claimed: giving up would end hours of work."""
_DELETED_AT_ONCE = 100
"""Answers deleted in one transaction: with 10,000 atoms it took 0.1 s on a busy machine."""
_PAUSE_BETWEEN_DELETIONS = 0.1
"""Seconds: SQLite's waiting writers look every 0.1 s at the latest, so one finds the lock free each time."""
_LEASE_IS_OURS = "lease_pid = ? AND lease_host = ? AND lease_process_start IS ?"


def open_store(path: Path | str, busy_timeout: float = opening.BUSY_TIMEOUT) -> Store:
    """Open a database for writing; make it, and its folder, when it is not there.

    Args:
        path: of the file.
        busy_timeout: seconds to wait for another program's write lock; `CLAIMED_BUSY_TIMEOUT` while a run is claimed.

    Raises:
        StoreError: one line: a folder that cannot be written, a database of something else or no database (both left
            as they are), a newer schema, a damaged file, a full disk, a lock held longer than the timeout.
    """
    path = expanded(path, StoreError)
    return Store(path, opening.connect_writer(path, busy_timeout), busy_timeout)


class Store:
    """The file, open for writing; used by one thread at a time.

    Tokens and units are buffered until `flush`, `withdraw_units` or `end_generation` writes them; `oldest_unwritten`
    tells the caller when to flush.  Every method that writes raises `StoreError` and then has changed nothing; what
    was buffered stays buffered.  None writes to a file that is no longer the one at its path.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, busy_timeout: float) -> None:
        """Take over a connection from `opening.connect_writer`; use `open_store`."""
        self.path = path
        self._connection = connection
        self._busy_timeout = busy_timeout
        self._opened = OpenedFile.at(path)
        self._identity = identity(path)
        self._tokens: list[Row] = []
        self._units: list[Row] = []
        self._oldest: float | None = None
        self._claimed: dict[int, Lease] = {}

    # --- runs ---------------------------------------------------------------------------------------------------

    def create_run(
        self, model: ModelRecord, vocabulary: Sequence[bytes], run: RunRecord, problems: Sequence[ProblemRecord]
    ) -> int:
        """Store a run with all its problems, in the order of the plan, and return its number.

        A model with the same hash is reused, its first name and path kept; the run keeps its own.  The state is
        ``interrupted`` until `claim`.
        """
        with self._transaction() as connection:
            model_id = self._model(model, vocabulary)
            created = connection.execute(
                "INSERT INTO run (model, model_name, model_path, model_entry, template, plan, plan_hash, environment,"
                " environment_hash, exact, warnings, state, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'interrupted', ?) RETURNING id",
                (
                    model_id,
                    model.name,
                    model.path,
                    model.entry,
                    model.template,
                    run.plan,
                    run.plan_hash,
                    run.environment,
                    run.environment_hash,
                    run.exact,
                    json.dumps(run.warnings, ensure_ascii=False),
                    _now(),
                ),
            ).fetchone()
            number = int(created[0])
            connection.executemany(
                f"INSERT INTO problem (run, {', '.join(PROBLEM_FIELDS)}) VALUES (?{', ?' * len(PROBLEM_FIELDS)})",
                [
                    # A seed has 64 bits without sign, one more than SQLite's integers.
                    (
                        number,
                        *(str(problem.seed) if name == "seed" else getattr(problem, name) for name in PROBLEM_FIELDS),
                    )
                    for problem in problems
                ],
            )
        return number

    def _model(self, model: ModelRecord, vocabulary: Sequence[bytes]) -> int:
        known = self._connection.execute("SELECT id FROM model WHERE sha256 = ?", (model.sha256,)).fetchone()
        if known is not None:
            return int(known[0])
        created = self._connection.execute(
            "INSERT INTO model (sha256, name, path, file_bytes, description, architecture, quantisation, parameters,"
            " vocabulary_size, trained_context) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                model.sha256,
                model.name,
                model.path,
                model.file_bytes,
                model.description,
                model.architecture,
                model.quantisation,
                model.parameters,
                model.vocabulary_size,
                model.trained_context,
            ),
        ).fetchone()
        number = int(created[0])
        self._connection.executemany(
            "INSERT INTO vocabulary (model, id, bytes) VALUES (?, ?, ?)",
            ((number, token, piece) for token, piece in enumerate(vocabulary)),
        )
        return number

    def claim(self, run: int) -> None:
        """Take the lease of a run and mark it ``running``.

        Raises:
            StoreError: no such run, or another process, or another store of this one, is computing it; the message
                names process and host.
        """
        lease = own_lease()
        try:
            with self._transaction() as connection:
                self._refuse_missing_or_live(run)
                connection.execute(
                    "UPDATE run SET state = 'running', message = NULL, finished_at = NULL, lease_pid = ?,"
                    " lease_host = ?, lease_process_start = ?, lease_heartbeat = ? WHERE id = ?",
                    (lease.pid, lease.host, lease.process_start, _text(lease.heartbeat), run),
                )
                # Before another thread can see the row, which would be nobody's to it.
                take_in_hand(lease, self._identity, run)
        except BaseException:
            put_down(lease, self._identity, run)
            raise
        self._claimed[run] = lease
        self._wait_for_locks(CLAIMED_BUSY_TIMEOUT)

    def _refuse_missing_or_live(self, run: int) -> None:
        row = self._connection.execute(
            "SELECT lease_pid, lease_host, lease_process_start, lease_heartbeat FROM run"
            " WHERE id = ? AND state <> 'deleted'",
            (run,),
        ).fetchone()
        if row is None:
            raise StoreError(f"there is no run {run} in {self.path}; `salt-tui report latest` shows the last one")
        if row[0] is None:
            return
        holder = Lease(row[0], row[1], row[2], datetime.fromisoformat(row[3]))
        if is_live(holder, datetime.now(UTC), self._identity, run):
            here = "this very process" if is_ours(holder) else "process"
            raise StoreError(f"run {run} is being computed by {here} {holder.pid} on {holder.host}; stop it first")

    def heartbeat(self, run: int) -> None:
        """Show a sign of life for a claimed run; at least every ten seconds, as the lease dies after thirty.

        Raises:
            StoreError: the lease is no longer ours; what was buffered is dropped, as the run is another's now.
        """
        lease = self._held(run)
        with self._transaction() as connection:
            changed = connection.execute(
                f"UPDATE run SET lease_heartbeat = ? WHERE id = ? AND {_LEASE_IS_OURS}",
                (_now(), run, lease.pid, lease.host, lease.process_start),
            ).rowcount
        if changed == 0:
            self._put_down(run)
            self._clear_buffer()
            raise StoreFailure(f"run {run} was deleted or taken over by another process; this one stops writing to it")

    def release(self, run: int, state: RunState, message: str | None = None) -> None:
        """Write what is buffered, set the final state of a claimed run and give the lease back.

        Args:
            run: its number.
            state: ``interrupted``, ``failed`` or ``finished``.
            message: why, one line, None when there is nothing to say.
        """
        if state == "running":
            raise ValueError("a run that is given back is no longer running")
        lease = self._held(run)
        with self._transaction() as connection:
            self._write_buffered()
            changed = connection.execute(
                "UPDATE run SET state = ?, message = ?, finished_at = ?, lease_pid = NULL, lease_host = NULL,"
                f" lease_process_start = NULL, lease_heartbeat = NULL WHERE id = ? AND {_LEASE_IS_OURS}",
                (
                    state,
                    message,
                    _now() if state == "finished" else None,
                    run,
                    lease.pid,
                    lease.host,
                    lease.process_start,
                ),
            ).rowcount
            if changed == 0:
                raise StoreFailure(f"run {run} was deleted or taken over by another process; nothing was written to it")
        self._clear_buffer()
        self._put_down(run)

    def update_environment(
        self, run: int, environment: str, environment_hash: str, exact: bool | None, warnings: Sequence[str]
    ) -> None:
        """Replace how a run is computed, as canonical JSON with its hash."""
        with self._transaction() as connection:
            changed = connection.execute(
                "UPDATE run SET environment = ?, environment_hash = ?, exact = ?, warnings = ? WHERE id = ?",
                (environment, environment_hash, exact, json.dumps(list(warnings), ensure_ascii=False), run),
            ).rowcount
            if changed == 0:
                raise StoreError(f"there is no run {run} in {self.path}")

    def pending_problems(self, run: int) -> list[PendingProblem]:
        """Return the problems without a finished answer, in the order of the plan."""
        columns = ", ".join(f"problem.{name}" for name in PROBLEM_FIELDS)
        try:
            rows = self._connection.execute(
                f"SELECT problem.id, generation.id, coalesce(generation.attempt, 0), {columns} FROM problem"
                " LEFT JOIN generation ON generation.problem = problem.id"
                " WHERE problem.run = ? AND generation.stop_reason IS NULL ORDER BY problem.id",
                (run,),
            ).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        return [PendingProblem(row[0], row[1], row[2], problem_record(row[3:])) for row in rows]

    def delete_run(self, run: int) -> None:
        """Delete a run with everything of it, and its model when no other run uses that.

        The run is gone at once for every reader; its rows follow in many small transactions, so that another program
        that is computing a run need not wait.  What a killed deletion leaves behind, the next one removes.

        Raises:
            StoreError: no such run, or a live process is computing it.
        """
        with self._transaction() as connection:
            self._refuse_missing_or_live(run)
            connection.execute(
                "UPDATE run SET state = 'deleted', finished_at = NULL, lease_pid = NULL, lease_host = NULL,"
                " lease_process_start = NULL, lease_heartbeat = NULL WHERE id = ?",
                (run,),
            )
        self._remove_deleted()

    def _remove_deleted(self) -> None:
        removed = _DELETED_AT_ONCE
        while removed == _DELETED_AT_ONCE:
            with self._transaction() as connection:
                removed = connection.execute(
                    "DELETE FROM generation WHERE id IN (SELECT generation.id FROM run JOIN problem"
                    " ON problem.run = run.id JOIN generation ON generation.problem = problem.id"
                    " WHERE run.state = 'deleted' LIMIT ?)",
                    (_DELETED_AT_ONCE,),
                ).rowcount
            if removed == _DELETED_AT_ONCE:
                time.sleep(_PAUSE_BETWEEN_DELETIONS)
        with self._transaction() as connection:
            connection.execute("DELETE FROM run WHERE state = 'deleted'")
            connection.execute("DELETE FROM model WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.model = model.id)")

    # --- answers ------------------------------------------------------------------------------------------------

    def begin_generation(self, problem: int, prompt_tokens: Sequence[int], preamble: int, attempt: int) -> int:
        """Begin the answer to a problem, or begin it again, and return its number.

        An unfinished answer is reset: its tokens and units, buffered ones too, are gone and its revision is 0.

        Args:
            problem: the row in ``problem``.
            prompt_tokens: ids of the whole prompt.
            preamble: how many of them are the task's shared preamble.
            attempt: 1 for the first.

        Raises:
            StoreError: the answer is finished already.
        """
        with self._transaction() as connection:
            known = connection.execute(
                "SELECT id, stop_reason FROM generation WHERE problem = ?", (problem,)
            ).fetchone()
            if known is not None and known[1] is not None:
                raise StoreFailure(f"generation {known[0]} in {self.path} is finished and cannot be begun again")
            values = (attempt, token_ids_text(prompt_tokens), preamble, _now())
            if known is None:
                created = connection.execute(
                    "INSERT INTO generation (attempt, prompt_tokens, preamble, started_at, problem)"
                    " VALUES (?, ?, ?, ?, ?) RETURNING id",
                    (*values, problem),
                ).fetchone()
                return int(created[0])
            number = int(known[0])
            for table in ("token", "unit"):
                connection.execute(f"DELETE FROM {table} WHERE generation = ?", (number,))
            connection.execute(
                "UPDATE generation SET attempt = ?, prompt_tokens = ?, preamble = ?, started_at = ?, revision = 0"
                " WHERE id = ?",
                (*values, number),
            )
        self._tokens = [row for row in self._tokens if row[0] != number]
        self._units = [row for row in self._units if row[0] != number]
        if not self._tokens and not self._units:
            self._oldest = None
        return number

    def add_tokens(self, generation: int, tokens: Sequence[TokenRecord]) -> None:
        """Buffer tokens.

        Raises:
            StoreError: a number that is not finite; nothing of the call is buffered.
        """
        self._buffer(self._tokens, [token_row(generation, token) for token in tokens])

    def add_units(self, generation: int, units: Sequence[UnitRecord]) -> None:
        """Buffer units; each (kind, index) once per revision of an answer.

        Raises:
            StoreError: a confidence that is not finite; nothing of the call is buffered.
        """
        self._buffer(self._units, [unit_row(generation, unit) for unit in units])

    def withdraw_units(self, generation: int, revision: int) -> None:
        """Delete all units of an unfinished answer, buffered ones too, and set its revision; tokens stay.

        Raises:
            StoreError: the answer is finished, or the revision does not rise.
        """
        with self._transaction() as connection:
            self._write_buffered()
            connection.execute("DELETE FROM unit WHERE generation = ?", (generation,))
            changed = connection.execute(
                "UPDATE generation SET revision = ? WHERE id = ? AND revision < ? AND stop_reason IS NULL",
                (revision, generation, revision),
            ).rowcount
            if changed == 0:
                raise StoreFailure(
                    f"the units of generation {generation} cannot be withdrawn: it is finished or at revision"
                    f" {revision} already"
                )
        self._clear_buffer()

    def end_generation(self, generation: int, end: GenerationEnd) -> None:
        """Finish an answer in one transaction with everything buffered.

        Raises:
            StoreError: the answer is finished already or was never begun, or a duration is not finite.
        """
        row = end_row(generation, end)
        with self._transaction() as connection:
            self._write_buffered()
            changed = connection.execute(
                "UPDATE generation SET reply = ?, stop_reason = ?, extraction = ?, answer_status = ?, error = ?,"
                " prompt_seconds = ?, decode_seconds = ?, ended_at = ? WHERE id = ? AND stop_reason IS NULL",
                (*row, _now(), generation),
            ).rowcount
            if changed == 0:
                raise StoreFailure(f"generation {generation} in {self.path} is not open and cannot be finished")
        self._clear_buffer()

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

    def _buffer(self, buffer: list[Row], rows: list[Row]) -> None:
        if rows and self._oldest is None:
            self._oldest = time.monotonic()
        buffer.extend(rows)

    def _write_buffered(self) -> None:
        self._connection.executemany(_INSERT_TOKEN, self._tokens)
        self._connection.executemany(_INSERT_UNIT, self._units)

    def _clear_buffer(self) -> None:
        self._tokens.clear()
        self._units.clear()
        self._oldest = None

    # --- the connection -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what is buffered, give back leases still held (state ``interrupted``) and close; may be called twice.

        Raises:
            StoreError: something could not be written; the file is closed all the same.
        """
        try:
            if self._claimed:
                for run in list(self._claimed):
                    self.release(run, "interrupted")
            self.flush()
        finally:
            # A lease that could not be given back stays in the file; this process no longer works under it.
            for run in list(self._claimed):
                self._put_down(run)
            self._clear_buffer()
            with contextlib.suppress(sqlite3.Error):
                # While somebody reads, closing does not do this, and a copy of the file alone would lack the last rows.
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

    def _held(self, run: int) -> Lease:
        lease = self._claimed.get(run)
        if lease is None:
            raise StoreError(f"run {run} is not held by this process")
        return lease

    def _put_down(self, run: int) -> None:
        put_down(self._claimed.pop(run), self._identity, run)

    def _wait_for_locks(self, seconds: float) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._opened.check()
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError):
                # Who waited in vain does not wait as long again to say so in the file.
                self._wait_for_locks(self._busy_timeout)
            raise explain(error, self.path) from error
        except (UnicodeError, OverflowError) as error:
            raise StoreFailure(f"{self.path} refused a row ({error}); nothing of that transaction was kept") from error


def _now() -> str:
    return _text(datetime.now(UTC))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
