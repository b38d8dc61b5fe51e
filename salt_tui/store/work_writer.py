"""Making, changing and deleting runs and studies."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence

from salt_tui.store.errors import StoreError
from salt_tui.store.lease import WITHOUT_LEASE
from salt_tui.store.records import ModelRecord, ProblemRecord, RunRecord, StudyRecord, Work
from salt_tui.store.rows import PROBLEM_FIELDS, Row, problem_row
from salt_tui.store.writer import Writer, now_text

_ANSWERS_AT_FIRST, _ROWS_AT_FIRST = 100, 10_000
"""Answers, or signals and activations, deleted in the first transaction: with 10,000 atoms it took 0.1 s on a busy
machine.  The next ones take more or fewer, so that none is long and few are needed."""
_SHORT, _LONG = 0.1, 0.4
"""Seconds below which the next transaction takes twice as many rows, and above which it takes half."""
_PAUSE_BETWEEN_DELETIONS = 0.1
"""Seconds: SQLite's waiting writers look every 0.1 s at the latest, so one finds the lock free each time."""

_PLANNED_COLUMNS = (
    "model, model_name, model_path, model_entry, template, plan, plan_hash, environment, environment_hash, exact,"
    " statistics, warnings, state, created_at"
)
_PLANNED_VALUES = f"{'?, ' * 12}'interrupted', ?"

_DELETIONS = (
    (
        "DELETE FROM generation WHERE id IN (SELECT generation.id FROM run JOIN problem ON problem.run = run.id"
        " JOIN generation ON generation.problem = problem.id WHERE run.state = 'deleted' LIMIT ?)",
        _ANSWERS_AT_FIRST,
    ),
    (
        "DELETE FROM generation WHERE id IN (SELECT generation.id FROM study JOIN generation"
        " ON generation.study = study.id WHERE study.state = 'deleted' LIMIT ?)",
        _ANSWERS_AT_FIRST,
    ),
    (
        "DELETE FROM signal WHERE id IN (SELECT signal.id FROM study JOIN signal ON signal.study = study.id"
        " WHERE study.state = 'deleted' LIMIT ?)",
        _ROWS_AT_FIRST,
    ),
    (
        "DELETE FROM activation WHERE id IN (SELECT activation.id FROM study JOIN activation"
        " ON activation.study = study.id WHERE study.state = 'deleted' LIMIT ?)",
        _ROWS_AT_FIRST,
    ),
)
"""Statements that each remove a part of what a deleted run or study holds, and how many rows at first."""


