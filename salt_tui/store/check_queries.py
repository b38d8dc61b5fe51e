"""What a check of a whole file reads: its structure, and one finished generation after the other with all its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from salt_tui.store import migrations
from salt_tui.store.connection import connect
from salt_tui.store.errors import StoreError
from salt_tui.store.integrity import TokenBytes, UnitRange, generation_faults
from salt_tui.store.opening import BUSY_TIMEOUT
from salt_tui.store.reader import Reader
from salt_tui.store.records import Work
from salt_tui.store.results import StoredReply
from salt_tui.store.rows import PROBLEM_FIELDS, TOKEN_COLUMNS, UNIT_COLUMNS, problem_record, token_record, unit_record
from salt_tui.store.stored_values import UNREADABLE

_LISTED = 100
"""Faults of the file's structure that are named; SQLite's own check stops at as many."""
_END_OF_PROMPT = 16
"""Last tokens of a prompt that are looked at: they hold what the model was made to begin with."""
_PROBLEM_COLUMNS = ", ".join(f"problem.{name}" for name in PROBLEM_FIELDS)


class CheckQueries(Reader):
    """What is read to compare a file with itself; one generation is in memory at a time."""

    def structure_faults(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the file as a database, each as a name and a text.

        SQLite's integrity check covers types, CHECK constraints and indices.  Foreign keys are checked apart.  Tables,
        indices, views and triggers are compared with those that this program makes.
        """
        for text in self._integrity_check():
            if text != "ok":
                yield "integrity_check", text
        _, rows = self._stream("PRAGMA foreign_key_check", ())
        for _, (table, number, parent, _key) in zip(range(_LISTED), rows, strict=False):
            yield "foreign_key_check", f"row {number} of {table} refers to a row of {parent} that is not there"
        ours, theirs = _own_objects(), _objects(self._rows)
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                how = "missing" if name not in theirs else "not one of ours" if name not in ours else "made otherwise"
                yield "schema", f"{name} is {how}"

    def _integrity_check(self) -> list[str]:
        statement = f"PRAGMA integrity_check({_LISTED})"
        # A connection opened for reading does not know the CHECK constraints.  This one changes nothing either.
        try:
            with closing(connect(self.path, "rw", BUSY_TIMEOUT)) as connection:
                connection.execute("PRAGMA query_only = ON")
                return [str(row[0]) for row in connection.execute(statement)]
        except sqlite3.Error:
            return [str(row[0]) for row in self._rows(statement)]

    def all_works(self) -> list[Work]:
        """Return all runs, each with its studies behind it."""
        works = []
        for (run,) in self._rows("SELECT id FROM run WHERE state <> 'deleted' ORDER BY id"):
            works.append(Work(run))
            works += [
                Work(run, study, number)
                for study, number in self._rows(
                    "SELECT id, number FROM study WHERE run = ? AND state <> 'deleted' ORDER BY number", (run,)
                )
            ]
        return works

    def unanswered(self, run: int) -> int:
        """Return how many problems of a run have no finished answer."""
        row = self._row(
            "SELECT count(*) FROM problem WHERE run = ? AND NOT EXISTS (SELECT 1 FROM generation"
            " WHERE generation.problem = problem.id AND study IS NULL AND stop_reason IS NOT NULL)",
            (run,),
            f"run {run}",
        )
        return int(row[0])

    def finished_generations(self, work: Work) -> list[int]:
        """Return the numbers of the finished generations of a run or study, in the order of the plan."""
        rows = self._rows(
            "SELECT generation.id FROM problem JOIN generation ON generation.problem = problem.id"
            " WHERE problem.run = ? AND study IS ? AND stop_reason IS NOT NULL ORDER BY problem.id, parent, number",
            (work.run, work.study),
        )
        return [row[0] for row in rows]

    def stored_reply(self, generation: int) -> StoredReply:
        """Return a finished generation with all its rows.

        Raises:
            StoreError: a column holds what no program of ours writes.
        """
        what = f"generation {generation}"
        try:
            return self._stored_reply(generation, what)
        except UNREADABLE as error:
            detail = " ".join(str(error).split())[:100]
            raise StoreError(f"{self.path}: {what} cannot be read ({detail})") from error

    def _stored_reply(self, generation: int, what: str) -> StoredReply:
        place = self._place(what)
        row = self._row(
            "SELECT coalesce(study.model, run.model), role, generation.number, revision, reply, stop_reason,"
            f" extraction, answer_status, prompt_tokens, {_PROBLEM_COLUMNS} FROM generation"
            " JOIN problem ON problem.id = generation.problem JOIN run ON run.id = problem.run"
            " LEFT JOIN study ON study.id = generation.study WHERE generation.id = ? AND stop_reason IS NOT NULL",
            (generation,),
            f"finished {what}",
        )
        model, reply = row[0], row[4]
        rows = self._rows(
            f"SELECT {TOKEN_COLUMNS}, coalesce(bytes, (SELECT vocabulary.bytes FROM vocabulary WHERE model = ?"
            " AND vocabulary.id = token.id)) FROM token WHERE generation = ? ORDER BY position",
            (model, generation),
        )
        tokens = tuple(token_record(found[:-1], place) for found in rows)
        units = tuple(
            unit_record(found, place)
            for found in self._rows(
                f'SELECT {UNIT_COLUMNS} FROM unit WHERE generation = ? ORDER BY kind, "index"', (generation,)
            )
        )
        faults = generation_faults(
            reply,
            [
                TokenBytes(token.position, token.start, token.end, found[-1])
                for token, found in zip(tokens, rows, strict=True)
            ],
            [
                UnitRange(unit.kind, unit.index, unit.token_start, unit.token_end, unit.byte_start, unit.byte_end)
                for unit in units
            ],
        )
        prompt = [] if row[8] is None else place.json_list("prompt_tokens", row[8])
        return StoredReply(
            generation=generation,
            problem=problem_record(row[9:], place),
            role=row[1],
            number=row[2],
            revision=row[3],
            reply=reply,
            stop_reason=row[5],
            extraction=row[6],
            answer_status=row[7],
            prompt_end=self._text_of(model, prompt[-_END_OF_PROMPT:]),
            tokens=tokens,
            units=units,
            faults=tuple(faults),
        )

    def _text_of(self, model: int, ids: list[Any]) -> bytes:
        """Return the bytes of tokens of a model's vocabulary; unknown ones have none."""
        pieces = [
            self._rows("SELECT bytes FROM vocabulary WHERE model = ? AND id = ?", (model, int(token))) for token in ids
        ]
        return b"".join(found[0][0] for found in pieces if found)


def _objects(rows: Any) -> dict[str, str]:
    """Return the statements that made everything in a file but SQLite's own, by what it is."""
    return {
        f"{kind} {name}": " ".join(statement.split())
        for kind, name, statement in rows("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        if not name.startswith("sqlite_")
    }


def _own_objects() -> dict[str, str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.apply(connection)
        return _objects(lambda statement: connection.execute(statement).fetchall())
