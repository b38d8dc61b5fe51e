"""Which rows of a report a user asks for, by names on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from salt_tui.measure.rows import EVERYTHING, GRANULARITIES, MAPS, USUAL, USUAL_INTERVALS, RowChoice
from salt_tui.measure.task_scores import RAW
from salt_tui.similar_names import did_you_mean, message_of
from salt_tui.store.records import UnitKind
from salt_tui.usage_error import UsageError
from scoring.calibrators import calibrator
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION
from scoring.metrics import METRICS

MOST_DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Granularities, rows of each, and the column to slice by.

    Attributes:
        units: of `GRANULARITIES`.
        rows: functions, maps, metrics and resamples.
        by: name of a column, None for the whole run.
        left_out: rows of the full report that are not measured.
        usual: whether nothing was chosen, so that a report answers its usual questions.
    """

    units: tuple[UnitKind, ...]
    rows: RowChoice
    by: str | None
    left_out: int
    usual: bool = False


def select_rows(
    units: Sequence[str],
    functions: Sequence[str],
    calibrators: Sequence[str],
    *,
    by: str | None,
    draws: int,
    full: bool,
    metrics: Sequence[str] = tuple(METRICS),
) -> RowSelection:
    """Turn names into a selection; an empty sequence means all.

    Without any name and without ``full`` these are the usual rows: every function raw and by one map, and every map
    of the headline function.  A slice without names is one of raw headline confidence over atoms.

    Raises:
        UsageError: an unknown name, with the nearest one, or draws outside 0..100,000.
    """
    if not 0 <= draws <= MOST_DRAWS:
        raise UsageError(f"--draws {draws}: a number from 0 (no intervals) to {MOST_DRAWS:,}")
    named = bool(units or functions or calibrators)
    chosen_units = tuple(kind for kind in GRANULARITIES if kind in _known("--unit", units, GRANULARITIES))
    if by is not None and not full:
        chosen_units = chosen_units if units else ("atom",)
        functions = functions or (HEADLINE_FUNCTION,)
        calibrators = calibrators or (RAW,)
    elif not named and not full:
        rows = RowChoice(USUAL, tuple(metrics), draws, USUAL_INTERVALS)
        left_out = len(GRANULARITIES) * _size(EVERYTHING.values(), USUAL.values())
        return RowSelection(chosen_units, rows, by, left_out, usual=True)
    chosen_functions = _known("--function", functions, tuple(CONFIDENCE_FUNCTIONS))
    maps = _maps(calibrators)
    chosen = RowChoice(dict.fromkeys(chosen_functions, maps), tuple(metrics), draws)
    return RowSelection(chosen_units, chosen, by, 0)


def _size(whole: Iterable[Sequence[str]], part: Iterable[Sequence[str]]) -> int:
    return sum(map(len, whole)) - sum(map(len, part))


def _known(option: str, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: there are {', '.join(known)}{did_you_mean(name, known)}")
    return tuple(dict.fromkeys(names)) or tuple(known)


def _maps(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name != RAW:
            try:
                calibrator(name)
            except ValueError as error:
                raise UsageError(f"--calibrator: {RAW} for raw scores, or a map: {message_of(error)}") from error
    return tuple(dict.fromkeys(names)) or MAPS
