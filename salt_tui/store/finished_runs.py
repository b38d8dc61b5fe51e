"""Writing a run whose answers are all there already, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from salt_tui.store.errors import StoreFailure
from salt_tui.store.generation_writer import INSERT_TOKEN, INSERT_UNIT, stored_faults
from salt_tui.store.records import FinishedAnswer, ModelRecord, RunRecord, Work
from salt_tui.store.rows import PROBLEM_FIELDS, end_row, problem_row, signal_row, token_row, unit_row
from salt_tui.store.signal_writer import INTO_SIGNAL
from salt_tui.store.work_writer import WorkWriter
from salt_tui.store.writer import now_text


class FinishedRunWriter(WorkWriter):
    """Runs that nobody computes."""

    def add_finished_run(self, model: ModelRecord, run: RunRecord, answers: Iterable[FinishedAnswer]) -> int:
        """Store a run with all its answers, or nothing, and return its number.

        Args:
            model: that answered.
            run: what was asked.
            answers: in the order of the plan; read while they are written.

        Raises:
            StoreError: an answer does not fit together, or the file cannot be written.
        """
        with self._transaction() as connection:
            number = self._create(connection, model, (), run)
            for answer in answers:
                now = now_text()
                created = connection.execute(
                    f"INSERT INTO problem (run, {', '.join(PROBLEM_FIELDS)}) VALUES (?{', ?' * len(PROBLEM_FIELDS)})"
                    " RETURNING id",
                    problem_row(number, answer.problem),
                ).fetchone()
                generation = connection.execute(
                    "INSERT INTO generation (problem, role, number, fence, attempt, revision, preamble, reply,"
                    " stop_reason, extraction, answer_status, error, prompt_seconds, decode_seconds, started_at,"
                    " ended_at)"
                    " VALUES (?, 'answer', 0, 1, 1, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                    (int(created[0]), answer.revision, *end_row(0, answer.end), now, now),
                ).fetchone()[0]
                connection.executemany(INSERT_TOKEN, [token_row(generation, token) for token in answer.tokens])
                connection.executemany(INSERT_UNIT, [unit_row(generation, unit) for unit in answer.units])
                signals = [signal_row(Work(number), replace(one, generation=generation)) for one in answer.signals]
                connection.executemany(f"INSERT {INTO_SIGNAL}", signals)
                faults = stored_faults(connection, generation)
                if faults:
                    raise StoreFailure(
                        f"answer {answer.problem.position + 1} of {answer.problem.task} does not fit together"
                        f" ({faults[0]}); nothing was stored"
                    )
            connection.execute(
                "UPDATE run SET state = 'finished', finished_at = ?, fence = 1 WHERE id = ?", (now_text(), number)
            )
        return number
