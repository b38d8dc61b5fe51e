"""Scores that another program gave to the answers of a stored run, as a signal of that run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from salt_tui.inputs.question_files import MOST_FAULTS, RowFault
from salt_tui.inputs.signal_tables import KINDS, NO_SCORE, SignalTable, read_signal_table, row_faults
from salt_tui.store.queries import Queries
from salt_tui.store.records import SignalKind, SignalRecord, Work
from salt_tui.store.store import Store
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.signals import SIGNALS

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}", re.ASCII)
_KIND_NAMES: Mapping[str, SignalKind] = {"token": "token", "atom": "atom", "line": "line", "generation": "generation"}


@dataclass(frozen=True, slots=True)
class KindCount:
    """What a table says about one kind of unit.

    Attributes:
        scores: units with a value.
        undefined: units in the table without one.
        others: units of the run's answers that were written and are not in the table.
    """

    scores: int
    undefined: int
    others: int


@dataclass(frozen=True, slots=True)
class MatchedSignals:
    """A table whose rows were looked up among the answers of a run; nothing is added while there are faults.

    Attributes:
        rows: of the table, good and bad.
        faults: of bad rows, in order.
        generation, kind, index: of the good rows, in this order; the kind is a place in `KINDS`.
        score: NaN where it is undefined.
        reasons: of undefined ones that have one of their own, by place in these columns.
        counts: by kind, those that the table holds.
    """

    rows: int
    faults: tuple[RowFault, ...]
    generation: NDArray[np.int64]
    kind: NDArray[np.int64]
    index: NDArray[np.int64]
    score: NDArray[np.float64]
    reasons: Mapping[int, str]
    counts: Mapping[str, KindCount]

    def records(self, name: str) -> Iterator[SignalRecord]:
        """Yield what is stored."""
        for row in range(self.score.size):
            value = float(self.score[row])
            defined = value == value
            yield SignalRecord(
                int(self.generation[row]),
                _KIND_NAMES[KINDS[self.kind[row]]],
                int(self.index[row]),
                name,
                value if defined else None,
                None if defined else self.reasons.get(row, NO_SCORE),
            )


def check_signal_name(queries: Queries, run: int, name: str) -> None:
    """Refuse a name that means something else already, or could not be typed and shown everywhere.

    Raises:
        UsageError: says what the name is, or what names are made of.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {visible(name)[:60]}: a letter, then at most 59 letters, digits, '_', '.' or '-' (A to Z)"
        )
    if name in CONFIDENCE_FUNCTIONS or name in SIGNALS or name.startswith("choice_"):
        raise UsageError(f"--name {name}: a score of this program is called so; choose another name")
    for signal in queries.signal_names(run):
        if signal.name == name:
            way_out = f"`salt-tui signals remove {run} {name}` takes it away" if signal.work == Work(run) else ""
            raise UsageError(
                f"--name {name}: {signal.work.title} has a signal of that name; {way_out or 'choose another name'}"
            )


def match_signals(queries: Queries, run: int, file: Path, *, score: str, kind: str) -> MatchedSignals:
    """Read a table and look up its rows among the answers of a run.

    Args:
        queries: of the database.
        run: number of the run.
        file: as `read_signal_table` takes it.
        score: name of the column of scores.
        kind: what the rows are about where no column says it.

    Raises:
        UsageError: the file cannot be read or holds no rows.
    """
    places = {name: queries.places(run, name) for name in _KIND_NAMES.values()}
    most = sum(len(found) for found in places.values())
    table = read_signal_table(file, score=score, kind=kind, most_rows=max(1, most))
    if not table.rows:
        raise UsageError(f"{file}: holds no rows")
    faults: dict[int, str] = {}
    generation = _generations(queries, run, table, faults)
    known = _units(table, generation, places, faults)
    _repeats(table, generation, known, faults)
    kept = np.flatnonzero(known & ~np.isin(np.arange(known.size), list(faults)))
    kept = kept[np.lexsort((table.index[kept], table.kind[kept], generation[kept]))]
    reasons = {place: table.reasons[row] for place, row in enumerate(kept.tolist()) if row in table.reasons}
    found = [(int(table.line[row]), what) for row, what in faults.items()]
    return MatchedSignals(
        rows=table.rows,
        faults=row_faults([*((fault.line, fault.what) for fault in table.faults), *found]),
        generation=generation[kept],
        kind=table.kind[kept],
        index=table.index[kept],
        score=table.score[kept],
        reasons=reasons,
        counts=_counts(table.kind[kept], table.score[kept], places),
    )


def add_signal(store: Store, run: int, name: str, matched: MatchedSignals, *, lower_is_confident: bool) -> None:
    """Store a table's scores, all of them or none.

    Raises:
        ValueError: the table has faults.
        StoreError: as `Store.add_foreign_signal`.
    """
    if matched.faults:
        raise ValueError("a table with faults is not stored")
    store.add_foreign_signal(run, name, matched.records(name), lower_is_confident=lower_is_confident)


