"""Writing generations: answers of a run, and what studies generate."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from salt_tui.store.errors import StoreError, StoreFailure
from salt_tui.store.integrity import TokenBytes, UnitRange, generation_faults
from salt_tui.store.records import (
    AnswerScore,
    GenerationEnd,
    GenerationKey,
    GenerationStart,
    PendingProblem,
    TokenRecord,
    UnitRecord,
    Work,
)
from salt_tui.store.rows import (
    PROBLEM_FIELDS,
    TOKEN_COLUMNS,
    UNIT_COLUMNS,
    end_row,
    problem_record,
    token_ids_text,
    token_row,
    unit_row,
)
from salt_tui.store.schema import VOID_UNIT
from salt_tui.store.stored_values import Place
from salt_tui.store.writer import Writer, now_text

INSERT_TOKEN = f"INSERT INTO token (generation, {TOKEN_COLUMNS}) VALUES (?{', ?' * len(TOKEN_COLUMNS.split(','))})"
INSERT_UNIT = f"INSERT INTO unit (generation, {UNIT_COLUMNS}) VALUES (?{', ?' * len(UNIT_COLUMNS.split(','))})"


class GenerationWriter(Writer):
    """Generations from their begin to their end."""

    def __init__(self, path: Path, connection: sqlite3.Connection, busy_timeout: float) -> None:
        """Take over a connection; use `open_store`."""
        super().__init__(path, connection, busy_timeout)
        self._begun: dict[int, Work] = {}
        """Whose each generation is that this store began and has not ended."""

    def pending_problems(self, run: int) -> list[PendingProblem]:
        """Return the problems of a run without a finished answer, in the order of the plan."""
        columns = ", ".join(f"problem.{name}" for name in PROBLEM_FIELDS)
        rows = self._rows(
            f"SELECT problem.id, generation.id, coalesce(generation.attempt, 0), {columns} FROM problem"
            " LEFT JOIN generation ON generation.problem = problem.id AND generation.study IS NULL"
            " WHERE problem.run = ? AND generation.stop_reason IS NULL ORDER BY problem.id",
            (run,),
        )
        place = Place(self.path, f"run {run}")
        return [PendingProblem(row[0], row[1], row[2], problem_record(row[3:], place)) for row in rows]

    def finished_keys(self, work: Work) -> set[GenerationKey]:
        """Return which generations of a run or study are finished, by problem, parent, role and number."""
        rows = self._rows(
            "SELECT generation.problem, parent, role, number FROM problem"
            " JOIN generation ON generation.problem = problem.id"
            " WHERE problem.run = ? AND study IS ? AND stop_reason IS NOT NULL",
            (work.run, work.study),
        )
        return {(row[0], row[1], row[2], row[3]) for row in rows}

    def reopen_generations(self, work: Work) -> None:
        """Forget the cancelled generations of a claimed run or study, and the failed ones if it has no others.

        What was cancelled was only skipped.  Where nothing at all could be computed, the cause lay outside.

        Raises:
            StoreError: the work is not held.
        """
        self._held(work)
        mine = "SELECT generation.id, stop_reason FROM problem JOIN generation ON generation.problem = problem.id"
        with self._transaction() as connection:
            connection.execute(
                f"WITH mine AS ({mine} WHERE problem.run = ? AND study IS ?)"
                " DELETE FROM generation WHERE id IN (SELECT id FROM mine WHERE stop_reason = 'cancelled'"
                " OR stop_reason = 'failed'"
                " AND NOT EXISTS (SELECT 1 FROM mine WHERE stop_reason NOT IN ('cancelled', 'failed')))",
                (work.run, work.study),
            )

    def begin_generation(self, work: Work, start: GenerationStart) -> int:
        """Begin a generation of a claimed run or study, or begin it again, and return its number.

        An unfinished one is reset: its tokens and units, buffered ones too, are gone and its revision is 0.

        Raises:
            StoreError: the work is not held, the generation is finished already, or its problem or parent belongs to
                another run.
        """
        fence = self._held(work).fence
        with self._transaction() as connection:
            self._refuse_foreign_problem(work, start)
            known = connection.execute(
                "SELECT id, stop_reason FROM generation WHERE problem = ? AND study IS ? AND parent IS ? AND role = ?"
                " AND number = ?",
                (start.problem, work.study, start.parent, start.role, start.number),
            ).fetchone()
            if known is not None and known[1] is not None:
                raise StoreFailure(f"generation {known[0]} in {self.path} is finished and cannot be begun again")
            values = (start.attempt, token_ids_text(start.prompt_tokens), start.preamble, now_text(), fence)
            if known is None:
                created = connection.execute(
                    "INSERT INTO generation (attempt, prompt_tokens, preamble, started_at, fence, problem, study,"
                    " parent, role, number) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                    (*values, start.problem, work.study, start.parent, start.role, start.number),
                ).fetchone()
                number = int(created[0])
            else:
                number = int(known[0])
                for table in ("token", "unit", "intervention"):
                    connection.execute(f"DELETE FROM {table} WHERE generation = ?", (number,))
                connection.execute(
                    "UPDATE generation SET attempt = ?, prompt_tokens = ?, preamble = ?, started_at = ?, fence = ?,"
                    " revision = 0 WHERE id = ?",
                    (*values, number),
                )
        self._forget(work, number)
        self._begun[number] = work
        return number

    def _refuse_foreign_problem(self, work: Work, start: GenerationStart) -> None:
        fits = self._connection.execute(
            "SELECT EXISTS (SELECT 1 FROM problem WHERE id = ? AND run = ?) AND (? IS NULL OR EXISTS"
            " (SELECT 1 FROM generation WHERE id = ? AND problem = ?))",
            (start.problem, work.run, start.parent, start.parent, start.problem),
        ).fetchone()[0]
        if not fits:
            raise StoreError(
                f"problem {start.problem} with parent {start.parent} is not one of {work.title} in {self.path}"
            )

    def _forget(self, work: Work, generation: int) -> None:
        """Drop what is buffered of a generation; every other row of its work stays."""
        statements = self._buffered.get(work, {})
        for statement in (INSERT_TOKEN, INSERT_UNIT):
            rows = [row for row in statements.pop(statement, []) if row[0] != generation]
            if rows:
                statements[statement] = rows
        if not statements:
            self._drop(work)

    def add_tokens(self, generation: int, tokens: Sequence[TokenRecord]) -> None:
        """Buffer tokens.

        Raises:
            StoreError: a number that is not finite, or this store did not begin the generation; nothing of the call
                is buffered.
        """
        self._buffer(self._owner(generation), INSERT_TOKEN, [token_row(generation, token) for token in tokens])

    def add_units(self, generation: int, units: Sequence[UnitRecord]) -> None:
        """Buffer units; each (kind, index) once per revision of a generation.

        Raises:
            StoreError: a confidence that is not finite, or this store did not begin the generation; nothing of the
                call is buffered.
        """
        self._buffer(self._owner(generation), INSERT_UNIT, [unit_row(generation, unit) for unit in units])

    def withdraw_units(self, generation: int, revision: int) -> None:
        """Delete all units of an unfinished generation, buffered ones too, and set its revision; tokens stay.

        Raises:
            StoreError: the generation is finished, or the revision does not rise.
        """
        self._owner(generation)
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
        """Finish a generation in one transaction with everything buffered.

        Raises:
            StoreError: it was finished already or not begun by this store, a duration is not finite, or its tokens,
                its reply and its units do not belong together; it is then not finished.
        """
        self._owner(generation)
        row = end_row(generation, end)
        with self._transaction() as connection:
            self._write_buffered()
            changed = connection.execute(
                "UPDATE generation SET reply = ?, stop_reason = ?, extraction = ?, answer_status = ?, error = ?,"
                " prompt_seconds = ?, decode_seconds = ?, ended_at = ? WHERE id = ? AND stop_reason IS NULL",
                (*row, now_text(), generation),
            ).rowcount
            if changed == 0:
                raise StoreFailure(f"generation {generation} in {self.path} is not open and cannot be finished")
            faults = stored_faults(connection, generation)
            if faults:
                raise StoreFailure(
                    f"generation {generation} in {self.path} does not fit together ({faults[0]}); it was not marked"
                    " as done"
                )
        self._clear_buffer()
        del self._begun[generation]

    def need_free(self, run: int) -> None:
        """See that a run is there and that no live process is computing it.

        Raises:
            StoreError: it is not, or one is.
        """
        with self._transaction():
            self._refuse_missing_or_live(Work(run))

    def rescore_answer(self, run: int, generation: int, revision: int, score: AnswerScore) -> None:
        """Replace the units and the status of a finished answer in one transaction; its revision rises by one.

        Signals of units that are others now lose their value and get a reason, and what layers held for such units is
        deleted.

        Args:
            run: that the answer belongs to; nobody may be computing it.
            generation: the answer.
            revision: that the score was made from.
            score: what is stored instead.

        Raises:
            StoreError: the run is being computed, the answer was changed meanwhile, or the units do not fit it; it is
                then as it was.
        """
        rows = [unit_row(generation, unit) for unit in score.units]
        with self._transaction() as connection:
            self._refuse_missing_or_live(Work(run))
            changed = connection.execute(
                "UPDATE generation SET revision = revision + 1, extraction = ?, answer_status = ? WHERE id = ?"
                " AND revision = ? AND role = 'answer' AND stop_reason IS NOT NULL"
                " AND problem IN (SELECT id FROM problem WHERE run = ?)",
                (score.extraction, score.answer_status, generation, revision, run),
            ).rowcount
            if changed == 0:
                raise StoreFailure(f"generation {generation} in {self.path} was changed meanwhile; try again")
            connection.execute("DELETE FROM unit WHERE generation = ?", (generation,))
            connection.executemany(INSERT_UNIT, rows)
            for kind, index in score.other_units:
                connection.execute(
                    'UPDATE signal SET value = NULL, reason = ? WHERE generation = ? AND kind = ? AND "index" = ?',
                    (VOID_UNIT, generation, kind, index),
                )
                connection.execute(
                    'DELETE FROM activation WHERE generation = ? AND kind = ? AND "index" = ?',
                    (generation, kind, index),
                )
            faults = stored_faults(connection, generation)
            if faults:
                raise StoreFailure(f"generation {generation} in {self.path} does not fit together ({faults[0]})")

    def _owner(self, generation: int) -> Work:
        work = self._begun.get(generation)
        if work is None:
            raise StoreFailure(f"generation {generation} in {self.path} is not open: this process did not begin it")
        self._held(work)
        return work


def stored_faults(connection: sqlite3.Connection, generation: int) -> list[str]:
    """Say what does not fit together in a finished generation as it is stored, see `generation_faults`."""
    reply = connection.execute("SELECT reply FROM generation WHERE id = ?", (generation,)).fetchone()[0]
    tokens = connection.execute(
        "SELECT token.position, token.byte_start, token.byte_end, coalesce(token.bytes, vocabulary.bytes)"
        " FROM generation JOIN problem ON problem.id = generation.problem JOIN run ON run.id = problem.run"
        " LEFT JOIN study ON study.id = generation.study JOIN token ON token.generation = generation.id"
        " LEFT JOIN vocabulary ON vocabulary.model = coalesce(study.model, run.model) AND vocabulary.id = token.id"
        " WHERE generation.id = ? ORDER BY token.position",
        (generation,),
    )
    units = connection.execute(
        'SELECT kind, "index", token_start, token_end, byte_start, byte_end FROM unit WHERE generation = ?',
        (generation,),
    )
    return generation_faults(reply, [TokenBytes(*row) for row in tokens], [UnitRange(*row) for row in units])
