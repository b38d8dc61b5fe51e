"""What a check of a whole file reads: its structure, and one finished generation after the other with all its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from math import isfinite
from typing import Any

from salt_tui.store import migrations
from salt_tui.store.connection import connect
from salt_tui.store.errors import StoreError
from salt_tui.store.integrity import TokenBytes, UnitRange, generation_faults
from salt_tui.store.opening import BUSY_TIMEOUT
from salt_tui.store.reader import Reader
from salt_tui.store.records import ProblemRecord, Work
from salt_tui.store.results import StoredReply
from salt_tui.store.rows import PROBLEM_FIELDS, TOKEN_COLUMNS, UNIT_COLUMNS, problem_record, token_record, unit_record
from salt_tui.store.stored_values import UNREADABLE
from salt_tui.visible_text import visible

_LISTED = 100
"""Faults of the file's structure that are named; SQLite's own check stops at as many."""
_END_OF_PROMPT = 16
"""Last tokens of a prompt that are looked at: they hold what the model was made to begin with."""
_PROBLEM_COLUMNS = ", ".join(f"problem.{name}" for name in PROBLEM_FIELDS)


@dataclass(frozen=True, slots=True)
class StoredVector:
    """What is known of a stored activation without its numbers; `width` is how many there are."""

    generation: int
    kind: str
    index: int
    layer: int
    positions: str
    width: int
    is_finite: bool


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """The outcome of an edit as it is stored, and as the branch's own atom at the target says."""

    answer: int
    variant: str
    target: int
    outcome: int
    found: int


