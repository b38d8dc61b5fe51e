"""CSV tables of scores and outcomes that this program did not write; bad rows are named by line."""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from salt_tui.inputs.text_lines import text_lines
from salt_tui.usage_error import UsageError
from scoring.answer_status import LEFT_OUT
from scoring.confidence import HEADLINE_FUNCTION
from scoring.decision_utility import Rewards
from scoring.labels import CONFIDENCE_STATUSES, UNIT_STATUSES

FloatArray = NDArray[np.float64]

CORRECT = "correct"
SCORE_NAMES = ("confidence", "score", HEADLINE_FUNCTION)
GROUP_NAMES = ("group", "generation")
"""Names of columns where the user gives no others, the first that there is; the last are those of exports."""

MOST_ROWS = 50_000_000
"""Of a table that is held in memory: 134 bytes a row, measured.  A compressed file of a megabyte may have more."""

STATUS, ANSWER_STATUS = "status", "answer_status"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-100, 1e100
_MOST_ODD = 100_000
"""Cells of a column of numbers that are kept as texts: those that hold none; only the first is ever named."""
_OUTCOMES = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers without their texts: five million cells take 40 MB.

    Attributes:
        values: shape ``(n,)``; NaN where the cell is empty or no number.
        odd: cells that are neither empty nor a number, by row.
    """

    values: FloatArray
    odd: Mapping[int, str]

    def rows(self, kept: NDArray[np.intp]) -> NumberColumn:
        """Return some of the rows, by their numbers."""
        places = {int(row): place for place, row in enumerate(kept)} if self.odd else {}
        odd = {places[row]: text for row, text in self.odd.items() if row in places}
        return NumberColumn(self.values[kept], odd)


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns asked for.

    Attributes:
        file: the table, for messages.
        lines: the line on which each row begins, 1-based, shape ``(n,)``.
        columns: cells without outer white space, by name; equal ones are one text in memory.
        numeric: columns of numbers, by name.
    """

    file: Path
    lines: NDArray[np.int64]
    columns: dict[str, list[str]]
    numeric: dict[str, NumberColumn]

    def numbers(self, name: str, *, probability: bool) -> FloatArray:
        """Return a column as finite numbers.

        Raises:
            UsageError: for a cell that is no number, infinite, or outside [0, 1] where probabilities are needed;
                names the line.
        """
        values = self.numeric[name].values
        bad = np.flatnonzero(np.isnan(values))
        if bad.size:
            raise self._error(int(bad[0]), name, "not a finite number")
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise self._error(int(bad[0]), name, "too large for a double")
        bad = np.flatnonzero((values < 0.0) | (values > 1.0))
        if probability and bad.size:
            raise self._error(int(bad[0]), name, "outside [0, 1]; --not-probability measures the ranking alone")
        return values

    def outcomes(self, name: str) -> NDArray[np.bool_]:
        """Return a column of 0, 1, true and false.

        Raises:
            UsageError: for any other cell; names the line.
        """
        cells = self.columns[name]
        found = [_OUTCOMES.get(cell) if cell in _OUTCOMES else _OUTCOMES.get(cell.lower()) for cell in cells]
        if None in found:
            raise self._error(found.index(None), name, "not 0, 1, true or false")
        return np.array(found, dtype=np.bool_)

    def labels(self, name: str) -> list[str]:
        """Return a column of names.

        Raises:
            UsageError: for an empty cell; names the line.
        """
        cells = self.columns[name]
        if "" in cells:
            raise self._error(cells.index(""), name, "empty")
        return cells

    def weights(self, name: str) -> FloatArray:
        """Return a column of numbers from 1e-100 to 1e100, whose sums and products are finite.

        Raises:
            UsageError: for any other cell; names the line.
        """
        values = self.numbers(name, probability=False)
        bad = np.flatnonzero((values < _LEAST_WEIGHT) | (values > _LARGEST_WEIGHT))
        if bad.size:
            problem = "a weight is above 0" if values[bad[0]] <= 0.0 else "a weight is from 1e-100 to 1e100"
            raise self._error(int(bad[0]), name, problem)
        return values

    def rows(self, kept: NDArray[np.intp]) -> TextColumns:
        """Return some of the rows, by their numbers."""
        return TextColumns(
            self.file,
            self.lines[kept],
            {name: [cells[number] for number in kept] for name, cells in self.columns.items()},
            {name: column.rows(kept) for name, column in self.numeric.items()},
        )

    def _error(self, row: int, name: str, problem: str) -> UsageError:
        if name in self.numeric:
            value = float(self.numeric[name].values[row])
            cell = self.numeric[name].odd.get(row, "" if np.isnan(value) else repr(value))
        else:
            cell = self.columns[name][row]
        return UsageError(f"{self.file}:{self.lines[row]}: {name} is {cell[:40]!r}, {problem}")


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Scores and outcomes of units, row by row.

    Attributes:
        score: the column as it was given, shape ``(n,)``.
        correct: shape ``(n,)``.
        groups: which answer each unit belongs to, None where nothing says it.
        weights: how many units each stands for, None for one each.
        skipped: rows that are not among them, by reason.
    """

    score: FloatArray
    correct: NDArray[np.bool_]
    groups: list[str] | None
    weights: FloatArray | None
    skipped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ScoresToMap:
    """Scores that a calibration map is applied to; NaN where a row has none.

    Attributes:
        file: the table.
        lines: the line on which each row begins.
        score: shape ``(n,)``.
    """

    file: Path
    lines: NDArray[np.int64]
    score: FloatArray


def read_columns(
    file: Path,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    one_of: Sequence[str] = (),
    *,
    texts: Collection[str] = (),
    numeric: Collection[str] = (),
    most_rows: int | None = None,
) -> TextColumns:
    """Read the named columns of a CSV file with a header line; blank lines are passed over.

    Args:
        file: UTF-8, with or without a byte order mark, plain or compressed with gzip.
        needed: columns that must be there.
        optional: columns that are read if they are there.
        one_of: columns of which at least one must be there; all that are there are read.
        texts: which of them are read as texts.
        numeric: which of them are read as numbers; one may be both.
        most_rows: reading stops behind so many; None for no limit.

    Raises:
        UsageError: no such file, no header, a column that is missing or named twice, a row with more or fewer
            cells than the header, or more rows than wanted; names file and line.
    """
    # A field larger than the csv module's limit is an unclosed quote or no CSV, and its error is reported.
    reader = csv.reader(text_lines(file, newline=""), strict=True)
    lines = array("q")
    header: list[str] | None = None
    takers: list[tuple[int, _Texts | _Numbers]] = []
    read_texts: dict[str, _Texts] = {}
    read_numbers: dict[str, _Numbers] = {}
    start = 1
    try:
        for cells in reader:
            if header is None and cells:
                header = [cell.strip() for cell in cells]
                if one_of and not set(one_of) & set(header):
                    raise _no_column(file, " or ".join(map(repr, one_of)), header)
                for name, place in _places(file, header, needed, (*one_of, *optional)).items():
                    if name in numeric:
                        takers.append((place, read_numbers.setdefault(name, _Numbers())))
                    if name in texts:
                        takers.append((place, read_texts.setdefault(name, _Texts())))
            elif cells:
                if header is not None and len(cells) != len(header):
                    raise UsageError(f"{file}:{start}: {len(cells)} cells, but the header has {len(header)}")
                if len(lines) == most_rows:
                    raise UsageError(f"{file}:{start}: more than {most_rows:,} rows; nothing after this one was read")
                lines.append(start)
                for place, taker in takers:
                    taker.take(cells[place].strip())
            start = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{file}:{start}: not CSV: {error}") from error
    if header is None:
        raise UsageError(f"{file}: holds no rows{_header_hint(needed)}")
    return TextColumns(
        file,
        np.frombuffer(lines, dtype=np.int64) if lines else np.zeros(0, dtype=np.int64),
        {name: taker.cells for name, taker in read_texts.items()},
        {name: taker.column() for name, taker in read_numbers.items()},
    )


class _Texts:
    """Cells of a column as texts, each different one kept once."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self._known: dict[str, str] = {}

    def take(self, cell: str) -> None:
        self.cells.append(self._known.setdefault(cell, cell))


