"""Smooth calibration error: the binned error without bins (Błasiok and Nakkiran 2024, as their package relplot).

Written here because relplot draws with global state of matplotlib and cannot take counts, which resamples change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scoring.scored_units import FloatArray, ScoredUnits, Thresholds, once_per
from scoring.value import NO_UNITS, Value, undefined

CELLS = 1024
"""Cells of [0, 1]; sixteen times as many moved no golden case by more than 1.6e-4, a twelfth of the tolerance."""

HALVINGS = 12
"""Bisections of the bandwidth, to 2.4e-4, as fine as relplot's 10 to its 1e-3."""

_DISTANCE: FloatArray = np.minimum(np.arange(2 * CELLS), 2 * CELLS - np.arange(2 * CELLS)) / CELLS
_HALF_SQUARE: FloatArray = -0.5 * _DISTANCE[_DISTANCE <= 0.5] ** 2


def smooth_calibration_error(units: ScoredUnits) -> Value:
    """Return smECE, in [0, 1], lower is better.

    Residuals (confidence − outcome) and units are both smoothed by a Gaussian; the error of a bandwidth is the
    integral of the absolute smoothed residuals over that of the smoothed units, and the value is the error at the
    bandwidth that equals its own error.  As in relplot the kernel is cut at ±½ and [0, 1] is mirrored at its ends
    with the ends themselves counted once, which gives units of exactly 0 and 1 half a weight.  Defined for one unit
    and one class; undefined without units.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    units.require_probabilities()
    if not units.n:
        return undefined(NO_UNITS)
    residuals, density = _spectra(units)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        bandwidth = (low + high) / 2
        if _error(residuals, density, bandwidth) > bandwidth:
            low = bandwidth
        else:
            high = bandwidth
    return Value(min(_error(residuals, density, high), 1.0))


@once_per
def _cells(thresholds: Thresholds) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells that hold confidences and the index of the first confidence in each."""
    return np.unique(np.minimum((thresholds.values * CELLS).astype(np.int64), CELLS - 1), return_index=True)


def _spectra(units: ScoredUnits) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return the spectra of the residuals and of the units, each shared between the two grid points around it."""
    cells, starts = _cells(units.thresholds)

    def spectrum(weights: FloatArray) -> NDArray[np.complex128]:
        total, moment = np.add.reduceat(weights, starts), np.add.reduceat(weights * units.values, starts)
        upper = CELLS * moment - cells * total
        grid = np.zeros(CELLS + 1)
        grid[cells] = total - upper
        grid[cells + 1] += upper
        return np.fft.rfft(np.concatenate((grid, grid[-2:0:-1])) / units.n)

    return spectrum(units.values * units.counts - units.correct), spectrum(units.counts)


def _error(residuals: NDArray[np.complex128], density: NDArray[np.complex128], bandwidth: float) -> float:
    """Return the calibration error of one bandwidth; exponents are cut where the kernel is 0 beside 1."""
    kernel = np.zeros(2 * CELLS)
    kernel[_DISTANCE <= 0.5] = np.exp(np.maximum(_HALF_SQUARE / bandwidth**2, -100.0))
    spectrum = np.fft.rfft(kernel)
    smoothed = np.fft.irfft(residuals * spectrum, 2 * CELLS)[: CELLS + 1]
    return float(np.abs(smoothed).sum() / np.fft.irfft(density * spectrum, 2 * CELLS)[: CELLS + 1].sum())
