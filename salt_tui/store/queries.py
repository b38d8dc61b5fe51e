"""Read-only questions to the file, on a connection of its own that can neither create nor change anything."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from salt_tui.paths import expanded
from salt_tui.store import opening
from salt_tui.store.errors import StoreError, explain
from salt_tui.store.lease import Lease, is_live
from salt_tui.store.opened_file import identity
from salt_tui.store.records import ModelRecord, RunRecord, RunState, UnitKind, UnitRecord
from salt_tui.store.results import (
    RunListing,
    StoredAnswer,
    StoredRun,
    StoredToken,
    TaskCounts,
    UnitColumns,
    WrongAtom,
)
from salt_tui.store.rows import (
    PROBLEM_FIELDS,
    TOKEN_COLUMNS,
    UNIT_COLUMNS,
    problem_record,
    token_ids,
    token_record,
    unit_record,
)
from salt_tui.store.schema import CONFIDENCE_COLUMNS, LEFT_OUT_STATUSES, STATUS_CODE

_CHUNK = 50_000
"""Rows turned into arrays at a time: 1,000,000 at once would hold 15,000,000 Python objects."""

_COUNTS = f"generation.answer_status NOT IN ({', '.join(map(repr, LEFT_OUT_STATUSES))})"
_PROBLEM_COLUMNS = ", ".join(f"problem.{name}" for name in PROBLEM_FIELDS)


def open_queries(path: Path | str, busy_timeout: float = opening.BUSY_TIMEOUT) -> Queries:
    """Open a database for reading.

    Raises:
        StoreError: one line: no file, a database of something else or no database, another schema, a damaged file.
    """
    path = expanded(path, StoreError)
    return Queries(path, opening.connect_reader(path, busy_timeout))


class Queries:
    """The file, open for reading; used by one thread at a time.  Every method raises `StoreError` on trouble."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Take over a connection from `opening.connect_reader`; use `open_queries`."""
        self.path = path
        self._identity = identity(path)
        self._connection = connection

    # --- runs ---------------------------------------------------------------------------------------------------

    def list_runs(self) -> list[RunListing]:
        """Return all runs, newest first."""
        totals: dict[int, list[TaskCounts]] = {}
        for run, counts in self._counts():
            totals.setdefault(run, []).append(counts)
        listings = []
        for row in self._rows(
            "SELECT id, model_name, state, message, created_at, finished_at, exact, lease_pid, lease_host,"
            " lease_process_start, lease_heartbeat FROM run WHERE state <> 'deleted' ORDER BY id DESC"
        ):
            tasks = totals.get(row[0], [])
            shares = [counts.correct / counts.atoms for counts in tasks if counts.atoms]
            listings.append(
                RunListing(
                    run=row[0],
                    model=row[1],
                    tasks=tuple(counts.task for counts in tasks),
                    difficulty=tasks[0].difficulty if tasks else "",
                    method=tasks[0].method if tasks else "",
                    state=self._state(row[0], row[2], row[7:11]),
                    message=row[3],
                    created_at=row[4],
                    finished_at=row[5],
                    answers_done=sum(counts.done for counts in tasks),
                    answers=sum(counts.answers for counts in tasks),
                    atoms=sum(counts.atoms for counts in tasks),
                    correct=sum(counts.correct for counts in tasks),
                    precision=sum(shares) / len(shares) if shares else None,
                    exact=None if row[6] is None else bool(row[6]),
                )
            )
        return listings

    def find_run(self, name: str) -> int:
        """Return the number of the run called ``latest`` or of a run given by its number.

        Raises:
            StoreError: no such run; the message says which there are.
        """
        known = [row[0] for row in self._rows("SELECT id FROM run WHERE state <> 'deleted' ORDER BY id")]
        if not known:
            raise StoreError(f"{self.path} holds no runs; `salt-tui run` makes one")
        if name == "latest":
            return int(known[-1])
        # isascii keeps out digits such as ² that int refuses.
        if name.isascii() and name.isdigit() and int(name) in known:
            return int(name)
        listed = ", ".join(str(run) for run in known[-10:])
        raise StoreError(f"there is no run {name!r} in {self.path}; the last ones are {listed}; or say latest")

    def run_record(self, run: int) -> StoredRun:
        """Return a run with its plan, environment and model."""
        row = self._row(
            "SELECT run.id, state, message, created_at, finished_at, lease_pid, lease_host, lease_process_start,"
            " lease_heartbeat, plan, plan_hash, environment, environment_hash, exact, warnings, sha256, model_name,"
            " model_path, file_bytes, description, architecture, quantisation, parameters, vocabulary_size,"
            " trained_context, template, model_entry FROM run JOIN model ON model.id = run.model"
            " WHERE run.id = ? AND state <> 'deleted'",
            (run,),
            f"run {run}",
        )
        exact = None if row[13] is None else bool(row[13])
        return StoredRun(
            run=row[0],
            state=self._state(row[0], row[1], row[5:9]),
            message=row[2],
            created_at=row[3],
            finished_at=row[4],
            model=ModelRecord(*row[15:]),
            record=RunRecord(*(*row[9:13], exact, tuple(json.loads(row[14])))),
        )

    def run_plan(self, run: int) -> dict[str, Any]:
        """Return the plan of a run, parsed."""
        plan: dict[str, Any] = json.loads(self.run_record(run).record.plan)
        return plan

    def task_counts(self, run: int) -> list[TaskCounts]:
        """Return answers and atoms per task, in the order of the plan."""
        return [counts for _, counts in self._counts(run)]

    def _counts(self, run: int | None = None) -> list[tuple[int, TaskCounts]]:
        restriction = "" if run is None else "WHERE run = ?"
        parameters = () if run is None else (run,)
        statuses: dict[tuple[int, str], dict[str, int]] = {}
        for number, task, status, answers in self._rows(
            "SELECT problem.run, problem.task, generation.answer_status, count(*) FROM problem"
            f" LEFT JOIN generation ON generation.problem = problem.id {restriction}"
            " GROUP BY 1, 2, 3 ORDER BY min(problem.id)",
            parameters,
        ):
            found = statuses.setdefault((number, task), {})
            if status is not None:
                found[status] = answers
        rows = {
            (row[0], row[1]): row[2:]
            for row in self._rows(
                "SELECT run, task, difficulty, method, answers, done, left_out, atoms, correct, wrong, redundant,"
                f" abstained, missing, reference_atoms FROM run_summary {restriction}",
                parameters,
            )
        }
        return [
            (number, TaskCounts(*(task, *rows[number, task], found)))
            for (number, task), found in statuses.items()
            if (number, task) in rows
        ]

    # --- answers ------------------------------------------------------------------------------------------------

    def answers(self, run: int) -> list[StoredAnswer]:
        """Return the answers of a run, those not begun included, in the order of the plan."""
        return self._answers("problem.run = ? ORDER BY problem.id", run)

    def answer(self, generation: int) -> StoredAnswer:
        """Return one answer."""
        found = self._answers("generation.id = ?", generation)
        if not found:
            raise StoreError(f"there is no generation {generation} in {self.path}")
        return found[0]

    def _answers(self, condition: str, parameter: int) -> list[StoredAnswer]:
        rows = self._rows(
            "SELECT problem.id, generation.id, attempt, revision, json_array_length(prompt_tokens), preamble,"
            " (SELECT count(*) FROM token WHERE token.generation = generation.id),"
            " reply, stop_reason, extraction, answer_status, error, prompt_seconds, decode_seconds,"
            f" {_PROBLEM_COLUMNS} FROM problem LEFT JOIN generation ON generation.problem = problem.id"
            f" WHERE {condition}",
            (parameter,),
        )
        return [StoredAnswer(row[0], problem_record(row[14:]), *row[1:14]) for row in rows]

    def prompt(self, generation: int) -> tuple[int, ...]:
        """Return the token ids of an answer's prompt."""
        row = self._row("SELECT prompt_tokens FROM generation WHERE id = ?", (generation,), f"generation {generation}")
        return token_ids(row[0])

    def units(self, generation: int, kind: UnitKind | None = None) -> list[UnitRecord]:
        """Return the units of an answer, of one kind or of all, ordered by kind and index."""
        rows = self._rows(
            f'SELECT {UNIT_COLUMNS} FROM unit WHERE generation = ? AND kind = coalesce(?, kind) ORDER BY kind, "index"',
            (generation, kind),
        )
        return [unit_record(row) for row in rows]

    def unit(self, generation: int, kind: UnitKind, place: int) -> UnitRecord | None:
        """Return the unit at a place, from 0, among those of a kind in order of index; None past the last."""
        rows = self._rows(
            f'SELECT {UNIT_COLUMNS} FROM unit WHERE generation = ? AND kind = ? ORDER BY "index" LIMIT 1 OFFSET ?',
            (generation, kind, place),
        )
        return next((unit_record(row) for row in rows), None)

    def tokens(self, generation: int) -> list[StoredToken]:
        """Return the tokens of an answer with their bytes, in order."""
        records = [
            token_record(row)
            for row in self._rows(
                f"SELECT {TOKEN_COLUMNS} FROM token WHERE generation = ? ORDER BY position", (generation,)
            )
        ]
        wanted = {record.id for record in records}.union(*(record.alternatives for record in records))
        pieces: dict[int, bytes] = dict(
            self._rows(
                "SELECT id, bytes FROM vocabulary WHERE id IN (SELECT value FROM json_each(?))"
                " AND model = (SELECT run.model FROM generation JOIN problem ON problem.id = generation.problem"
                " JOIN run ON run.id = problem.run WHERE generation.id = ?)",
                (json.dumps(sorted(wanted)), generation),
            )
        )
        try:
            return [
                StoredToken(record, pieces[record.id], tuple(pieces[token] for token in record.alternatives))
                for record in records
            ]
        except KeyError as error:
            raise StoreError(
                f"token {error} of generation {generation} is not in the vocabulary of its model"
            ) from error

    # --- units of a run -----------------------------------------------------------------------------------------

    def unit_columns(self, run: int, kind: UnitKind, functions: Sequence[str] = CONFIDENCE_COLUMNS) -> UnitColumns:
        """Return the units of a run as arrays, of finished answers that count (spec 2).

        Args:
            run: its number.
            kind: ``atom``, ``line`` or ``generation``.
            functions: the confidence functions wanted; fewer are faster.
        """
        import numpy as np

        unknown = [name for name in functions if name not in CONFIDENCE_COLUMNS]
        if unknown:
            raise StoreError(f"unknown confidence function {unknown[0]!r}; valid: {', '.join(CONFIDENCE_COLUMNS)}")
        answers = self._rows(
            "SELECT problem.task, problem.position, generation.id FROM problem"
            f" JOIN generation ON generation.problem = problem.id WHERE problem.run = ? AND {_COUNTS}"
            " ORDER BY problem.id",
            (run,),
        )
        names = list(dict.fromkeys(row[0] for row in answers))
        place = np.array([(row[2], names.index(row[0]), row[1]) for row in answers], dtype=np.int64).reshape(-1, 3)
        place = place[np.argsort(place[:, 0])]
        columns = ["generation", '"index"', "coalesce(line, -1)", STATUS_CODE, *functions]
        statement = (
            f"SELECT {', '.join(columns)} FROM unit WHERE kind = ? AND generation IN (SELECT value FROM json_each(?))"
            ' ORDER BY generation, "index"'
        )
        table = self._table(statement, (kind, json.dumps(place[:, 0].tolist())), len(columns))
        whole = table[:, :4].astype(np.int64)
        answer = np.searchsorted(place[:, 0], whole[:, 0])
        return UnitColumns(
            kind=kind,
            task_names=tuple(names),
            task=place[answer, 1],
            generation=whole[:, 0],
            position=place[answer, 2],
            index=whole[:, 1],
            line=whole[:, 2],
            status=whole[:, 3],
            confidences={name: table[:, 4 + column].copy() for column, name in enumerate(functions)},
        )

    def _table(self, statement: str, parameters: tuple[Any, ...], width: int) -> Any:
        """Return all rows of a statement as one array of doubles, exact for integers below 2**53, NULL as NaN."""
        import numpy as np

        chunks = [np.empty((0, width))]
        try:
            cursor = self._connection.execute(statement, parameters)
            while rows := cursor.fetchmany(_CHUNK):
                chunks.append(np.array(rows, dtype=np.float64))
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        return np.concatenate(chunks)

    def atom_rows(self, run: int) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Return the columns of ``atom_view`` and its rows for a run, read while they are consumed."""
        try:
            cursor = self._connection.execute(
                'SELECT * FROM atom_view WHERE run = ? ORDER BY generation, "index"', (run,)
            )
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        return [column[0] for column in cursor.description], self._consume(cursor)

    def _consume(self, cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
        try:
            # Not ``yield from``: who stops reading early closes the generator, and that would close the cursor too,
            # which fails once the database is closed.
            for row in cursor:  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def confidently_wrong(self, run: int, limit: int, task: str | None = None) -> list[WrongAtom]:
        """Return the wrong and redundant atoms that the model was surest of, by ``max_probability``, surest first."""
        rows = self._rows(
            "WITH surest AS ("
            ' SELECT problem.task, problem.position, unit.generation, unit."index", unit.max_probability'
            " FROM problem JOIN generation ON generation.problem = problem.id"
            " JOIN unit INDEXED BY unit_atom_status ON unit.generation = generation.id AND unit.kind = 'atom'"
            f" AND unit.status IN ('wrong', 'redundant') WHERE problem.run = ? AND {_COUNTS}"
            " AND problem.task = coalesce(?, problem.task) AND unit.max_probability IS NOT NULL"
            ' ORDER BY unit.max_probability DESC, unit.generation, unit."index" LIMIT ?)'
            ' SELECT surest.generation, surest.task, surest.position, unit."index", line, text, reference, status,'
            " unit.max_probability FROM surest JOIN unit ON unit.generation = surest.generation"
            ' AND unit.kind = \'atom\' AND unit."index" = surest."index"'
            ' ORDER BY unit.max_probability DESC, unit.generation, unit."index"',
            (run, task, limit),
        )
        return [WrongAtom(*row) for row in rows]

    # --- the connection -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let every query inside see the file as it is now, whatever a writer does meanwhile."""
        self._rows("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

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

    def _state(self, run: int, state: RunState, lease: Sequence[Any]) -> RunState:
        if state != "running":
            return state
        pid, host, process_start, heartbeat = lease
        if pid is None:
            return "interrupted"
        holder = Lease(pid, host, process_start, datetime.fromisoformat(heartbeat))
        return "running" if is_live(holder, datetime.now(UTC), self._identity, run) else "interrupted"
