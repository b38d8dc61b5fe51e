"""Bootstrap of many metrics, tables and tasks at once: intervals of a task's figures and of their mean over tasks.

`scoring.intervals` measures each resample of one table from its sorted rows, whatever the metric.  Here the metrics of
`RESAMPLED` are written as sums over generations, so that all resamples are one product of two matrices, and the same
resamples serve every confidence function and map of a task.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scoring.calibration_error import BINS
from scoring.metrics import METRICS
from scoring.pair_counts import auroc_in_draws
from scoring.scored_units import FloatArray, IntArray, SortedColumns

OF_BINS: tuple[str, ...] = ("ece", "mce", "brier_reliability", "brier_resolution")
"""The metrics that the bins of ECE determine."""

RESAMPLED: tuple[str, ...] = (
    "accuracy",
    "ece",
    "mce",
    "brier",
    "brier_reliability",
    "brier_resolution",
    "brier_uncertainty",
    "brier_remainder",
    "nll",
    "auroc",
    "auroc_micro",
    "prr",
)
"""The metrics that have an interval here; the others are no sums over generations or pairs of generations."""


def draw_generations(
    generations: int, draws: int, generator: np.random.Generator, drawn: int | None = None
) -> FloatArray:
    """Return how often each generation counts in each resample, shape ``(draws, generations)``.

    Args:
        generations: number of generations of one task.
        draws: number of resamples, at least 0.
        generator: the only source of chance.
        drawn: generations in a resample; as many as there are by default.
    """
    if not generations:
        return np.zeros((draws, 0))
    number = generations if drawn is None else drawn
    return generator.multinomial(number, np.full(generations, 1.0 / generations), size=draws).astype(np.float64)


def resampled_metrics(
    confidence: FloatArray,
    correct: NDArray[np.bool_],
    generation: IntArray,
    draws: FloatArray,
    *,
    probability: bool = True,
    names: Iterable[str] = RESAMPLED,
    fold: IntArray | None = None,
) -> dict[str, FloatArray]:
    """Return each metric in each resample, shape ``(draws,)``, NaN where it is undefined, ``inf`` where infinite.

    The values are those of `scoring.metrics` for the drawn units, to rounding.

    Args:
        confidence: finite, shape ``(n,)``; in [0, 1] where `probability`.
        correct: shape ``(n,)``.
        generation: 0-based code of each unit's generation, below ``draws.shape[1]``, shape ``(n,)``.
        draws: from `draw_generations`.
        probability: whether confidences mean probabilities; without, metrics that need them are left out.
        names: some of `RESAMPLED`.
        fold: of each unit, shape ``(n,)``, for values of maps that are not strictly rising: ``auroc`` and ``prr`` then
            count pairs inside folds only, as `scoring.cross_fitting.calibrated_metrics`.
    """
    wanted = [name for name in names if probability or not METRICS[name].needs_probability]
    count = draws.shape[1]
    right = correct.astype(np.float64)

    def drawn(values: FloatArray) -> FloatArray:
        total: FloatArray = draws @ np.bincount(generation, weights=values, minlength=count)
        return total

    units = drawn(np.ones(right.size))
    accuracy = _ratio(drawn(right), units)
    found = {"accuracy": accuracy, "brier_uncertainty": accuracy * (1.0 - accuracy)}
    of_bins = {*OF_BINS, "brier_remainder"} & set(wanted)
    if of_bins:
        found |= _of_bins(confidence, right, generation, draws, units, accuracy, of_bins)
    if {"brier", "brier_remainder"} & set(wanted):
        found["brier"] = _ratio(drawn((confidence - right) ** 2), units)
    if "brier_remainder" in wanted:
        explained = found["brier_reliability"] - found["brier_resolution"] + found["brier_uncertainty"]
        found["brier_remainder"] = found["brier"] - explained
    if "nll" in wanted:
        outcome = np.where(correct, confidence, 1.0 - confidence)
        losses = -np.log(outcome, out=np.zeros_like(outcome), where=outcome > 0.0)
        infinite = drawn((outcome <= 0.0).astype(np.float64))
        found["nll"] = np.where(infinite > 0.0, np.inf, _ratio(drawn(losses), units))
    if {"auroc", "auroc_micro", "prr"} & set(wanted):
        columns = SortedColumns.from_columns(confidence, correct, generation)
        area = auroc_in_draws(confidence, right, generation, draws, fold)
        found |= {"auroc": area, "auroc_micro": _micro(columns, generation, draws), "prr": 2.0 * area - 1.0}
    return {name: found[name] for name in wanted}


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    ratio = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0.0)
    return ratio


def _of_bins(
    confidence: FloatArray,
    right: FloatArray,
    generation: IntArray,
    draws: FloatArray,
    all_units: FloatArray,
    accuracy: FloatArray,
    wanted: set[str],
) -> dict[str, FloatArray]:
    """Return the metrics of `OF_BINS` in each resample; of ECE alone, where it alone is wanted."""
    # The same edges as scoring.calibration_error: (j−1)/15 < p ≤ j/15, 0 in the first bin.
    bins = np.maximum(np.searchsorted(np.arange(BINS + 1) / BINS, confidence, side="left") - 1, 0)
    count = draws.shape[1]
    place = generation * BINS + bins

    def drawn(values: FloatArray) -> FloatArray:
        total: FloatArray = draws @ np.bincount(place, weights=values, minlength=count * BINS).reshape(count, BINS)
        return total

    gaps = np.abs(drawn(confidence - right))
    found = {"ece": _ratio(gaps.sum(axis=1), all_units)}
    if wanted <= {"ece"}:
        return found
    units = drawn(np.ones(right.size))
    mean_gaps = np.divide(gaps, units, out=np.zeros_like(gaps), where=units > 0.0)
    rates = drawn(right)
    np.divide(rates, units, out=rates, where=units > 0.0)
    spread = np.where(units > 0.0, rates - accuracy[:, None], 0.0)
    found["mce"] = np.where(all_units > 0.0, mean_gaps.max(axis=1), np.nan)
    found["brier_reliability"] = _ratio((gaps * mean_gaps).sum(axis=1), all_units)
    found["brier_resolution"] = _ratio((units * spread**2).sum(axis=1), all_units)
    return found


def _micro(columns: SortedColumns, generation: IntArray, draws: FloatArray) -> FloatArray:
    if columns.ranking is None or not columns.ranked.size:
        return np.full(draws.shape[0], np.nan)
    # SortedColumns numbers the generations that occur; draws hold all of the task.
    weights = draws[:, np.unique(generation)[columns.ranked]]
    return _ratio(weights @ columns.ranking.auroc, weights.sum(axis=1))
