"""What a second model says of the tokens that a first one wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence

RESOLUTION = 1e-6
"""What the seven stored digits of 21 log-probabilities leave unknown of the rest; less counts as nothing."""


def kl_lower_bound(first: Sequence[float], second: Sequence[float], second_rest: float) -> float:
    """Return the Kullback–Leibler divergence of two models' next tokens on a partition that both know, in nats.

    The parts are the listed tokens and, as one part, everything else; what a model gives to that is 1 minus the sum of
    the others.  Putting tokens together can only lose information, so this is a lower bound of the divergence over the
    whole vocabulary, but for at most 2e-5 where the first model gives less than `RESOLUTION` to the rest.

    Args:
        first: natural log-probabilities of the listed tokens, of the model that wrote.
        second: of the same tokens, of the other model; ``-inf`` for an impossible one.
        second_rest: what the other model gives to all other tokens together, natural logarithm.

    Returns:
        Σ p log(p / q), at least 0, lower is more alike; 0 if the two say the same; infinite where the second rules out
        what the first allows.

    Raises:
        ValueError: for unequal lengths.
    """
    pairs = list(zip(first, second, strict=True))
    terms = [math.exp(p) * (p - q) for p, q in pairs if p > -math.inf]
    rest, other = (1.0 - math.fsum(map(math.exp, values)) for values in (first, second))
    if other < RESOLUTION:
        other = math.exp(second_rest)
    if rest >= RESOLUTION:
        terms.append(rest * math.log(rest / other) if other > 0.0 else math.inf)
    if math.inf in terms:
        return math.inf
    return max(0.0, math.fsum(terms))
