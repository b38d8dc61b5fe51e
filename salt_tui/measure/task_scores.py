"""The units of one task with the scores of one confidence function, raw or calibrated, ready to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from salt_tui.usage_error import UsageError
from scoring.benchmark_intervals import resampled_metrics
from scoring.calibrators import calibrator
from scoring.calibrators_fitted import Unfitted
from scoring.cross_fitting import cross_fit
from scoring.metrics import METRICS, evaluate_units
from scoring.ranking import MicroAuroc, micro_auroc
from scoring.ranking_inside_folds import ranking_metrics
from scoring.scored_units import ScoredUnits
from scoring.signals import confidence_entry
from scoring.value import Value, undefined

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RAW = "none"
"""The calibrator of scores as they are."""

_IN_CONFIDENCE = tuple(UNIT_STATUSES.index(status) for status in ("correct", "wrong", "redundant"))
"""Missing units have no confidence and abstained ones are left out of it."""

_CORRECT = UNIT_STATUSES.index("correct")


@dataclass(frozen=True, slots=True)
class TaskUnits:
    """The units of one task that count in confidence metrics.

    Attributes:
        task: its name.
        rows: their places in the columns of the run.
        correct: whether each is right.
        generation: 0-based code of the answer of each.
        generations: number of answers with such a unit.
    """

    task: str
    rows: IntArray
    correct: NDArray[np.bool_]
    generation: IntArray
    generations: int


@dataclass(frozen=True, slots=True)
class TaskScores:
    """The scores of one function and map on the units of one task; higher is more confident.

    Attributes:
        rows: places in the columns of the run; units without a score are not among them.
        correct, generation: of these units.
        confidence: what calibration metrics read; None where a map cannot be fitted, and where the engine did not
            give what the function needs.
        ranking: what ranking metrics read: the raw scores under a strictly rising map.
        probability: whether `confidence` means probabilities.
        fold: whose map gave each value, where `ranking` is comparable inside folds only; None else.
        reason: why there is no confidence.
        notes: what the fits of the map had to say.
        rising: whether higher values of the function itself are more confident; `ranking` has the other sign else.
    """

    rows: IntArray
    correct: NDArray[np.bool_]
    generation: IntArray
    confidence: FloatArray | None
    ranking: FloatArray
    probability: bool
    fold: IntArray | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
    rising: bool = True

    def part(self, mask: NDArray[np.bool_]) -> TaskScores:
        """Return the units of a mask over the columns of the run."""
        kept = mask[self.rows]
        ranking = self.ranking[kept]
        confidence = self.confidence
        if confidence is not None:
            confidence = ranking if confidence is self.ranking else confidence[kept]
        return replace(
            self,
            rows=self.rows[kept],
            correct=self.correct[kept],
            generation=self.generation[kept],
            confidence=confidence,
            ranking=ranking,
            fold=None if self.fold is None else self.fold[kept],
        )


def task_units(columns: UnitColumns, task: str) -> TaskUnits:
    """Select the units of a task; none for a task that the columns do not know."""
    chosen = np.isin(columns.status, _IN_CONFIDENCE)
    if task in columns.task_names:
        chosen &= columns.task == columns.task_names.index(task)
    else:
        chosen &= False
    rows = np.flatnonzero(chosen)
    answers, generation = np.unique(columns.generation[rows], return_inverse=True)
    return TaskUnits(task, rows, columns.status[rows] == _CORRECT, generation.astype(np.int64), int(answers.size))


def checked_column(columns: UnitColumns, function: str) -> FloatArray:
    """Return the column of a confidence function, NaN where it is undefined.

    Raises:
        UsageError: a probability is none; no program of ours stored it.
    """
    column = columns.confidences[function]
    if not confidence_entry(function, columns.lower_is_confident).needs_calibration:
        outside = np.flatnonzero((column < 0.0) | (column > 1.0))
        if outside.size:
            row = int(outside[0])
            raise UsageError(
                f"{function} of {columns.kind} {columns.index[row] + 1} of an answer of"
                f" {columns.task_names[columns.task[row]]} is {column[row]:g}, and a probability lies between 0 and 1;"
                " restore a copy of the file"
            )
    return column


def raw_scores(columns: UnitColumns, units: TaskUnits, function: str) -> TaskScores:
    """Return the scores of a confidence function as they are, oriented; units where it is undefined are left out.

    Raises:
        UsageError: a probability is none; no program of ours stored it.
    """
    entry = confidence_entry(function, columns.lower_is_confident)
    scores = entry.oriented(checked_column(columns, function)[units.rows])
    known = ~np.isnan(scores)
    scores = scores[known]
    reason = columns.undefined.get(function)
    return TaskScores(
        units.rows[known],
        units.correct[known],
        units.generation[known],
        scores if reason is None else None,
        scores,
        probability=not entry.needs_calibration,
        rising=entry.higher_is_confident,
        reason=reason,
    )


def calibrated_scores(raw: TaskScores, name: str) -> TaskScores:
    """Return the scores after a calibration map, each unit by a map fitted on other answers.

    Args:
        raw: from `raw_scores`.
        name: of the map, or `RAW`.

    Raises:
        ValueError: for the name of a map; names the nearest.
    """
    if name == RAW or raw.confidence is None:
        return raw
    chosen = calibrator(name)
    if chosen.needs_probability and not raw.probability:
        # Entropies may happen to lie in [0, 1]; whether a task has a value must not hang on that.
        return replace(raw, confidence=None, probability=True, reason=f"{name} needs scores in [0, 1]")
    scores = raw.ranking if raw.rising else -raw.ranking
    fitted = cross_fit(chosen, scores, raw.correct, raw.generation, higher_is_confident=raw.rising)
    if isinstance(fitted, Unfitted):
        return replace(raw, confidence=None, probability=True, reason=fitted.reason)
    if fitted.strictly_rising:
        return replace(raw, confidence=fitted.values, probability=True, notes=fitted.notes)
    return replace(
        raw, confidence=fitted.values, ranking=fitted.values, fold=fitted.fold, probability=True, notes=fitted.notes
    )


def measure(scores: TaskScores, names: Sequence[str]) -> dict[str, Value]:
    """Return the named metrics of `METRICS`; every one is undefined where the map could not be fitted."""
    if scores.confidence is None:
        return {name: undefined(scores.reason or "") for name in names}
    # Ranking inside answers takes a second sort, half of the time where nobody asked for it.
    groups = scores.generation if "auroc_micro" in names else None
    units = ScoredUnits.from_columns(scores.confidence, scores.correct, groups)
    if scores.ranking is scores.confidence and scores.fold is None:
        return evaluate_units(units, names, probability=scores.probability)
    of_order = [name for name in names if METRICS[name].ranks_only]
    others = [name for name in names if name not in of_order]
    by_name = evaluate_units(units, others, probability=scores.probability)
    by_name |= ranking_metrics(scores.ranking, scores.correct, scores.generation, scores.fold, of_order)
    return {name: by_name[name] for name in names}


def measure_inside_answers(scores: TaskScores) -> MicroAuroc:
    """Return what micro AUROC is made of: the answers left out, and the mean weighted by pairs."""
    return micro_auroc(ScoredUnits.from_columns(scores.ranking, scores.correct, scores.generation))


def resample(scores: TaskScores, draws: FloatArray, names: Sequence[str]) -> dict[str, FloatArray]:
    """Return each named metric in each resample of the task's answers; names of `RESAMPLED` only."""
    if scores.confidence is None or not names:
        return {}
    found: dict[str, FloatArray] = {}
    for column, wanted in _columns_to_read(scores, scores.confidence, names):
        if not wanted:
            continue
        found |= resampled_metrics(
            column,
            scores.correct,
            scores.generation,
            draws,
            probability=scores.probability,
            names=wanted,
            fold=scores.fold,
        )
    return found


def _columns_to_read(
    scores: TaskScores, confidence: FloatArray, names: Sequence[str]
) -> Iterator[tuple[FloatArray, list[str]]]:
    """Yield each distinct column with the metrics that read it."""
    if scores.ranking is confidence:
        yield confidence, list(names)
        return
    yield confidence, [name for name in names if not METRICS[name].ranks_only]
    yield scores.ranking, [name for name in names if METRICS[name].ranks_only]
