"""EURO: utility of trusting by confidence, between the worst and the perfect decider (ACUTE section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.scored_units import FloatArray, ScoredUnits
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
    d = N − P (ACUTE section 2.3).  With one class the area is that of TP/P or TN/N.

    Raises:
        ValueError: for confidences outside [0, 1].
    """
    units.require_probabilities()
    if not units.n:
        return None
    right_total, wrong_total = units.total_correct, units.total_wrong
    cuts = np.searchsorted(units.values, RISK_CUTS, side="right") + 1
    lower = np.insert(np.concatenate(([0.0], units.values)), cuts, RISK_CUTS)
    width = np.diff(np.append(lower, 1.0))
    right_abstained = np.concatenate(([0], units.correct_up_to))
    wrong_abstained = np.concatenate(([0], units.wrong_up_to))
    right = right_total - np.insert(right_abstained, cuts, right_abstained[cuts - 1]).astype(np.float64)
    abstained = np.insert(wrong_abstained, cuts, wrong_abstained[cuts - 1]).astype(np.float64)
    if not right_total:
        areas = width * (abstained / wrong_total)
    elif not wrong_total:
        areas = width * (right / right_total)
    else:
        areas = _ratio_integrals(lower, width, right, abstained - right, right_total, wrong_total - right_total)
    first, second = int(cuts[0]), int(cuts[1]) + 1
    low, medium, high = (float(part.sum()) for part in (areas[:first], areas[first:second], areas[second:]))
    return EuroAreas(*(min(max(area, 0.0), 1.0) for area in (low + medium + high, 3.0 * low, 3.0 * medium, 3.0 * high)))


_SERIES = (1 / 2, -1 / 3, 1 / 4, -1 / 5, 1 / 6, -1 / 7, 1 / 8)
_SERIES_RADIUS = 0.01
"""Both branches of `_ratio_integrals` are exact to 1e-14 there; the plain antiderivative loses (P/(N − P))² digits."""


def _ratio_integrals(
    lower: FloatArray, width: FloatArray, constant: FloatArray, slope: FloatArray, base: int, rise: int
) -> FloatArray:
    """Integrate (constant + slope·u)/(base + rise·u) over [lower, lower + width], one interval per entry.

    With x = rise·width/(base + rise·lower), the integral of 1/(1 + xs) over s in [0, 1] is 1 − x·g and that of
    s/(1 + xs) is g, where g = (1 − log(1 + x)/x)/x = 1/2 − x/3 + x²/4 − …; one formula serves rise = 0 too.
    """
    denominator = base + rise * lower
    x = rise * width / denominator
    g = np.full_like(x, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        g *= x
        g += coefficient
    large = np.flatnonzero(np.abs(x) > _SERIES_RADIUS)
    g[large] = (1.0 - np.log1p(x[large]) / x[large]) / x[large]
    result: FloatArray = width / denominator * ((constant + slope * lower) * (1.0 - x * g) + slope * width * g)
    return result


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
        trusted: number of units trusted.
        trusted_right: number of right units among those.
        euro: EURO at this threshold.
    """

    threshold: float
    mean: Value
    oracle: Value
    trusted: int
    trusted_right: int
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
    right: int
    wrong: int
    wrong_abstained: int


def _trusted(units: ScoredUnits, threshold: float) -> _Trusted:
    """Count the units with a confidence above the threshold."""
    first = int(np.searchsorted(units.values, threshold, side="right"))
    right, wrong = int(units.correct[first:].sum()), int(units.wrong[first:].sum())
    return _Trusted(right, wrong, units.total_wrong - wrong)
