"""The units of a run, answer by answer, for a map that is filled while it is shown."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from salt_tui.store import opening
from salt_tui.store.errors import explain
from salt_tui.store.schema import CONFIDENCE_COLUMNS, STATUS_CODE
from salt_tui.store.stored_values import Place
from salt_tui.visible_text import visible


@dataclass(frozen=True, slots=True, eq=False)
class UnitArrays:
    """The units of one kind of an answer, in order of index.

    Attributes:
        statuses: place in `salt_tui.store.schema.UNIT_STATUSES`, shape ``(n,)``.
        lines: 0-based, 0 where there is none, shape ``(n,)``.
        values: confidences in the order of `CONFIDENCE_COLUMNS`, NaN for undefined, shape ``(n, 9)``.
    """

    statuses: NDArray[np.uint8]
    lines: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerUnits:
    """An answer with its atoms and lines.

    Attributes:
        status: answer status, None for an answer that is not finished.
        tokens: stored answer tokens.
        units: by kind, ``atom`` and ``line``.
        question, reference: text of the problem and its right answer; empty unless they were asked for.
        said: text of each atom, None for one that was not said; empty unless it was asked for.  Untrusted.
    """

    generation: int
    task: str
    position: int
    status: str | None
    tokens: int
    units: dict[str, UnitArrays]
    question: str = ""
    reference: str = ""
    said: tuple[str | None, ...] = ()


def answer_units(
    path: Path,
    run: int,
    *,
    finished_only: bool = False,
    spelled: Set[str] = frozenset(),
    without: Set[int] = frozenset(),
) -> Iterator[AnswerUnits]:
    """Read the answers of a run that have begun, one at a time, in the order of their generations.

    A connection of its own is open while the iterator is consumed.  1,000,000 atoms take about three seconds; the
    first answer takes a few milliseconds.

    Args:
        path: the database.
        run: its number.
        finished_only: leave out answers that are not finished.
        spelled: tasks whose texts are read too.
        without: generations that are left out.

    Raises:
        StoreError: as `salt_tui.store.queries.open_queries`, or on a damaged page.
    """
    condition = "AND generation.answer_status IS NOT NULL" if finished_only else ""
    with closing(opening.connect_reader(path, opening.BUSY_TIMEOUT)) as connection:
        try:
            answers = connection.execute(
                "SELECT generation.id, problem.task, problem.position, generation.answer_status,"
                " (SELECT count(*) FROM token WHERE token.generation = generation.id), problem.text, problem.reference"
                " FROM problem"
                " JOIN generation ON generation.problem = problem.id AND generation.study IS NULL"
                f" WHERE problem.run = ? {condition}"
                " AND generation.id NOT IN (SELECT value FROM json_each(?)) ORDER BY problem.id",
                (run, json.dumps(sorted(without))),
            )
            for generation, task, position, status, tokens, question, reference in answers:
                place = Place(path, f"generation {generation}")
                units = {kind: _read_units(connection, generation, kind, place) for kind in ("atom", "line")}
                if task not in spelled:
                    yield AnswerUnits(generation, visible(task), position, status, tokens, units)
                    continue
                rows = connection.execute(
                    "SELECT text FROM unit WHERE generation = ? AND kind = 'atom' ORDER BY \"index\"", (generation,)
                )
                said = tuple(text for (text,) in rows)
                yield AnswerUnits(generation, task, position, status, tokens, units, question, reference, said)
        except sqlite3.Error as error:
            raise explain(error, path) from error


def _read_units(connection: sqlite3.Connection, generation: int, kind: str, place: Place) -> UnitArrays:
    rows = connection.execute(
        f"SELECT {STATUS_CODE}, coalesce(line, 0), {', '.join(CONFIDENCE_COLUMNS)} FROM unit"
        ' WHERE generation = ? AND kind = ? ORDER BY "index"',
        (generation, kind),
    ).fetchall()
    # All columns at once, as numbers of one kind: None becomes NaN, and no Python object is left per value.
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 2 + len(CONFIDENCE_COLUMNS))
    if np.isnan(table[:, 0]).any() or np.isinf(table).any():
        raise place.foreign(f"a unit of kind {kind}", "no status that there is, or an infinite confidence")
    return UnitArrays(table[:, 0].astype(np.uint8), table[:, 1].astype(np.int64), table[:, 2:])
