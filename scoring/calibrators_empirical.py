"""Maps that read the rate of correct units off the training set: equal-width and equal-mass bins, isotonic steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.calibrators_fitted import ConfidenceMap, Constant, FloatArray, Sample


@dataclass(frozen=True, slots=True)
class EqualWidthRates:
    """The rate of bin ⌊B · (x − low) / (high − low)⌋, scores beyond the range in the first or last bin; high > low."""

    low: float
    high: float
    rates: FloatArray

    @property
    def strictly_rising(self) -> bool:
        """Never: scores of a bin are tied."""
        return False

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Training rate of each score's bin."""
        return self.rates[_equal_width_bins(confidence, self.low, self.high, self.rates.size)]


@dataclass(frozen=True, slots=True)
class EdgeRates:
    """``rates[i]`` for scores from ``edges[i − 1]`` to below ``edges[i]``, open at both ends."""

    edges: FloatArray
    rates: FloatArray

    @property
    def strictly_rising(self) -> bool:
        """Never: scores of a bin are tied."""
        return False

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Training rate of each score's bin."""
        return self.rates[np.searchsorted(self.edges, confidence, side="right")]


@dataclass(frozen=True, slots=True)
class Interpolated:
    """Straight lines through (``scores``, ``values``), both rising; the end values beyond."""

    scores: FloatArray
    values: FloatArray

    @property
    def strictly_rising(self) -> bool:
        """Never: it has plateaus, or is constant beyond its ends."""
        return False

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values between the first and the last one."""
        right = np.searchsorted(self.scores, confidence, side="right")
        lower = self.values[np.maximum(right - 1, 0)]
        upper = self.values[np.minimum(right, self.values.size - 1)]
        # Just before the right end of a line, rounding goes past its value by one unit in the last place.
        return np.clip(np.interp(confidence, self.scores, self.values), lower, upper)


def fit_binned(sample: Sample, bins: int) -> tuple[ConfidenceMap, str | None]:
    """Algorithm 3: equal-width bins over the training range; an empty bin takes the base rate, as do constant scores.

    Not made monotone: that binning harms ranking is one of the paper's findings.
    """
    if sample.constant:
        return Constant(sample.base_rate), "constant scores"
    low, high = float(sample.confidence.min()), float(sample.confidence.max())
    index = _equal_width_bins(sample.confidence, low, high, bins)
    counts = np.bincount(index, minlength=bins)
    empty = counts == 0
    correct = np.bincount(index, weights=sample.correct, minlength=bins)
    rates = np.where(empty, sample.base_rate, correct / np.maximum(counts, 1))
    note = f"{int(empty.sum())} of {bins} bins have no training unit" if empty.any() else None
    return EqualWidthRates(low, high, rates), note


def fit_histogram(sample: Sample, bins: int) -> tuple[ConfidenceMap, str | None]:
    """Equal-mass bins: a group of ties at sorted positions s..e goes to bin ⌊B(s + e + 1) / 2n⌋, as in ACE.

    The edge between two bins is halfway between their neighbouring training scores (Zadrozny and Elkan, 2001); bins
    that ties leave empty are dropped.  Not made monotone.
    """
    if sample.constant:
        return Constant(sample.base_rate), "constant scores"
    distinct, counts, correct = _tie_groups(sample)
    after = np.cumsum(counts)
    index = bins * (2 * after - counts) // (2 * sample.confidence.size)
    first = np.flatnonzero(np.r_[True, index[1:] != index[:-1]])
    rates = np.add.reduceat(correct, first) / np.add.reduceat(counts, first)
    below, above = distinct[first[1:] - 1], distinct[first[1:]]
    middle = below + 0.5 * (above - below)
    edges = np.where(middle > below, middle, above)
    note = f"{first.size} of {bins} bins are realised" if first.size < bins else None
    return EdgeRates(edges, rates), note


def fit_isotonic(sample: Sample) -> tuple[ConfidenceMap, str | None]:
    """Least-squares rising fit by pooling adjacent violators, linear between the pooled blocks, clipped at the ends.

    Ties are averaged first, as in scikit-learn.
    """
    if sample.constant:
        return Constant(sample.base_rate), "constant scores"
    distinct, counts, correct = _tie_groups(sample)
    first = _pooled_blocks(correct, counts)
    rates = np.add.reduceat(correct, first) / np.add.reduceat(counts, first)
    last = np.r_[first[1:], distinct.size] - 1
    ends = np.column_stack([first, last]).ravel()
    values = np.repeat(rates, 2)
    once = np.r_[True, ends[1:] != ends[:-1]]
    note = "a single plateau: correctness never rises with confidence" if first.size == 1 else None
    return Interpolated(distinct[ends[once]], values[once]), note


def _equal_width_bins(confidence: FloatArray, low: float, high: float, bins: int) -> NDArray[np.int64]:
    unit = np.clip((confidence - low) / (high - low), 0.0, 1.0)
    return np.minimum((unit * bins).astype(np.int64), bins - 1)


def _tie_groups(sample: Sample) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Distinct scores ascending, with the number of units and of correct units at each."""
    order = np.argsort(sample.confidence, kind="stable")
    confidence = sample.confidence[order]
    first = np.flatnonzero(np.r_[True, confidence[1:] != confidence[:-1]])
    counts = np.diff(np.r_[first, confidence.size]).astype(np.int64)
    return confidence[first], counts, np.add.reduceat(sample.correct[order], first)


def _pooled_blocks(correct: FloatArray, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """First group of each block of the rising least-squares fit; group i has ``correct[i]`` of ``counts[i]``."""
    from scipy.optimize import isotonic_regression

    first = np.asarray(isotonic_regression(correct / counts, weights=counts.astype(np.float64)).blocks[:-1])
    rates = np.add.reduceat(correct, first) / np.add.reduceat(counts, first)
    # Neighbouring blocks of one rate are one plateau.
    plateaus: NDArray[np.int64] = first[np.r_[True, rates[1:] > rates[:-1]]].astype(np.int64)
    return plateaus
