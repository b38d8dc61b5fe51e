"""What a perfect and an uninformative confidence would score on the same answers (ACUTE section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.metrics import METRICS
from scoring.scored_units import ScoredUnits, Thresholds
from scoring.value import Value

YARDSTICK_METRICS: tuple[str, ...] = ("brier", "nll", "euro_auc", "euro_auc_low", "euro_auc_medium", "euro_auc_high")
"""The metrics that depend on more than ranking, and so say little without a yardstick beside them."""


@dataclass(frozen=True, slots=True)
class Yardstick:
    """One metric at both ends.

    Attributes:
        oracle: with confidence 1 for right and 0 for wrong units.
        base_rate: with the accuracy as everyone's confidence.
    """

    oracle: Value
    base_rate: Value


def oracle_units(units: ScoredUnits) -> ScoredUnits:
    """Return the same outcomes with confidence 1 for right and 0 for wrong units; generations are dropped."""
    return ScoredUnits(
        Thresholds(np.array([0.0, 1.0])),
        np.array([0, units.total_correct], dtype=np.float64),
        np.array([units.total_wrong, 0], dtype=np.float64),
    )


def base_rate_units(units: ScoredUnits) -> ScoredUnits:
    """Return the same outcomes with the accuracy as confidence of all (0 without units); generations are dropped."""
    return ScoredUnits(
        Thresholds(np.array([units.total_correct / max(units.n, 1)])),
        np.array([units.total_correct], dtype=np.float64),
        np.array([units.total_wrong], dtype=np.float64),
    )


def yardsticks(units: ScoredUnits) -> dict[str, Yardstick]:
    """Return both ends for each of `YARDSTICK_METRICS`; undefined without units."""
    oracle, base_rate = oracle_units(units), base_rate_units(units)
    return {
        name: Yardstick(METRICS[name].function(oracle), METRICS[name].function(base_rate)) for name in YARDSTICK_METRICS
    }
