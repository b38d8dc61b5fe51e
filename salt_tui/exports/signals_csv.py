"""``.csv`` of a study: one row per score that it gave to a token, atom, line or answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from salt_tui.csv_rows import write_csv
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work

COLUMNS = ("run", "study", "task", "position", "kind", "index", "name", "score", "reason")
"""Positions and indices count from 0, as in the database."""


def write_signals(queries: Queries, study: Work, path: Path, *, excel_safe: bool = False) -> None:
    """Write the signals of a study; an undefined one has an empty score and a reason."""
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, _rows(queries, study), excel_safe=excel_safe)


def _rows(queries: Queries, study: Work) -> Iterator[Sequence[object]]:
    yield COLUMNS
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
