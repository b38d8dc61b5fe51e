"""CSV tables of scores that another program gave to the answers of a run: ``salt-tui signals add``.

What can be said of a row alone is said here; whether the run has such a unit is `runner.foreign_signals`' question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from salt_tui.inputs.question_files import MOST_FAULTS, RowFault
from salt_tui.inputs.score_tables import FloatArray, NumberColumn, read_columns
from salt_tui.visible_text import visible

KINDS: tuple[str, ...] = ("token", "atom", "line", "generation")
"""What a row may be about."""

TASK, POSITION, KIND, INDEX, SCORE, REASON = "task", "position", "kind", "index", "score", "reason"
"""Names of the columns; those of exports of studies."""

NO_SCORE = "no score"
"""The reason of an empty score where the row gives none."""

_What: TypeAlias = Callable[[int], str]

_LARGEST = 2.0**53
_LONGEST = 200
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True)
class SignalTable:
    """The good rows of a table, column by column, and what is wrong with the others.

    Attributes:
        file: the table.
        rows: how many there are, good and bad.
        line: on which each good row begins, 1-based, shape ``(n,)``.
        tasks: names that occur.
        task: code of the task of each row, its place in ``tasks``.
        position, index: counted from 0, as exported.
        kind: code, the place in `KINDS`.
        score: NaN where it is undefined.
        reasons: of undefined scores that have one of their own, by row.
        faults: of the bad rows, in order, at most `MOST_FAULTS`.
    """

    file: Path
    rows: int
    line: NDArray[np.int64]
    tasks: tuple[str, ...]
    task: NDArray[np.int64]
    position: NDArray[np.int64]
    kind: NDArray[np.int64]
    index: NDArray[np.int64]
    score: FloatArray
    reasons: Mapping[int, str]
    faults: tuple[RowFault, ...]


def read_signal_table(file: Path, *, score: str, kind: str, most_rows: int) -> SignalTable:
    """Read scores by task, position, kind and index; a million rows take 100 MB while they are read.

    Args:
        file: CSV with a header, plain or gzip, or standard input.
        score: name of the column of scores.
        kind: what the rows are about where there is no column ``kind``.
        most_rows: reading stops behind so many.

    Raises:
        UsageError: the file cannot be read, is no CSV, lacks a column or has more rows; names the line.
    """
    numbers = (POSITION, INDEX, score)
    table = read_columns(
        file,
        (TASK, *numbers),
        (KIND, REASON),
        texts=(TASK, KIND, REASON),
        numeric=numbers,
        most_rows=most_rows,
    )
    faults: dict[int, str] = {}
    tasks, task = _codes(table.columns[TASK])
    names = table.columns.get(KIND)
    if names is None:
        kinds = np.full(task.size, KINDS.index(kind), dtype=np.int64)
    else:
        known, code = _codes(names)
        of_name = [KINDS.index(name) if name in KINDS else -1 for name in known]
        kinds = np.array(of_name, dtype=np.int64)[code] if known else code
        listed = ", ".join(KINDS[:-1]) + f" or {KINDS[-1]}"
        _note(faults, np.flatnonzero(kinds < 0), lambda row: f"kind is {names[row][:40]!r}, not {listed}")
    for name in (POSITION, INDEX):
        column = table.numeric[name]
        values = column.values
        whole = (values >= 0.0) & (values < _LARGEST) & (values == np.floor(values))
        _note(faults, np.flatnonzero(~whole), _cell(name, column, "not a whole number from 0"))
    column = table.numeric[score]
    odd = np.array(sorted(column.odd), dtype=np.int64)
    _note(faults, odd, _cell(score, column, "not a finite number"))
    _note(faults, np.flatnonzero(np.isinf(column.values)), _cell(score, column, "too large for a double"))
    good = np.ones(task.size, dtype=np.bool_)
    good[list(faults)] = False
    kept = np.flatnonzero(good)
    written = table.columns.get(REASON)
    empty = np.flatnonzero(np.isnan(column.values[kept])).tolist()
    return SignalTable(
        file=file,
        rows=task.size,
        line=table.lines[kept],
        tasks=tuple(map(visible, tasks)),
        task=task[kept],
        position=table.numeric[POSITION].values[kept].astype(np.int64),
        kind=kinds[kept],
        index=table.numeric[INDEX].values[kept].astype(np.int64),
        score=column.values[kept],
        reasons={} if written is None else {row: text for row in empty if (text := _reason(written[kept[row]]))},
        faults=row_faults((int(table.lines[row]), what) for row, what in faults.items()),
    )


def row_faults(faults: Iterable[tuple[int, str]]) -> tuple[RowFault, ...]:
    """Return faults in the order of their lines, `MOST_FAULTS` at most and one that says so."""
    ordered = [RowFault(line, visible(what)) for line, what in sorted(faults)]
    if len(ordered) > MOST_FAULTS:
        ordered[MOST_FAULTS:] = [RowFault(ordered[MOST_FAULTS].line, f"more than {MOST_FAULTS:,} bad rows")]
    return tuple(ordered)


def _note(faults: dict[int, str], rows: NDArray[np.intp], what: _What) -> None:
    for row in rows[: MOST_FAULTS + 1].tolist():
        faults.setdefault(row, what(row))


def _cell(name: str, column: NumberColumn, problem: str) -> _What:
    def what(row: int) -> str:
        value = float(column.values[row])
        cell = column.odd.get(row, "" if np.isnan(value) else f"{value:g}")
        return f"{name} is {cell!r}, {problem}"

    return what


def _reason(text: str) -> str:
    return visible(text[:_LONGEST])


def _codes(cells: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different texts of a column in the order of their first row, and which each row holds."""
    place: dict[str, int] = {}
    code = np.fromiter((place.setdefault(cell, len(place)) for cell in cells), dtype=np.int64, count=len(cells))
    return list(place), code
