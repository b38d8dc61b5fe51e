"""Binned calibration errors: how far stated confidence lies from observed accuracy (SALT section 2.3; Nixon et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.scored_units import FloatArray, ScoredUnits
from scoring.value import NO_UNITS, Value, undefined

BINS = 15
BIN_COUNTS: tuple[int, ...] = (5, 10, 15, 20, 30, 50, 100)
"""Bin counts to compare the usual 15 with."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins that hold units, in order of confidence; every array has one entry per such bin.

    Attributes:
        requested: how many bins were asked for.
        starts: index of the first distinct confidence in it.
        lower: open lower end (the lowest confidence in it for equal mass).
        upper: closed upper end (the highest confidence in it for equal mass).
        counts: number of units, a whole number of at least 1.
        confidence: mean confidence.
        accuracy: share of right units.
    """

    requested: int
    starts: NDArray[np.int64]
    lower: FloatArray
    upper: FloatArray
    counts: FloatArray
    confidence: FloatArray
    accuracy: FloatArray

    @property
    def gaps(self) -> FloatArray:
        """Confidence minus accuracy; positive is overconfident."""
        return self.confidence - self.accuracy


def equal_width_bins(units: ScoredUnits, bins: int = BINS) -> Bins:
    """Return the equal-width bins ((j−1)/bins, j/bins], 0 in the first: the data of a reliability diagram.

    Raises:
        ValueError: for confidences outside [0, 1] or fewer than one bin.
    """
    _check(units, bins)
    edges = np.arange(bins + 1) / bins
    cuts = np.searchsorted(units.values, edges, side="right")
    cuts[0] = 0
    return _bins(units, cuts, edges[:-1], edges[1:])


def equal_mass_bins(units: ScoredUnits, bins: int = BINS) -> Bins:
    """Return equal-mass bins; units with one confidence stay together.

    A tie group at sorted positions s..e (0-based, of n) goes to bin ⌊bins·(s + e + 1)/(2n)⌋, so there may be fewer
    bins than asked for.

    Raises:
        ValueError: for confidences outside [0, 1] or fewer than one bin.
    """
    _check(units, bins)
    twice_middle = 2 * units.counts_up_to - units.counts
    cuts = np.searchsorted(twice_middle, [-(-2 * units.n * j // bins) for j in range(bins)], side="left")
    cuts = np.append(cuts, units.values.size)
    ends = np.append(units.values, units.values[-1:]) if units.values.size else np.zeros(1)
    return _bins(units, cuts, ends[cuts[:-1]], ends[np.maximum(cuts[1:] - 1, 0)])


def _check(units: ScoredUnits, bins: int) -> None:
    units.require_probabilities()
    if bins < 1:
        raise ValueError(f"bins is at least 1, not {bins}")


def _bins(units: ScoredUnits, cuts: NDArray[np.int64], lower: FloatArray, upper: FloatArray) -> Bins:
    """Sum up the thresholds ``cuts[j]`` to ``cuts[j + 1]`` of every bin that holds units."""

    def per_bin(up_to: FloatArray) -> FloatArray:
        return np.diff(np.concatenate(([0.0], up_to))[cuts])

    counts, correct = per_bin(units.counts_up_to), per_bin(units.correct_up_to)
    held = counts > 0
    starts = cuts[:-1][held]
    sums = np.add.reduceat(units.values * units.counts, starts) if starts.size else np.zeros(0)
    counts = counts[held]
    return Bins(lower.size, starts, lower[held], upper[held], counts, sums / counts, correct[held] / counts)


def expected_calibration_error(units: ScoredUnits, bins: int = BINS) -> Value:
    """Return the mean absolute gap of equal-width bins weighted by size, in [0, 1], lower is better.

    Undefined without units.
    """
    return _mean_gap(equal_width_bins(units, bins))


def maximum_calibration_error(units: ScoredUnits, bins: int = BINS) -> Value:
    """Return the largest absolute gap of equal-width bins, in [0, 1], lower is better; undefined without units."""
    gaps = np.abs(equal_width_bins(units, bins).gaps)
    return Value(float(gaps.max())) if gaps.size else undefined(NO_UNITS)


def adaptive_calibration_error(units: ScoredUnits, bins: int = BINS) -> Value:
    """Return the mean absolute gap of equal-mass bins weighted by size, in [0, 1], lower is better.

    Undefined without units.  Weights are realised sizes, since ties make bins unequal (our reading of Nixon et al.).
    """
    return _mean_gap(equal_mass_bins(units, bins))


def error_by_bin_count(units: ScoredUnits, bin_counts: Sequence[int] = BIN_COUNTS) -> dict[int, Value]:
    """Return the expected calibration error for each number of bins: how much the number depends on that choice."""
    return {bins: expected_calibration_error(units, bins) for bins in bin_counts}


def _mean_gap(bins: Bins) -> Value:
    if not bins.counts.size:
        return undefined(NO_UNITS)
    return Value(float((bins.counts * np.abs(bins.gaps)).sum() / bins.counts.sum()))
