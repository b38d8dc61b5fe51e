"""Slices of a run's units by a stored column: every metric for the units of each of its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.course import places_written
from salt_tui.measure.rows import Part
from salt_tui.similar_names import did_you_mean
from salt_tui.store.queries import Queries
from salt_tui.store.results import StoredAnswer, UnitColumns
from salt_tui.store.schema import LEFT_OUT_STATUSES
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible

POSITION_BINS = 10
MOST_VALUES = 20
"""A column of numbers with more distinct values than this is cut into `RANGES` ranges of equal numbers of units."""

RANGES = 10

NOTHING = "–"
"""The label of units for which the column is NULL."""

_OF_COLUMNS: Mapping[str, Callable[[UnitColumns], Sequence[object]]] = {
    "task": lambda columns: [columns.task_names[code] for code in columns.task.tolist()],
    "index": lambda columns: columns.index.tolist(),
    "line": lambda columns: [None if line < 0 else line for line in columns.line.tolist()],
    "problem": lambda columns: columns.position.tolist(),
    "generation": lambda columns: columns.generation.tolist(),
}
"""What the arrays of a run hold already."""

_OF_ANSWERS: Mapping[str, Callable[[StoredAnswer], object]] = {
    "difficulty": lambda answer: answer.problem.difficulty,
    "method": lambda answer: answer.problem.method,
    "answer_kind": lambda answer: answer.problem.answer_kind,
    "content_id": lambda answer: answer.problem.content_id,
    "seed": lambda answer: str(answer.problem.seed),
    "reference_atoms": lambda answer: answer.problem.reference_atoms,
    "reference_lines": lambda answer: answer.problem.reference_lines,
    "answer_status": lambda answer: answer.answer_status,
    "stop_reason": lambda answer: answer.stop_reason,
    "extraction": lambda answer: answer.extraction,
    "attempt": lambda answer: answer.attempt,
    "prompt_length": lambda answer: answer.prompt_tokens,
    "tokens": lambda answer: answer.tokens,
    "prompt_seconds": lambda answer: answer.prompt_seconds,
    "decode_seconds": lambda answer: answer.decode_seconds,
}
"""What is the same for all units of an answer."""


def slice_parts(queries: Queries, run: int, columns: UnitColumns, name: str) -> tuple[Part, ...]:
    """Return one part per value of a column, in the order of the values.

    Args:
        queries: the database.
        run: its number.
        columns: the units to slice, of one granularity.
        name: ``task``, ``difficulty``, ``line``, ``position`` (of the unit in its answer, as a share of its length, in
            tenths), ``problem`` (its number in the task), any column of problem and generation, a column of a file
            with problems of one's own, or for atoms any column of ``atom_view``.

    Raises:
        UsageError: no such column; names the nearest.
    """
    if name == "position":
        return _positions(columns)
    return _parts(_values(queries, run, columns, name), columns.status.size)


def slice_names(queries: Queries, run: int) -> tuple[str, ...]:
    """Return the columns by which units of every granularity can be sliced, as `slice_parts` takes them."""
    own = dict.fromkeys(column for answer in queries.answers(run) for column, _ in answer.problem.slices)
    return tuple(dict.fromkeys(("position", *_OF_COLUMNS, *_OF_ANSWERS, *own)))


def _values(queries: Queries, run: int, columns: UnitColumns, name: str) -> Sequence[object]:
    if name in _OF_COLUMNS:
        return _OF_COLUMNS[name](columns)
    if name in _OF_ANSWERS:
        read = _OF_ANSWERS[name]
        by_answer = {answer.generation: read(answer) for answer in queries.answers(run)}
        return [by_answer[generation] for generation in columns.generation.tolist()]
    answers = queries.answers(run)
    own = list(dict.fromkeys(column for answer in answers for column, _ in answer.problem.slices))
    if name in own:
        by_answer = _numbers({answer.generation: dict(answer.problem.slices).get(name) for answer in answers})
        return [by_answer[generation] for generation in columns.generation.tolist()]
    known, rows = queries.atom_rows(run)
    if columns.kind == "atom" and name in known:
        place, status = known.index(name), known.index("answer_status")
        return [row[place] for row in rows if row[status] is not None and row[status] not in LEFT_OUT_STATUSES]
    names = ["position", *_OF_COLUMNS, *_OF_ANSWERS, *map(visible, own), *(known if columns.kind == "atom" else ())]
    there_are = f"there are {', '.join(dict.fromkeys(names))}"
    raise UsageError(f"--by {name}: {columns.kind}s have no such column; {there_are}{did_you_mean(name, names)}")


def _numbers(texts: Mapping[int | None, str | None]) -> dict[int | None, object]:
    """Read the values of a column of a file as numbers where all of them are."""
    values = dict[int | None, object](texts)
    for key, text in texts.items():
        if text is not None:
            try:
                values[key] = float(text)
            except ValueError:
                return dict(texts)
    finite = all(value is None or math.isfinite(value) for value in values.values() if isinstance(value, float))
    return values if finite else dict(texts)


def _positions(columns: UnitColumns) -> tuple[Part, ...]:
    """Cut every answer into tenths by (place + 1) / written units; missing units have no position."""
    place, length = places_written(columns)
    tenth = np.where(place < 0, -1, -(-POSITION_BINS * (place + 1) // np.maximum(length, 1)) - 1)
    return tuple(
        Part(f"{number / POSITION_BINS:.1f}–{(number + 1) / POSITION_BINS:.1f}", tenth == number)
        for number in range(POSITION_BINS)
        if (tenth == number).any()
    )


def _parts(values: Sequence[object], size: int) -> tuple[Part, ...]:
    distinct = {value for value in values if value is not None}
    numbers = bool(distinct) and all(isinstance(value, int | float) for value in distinct)
    parts = _ranges(values) if numbers and len(distinct) > MOST_VALUES else _each(values, distinct, numbers)
    nothing = np.fromiter((value is None for value in values), dtype=np.bool_, count=size)
    return (*parts, *([Part(NOTHING, nothing)] if nothing.any() else []))


def _each(values: Sequence[object], distinct: set[object], numbers: bool) -> list[Part]:
    ordered = list(dict.fromkeys(value for value in values if value is not None))
    if numbers or len(distinct) > MOST_VALUES:
        ordered.sort(key=lambda value: value)  # type: ignore[arg-type,return-value]  # one type, as SQLite stores it
    code = {value: number for number, value in enumerate(ordered)}
    codes: NDArray[np.int64] = np.array([-1 if value is None else code[value] for value in values], dtype=np.int64)
    return [Part(_label(value), codes == number) for number, value in enumerate(ordered)]


def _label(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else visible(str(value))


def _ranges(values: Sequence[object]) -> list[Part]:
    column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    edges = np.unique(np.nanquantile(column, np.arange(RANGES + 1) / RANGES, method="inverted_cdf"))
    parts = []
    for number, (low, high) in enumerate(pairwise(edges)):
        inside = (column <= high) & ((column >= low) if number == 0 else (column > low))
        if inside.any():
            parts.append(Part(f"{'[' if number == 0 else '('}{low:.6g}, {high:.6g}]", inside))
    return parts