class _Numbers:
    """Cells of a column as numbers."""

    def __init__(self) -> None:
        self._values = array("d")
        self._odd: dict[int, str] = {}

    def take(self, cell: str) -> None:
        if _NUMBER.fullmatch(cell):
            self._values.append(float(cell))
            return
        if cell and len(self._odd) < _MOST_ODD:
            self._odd[len(self._values)] = cell[:40]
        self._values.append(np.nan)

    def column(self) -> NumberColumn:
        values = np.frombuffer(self._values, dtype=np.float64) if self._values else np.zeros(0)
        return NumberColumn(values, self._odd)


def read_scores(
    file: Path,
    *,
    score: str | None = None,
    correct: str = CORRECT,
    group: str | None = None,
    weight: str | None = None,
    probability: bool = False,
) -> ScoreTable:
    """Return scores and outcomes of a table, one's own exports of atoms among them.

    In a table with a column ``status`` as exports have it, rows are skipped and counted that a report leaves out:
    missing and abstained atoms, atoms without the score, and those of answers that count nowhere.

    Args:
        file: CSV with one row per unit.
        score: name of its column; None: the first of `SCORE_NAMES` that there is.
        correct: name of its column, 0 or 1.
        group: name of the column that says which answer a unit belongs to; None: the first of `GROUP_NAMES`, if any.
        weight: name of the column of weights; None for none.
        probability: whether scores must lie in [0, 1].

    Raises:
        UsageError: for a file that cannot be read, naming the line.
    """
    optional = [*(GROUP_NAMES if group is None else ()), STATUS, ANSWER_STATUS]
    needed = [name for name in (score, correct, group, weight) if name is not None]
    one_of = SCORE_NAMES if score is None else ()
    numeric = {name for name in (score, weight) if name is not None} | set(one_of)
    texts = {name for name in (correct, group) if name is not None} | set(optional)
    table = read_columns(
        file,
        needed,
        [name for name in optional if name not in needed],
        one_of,
        texts=texts,
        numeric=numeric,
        most_rows=MOST_ROWS,
    )
    chosen = _score_name(table, score)
    table, skipped = _without_skipped(table, chosen)
    groups = group or next((name for name in GROUP_NAMES if name in table.columns), None)
    return ScoreTable(
        score=table.numbers(chosen, probability=probability),
        correct=table.outcomes(correct),
        groups=None if groups is None else table.labels(groups),
        weights=None if weight is None else table.weights(weight),
        skipped=skipped,
    )


