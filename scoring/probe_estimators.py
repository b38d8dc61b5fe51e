"""Estimators of correctness: forests on activations and baselines on the joint probability (ACUTE sections 3, 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.scored_units import FloatArray, ScoredUnits
from scoring.smooth_calibration_error import smooth_calibration_error

TREES = 1000
DEEPEST = 20
FEATURES_A_SPLIT = 10
THREADS = 2

HISTOGRAM_BINS = 25
NARROWEST = 0.001
_CHUNK = 4_000_000

Predict = Callable[[FloatArray], FloatArray]
"""From features, shape ``(n, p)``, or probabilities, shape ``(n,)``, to confidences in [0, 1], shape ``(n,)``."""


@dataclass(frozen=True, slots=True)
class ForestSettings:
    """How a forest is grown.

    Attributes:
        trees: 1,000 for what is reported.
        seed: of scikit-learn's generator.
    """

    trees: int = TREES
    seed: int = 20260424


SEARCH = ForestSettings(trees=100)
"""Forests while layers or sample sizes are compared."""


def fit_forest(features: FloatArray, correct: NDArray[np.bool_], settings: ForestSettings) -> Predict:
    """Fit a random forest of depth at most 20 with min(10, p) features a split; confidence is the mean leaf fraction.

    One class in the training units: the constant 0 or 1 that they have.

    Args:
        features: shape ``(n, p)``, n ≥ 1.
        correct: shape ``(n,)``.
        settings: size and seed.
    """
    if correct.all() or not correct.any():
        only = float(correct.all())
        return lambda others: np.full(len(others), only)
    forest = grow_forest(features, correct, settings)

    def predict(others: FloatArray) -> FloatArray:
        shares: FloatArray = np.asarray(forest.predict_proba(others), dtype=np.float64)[:, 1]
        return shares

    return predict


def grow_forest(features: FloatArray, correct: NDArray[np.bool_], settings: ForestSettings) -> Any:
    """Return scikit-learn's forest, grown on two threads; both classes must be there."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        n_estimators=settings.trees,
        max_depth=DEEPEST,
        max_features=min(FEATURES_A_SPLIT, features.shape[1]),
        random_state=settings.seed,
        n_jobs=THREADS,
    ).fit(features, correct)
    forest.n_jobs = 1  # the order in which threads add up the trees' shares would change the last digits
    return forest


def fit_histogram_regression(probability: FloatArray, correct: NDArray[np.bool_]) -> Predict:
    """Return the training rate of 25 equal-width bins [0, .04), …, [.96, 1]; an empty one has the base rate (HRE)."""

    def place(values: FloatArray) -> NDArray[np.int64]:
        # Twenty-fifths are no binary fractions: 0.28 · 25 is 7.000000000000001, and 0.29 · 100 below 29.
        edges = np.arange(1, HISTOGRAM_BINS) / HISTOGRAM_BINS
        return np.searchsorted(edges, values, side="right").astype(np.int64)

    bins = place(probability)
    counts = np.bincount(bins, minlength=HISTOGRAM_BINS)
    right = np.bincount(bins, weights=correct, minlength=HISTOGRAM_BINS)
    rates = np.where(counts > 0, right / np.maximum(counts, 1), correct.mean())
    return lambda values: rates[place(values)]


def fit_kernel_regression(probability: FloatArray, correct: NDArray[np.bool_]) -> Predict:
    """Return the Nadaraya–Watson mean of training outcomes under a Gaussian kernel reflected at 0 and 1 (NWKR).

    The bandwidth is the fixed point σ = smECE_σ of the training units, at least .001.  Where all weights are 0 the base
    rate stands.
    """
    units = ScoredUnits.from_columns(probability, correct)
    bandwidth = max(smooth_calibration_error(units).value or NARROWEST, NARROWEST)
    outcomes, base = correct.astype(np.float64), float(correct.mean())
    images = np.concatenate([probability, -probability, 2.0 - probability])
    repeated = np.tile(outcomes, 3)

    def predict(values: FloatArray) -> FloatArray:
        found = np.full(values.size, base)
        step = max(1, _CHUNK // images.size)
        for first in range(0, values.size, step):
            chunk = values[first : first + step]
            weights = np.exp(-0.5 * ((chunk[:, None] - images) / bandwidth) ** 2)
            total = weights.sum(axis=1)
            np.divide(weights @ repeated, total, out=found[first : first + step], where=total > 0.0)
        bounded: FloatArray = np.clip(found, 0.0, 1.0)
        return bounded

    return predict
