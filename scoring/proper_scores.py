"""Proper scores of stated probabilities: Brier score with its exact decomposition, and log loss (calibration guide)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scoring.calibration_error import BINS, equal_width_bins
from scoring.scored_units import ScoredUnits, weighted_sum
from scoring.value import NO_UNITS, Value, undefined


@dataclass(frozen=True, slots=True)
class BrierDecomposition:
    """brier = reliability − resolution + uncertainty + remainder, exactly.

    Attributes:
        reliability: mean squared gap of the bins, in [0, 1], lower is better.
        resolution: variance of the bins' accuracies, in [0, 1/4], higher is better.
        uncertainty: variance of the outcomes, in [0, 1/4]; a property of the model's answers.
        remainder: within-bin variance of the confidences minus twice their within-bin covariance with the outcomes;
            0 when each bin holds one confidence, negative when confidence ranks well inside bins.
    """

    reliability: float
    resolution: float
    uncertainty: float
    remainder: float


def brier_score(units: ScoredUnits) -> Value:
    """Return the mean squared distance of confidence from outcome, in [0, 1], lower is better.

    Undefined without units.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    units.require_probabilities()
    if not units.n:
        return undefined(NO_UNITS)
    values = units.values
    losses = weighted_sum(units.correct, (1.0 - values) ** 2) + weighted_sum(units.wrong, values**2)
    return Value(losses / units.n)


def brier_decomposition(units: ScoredUnits, bins: int = BINS) -> BrierDecomposition | None:
    """Return the four parts over the bins of the expected calibration error; None without units.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    binned = equal_width_bins(units, bins)
    if not units.n:
        return None
    share = binned.counts / units.n
    rate = units.total_correct / units.n
    # Thresholds without a unit, as a bootstrap draw has them, may lie below the first bin.
    starts = np.concatenate(([0], binned.starts[1:], [units.values.size]))
    within = units.values - np.repeat(binned.confidence, np.diff(starts))
    return BrierDecomposition(
        reliability=float((share * binned.gaps**2).sum()),
        resolution=float((share * (binned.accuracy - rate) ** 2).sum()),
        uncertainty=rate * (1.0 - rate),
        remainder=(weighted_sum(units.counts, within**2) - 2.0 * weighted_sum(units.correct, within)) / units.n,
    )


def negative_log_likelihood(units: ScoredUnits) -> Value:
    """Return the mean negative natural logarithm of the probability given to the outcome, in [0, inf], lower is better.

    Infinite where a wrong unit has confidence 1 or a right one 0; undefined without units.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    units.require_probabilities()
    if not units.n:
        return undefined(NO_UNITS)
    values = units.values
    if np.any(units.correct[values == 0.0]) or np.any(units.wrong[values == 1.0]):
        return Value(math.inf)
    thresholds = units.thresholds
    total = weighted_sum(units.correct, thresholds.log_values)
    total += weighted_sum(units.wrong, thresholds.log_complements)
    return Value(abs(total) / units.n)
