"""Which rows of a report a user asks for, by names on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from salt_tui.measure.rows import GRANULARITIES, MAPS, USUAL_INTERVALS, USUAL_MAP, RowChoice
from salt_tui.measure.task_scores import RAW
from salt_tui.similar_names import did_you_mean, message_of
from salt_tui.store.records import UnitKind
from salt_tui.usage_error import UsageError
from scoring.benchmark_intervals import RESAMPLED
from scoring.calibrators import calibrator
from scoring.confidence import HEADLINE_FUNCTION

MOST_DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class RowSelection:
    """What was asked for; which functions there are is known when the run is.

    Attributes:
        units: of `GRANULARITIES`.
        functions: names of confidence functions and signals; empty for all.
        calibrators: names of maps, `RAW` for none; empty for all.
        by: name of a column to slice by, None for the whole run.
        draws: bootstrap resamples; 0 for no intervals from them.
        usual: whether nothing was chosen, so that a report answers its usual questions with its usual rows.
        analyses: whether the analyses are wanted that read all texts and tokens.
    """

    units: tuple[UnitKind, ...]
    functions: tuple[str, ...]
    calibrators: tuple[str, ...]
    by: str | None
    draws: int
    usual: bool = False
    analyses: bool = False

    def choice(self, unit: UnitKind, known: Sequence[str]) -> RowChoice:
        """Return the rows to measure.

        Args:
            unit: of `GRANULARITIES`.
            known: the functions and signals of the run at this granularity.
        """
        names = self.functions or tuple(known)
        intervals = USUAL_INTERVALS if self.usual else RESAMPLED
        maps = {name: self._maps(unit, name) for name in names if name in known}
        return RowChoice(maps, draws=self.draws, with_interval=intervals)

    def left_out(self, unit: UnitKind, known: Sequence[str]) -> int:
        """Return how many rows of the full report are not among the usual ones, at one granularity."""
        return sum(len(MAPS) - len(self._maps(unit, name)) for name in known) if self.usual else 0

    def _maps(self, unit: UnitKind, function: str) -> tuple[str, ...]:
        if self.usual and unit != "atom":
            return (RAW,)
        if self.usual:
            return MAPS if function == HEADLINE_FUNCTION else (RAW, USUAL_MAP)
        return self.calibrators or MAPS

    def check_functions(self, known: Iterable[str]) -> None:
        """Refuse a function that the run does not have.

        Raises:
            UsageError: for an unknown name, with the nearest one.
        """
        _known("--function", self.functions, tuple(known))


def select_rows(
    units: Sequence[str],
    functions: Sequence[str],
    calibrators: Sequence[str],
    *,
    by: str | None,
    draws: int,
    full: bool,
    analyses: bool = False,
) -> RowSelection:
    """Turn names into a selection; an empty sequence means all.

    Without any name and without ``full`` these are the usual rows: every function raw, over atoms by one map too, and
    every map of the headline function over atoms.  A slice without names is one of raw headline confidence over atoms.

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
    usual = not named and not full and by is None
    return RowSelection(
        chosen_units,
        tuple(dict.fromkeys(functions)),
        _checked_maps(calibrators),
        by,
        draws,
        usual=usual,
        analyses=analyses,
    )


def _known(option: str, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: there are {', '.join(known)}{did_you_mean(name, known)}")
    return tuple(dict.fromkeys(names)) or tuple(known)


def _checked_maps(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name != RAW:
            try:
                calibrator(name)
            except ValueError as error:
                raise UsageError(f"--calibrator: {RAW} for raw scores, or a map: {message_of(error)}") from error
    return tuple(dict.fromkeys(names))
