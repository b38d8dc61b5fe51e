"""Where a value of any confidence function or signal lies between 0 (unsure) and 1 (sure), for shades and for ranks.

The map of each function is strictly monotone, so a ranking by it is the ranking by the function.  It is no
calibration: only values that are probabilities themselves are read as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from scoring.confidence import ConfidenceFunction
from scoring.signals import SECOND, Signal, confidence_entry


@dataclass(frozen=True, slots=True)
class ShadeScale:
    """How one confidence function or signal is shown.

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


@cache
def shade_scale(name: str) -> ShadeScale:
    """Return how a confidence function or a signal is shown; a signal that nobody described too."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    plain = name.partition("@")[0]
    if plain in SECOND:
        of_first = shade_scale(SECOND[plain])
        return ShadeScale(of_first.formula.replace(SECOND[plain], name), of_first.place)
    return _by_range(name, confidence_entry(name))


def _by_range(name: str, entry: ConfidenceFunction | Signal) -> ShadeScale:
    """Return a strictly monotone map of the range of a signal: [0, 1], [1, ∞), [0, ∞), (−∞, 0] or all numbers."""
    sign = 1.0 if entry.higher_is_confident else -1.0
    low, high = entry.minimum, entry.maximum
    if (low, high) == (0.0, 1.0):
        return ShadeScale(name, _itself) if sign > 0 else ShadeScale(f"1 − {name}", lambda value: 1.0 - _itself(value))
    if (low, high, sign) == (1.0, math.inf, -1.0):
        return ShadeScale(f"1 / {name}", lambda value: 1.0 / max(1.0, value))
    if (low, high, sign) == (0.0, math.inf, -1.0):
        return ShadeScale(f"exp(−{name})", _of_nats_lost)
    if (low, high, sign) == (-math.inf, 0.0, 1.0):
        return ShadeScale(f"exp({name})", lambda value: math.exp(min(0.0, value)))
    # tanh does not overflow.
    return ShadeScale(
        f"logistic({'' if sign > 0 else '−'}{name})", lambda value: 0.5 + 0.5 * math.tanh(sign * value / 2)
    )
