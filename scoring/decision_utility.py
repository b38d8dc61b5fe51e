"""EURO: utility of trusting by confidence, between the worst and the perfect decider (ACUTE section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.scored_units import FloatArray, ScoredUnits, total_of, weighted_sum
from scoring.value import NO_UNITS, ONE_CLASS, Value, undefined

RISK_CUTS = (1.0 / 3.0, 2.0 / 3.0)
"""Utilities of rightly abstaining below the first are low risk, from the second on high risk."""


def euro(units: ScoredUnits, utility: float) -> Value:
    """Return EURO at one utility u of rightly abstaining, in [0, 1], higher is better (ACUTE section 2.3, equation 5).

    euro(u) = [(1 − u)·TP + u·TN] / [(1 − u)·P + u·N], a unit trusted iff its confidence is above u.  Defined for one
    class, except where the denominator is 0: u = 0 without a right unit, u = 1 without a wrong one.  Undefined
    without units.

    Raises:
        ValueError: for confidences or a utility outside [0, 1].
    """
    units.require_probabilities()
    if not 0.0 <= utility <= 1.0:
        raise ValueError(f"the utility of rightly abstaining is in [0, 1], not {utility}")
    if not units.n:
        return undefined(NO_UNITS)
    trusted = _trusted(units, utility)
    best = (1.0 - utility) * units.total_correct + utility * units.total_wrong
    if best == 0.0:
        return undefined(ONE_CLASS)
    return Value(((1.0 - utility) * trusted.right + utility * trusted.wrong_abstained) / best)


def euro_curve(units: ScoredUnits, utilities: FloatArray) -> FloatArray:
    """Return `euro` at many utilities of rightly abstaining, shape as given; NaN where it is undefined.

    Raises:
        ValueError: for confidences or utilities outside [0, 1].
    """
    units.require_probabilities()
    if not bool(((utilities >= 0.0) & (utilities <= 1.0)).all()):
        raise ValueError("the utility of rightly abstaining is in [0, 1]")
    if not units.n:
        return np.full(utilities.shape, np.nan)
    below = np.searchsorted(units.values, utilities, side="right")
    right = units.total_correct - np.concatenate(([0.0], units.correct_up_to))[below]
    abstained = np.concatenate(([0.0], units.wrong_up_to))[below]
    best = (1.0 - utilities) * units.total_correct + utilities * units.total_wrong
    gained = (1.0 - utilities) * right + utilities * abstained
    found = np.full(utilities.shape, np.nan)
    np.divide(gained, best, out=found, where=best != 0.0)
    return found


@dataclass(frozen=True, slots=True)
class EuroAreas:
    """Mean EURO over a range of utilities, each in [0, 1], higher is better: (0, 1), (0, ⅓), [⅓, ⅔), [⅔, 1)."""

    all: float
    low: float
    medium: float
    high: float


def euro_areas(units: ScoredUnits) -> EuroAreas | None:
    """Return the areas under EURO in closed form, each divided by its width; None without units.

    Between neighbouring confidences TP and TN stand still, so EURO is (a + bu)/(c + du) there, with c = P and
    d = N − P (ACUTE section 2.3).  Summed by units instead of by intervals: a right unit adds ∫ (1−u)/(c+du) up to
    its confidence, a wrong one ∫ u/(c+du) from its confidence on.  With one class the area is that of TP/P or TN/N.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    units.require_probabilities()
    if not units.n:
        return None
    right_gain, wrong_gain = _gains(units.total_correct / units.n, units.values)
    edges = np.array((0.0, *RISK_CUTS, 1.0))
    right_at_edge, wrong_at_edge = _gains(units.total_correct / units.n, edges)
    cuts = np.searchsorted(units.values, edges, side="right")
    cuts[0] = 0
    parts: list[float] = []
    for part in range(3):
        inside = slice(int(cuts[part]), int(cuts[part + 1]))
        right, wrong = units.correct[inside], units.wrong[inside]
        right_above = units.correct[inside.stop :].sum()
        wrong_below = units.wrong[: inside.start].sum()
        area = weighted_sum(right, right_gain[inside]) - weighted_sum(wrong, wrong_gain[inside])
        area += right_above * right_at_edge[part + 1] - (right_above + right.sum()) * right_at_edge[part]
        area += (wrong_below + wrong.sum()) * wrong_at_edge[part + 1] - wrong_below * wrong_at_edge[part]
        parts.append(float(area) / units.n)
    low, medium, high = parts
    return EuroAreas(*(min(max(area, 0.0), 1.0) for area in (low + medium + high, 3 * low, 3 * medium, 3 * high)))


SERIES_BELOW = 0.01
SERIES_TERMS = 9
"""The antiderivative loses a factor 1/d² of precision and the series a factor d⁹: both are within 1e-12 there."""