@dataclass(frozen=True, slots=True)
class StoredChoice:
    """What is stored of the letters of a choice.

    Attributes:
        task, position: of the problem.
        letter: that was answered.
        letters: probability of each among the letters; empty where none is possible.
        probabilities: ``choice_probability`` of the answer's units, by kind.
    """

    task: str
    position: int
    letter: str
    letters: dict[str, float]
    probabilities: dict[str, float | None]


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

    def stored_problems(self, run: int) -> Iterator[ProblemRecord]:
        """Read the problems of a run in the order of its plan, one at a time.

        Raises:
            StoreError: a column holds what no program of ours writes.
        """
        _, rows = self._stream(f"SELECT id, {_PROBLEM_COLUMNS} FROM problem WHERE run = ? ORDER BY id", (run,))
        for row in rows:
            yield problem_record(row[1:], self._place(f"problem {row[0]}"))

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

    def answer_places(self, run: int) -> list[tuple[int, str, int]]:
        """Return generation, task and position of every answer of a run."""
        rows = self._rows(
            "SELECT generation.id, task, position FROM problem"
            " JOIN generation ON generation.problem = problem.id AND study IS NULL WHERE problem.run = ?",
            (run,),
        )
        return [(generation, visible(task), position) for generation, task, position in rows]

    def count_signals(self, work: Work) -> dict[tuple[str, str], int]:
        """Return how many rows a run or study itself has of each signal, by name and kind."""
        rows = self._rows(
            "SELECT name, kind, count(*) FROM signal WHERE run = ? AND study IS ? GROUP BY name, kind",
            (work.run, work.study),
        )
        return {(name, kind): count for name, kind, count in rows}

    def signal_ranges(self, work: Work) -> list[tuple[str, str, float, float]]:
        """Return name, kind, lowest and highest value of every signal that a run or study itself has values of."""
        rows = self._rows(
            "SELECT name, kind, min(value), max(value) FROM signal WHERE run = ? AND study IS ? AND value IS NOT NULL"
            " GROUP BY name, kind",
            (work.run, work.study),
        )
        return [(name, kind, low, high) for name, kind, low, high in rows]

    def signals_about(
        self, study: Work, generation: int
    ) -> dict[tuple[str, int, str], tuple[float | None, str | None]]:
        """Return value and reason of everything that a study says about an answer, by kind, index and name."""
        rows = self._rows(
            'SELECT kind, "index", name, value, reason FROM signal WHERE generation = ? AND study = ?',
            (generation, study.study),
        )
        return {(kind, index, name): (value, reason) for kind, index, name, value, reason in rows}

    def usual_width(self, study: Work) -> int:
        """Return how many numbers most vectors of a study have; 0 without vectors."""
        rows = self._rows(
            "SELECT length(vector) / 2 FROM activation WHERE study = ? GROUP BY 1"
            " ORDER BY count(*) DESC, 1 DESC LIMIT 1",
            (study.study,),
        )
        return int(rows[0][0]) if rows else 0

    def stored_vectors(self, study: Work) -> Iterator[StoredVector]:
        """Read the activations of a study, those of an answer together, one at a time."""
        import numpy as np

        _, rows = self._stream(
            'SELECT generation, kind, "index", layer, positions, scale, vector FROM activation WHERE study = ?'
            ' ORDER BY generation, kind, "index", layer, positions',
            (study.study,),
        )
        for generation, kind, index, layer, positions, scale, vector in rows:
            values = np.frombuffer(vector[: len(vector) // 2 * 2], dtype="<f2")
            finite = bool(np.isfinite(values).all()) and isfinite(scale)
            yield StoredVector(generation, kind, index, layer, positions, len(values), finite)

    def units_with_tokens(self, generation: int) -> list[tuple[str, int]]:
        """Return kind and index of the units of a generation that stand on tokens."""
        rows = self._rows(
            'SELECT kind, "index" FROM unit WHERE generation = ? AND token_end > token_start', (generation,)
        )
        return [(kind, index) for kind, index in rows]

    def units_without_vectors(self, study: Work) -> list[tuple[int, str, int]]:
        """Return the units that an answer lacks in a study which has other vectors of it and of that kind.

        Of an answer that was scored again, vectors of units that are others now were deleted.
        """
        rows = self._rows(
            "WITH held AS (SELECT DISTINCT generation, kind FROM activation WHERE study = ?)"
            ' SELECT unit.generation, unit.kind, unit."index" FROM held'
            " JOIN generation ON generation.id = held.generation AND revision = 0"
            " JOIN unit ON unit.generation = held.generation AND unit.kind = held.kind"
            " WHERE token_end > token_start AND NOT EXISTS (SELECT 1 FROM activation WHERE study = ?"
            " AND activation.generation = unit.generation AND activation.kind = unit.kind"
            ' AND activation."index" = unit."index") ORDER BY 1, 2, 3',
            (study.study, study.study),
        )
        return [(generation, kind, index) for generation, kind, index in rows]

    def stored_outcomes(self, study: Work) -> Iterator[StoredOutcome]:
        """Read the outcomes of a study's edits, where there is one, beside the atom at the target of each branch."""
        _, rows = self._stream(
            "SELECT answer, variant, target, outcome, coalesce(unit.status = 'correct', 0) FROM intervention"
            " LEFT JOIN unit ON unit.generation = intervention.generation AND unit.kind = 'atom'"
            ' AND unit."index" = target WHERE study = ? AND outcome IS NOT NULL ORDER BY intervention.generation',
            (study.study,),
        )
        for row in rows:
            yield StoredOutcome(*row)

    def stored_choices(self, run: int) -> Iterator[StoredChoice]:
        """Read what is stored of the letters of each choice that a run asked for, one answer at a time."""
        _, rows = self._stream(
            "SELECT task, position, trim(CAST(reply AS TEXT)), json_group_array(json_array(kind, name, value))"
            " FROM problem JOIN generation ON generation.problem = problem.id AND generation.study IS NULL"
            " JOIN signal ON signal.generation = generation.id AND signal.run = problem.run AND signal.study IS NULL"
            " WHERE problem.run = ? AND answer_kind = 'choice' AND stop_reason IS NOT NULL"
            " AND name GLOB 'choice_*' GROUP BY generation.id ORDER BY generation.id",
            (run,),
        )
        for task, position, letter, text in rows:
            said = self._place(f"answer {position + 1} of {visible(task)}").json_list("signals", text)
            letters = {
                name.removeprefix("choice_"): value
                for kind, name, value in said
                if kind == "token" and len(name) == len("choice_A") and value is not None
            }
            given = {kind: value for kind, name, value in said if name == "choice_probability"}
            yield StoredChoice(visible(task), position, letter, letters, given)

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
