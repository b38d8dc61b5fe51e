"""Maps that rescale scores without looking at correctness: z-sigmoid and min-max (SALT, algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.calibrators_fitted import ConfidenceMap, Constant, FloatArray, Sample, sigmoid

TRIM_QUANTILE = 0.01


@dataclass(frozen=True, slots=True)
class ZSigmoid:
    """σ((x − mean) / deviation), with both taken of (x − low) / width so that no square under- or overflows."""

    low: float
    width: float
    mean: float
    deviation: float

    @property
    def strictly_rising(self) -> bool:
        """Always: the deviation is positive."""
        return True

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values in [0, 1], 0.5 at the training mean."""
        return sigmoid(((confidence - self.low) / self.width - self.mean) / self.deviation)


@dataclass(frozen=True, slots=True)
class LinearRange:
    """(x − low) / (high − low), clipped to [0, 1]; high > low."""

    low: float
    high: float

    @property
    def strictly_rising(self) -> bool:
        """Never: scores beyond the trimmed range are tied."""
        return False

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values in [0, 1], 0 at ``low`` and 1 at ``high``."""
        return np.clip((confidence - self.low) / (self.high - self.low), 0.0, 1.0)


def fit_z_sigmoid(sample: Sample) -> tuple[ConfidenceMap, str | None]:
    """Algorithm 1 with the population standard deviation; constant scores give 0.5."""
    low = float(sample.confidence.min())
    width = float(sample.confidence.max()) - low
    if width == 0.0:
        return Constant(0.5), "constant scores"
    unit = (sample.confidence - low) / width
    return ZSigmoid(low, width, float(unit.mean()), float(unit.std())), None


def fit_minmax(sample: Sample) -> tuple[ConfidenceMap, str | None]:
    """Algorithm 2 with q = 0.01 and linear quantiles.

    Constant scores give 0.5.  Where only the trimmed range is empty (nearly all scores equal, so that both quantiles
    fall on one value), the whole training range is used and the note says so; this is our reading.
    """
    if sample.constant:
        return Constant(0.5), "constant scores"
    low, high = (float(q) for q in np.quantile(sample.confidence, [TRIM_QUANTILE, 1.0 - TRIM_QUANTILE]))
    if high > low:
        return LinearRange(low, high), None
    whole = LinearRange(float(sample.confidence.min()), float(sample.confidence.max()))
    return whole, "trimmed range is empty; the whole range is used"
