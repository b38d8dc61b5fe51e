"""Confidence functions: how sure the model was of a unit, from its tokens (SALT appendix F; ACUTE section 4.1).

Every function takes natural-log probabilities of the chosen tokens and Shannon entropies (nats) of their
distributions, over the whole vocabulary and before temperature and samplers, one per token of the unit.
`scoring.signals` lists what is no function of tokens.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

TokenValues: TypeAlias = Sequence[float] | NDArray[np.floating]

LARGEST_LOGARITHM = math.log(sys.float_info.max)
"""Perplexities beyond exp(709.78) are given as the largest double instead of infinity."""


@dataclass(frozen=True, slots=True)
class ConfidenceFunction:
    """One way to turn the tokens of a unit into a number.

    Attributes:
        name: the key in the registry and the column in the store.
        formula: the definition in one line; k tokens with probabilities p and entropies H.
        function: from log-probabilities and entropies, shape ``(k,)`` each, k ≥ 1, cleaned as `unit_confidences`
            does, to a finite number.
        higher_is_confident: the direction.
        minimum: lower end of the range, ``-inf`` when open.
        maximum: upper end of the range, ``inf`` when open.
        needs_calibration: whether the value is no probability and must be mapped to [0, 1] for calibration metrics.
        source: where it is defined.
    """

    name: str
    formula: str
    function: Callable[[TokenValues, TokenValues], float]
    higher_is_confident: bool
    minimum: float
    maximum: float
    needs_calibration: bool
    source: str

    def oriented(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values so that higher is more confident: unchanged, or with the sign turned."""
        return values if self.higher_is_confident else -values


def perplexity(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return exp of the mean negative log-probability, in [1, 1.8e308], lower is more confident; saturates."""
    return math.exp(min(log_perplexity(log_probabilities, entropies), LARGEST_LOGARITHM))


def log_perplexity(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the mean negative log-probability in nats, in [0, inf), lower is more confident."""
    return abs(math.fsum(log_probabilities)) / len(log_probabilities)


def mean_probability(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the mean probability, in [0, 1], higher is more confident."""
    return math.fsum(map(math.exp, log_probabilities)) / len(log_probabilities)


def median_probability(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the median probability, in [0, 1]; the mean of the middle two for an even number of tokens."""
    ordered = sorted(log_probabilities)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return math.exp(ordered[middle])
    return (math.exp(ordered[middle - 1]) + math.exp(ordered[middle])) / 2


def max_probability(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the largest probability, in [0, 1], higher is more confident."""
    return math.exp(max(log_probabilities))


def logprob_sum(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the sum of the log-probabilities in nats, in (-inf, 0], higher is more confident."""
    return math.fsum(log_probabilities)


def mean_entropy(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the mean entropy in nats, in [0, inf), lower is more confident."""
    return math.fsum(entropies) / len(entropies)


def max_entropy(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the largest entropy in nats, in [0, inf), lower is more confident."""
    return float(max(entropies))


def joint_probability(log_probabilities: TokenValues, entropies: TokenValues) -> float:
    """Return the product of the probabilities, in [0, 1]; 0 where it is below the smallest double."""
    return math.exp(math.fsum(log_probabilities))


_TABLE_7 = "SALT appendix F, table 7"

CONFIDENCE_FUNCTIONS: dict[str, ConfidenceFunction] = {
    entry.name: entry
    for entry in (
        ConfidenceFunction("perplexity", "exp(−(1/k) Σ log p)", perplexity, False, 1.0, math.inf, True, _TABLE_7),
        ConfidenceFunction("log_perplexity", "−(1/k) Σ log p", log_perplexity, False, 0.0, math.inf, True, _TABLE_7),
        ConfidenceFunction("mean_probability", "(1/k) Σ p", mean_probability, True, 0.0, 1.0, False, _TABLE_7),
        ConfidenceFunction("median_probability", "median p", median_probability, True, 0.0, 1.0, False, _TABLE_7),
        ConfidenceFunction("max_probability", "max p", max_probability, True, 0.0, 1.0, False, _TABLE_7),
        ConfidenceFunction("logprob_sum", "Σ log p", logprob_sum, True, -math.inf, 0.0, True, _TABLE_7),
        ConfidenceFunction("mean_entropy", "(1/k) Σ H", mean_entropy, False, 0.0, math.inf, True, _TABLE_7),
        ConfidenceFunction("max_entropy", "max H", max_entropy, False, 0.0, math.inf, True, _TABLE_7),
        ConfidenceFunction(
            "joint_probability", "exp(Σ log p)", joint_probability, True, 0.0, 1.0, False, "ACUTE section 4.1"
        ),
    )
}
"""In the order of the columns of the store."""

SAME_ORDER: tuple[tuple[str, ...], ...] = (("perplexity", "log_perplexity"), ("logprob_sum", "joint_probability"))
"""Functions that rank units alike but for rounding, so that neither can be better in a metric of the order alone."""

HEADLINE_FUNCTION = "max_probability"
"""The function behind a number where only one is shown, raw and over atoms."""


OF_ENTROPY = frozenset({"mean_entropy", "max_entropy"})
"""Functions that need the entropies."""


def unit_confidences(
    log_probabilities: TokenValues | Sequence[float | None], entropies: TokenValues | Sequence[float | None]
) -> dict[str, float | None]:
    """Return every confidence function of one unit, in the order of the registry.

    Log-probabilities above 0 and entropies below 0 are rounding and become 0.  Where the log-probability of a token is
    not known, all functions are undefined; where an entropy is not known, those of entropies are.

    Args:
        log_probabilities: natural logarithms, shape ``(k,)``, k ≥ 1; None where one is not known.
        entropies: in nats, shape ``(k,)``; None where one is not known.

    Raises:
        ValueError: without tokens, with unequal lengths, or with a value that is not finite.
    """
    if not len(log_probabilities) or len(log_probabilities) != len(entropies):
        lengths = f"{len(log_probabilities)}, {len(entropies)}"
        raise ValueError(f"a unit has as many log-probabilities as entropies, at least one: {lengths}")
    known = [float(value) for value in log_probabilities if value is not None]
    nats = [float(value) for value in entropies if value is not None]
    if not (all(map(math.isfinite, known)) and all(map(math.isfinite, nats))):
        raise ValueError("log-probabilities and entropies are finite")
    if len(known) < len(log_probabilities):
        return dict.fromkeys(CONFIDENCE_FUNCTIONS)
    logs = [value if value < 0.0 else 0.0 for value in known]
    nats = [value if value > 0.0 else 0.0 for value in nats]
    without = OF_ENTROPY if len(nats) < len(entropies) else frozenset()
    return {
        name: None if name in without else entry.function(logs, nats) for name, entry in CONFIDENCE_FUNCTIONS.items()
    }
