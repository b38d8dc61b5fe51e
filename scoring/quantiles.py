"""Quantiles of the beta and Student distributions, for intervals of few answers.

Live shows these intervals while a run goes on, and importing ``scipy.special`` for them would hold its screen for
0.3 s; tests hold them to scipy.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist

_STEPS = 200
_TINY = 1e-300


@lru_cache(maxsize=4096)
def beta_quantile(share: float, a: float, b: float) -> float:
    """Return x in [0, 1] below which a Beta(a, b) variable lies with probability ``share``.

    Args:
        share: in (0, 1).
        a: first parameter, at least 0; at 0 all mass is at 0.
        b: second parameter, at least 0; at 0 all mass is at 1.

    Raises:
        ValueError: for a share outside (0, 1) or a negative parameter.
    """
    if not 0.0 < share < 1.0 or a < 0.0 or b < 0.0:
        raise ValueError(f"a share in (0, 1) and parameters of at least 0, not {share}, {a}, {b}")
    if a == 0.0 or b == 0.0:
        return 0.0 if a == 0.0 else 1.0
    low, high, x = 0.0, 1.0, a / (a + b)
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)
    for _ in range(_STEPS):
        excess = _beta_share(x, a, b) - share
        low, high = (low, x) if excess > 0.0 else (x, high)
        logarithm = scale + (a - 1.0) * log(max(x, _TINY)) + (b - 1.0) * log1p(-min(x, 1.0 - 1e-16))
        proposed = x - excess / exp(logarithm) if logarithm > -700.0 else low
        following = proposed if low < proposed < high else 0.5 * (low + high)
        if abs(following - x) <= 1e-15 * x:
            break
        x = following
    return x


def student_quantile(share: float, degrees: float) -> float:
    """Return the quantile of Student's t, ``share`` in [0.5, 1), ``degrees`` of freedom above 0."""
    x = beta_quantile(2.0 * (1.0 - share), degrees / 2.0, 0.5) if share > 0.5 else 1.0
    return sqrt(degrees * (1.0 - x) / x)


def normal_quantile(share: float) -> float:
    """Return the quantile of the standard normal distribution, ``share`` in (0, 1)."""
    return NormalDist().inv_cdf(share)


def _beta_share(x: float, a: float, b: float) -> float:
    """Return P(Beta(a, b) ≤ x) by Lentz's continued fraction, which converges fast below the mean."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _beta_share(1.0 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    upper, lower = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction = lower
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            lower = 1.0 / _away_from_zero(1.0 + numerator * lower)
            upper = _away_from_zero(1.0 + numerator / upper)
            fraction *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return front * fraction


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
