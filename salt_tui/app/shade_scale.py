"""Where a value of any confidence function lies between 0 (unsure) and 1 (sure), for shades and for ranks.

The map of each function is strictly monotone, so a ranking by it is the ranking by the function.  It is no
calibration: only values that are probabilities themselves are read as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scoring.confidence import CONFIDENCE_FUNCTIONS


@dataclass(frozen=True, slots=True)
class ShadeScale:
    """How one confidence function is shown.

    Attributes:
        formula: what the shade is, in the words of the legend.
        place: from a value of the function to [0, 1], rising with confidence.
    """

    formula: str
    place: Callable[[float], float]


def _itself(value: float) -> float:
    return min(1.0, max(0.0, value))


def _of_nats_lost(value: float) -> float:
    return math.exp(-max(0.0, value))


_SPECIAL: dict[str, ShadeScale] = {
    "perplexity": ShadeScale("1 / perplexity", lambda value: 1.0 / max(1.0, value)),
    "log_perplexity": ShadeScale("exp(−log_perplexity)", _of_nats_lost),
    "logprob_sum": ShadeScale("exp(logprob_sum)", lambda value: math.exp(min(0.0, value))),
    "mean_entropy": ShadeScale("exp(−mean_entropy)", _of_nats_lost),
    "max_entropy": ShadeScale("exp(−max_entropy)", _of_nats_lost),
}

SHADE_SCALES: dict[str, ShadeScale] = {
    name: _SPECIAL.get(name, ShadeScale(name, _itself)) for name in CONFIDENCE_FUNCTIONS
}
"""One per confidence function, in the order of the registry."""
