"""The units of a run, answer by answer, for a map that is filled while it is shown."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from salt_tui.store import opening
from salt_tui.store.errors import explain
from salt_tui.store.schema import CONFIDENCE_COLUMNS

UnitRow = tuple[str, int, tuple[float | None, ...]]
"""Status, line (0 where there is none) and confidences in the order of `CONFIDENCE_COLUMNS`."""


@dataclass(frozen=True, slots=True)
class AnswerUnits:
    """An answer with its atoms and lines.

    Attributes:
        status: answer status, None for an answer that is not finished.
        tokens: stored answer tokens.
        units: by kind, ``atom`` and ``line``, in order of index.
    """

    generation: int
    task: str
    position: int
    status: str | None
    tokens: int
    units: dict[str, list[UnitRow]]


def answer_units(path: Path, run: int, *, finished_only: bool = False) -> Iterator[AnswerUnits]:
    """Read the answers of a run that have begun, one at a time, in the order of their generations.

    A connection of its own is open while the iterator is consumed.  1,000,000 atoms take about ten seconds; the
    first answer takes a millisecond.

    Raises:
        StoreError: as `salt_tui.store.queries.open_queries`, or on a damaged page.
    """
    condition = "AND generation.answer_status IS NOT NULL" if finished_only else ""
    columns = ", ".join(CONFIDENCE_COLUMNS)
    with closing(opening.connect_reader(path, opening.BUSY_TIMEOUT)) as connection:
        try:
            answers = connection.execute(
                "SELECT generation.id, problem.task, problem.position, generation.answer_status,"
                " (SELECT count(*) FROM token WHERE token.generation = generation.id) FROM problem"
                f" JOIN generation ON generation.problem = problem.id WHERE problem.run = ? {condition}"
                " ORDER BY problem.id",
                (run,),
            )
            for generation, task, position, status, tokens in answers:
                units: dict[str, list[UnitRow]] = {"atom": [], "line": []}
                for kind, unit_status, line, *values in connection.execute(
                    f"SELECT kind, status, coalesce(line, 0), {columns} FROM unit"
                    " WHERE generation = ? AND kind IN ('atom', 'line') ORDER BY kind, \"index\"",
                    (generation,),
                ):
                    units[kind].append((unit_status, line, tuple(values)))
                yield AnswerUnits(generation, task, position, status, tokens, units)
        except sqlite3.Error as error:
            raise explain(error, path) from error
