"""Ranking by values that come from several fitted maps: only units of one fold can be compared.

Cross-fitting gives every fold a map of its own.  Where a map is not strictly rising its values must be ranked, not the
raw scores, and pooled over folds they are not comparable: six answers of one unit at the same confidence, three of
them right, had an AUROC of 0 after cross-fitted isotonic regression, because each value is the rate among the others.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scoring.metrics import METRICS, evaluate_units
from scoring.pair_counts import pairs_in_draws
from scoring.scored_units import FloatArray, IntArray, ScoredUnits
from scoring.value import NO_CORRECT_UNIT, TOO_FEW_PAIRS, Value, undefined

FEWEST_PAIRS = 30

RANKING: tuple[str, ...] = tuple(name for name, metric in METRICS.items() if metric.ranks_only)
"""The metrics that read only the order of confidences."""


def ranking_metrics(
    confidence: FloatArray,
    correct: NDArray[np.bool_],
    generation: IntArray,
    fold: IntArray | None = None,
    names: Iterable[str] = RANKING,
) -> dict[str, Value]:
    """Return ranking metrics, inside folds where these are given.

    AUROC is then Σ rightly ordered pairs / Σ pairs over folds, undefined below 30 pairs, and PRR follows from it; AURC
    is the mean over folds weighted by their units, AUPRC by their right units.  Micro AUROC needs no folds: the values
    of one answer come from one map.

    Args:
        confidence: finite, higher is more confident, shape ``(n,)``.
        correct: shape ``(n,)``.
        generation: the answer of each unit, shape ``(n,)``.
        fold: of each unit, shape ``(n,)``; None for scores that are comparable throughout.
        names: some of `RANKING`.
    """
    wanted = list(names)
    found = evaluate_units(ScoredUnits.from_columns(confidence, correct, generation), wanted)
    if fold is None or np.unique(fold).size < 2:
        return found
    if "auroc" in wanted or "prr" in wanted:
        area = auroc_inside_folds(confidence, correct, fold)
        both = {"auroc": area, "prr": area if area.value is None else Value(2.0 * area.value - 1.0)}
        found |= {name: value for name, value in both.items() if name in wanted}
    parts = [ScoredUnits.from_columns(confidence[rows], correct[rows]) for rows in _rows_of_folds(fold)]
    if "aurc" in wanted:
        found["aurc"] = _weighted_mean("aurc", parts, [float(part.n) for part in parts])
    if "auprc" in wanted:
        found["auprc"] = _weighted_mean("auprc", parts, [float(part.total_correct) for part in parts])
    return found


def auroc_inside_folds(confidence: FloatArray, correct: NDArray[np.bool_], fold: IntArray) -> Value:
    """Return how often a right unit outranks a wrong one of the same fold, a tie is half; see `ranking_metrics`.

    With the raw scores as confidence this is what a map's value is to be compared with: the same pairs.
    """
    nobody = np.zeros(correct.size, dtype=np.int64)
    ordered, pairs = pairs_in_draws(confidence, correct.astype(np.float64), nobody, np.ones((1, 1)), fold)
    if pairs[0] < FEWEST_PAIRS:
        return undefined(TOO_FEW_PAIRS)
    return Value(float(ordered[0] / pairs[0]))


def _rows_of_folds(fold: IntArray) -> list[IntArray]:
    return [np.flatnonzero(fold == code) for code in np.unique(fold)]


def _weighted_mean(name: str, parts: list[ScoredUnits], weights: list[float]) -> Value:
    """Return the mean of a metric over the folds with a weight; it is defined in each of these."""
    if not sum(weights):
        return undefined(NO_CORRECT_UNIT)
    values = [METRICS[name].function(part).value for part in parts]
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None and weight]
    return Value(sum(value * weight for value, weight in known) / sum(weights))