def _generations(queries: Queries, run: int, table: SignalTable, faults: dict[int, str]) -> NDArray[np.int64]:
    """Return the answer that each row is about, -1 where there is none."""
    answers: dict[tuple[str, int], int | None] = {}
    last: dict[str, int] = {}
    for answer in queries.answers(run):
        task, position = answer.problem.task, answer.problem.position
        answers[task, position] = answer.generation if answer.stop_reason is not None else None
        last[task] = max(last.get(task, 0), position)
    positions, place = np.unique(table.position, return_inverse=True)
    pairs, code = np.unique(table.task * max(1, positions.size) + place, return_inverse=True)
    found = np.full(pairs.size, -1, dtype=np.int64)
    what: dict[int, str] = {}
    for number, pair in enumerate(pairs.tolist()):
        of_task, of_position = divmod(pair, positions.size)
        task, position = table.tasks[of_task], int(positions[of_position])
        generation = answers.get((task, position))
        if generation is not None:
            found[number] = generation
        elif task not in last:
            what[number] = f"run {run} has no task '{task[:60]}', there are {', '.join(sorted(last))[:200]}"
        elif (task, position) in answers:
            what[number] = f"position {position} of {task} has no answer yet"
        else:
            what[number] = f"no position {position} of {task}, the last is {last[task]}"
    rows = found[code]
    for row in _first(np.flatnonzero(rows < 0)):
        faults[row] = what[int(code[row])]
    return rows


def _units(
    table: SignalTable,
    generation: NDArray[np.int64],
    places: Mapping[SignalKind, NDArray[np.int64]],
    faults: dict[int, str],
) -> NDArray[np.bool_]:
    """Tell of which rows the answer holds the unit; a missing unit may be there without a score."""
    known = np.zeros(generation.size, dtype=np.bool_)
    for code, name in enumerate(KINDS):
        held = places[_KIND_NAMES[name]]
        rows = np.flatnonzero((table.kind == code) & (generation >= 0))
        if not rows.size:
            continue
        span = 2 + int(held[:, 1].max(initial=0))
        keys = held[:, 0] * span + held[:, 1]
        wanted = generation[rows] * span + np.minimum(table.index[rows], span - 1)
        nearest = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        there = keys[nearest] == wanted if len(keys) else np.zeros(rows.size, dtype=np.bool_)
        known[rows] = there
        for row in _first(rows[~there]):
            count = int(np.subtract(*np.searchsorted(held[:, 0], [generation[row] + 1, generation[row]])))
            unit = "answer" if name == "generation" else name
            faults[row] = f"no {unit} {table.index[row]}: {_place(table, row)} has {count}, counted from 0"
        scored = there & ~np.isnan(table.score[rows])
        for row in _first(rows[scored][held[nearest[scored], 2] == 1]):
            faults[row] = f"{name} {table.index[row]} of {_place(table, row)} was not written; leave its score empty"
    return known


def _repeats(
    table: SignalTable, generation: NDArray[np.int64], known: NDArray[np.bool_], faults: dict[int, str]
) -> None:
    rows = np.flatnonzero(known)
    keys = np.stack([generation[rows], table.kind[rows], table.index[rows]])
    order = np.lexsort(keys[::-1])
    ordered = keys[:, order]
    again = np.zeros(rows.size, dtype=np.bool_)
    again[1:] = (ordered[:, 1:] == ordered[:, :-1]).all(axis=0)
    earliest = np.maximum.accumulate(np.where(again, 0, np.arange(rows.size)))
    first_of = np.zeros(generation.size, dtype=np.int64)
    first_of[rows[order]] = rows[order[earliest]]
    for row in _first(np.sort(rows[order[again]])):
        earlier = int(first_of[row])
        unit = f"{KINDS[table.kind[row]]} {table.index[row]} of {_place(table, row)}"
        faults.setdefault(row, f"{unit} has a row already, line {table.line[earlier]}")


def _first(rows: NDArray[np.int64]) -> list[int]:
    """Return as many of the rows as are named; one is enough for nothing to be stored."""
    named: list[int] = rows[: MOST_FAULTS + 1].tolist()
    return named


def _place(table: SignalTable, row: int) -> str:
    return f"position {table.position[row]} of {table.tasks[table.task[row]]}"


def _counts(
    kind: NDArray[np.int64], score: NDArray[np.float64], places: Mapping[SignalKind, NDArray[np.int64]]
) -> dict[str, KindCount]:
    counts = {}
    for code in np.unique(kind).tolist():
        rows = kind == code
        written = int((places[_KIND_NAMES[KINDS[code]]][:, 2] == 0).sum())
        undefined = int(np.isnan(score[rows]).sum())
        scores = int(rows.sum()) - undefined
        counts[KINDS[code]] = KindCount(scores, undefined, max(0, written - int(rows.sum())))
    return counts
