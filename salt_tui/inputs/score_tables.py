"""CSV tables of scores and outcomes that this program did not write; bad rows are named by line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from salt_tui.inputs.json_lines import read_text
from salt_tui.similar_names import message_of
from salt_tui.usage_error import UsageError
from scoring.calibrators import Calibrator, calibrator
from scoring.calibrators_fitted import Unfitted
from scoring.decision_utility import Rewards
from scoring.scored_units import ScoredUnits

FloatArray = NDArray[np.float64]

CONFIDENCE, SCORE, CORRECT, GROUP = "confidence", "score", "correct", "group"
"""Names of columns where the user gives no others."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_OUTCOMES = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns asked for, as text.

    Attributes:
        file: the table, for messages.
        lines: the line on which each row begins, 1-based.
        columns: cells without outer white space, by name.
    """

    file: Path
    lines: Sequence[int]
    columns: dict[str, list[str]]

    def numbers(self, name: str, *, probability: bool) -> FloatArray:
        """Return a column as finite numbers.

        Raises:
            UsageError: for a cell that is no number, infinite, or outside [0, 1] where probabilities are needed;
                names the line.
        """
        cells = self.columns[name]
        for number, cell in enumerate(cells):
            if not _NUMBER.fullmatch(cell):
                raise self._error(number, name, "not a finite number")
        values = np.array(cells, dtype=np.float64)
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

    def _error(self, row: int, name: str, problem: str) -> UsageError:
        return UsageError(f"{self.file}:{self.lines[row]}: {name} is {self.columns[name][row][:40]!r}, {problem}")


@dataclass(frozen=True, slots=True)
class CalibratedRows:
    """One calibrated value per row, None where it is undefined, and what there is to say about it."""

    values: tuple[float | None, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableUnits:
    """The units of a table, ready for every metric.

    Attributes:
        units: what metrics of probabilities read.
        ranking: what metrics of the order alone read: the column as it was given, or negated.
    """

    units: ScoredUnits
    ranking: ScoredUnits


def read_columns(file: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> TextColumns:
    """Read the named columns of a CSV file with a header line; blank lines are passed over.

    Args:
        file: UTF-8, with or without a byte order mark.
        needed: columns that must be there.
        optional: columns that are read if they are there.

    Raises:
        UsageError: no such file, no header, a column that is missing or named twice, or a row with more or fewer
            cells than the header; names file and line.
    """
    # A field larger than the csv module's limit is an unclosed quote or no CSV, and its error is reported.
    reader = csv.reader(io.StringIO(read_text(file), newline=""), strict=True)
    lines: list[int] = []
    rows: list[list[str]] = []
    header: list[str] | None = None
    start = 1
    try:
        for cells in reader:
            if header is None and cells:
                header = [cell.strip() for cell in cells]
            elif cells:
                if header is not None and len(cells) != len(header):
                    raise UsageError(f"{file}:{start}: {len(cells)} cells, but the header has {len(header)}")
                lines.append(start)
                rows.append(cells)
            start = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{file}:{start}: not CSV: {error}") from error
    if header is None:
        raise UsageError(f"{file}: empty; a header line with {', '.join(needed)} is needed")
    places = _places(file, header, needed, optional)
    return TextColumns(file, lines, {name: [row[place].strip() for row in rows] for name, place in places.items()})


def read_units(
    file: Path,
    *,
    confidence: str = CONFIDENCE,
    correct: str = CORRECT,
    group: str | None = None,
    probability: bool = True,
    lower_is_confident: bool = False,
) -> TableUnits:
    """Return the units of a table.

    Args:
        file: CSV with one row per unit.
        confidence: name of its column.
        correct: name of its column, 0 or 1.
        group: name of the column that says which answer a unit belongs to; None: ``group``, if it is there.
        probability: whether confidences mean probabilities; without, metrics that need them are undefined.
        lower_is_confident: whether a low value means sure: 1 − p is measured for probabilities, and −x is ranked.

    Raises:
        UsageError: for a file that cannot be read, naming the line.
    """
    needed = [confidence, correct, *([] if group is None else [group])]
    table = read_columns(file, needed, optional=[GROUP] if group is None else [])
    scores = table.numbers(confidence, probability=probability)
    outcomes = table.outcomes(correct)
    groups = group or GROUP
    labels = table.labels(groups) if groups in table.columns else None
    ranking = ScoredUnits.from_columns(-scores if lower_is_confident else scores, outcomes, labels)
    if not (lower_is_confident and probability):
        return TableUnits(ranking, ranking)
    return TableUnits(ScoredUnits.from_columns(1.0 - scores, outcomes, labels), ranking)


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


def calibrate_table(
    method: str,
    training: Path,
    target: Path,
    *,
    score: str = SCORE,
    correct: str = CORRECT,
    lower_is_confident: bool = False,
) -> CalibratedRows:
    """Fit a calibration map on one table and return the calibrated values of another, in its order.

    Args:
        method: name of a calibrator.
        training: CSV with scores and outcomes.
        target: CSV with scores.
        score: name of the column of scores in both.
        correct: name of the column of outcomes in the first.
        lower_is_confident: for scores such as perplexity.

    Returns:
        None for every row where no map can be fitted, and for a row whose score the map cannot read, with the reason.

    Raises:
        UsageError: an unknown method, with the nearest one, or a file that cannot be read, naming the line.
    """
    chosen = _calibrator(method)
    fit = read_columns(training, (score, correct))
    scores, outcomes = fit.numbers(score, probability=False), fit.outcomes(correct)
    table = read_columns(target, (score,))
    wanted = table.numbers(score, probability=False)
    fitted = chosen.fit(scores, outcomes, higher_is_confident=not lower_is_confident)
    if isinstance(fitted, Unfitted):
        return CalibratedRows((None,) * wanted.size, (f"{fitted.reason}; every value is null",))
    notes = [] if fitted.note is None else [f"{method}: {fitted.note}"]
    usable = np.ones(wanted.size, dtype=np.bool_)
    if chosen.needs_probability:
        usable = (wanted >= 0.0) & (wanted <= 1.0)
        if not usable.all():
            first = table.lines[int(np.flatnonzero(~usable)[0])]
            notes.append(
                f"{method} needs scores in [0, 1]: {int((~usable).sum())} of {wanted.size} rows are null,"
                f" the first in {target}:{first}"
            )
    beyond = fitted.outside(wanted[usable])
    if beyond:
        notes.append(
            f"{method}: {beyond} of {wanted.size} scores lie outside the range it was fitted on,"
            f" {fitted.lowest:g} to {fitted.highest:g}; their values are a guess"
        )
    values = np.full(wanted.size, np.nan)
    values[usable] = fitted.apply(wanted[usable])
    return CalibratedRows(tuple(None if np.isnan(value) else value for value in values.tolist()), tuple(notes))


def _calibrator(method: str) -> Calibrator:
    try:
        return calibrator(method)
    except ValueError as error:
        raise UsageError(message_of(error)) from error


def _places(file: Path, header: list[str], needed: Sequence[str], optional: Sequence[str]) -> dict[str, int]:
    places = {}
    for name in (*needed, *optional):
        count = header.count(name)
        if count > 1:
            raise UsageError(f"{file}:1: two columns are named {name!r}")
        if count:
            places[name] = header.index(name)
        elif name in needed:
            listed = ", ".join(repr(cell[:40]) for cell in header[:20])
            raise UsageError(f"{file}:1: no column {name!r}, there are {listed}; options name other columns (--help)")
    return places
