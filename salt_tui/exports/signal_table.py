"""What a study scored: one row per score that it gave to a token, atom, line or answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from salt_tui.exports.tables import Column, Table
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work

COLUMNS = (
    Column("run", "integer"),
    Column("study", "text"),
    Column("task", "text"),
    Column("position", "integer"),
    Column("kind", "text"),
    Column("index", "integer"),
    Column("name", "text"),
    Column("score", "real"),
    Column("reason", "text"),
)
"""Positions and indices count from 0, as in the database."""


def signal_table(queries: Queries, study: Work) -> Table:
    """Return the signals of a study; an undefined one has no score and a reason."""
    return Table(COLUMNS, _rows(queries, study))


def _rows(queries: Queries, study: Work) -> Iterator[Sequence[object]]:
    problems = {
        answer.generation: (answer.problem.task, answer.problem.position) for answer in queries.answers(study.run)
    }
    for signal in queries.signal_names(study.run):
        if signal.work != study:
            continue
        for kind in signal.kinds:
            for row in queries.signals(study.run, f"{signal.name}@{study}", kind):
                place = problems.get(row.generation)
                if place is None:
                    raise StoreError(
                        f"{queries.path}: {row.name} of {study.title} is about generation {row.generation}, which is no"
                        f" answer of run {study.run}; `salt-tui db check` names what else does not fit"
                    )
                yield (study.run, str(study), *place, row.kind, row.index, row.name, row.value, row.reason)
