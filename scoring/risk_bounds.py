"""Bounds of the share of wrong units among trusted ones, from counts per answer (Korn and Graubard; betting)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from scoring.quantiles import beta_quantile, normal_quantile, student_quantile
from scoring.scored_units import FloatArray

STAKES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of the largest stake that cannot ruin, of which the one that grows most is taken."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What betting against a risk above alpha earns.

    Attributes:
        growth: Σ ln(1 + stake · (alpha − loss)) over answers.
        stake: the stake that grows most.
    """

    growth: float
    stake: float


def fewest_answers(alpha: float, delta: float) -> int:
    """Return how many answers a promise needs even if none is wrong: ⌈ln δ / ln(1 − α)⌉, 45 at α = .05, δ = .1."""
    # Rounding must not ask for one more where the quotient is whole.
    return ceil(log(delta) / log(1.0 - alpha) - 1e-9)


def pooled_bound(wrong: FloatArray, trusted: FloatArray, delta: float) -> float:
    """Return an upper bound of the pooled share of wrong units, in [0, 1], which fails in about ``delta`` of cases.

    p = ΣE/ΣT over G answers, v = G/(G−1)·Σ(E − pT)²/(ΣT)², n* = min(ΣT, p(1−p)/v·(z/t)²), and G where p is 0 or 1;
    then the quantile 1 − δ of Beta(pn* + 1, (1−p)n*).  With one unit an answer it is Clopper and Pearson's bound, which
    is exact.  1 for a single answer.

    Args:
        wrong: wrong trusted units E of each answer, shape ``(G,)``.
        trusted: trusted units T of each, at least 1, shape ``(G,)``.
        delta: in (0, 1).
    """
    answers, total, errors = int(trusted.size), float(trusted.sum()), float(wrong.sum())
    if answers < 2:
        return 1.0
    if errors in (0.0, total):
        effective = float(answers)
    elif float(trusted.max()) == 1.0:
        effective = total
    else:
        rate = errors / total
        variance = answers / (answers - 1) * float(((wrong - rate * trusted) ** 2).sum()) / total**2
        shrink = (
            (normal_quantile(1.0 - delta) / student_quantile(1.0 - delta, answers - 1.0)) ** 2 if delta < 0.5 else 1.0
        )
        effective = total if variance == 0.0 else min(total, rate * (1.0 - rate) / variance * shrink)
    share = errors / total
    return beta_quantile(1.0 - delta, share * effective + 1.0, (1.0 - share) * effective)


def betting_growth(losses: FloatArray, alpha: float) -> Growth:
    """Return how fast a bet that the mean loss is at most alpha grows, with the stake of `STAKES` that grows most.

    Where the mean loss is above alpha, Π(1 + ν(α − L)) exceeds 1/δ in at most δ of cases, however few answers there are
    (a nonnegative supermartingale; Waudby-Smith and Ramdas 2024), for a stake chosen on other answers.

    Args:
        losses: share of wrong units among the trusted ones of each answer, in [0, 1], shape ``(G,)``.
        alpha: in (0, 1).
    """
    grown = [
        (float(np.log1p(share / (1.0 - alpha) * (alpha - losses)).sum()), share / (1.0 - alpha)) for share in STAKES
    ]
    return Growth(*max(grown))
