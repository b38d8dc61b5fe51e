"""What a database holds, free of row numbers and times, so that two ways to the same work can be compared."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

Row = tuple[object, ...]

# A generation by what it is about: run, study, task, position, role, what it hangs on, number.
_NAMED = """
WITH named AS (
    SELECT generation.id AS id, problem.run AS run, coalesce(study.number, 0) AS study, task, position, role,
        generation.number AS number, parent IS NOT NULL AS hangs, reply, stop_reason, extraction,
        answer_status, preamble, prompt_tokens
    FROM generation JOIN problem ON problem.id = generation.problem JOIN run ON run.id = problem.run
    LEFT JOIN study ON study.id = generation.study
    WHERE run.state <> 'deleted' AND coalesce(study.state, '') <> 'deleted'
)
"""
_KEY = "named.run, named.study, named.task, named.position, named.role, named.hangs, named.number"
_QUESTIONS = {
    "run": "SELECT 'run', id, state, plan, exact, warnings FROM run WHERE state <> 'deleted'",
    "study": "SELECT 'study', run, number, kind, state, plan, exact, warnings FROM study WHERE state <> 'deleted'",
    "problem": "SELECT 'problem', run, task, position, content_id, text, reference FROM problem"
    " WHERE run IN (SELECT id FROM run WHERE state <> 'deleted')",
    "generation": f"{_NAMED} SELECT 'generation', {_KEY}, reply, stop_reason, extraction, answer_status, preamble,"
    " prompt_tokens FROM named",
    "token": f"{_NAMED} SELECT 'token', {_KEY}, token.position, token.id, byte_start, byte_end,"
    " log_probability, entropy, alternatives, forced FROM token JOIN named ON named.id = token.generation",
    "unit": f"{_NAMED} SELECT 'unit', {_KEY}, unit.* FROM unit JOIN named ON named.id = unit.generation",
    "signal": f"{_NAMED} SELECT 'signal', {_KEY}, coalesce(signal.study, 0) > 0, kind, \"index\", name, value, reason"
    " FROM signal JOIN named ON named.id = signal.generation",
    "activation": f"{_NAMED} SELECT 'activation', {_KEY}, kind, \"index\", layer, positions, scale, vector"
    " FROM activation JOIN named ON named.id = activation.generation",
    "intervention": f"{_NAMED} SELECT 'intervention', {_KEY}, target, variant, direction, edits, treatment_global,"
    " treatment_local, length, correct_before, correct_before_local, outcome, log_probability_reference, reason"
    " FROM intervention JOIN named ON named.id = intervention.generation",
}
_OWN_NUMBER = len(_KEY.split(", ")) + 1
"""Where a row of ``unit`` holds the number of its generation."""


def rows(database: Path, question: str) -> list[Row]:
    """Return all rows of a query."""
    connection = sqlite3.connect(database, timeout=30)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def stored_state(database: Path) -> list[Row]:
    """Return everything that is stored of runs and studies that were not deleted, in an order of its own."""
    found: list[Row] = []
    for table, question in _QUESTIONS.items():
        for row in rows(database, question):
            found.append((*row[:_OWN_NUMBER], *row[_OWN_NUMBER + 1 :]) if table == "unit" else row)
    return sorted(found, key=repr)


def until(database: Path, question: str, seconds: float = 60.0) -> None:
    """Wait until a question has an answer other than 0."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # The file or its tables may not be there yet.
        with contextlib.suppress(sqlite3.Error):
            if rows(database, question)[0][0]:
                return
        time.sleep(0.02)
    raise AssertionError(f"{question} stayed 0")
