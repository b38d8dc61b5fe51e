"""Calibration maps that are fitted on one table and applied to another, or kept in a file between."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from salt_tui.inputs.json_lines import read_text
from salt_tui.inputs.score_tables import ScoresToMap, ScoreTable
from salt_tui.similar_names import message_of
from salt_tui.usage_error import UsageError
from scoring.calibrators import calibrator
from scoring.calibrators_fitted import Fitted, Unfitted
from scoring.saved_maps import SavedMapError, map_from_record, map_record


@dataclass(frozen=True, slots=True)
class CalibratedRows:
    """One calibrated value per row, NaN where it is undefined, and what there is to say about it."""

    values: NDArray[np.float64]
    notes: tuple[str, ...]


def fit_map(method: str, table: ScoreTable, *, lower_is_confident: bool) -> Fitted | Unfitted:
    """Fit a calibration map on a table.

    Raises:
        UsageError: an unknown method, with the nearest one.
    """
    try:
        chosen = calibrator(method)
    except ValueError as error:
        raise UsageError(message_of(error)) from error
    return chosen.fit(table.score, table.correct, higher_is_confident=not lower_is_confident)


def apply_map(fitted: Fitted | Unfitted, target: ScoresToMap) -> CalibratedRows:
    """Return a calibrated value for every row; NaN where there is no score, or one that the map cannot read."""
    score = target.score
    if isinstance(fitted, Unfitted):
        return CalibratedRows(np.full(score.size, np.nan), (f"{fitted.reason}; every value is null",))
    notes = [] if fitted.note is None else [f"{fitted.method}: {fitted.note}"]
    usable = ~np.isnan(score)
    if not usable.all():
        notes.append(f"{int((~usable).sum())} of {score.size} rows have no score and are null")
    if fitted.needs_probability:
        outside = usable & ~((score >= 0.0) & (score <= 1.0))
        if outside.any():
            first = target.lines[int(np.flatnonzero(outside)[0])]
            notes.append(
                f"{fitted.method} needs scores in [0, 1]: {int(outside.sum())} of {score.size} rows are null,"
                f" the first in {target.file}:{first}"
            )
        usable &= ~outside
    beyond = fitted.outside(score[usable])
    if beyond:
        notes.append(
            f"{fitted.method}: {beyond} of {score.size} scores lie outside the range it was fitted on,"
            f" {fitted.lowest:g} to {fitted.highest:g}; their values are a guess"
        )
    values = np.full(score.size, np.nan)
    values[usable] = fitted.apply(score[usable])
    return CalibratedRows(values, tuple(notes))


def map_text(fitted: Fitted) -> str:
    """Return a fitted map as the text of a JSON file."""
    return json.dumps(map_record(fitted), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def read_map(file: Path) -> Fitted:
    """Return the map of a file that holds a `map_text`.

    Raises:
        UsageError: the file cannot be read or holds no map.
    """
    try:
        record = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{file}: no saved map; calibrate METHOD --fit TABLE --save {file} writes one")
    try:
        return map_from_record(record)
    except SavedMapError as error:
        raise UsageError(f"{file}: {error}") from error
