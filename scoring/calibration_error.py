"""Binned calibration errors: how far stated confidence lies from observed accuracy (SALT section 2.3; Nixon et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scoring.scored_units import FloatArray, IntArray, ScoredUnits
from scoring.value import NO_UNITS, Value, undefined

BINS = 15
BIN_COUNTS: tuple[int, ...] = (5, 10, 15, 20, 30, 50, 100)
"""Bin counts that a report shows beside the usual 15."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins that hold units, in order of confidence; every array has one entry per such bin.

    Attributes:
        requested: how many bins were asked for.
        lower: open lower end (the lowest confidence in it for equal mass).
        upper: closed upper end (the highest confidence in it for equal mass).
        counts: number of units, at least 1.
        confidence: mean confidence.
        accuracy: share of right units.
    """

    requested: int
    lower: FloatArray
    upper: FloatArray
    counts: IntArray
    confidence: FloatArray
    accuracy: FloatArray

    @property
    def gaps(self) -> FloatArray:
        """Confidence minus accuracy; positive is overconfident."""
        return self.confidence - self.accuracy


def equal_width_cuts(values: FloatArray, bins: int) -> IntArray:
    """Return where the bins ((j−1)/bins, j/bins] cut ascending values, shape ``(bins + 1,)``; 0 is in the first."""
    cuts = np.searchsorted(values, np.arange(bins + 1) / bins, side="right")
    cuts[0] = 0
    return cuts


def equal_width_bins(units: ScoredUnits, bins: int = BINS) -> Bins:
    """Return equal-width bins, the data of a reliability diagram.

    Raises:
        ValueError: for confidences outside [0, 1] or fewer than one bin.
    """
    units.require_probabilities()
    if bins < 1:
        raise ValueError(f"bins is at least 1, not {bins}")
    cuts = equal_width_cuts(units.values, bins)
    edges = np.arange(bins + 1) / bins
    return _bins(units, cuts, edges[:-1], edges[1:])


def equal_mass_bins(units: ScoredUnits, bins: int = BINS) -> Bins:
    """Return equal-mass bins; units with one confidence stay together.

    A tie group at sorted positions s..e (0-based, of n) goes to bin ⌊bins·(s + e + 1)/(2n)⌋, so there may be fewer
    bins than asked for.

    Raises:
        ValueError: for confidences outside [0, 1] or fewer than one bin.
    """
    units.require_probabilities()
    if bins < 1:
        raise ValueError(f"bins is at least 1, not {bins}")
    if not units.n:
        return equal_width_bins(units, bins)
    present = np.flatnonzero(units.counts)
    middle = 2 * units.counts_up_to[present] - units.counts[present]
    cuts = np.searchsorted(bins * middle // (2 * units.n), np.arange(bins + 1), side="left")
    realised = cuts[:-1] < cuts[1:]
    lower, upper = np.zeros(bins), np.zeros(bins)
    lower[realised] = units.values[present[cuts[:-1][realised]]]
    upper[realised] = units.values[present[cuts[1:][realised] - 1]]
    return _bins(units, np.append(present, units.values.size)[cuts], lower, upper)


def _bins(units: ScoredUnits, cuts: IntArray, lower: FloatArray, upper: FloatArray) -> Bins:
    """Sum up the thresholds ``cuts[j]`` to ``cuts[j + 1]`` of every bin that holds units."""

    def per_bin(up_to: IntArray) -> IntArray:
        return np.diff(np.concatenate(([0], up_to))[cuts])

    counts, correct = per_bin(units.counts_up_to), per_bin(units.correct_up_to)
    held = counts > 0
    starts = cuts[:-1][held]
    sums = np.add.reduceat(units.values * units.counts, starts) if starts.size else np.zeros(0)
    counts = counts[held]
    return Bins(len(lower), lower[held], upper[held], counts, sums / counts, correct[held] / counts)


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
    return Value(float(np.dot(bins.counts, np.abs(bins.gaps)) / bins.counts.sum()))