def read_scores_to_map(file: Path, score: str | None = None) -> ScoresToMap:
    """Return the scores of a table, row by row; a row without one is NaN.

    Raises:
        UsageError: for a file that cannot be read, naming the line.
    """
    names = SCORE_NAMES if score is None else (score,)
    table = read_columns(
        file,
        [] if score is None else names,
        one_of=names if score is None else (),
        numeric=names,
        most_rows=MOST_ROWS,
    )
    name = _score_name(table, score)
    column = table.numeric[name]
    filled = np.flatnonzero(~np.isnan(column.values) | np.isin(np.arange(column.values.size), list(column.odd)))
    values = np.full(column.values.size, np.nan)
    values[filled] = table.rows(filled).numbers(name, probability=False)
    return ScoresToMap(file, table.lines, values)


def _score_name(table: TextColumns, given: str | None) -> str:
    return given or next(name for name in SCORE_NAMES if name in table.numeric)


def _without_skipped(table: TextColumns, score: str) -> tuple[TextColumns, dict[str, int]]:
    statuses = table.columns.get(STATUS, [])
    own = bool(statuses) and set(statuses) <= set(UNIT_STATUSES)
    answers = table.columns.get(ANSWER_STATUS, [])
    if not own:
        return table, {}
    kept, skipped = array("q"), Counter[str]()
    empty = np.isnan(table.numeric[score].values)
    for number, status in enumerate(statuses):
        if answers and answers[number] in LEFT_OUT:
            skipped[f"answer {answers[number].replace('_', ' ')}"] += 1
        elif status not in CONFIDENCE_STATUSES:
            skipped[status] += 1
        elif empty[number] and number not in table.numeric[score].odd:
            skipped[f"no {score}"] += 1
        else:
            kept.append(number)
    return table.rows(np.array(kept, dtype=np.intp)), dict(skipped)


def read_rewards(text: str) -> Rewards:
    """Read ``--rewards``: four numbers joined by commas, in the order of `Rewards`.

    Raises:
        UsageError: other texts, and rewards under which the wrong decision pays.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != len(fields(Rewards)) or not all(_NUMBER.fullmatch(part) for part in parts):
        names = ",".join(field.name.upper() for field in fields(Rewards))
        raise UsageError(f"--rewards {text}: four numbers {names}, such as 1,-3,0,0")
    try:
        return Rewards(*map(float, parts))
    except ValueError as error:
        raise UsageError(f"--rewards {text}: {error}") from error


def _places(file: Path, header: list[str], needed: Sequence[str], optional: Sequence[str]) -> dict[str, int]:
    places = {}
    for name in (*needed, *optional):
        count = header.count(name)
        if count > 1:
            raise UsageError(f"{file}:1: two columns are named {name!r}")
        if count:
            places[name] = header.index(name)
        elif name in needed:
            raise _no_column(file, repr(name), header)
    return places


def _header_hint(needed: Sequence[str]) -> str:
    return f"; a header line with {', '.join(needed)} is needed" if needed else ""


def _no_column(file: Path, name: str, header: Sequence[str]) -> UsageError:
    listed = ", ".join(repr(cell[:40]) for cell in header[:20])
    return UsageError(f"{file}:1: no column {name}, there are {listed}; options name other columns (--help)")