def _gains(rate: float, utility: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrate (1−u)/D(u) and u/D(u) from 0 to each utility, D(u) = rate + (1 − 2·rate)·u, the accuracy as rate."""
    if rate in (0.0, 1.0):
        return utility, utility
    slope = 1.0 - 2.0 * rate
    if abs(slope) >= SERIES_BELOW:
        logarithm = slope / rate * utility
        logarithm += 1.0
        np.log(logarithm, out=logarithm)
        logarithm /= slope
        right = (1.0 - rate) * logarithm
        right -= utility
        right /= slope
        logarithm *= -rate
        logarithm += utility
        logarithm /= slope
        return right, logarithm
    # D(1/2) = 1/2 whatever the rate, so 1/D is a geometric series in 2·slope·(1/2 − u).
    ratio = -2.0 * slope
    even, odd = _series(ratio, utility - 0.5)
    even_start, odd_start = _series(ratio, np.array([-0.5]))
    even, odd = even - even_start, odd - odd_start
    return even - odd, even + odd


def _series(ratio: float, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Σ ratioʲ·offsetʲ⁺¹/(j+1) and 2·Σ ratioʲ·offsetʲ⁺²/(j+2)."""
    step = ratio * offset
    even, odd = np.zeros_like(offset), np.zeros_like(offset)
    for j in range(SERIES_TERMS - 1, -1, -1):
        even = even * step + 1.0 / (j + 1)
        odd = odd * step + 2.0 / (j + 2)
    return even * offset, odd * offset * offset


@dataclass(frozen=True, slots=True)
class Rewards:
    """What each outcome of trusting or abstaining is worth to the user (ACUTE section 2.3).

    Attributes:
        trusted_right: reward of trusting a right unit.
        trusted_wrong: reward of trusting a wrong one.
        abstained_right: reward of abstaining from a right one.
        abstained_wrong: reward of abstaining from a wrong one.
    """

    trusted_right: float
    trusted_wrong: float
    abstained_right: float
    abstained_wrong: float

    def __post_init__(self) -> None:
        """Refuse rewards under which the wrong decision pays.

        Raises:
            ValueError: unless trusting pays for right units, abstaining for wrong ones, and all are finite.
        """
        rewards = (self.trusted_right, self.trusted_wrong, self.abstained_right, self.abstained_wrong)
        if not all(map(np.isfinite, rewards)):
            raise ValueError("rewards are finite numbers")
        if not self.trusted_right > self.abstained_right:
            raise ValueError("trusting a right unit has to pay more than abstaining from it")
        if not self.abstained_wrong > self.trusted_wrong:
            raise ValueError("abstaining from a wrong unit has to pay more than trusting it")
        if not 0.0 < self.threshold < 1.0:
            raise ValueError("rewards differ by more than a double can hold")

    @property
    def threshold(self) -> float:
        """Trust iff the confidence is above this, in (0, 1): the utility u of EURO (ACUTE appendix A.1)."""
        abstaining = self.abstained_wrong - self.trusted_wrong
        return abstaining / (self.trusted_right - self.abstained_right + abstaining)


@dataclass(frozen=True, slots=True)
class Utility:
    """What deciding by confidence earns.

    Attributes:
        threshold: trust iff the confidence is above this.
        mean: reward per unit.
        oracle: reward per unit of the perfect decider.
        trusted: number of units trusted, or the sum of their weights.
        trusted_right: number of right units among those.
        euro: EURO at this threshold.
    """

    threshold: float
    mean: Value
    oracle: Value
    trusted: float
    trusted_right: float
    euro: Value


def expected_utility(units: ScoredUnits, rewards: Rewards) -> Utility:
    """Return what the best threshold for these rewards earns; means are undefined without units.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    units.require_probabilities()
    threshold = rewards.threshold
    trusted = _trusted(units, threshold)
    if not units.n:
        return Utility(threshold, undefined(NO_UNITS), undefined(NO_UNITS), 0, 0, undefined(NO_UNITS))
    total = (
        rewards.trusted_right * trusted.right
        + rewards.trusted_wrong * trusted.wrong
        + rewards.abstained_right * (units.total_correct - trusted.right)
        + rewards.abstained_wrong * trusted.wrong_abstained
    )
    best = rewards.trusted_right * units.total_correct + rewards.abstained_wrong * units.total_wrong
    return Utility(
        threshold,
        Value(total / units.n),
        Value(best / units.n),
        trusted.right + trusted.wrong,
        trusted.right,
        euro(units, threshold),
    )


@dataclass(frozen=True, slots=True)
class _Trusted:
    right: float
    wrong: float
    wrong_abstained: float


def _trusted(units: ScoredUnits, threshold: float) -> _Trusted:
    """Count the units with a confidence above the threshold."""
    first = int(np.searchsorted(units.values, threshold, side="right"))
    right, wrong = total_of(units.correct[first:]), total_of(units.wrong[first:])
    return _Trusted(right, wrong, units.total_wrong - wrong)