class WorkWriter(Writer):
    """Runs and studies as wholes."""

    def create_run(
        self, model: ModelRecord, vocabulary: Sequence[bytes], run: RunRecord, problems: Sequence[ProblemRecord]
    ) -> int:
        """Store a run with all its problems, in the order of the plan, and return its number.

        A model with the same identity is reused, its first name and path kept; the run keeps its own.  The state is
        ``interrupted`` until `claim`.

        Args:
            model: that answers.
            vocabulary: bytes of each token id; empty where the engine gives none.
            run: what is asked and how.
            problems: all of them.
        """
        with self._transaction() as connection:
            number = self._create(connection, model, vocabulary, run)
            connection.executemany(
                f"INSERT INTO problem (run, {', '.join(PROBLEM_FIELDS)}) VALUES (?{', ?' * len(PROBLEM_FIELDS)})",
                [problem_row(number, problem) for problem in problems],
            )
        return number

    def _create(
        self, connection: sqlite3.Connection, model: ModelRecord, vocabulary: Sequence[bytes], run: RunRecord
    ) -> int:
        created = connection.execute(
            f"INSERT INTO run ({_PLANNED_COLUMNS}) VALUES ({_PLANNED_VALUES}) RETURNING id",
            _planned(self._model(model, vocabulary), model, run),
        ).fetchone()
        return int(created[0])

    def create_study(self, run: int, study: StudyRecord, vocabulary: Sequence[bytes] = ()) -> Work:
        """Store a study of a run and return what to claim; its state is ``interrupted`` until then.

        Args:
            run: number of the run.
            study: what is asked and how.
            vocabulary: of the study's own model; unused where the run's model computes it.

        Raises:
            StoreError: no such run.
        """
        with self._transaction() as connection:
            found = connection.execute(
                "UPDATE run SET studies = studies + 1 WHERE id = ? AND state <> 'deleted' RETURNING studies, model,"
                " model_name, model_path, model_entry, template",
                (run,),
            ).fetchone()
            if found is None:
                raise StoreError(f"there is no run {run} in {self.path}")
            number = int(found[0])
            if study.model is None:
                values = (*found[1:], *_planned(0, None, study)[5:])
            else:
                values = _planned(self._model(study.model, vocabulary), study.model, study)
            created = connection.execute(
                f"INSERT INTO study (run, number, kind, {_PLANNED_COLUMNS}) VALUES (?, ?, ?, {_PLANNED_VALUES})"
                " RETURNING id",
                (run, number, study.kind, *values),
            ).fetchone()
        return Work(run, int(created[0]), number)

    def _model(self, model: ModelRecord, vocabulary: Sequence[bytes]) -> int:
        known = self._connection.execute("SELECT id FROM model WHERE identity = ?", (model.identity,)).fetchone()
        if known is not None:
            return int(known[0])
        created = self._connection.execute(
            "INSERT INTO model (identity, sha256, name, path, file_bytes, description, architecture, quantisation,"
            " parameters, vocabulary_size, trained_context) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                model.identity,
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

    def update_environment(
        self, work: Work, environment: str, environment_hash: str, exact: bool | None, warnings: Sequence[str]
    ) -> None:
        """Replace how a run or study is computed, as canonical JSON with its hash.

        Raises:
            StoreError: there is none, or another process is computing it.
        """
        table, number = ("run", work.run) if work.study is None else ("study", work.study)
        with self._transaction() as connection:
            if work not in self._claimed:
                self._refuse_missing_or_live(work)
            connection.execute(
                f"UPDATE {table} SET environment = ?, environment_hash = ?, exact = ?, warnings = ? WHERE id = ?",
                (environment, environment_hash, exact, json.dumps(list(warnings), ensure_ascii=False), number),
            )

    def set_note(self, run: int, note: str | None) -> None:
        """Replace the note of a run; an empty one is none.

        Raises:
            StoreError: no such run.
        """
        with self._transaction() as connection:
            changed = connection.execute(
                "UPDATE run SET note = ? WHERE id = ? AND state <> 'deleted'", (note or None, run)
            ).rowcount
            if changed == 0:
                raise StoreError(f"there is no run {run} in {self.path}")

    # --- deletion -----------------------------------------------------------------------------------------------

    def delete_work(self, work: Work) -> None:
        """Delete a study, or a run with its studies and everything of them, and models that nothing uses any more.

        What is deleted is gone at once for every reader.  Its rows follow in many small transactions, so that another
        program that is computing need not wait.  What a killed deletion leaves behind, the next one removes.

        Raises:
            StoreError: there is none, or a live process is computing it or one of its studies.
        """
        with self._transaction() as connection:
            self._refuse_missing_or_live(work)
            change = f"UPDATE {{}} SET state = 'deleted', finished_at = NULL, {WITHOUT_LEASE} WHERE {{}} = ?"
            if work.study is None:
                for study, number in connection.execute(
                    "SELECT id, number FROM study WHERE run = ? AND state <> 'deleted'", (work.run,)
                ).fetchall():
                    self._refuse_missing_or_live(Work(work.run, study, number))
                connection.execute(change.format("run", "id"), (work.run,))
                connection.execute(change.format("study", "run"), (work.run,))
            else:
                connection.execute(change.format("study", "id"), (work.study,))
        self._remove_deleted()

    def _remove_deleted(self) -> None:
        for statement, at_once in _DELETIONS:
            while True:
                begun = time.monotonic()
                with self._transaction() as connection:
                    removed = connection.execute(statement, (at_once,)).rowcount
                if removed < at_once:
                    break
                took = time.monotonic() - begun
                at_once = at_once * 2 if took < _SHORT else max(1, at_once // 2) if took > _LONG else at_once
                time.sleep(_PAUSE_BETWEEN_DELETIONS)
        with self._transaction() as connection:
            connection.execute("DELETE FROM study WHERE state = 'deleted'")
            connection.execute("DELETE FROM run WHERE state = 'deleted'")
            connection.execute(
                "DELETE FROM model WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.model = model.id)"
                " AND NOT EXISTS (SELECT 1 FROM study WHERE study.model = model.id)"
            )


def _planned(number: int, model: ModelRecord | None, planned: RunRecord | StudyRecord) -> Row:
    """Return the values of the columns that runs and studies share, but for the state."""
    return (
        number,
        model.name if model else None,
        model.path if model else None,
        model.entry if model else None,
        model.template if model else None,
        planned.plan,
        planned.plan_hash,
        planned.environment,
        planned.environment_hash,
        planned.exact,
        planned.statistics,
        json.dumps(planned.warnings, ensure_ascii=False),
        now_text(),
    )
