"""Confidence that has to be asked for: how scores of studies and from elsewhere are read, beside token statistics.

A signal has a value per unit in the store instead of a formula over the unit's tokens; every metric, map and test
reads both alike, by what `confidence_entry` returns.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from scoring.confidence import CONFIDENCE_FUNCTIONS, ConfidenceFunction
from scoring.scored_units import FloatArray


@dataclass(frozen=True, slots=True)
class Signal:
    """One score that a study or somebody else gives to units.

    Attributes:
        name: as in the store, without ``@RUN.K``.
        formula: the definition in one line.
        higher_is_confident: the direction.
        minimum: lower end of the range, ``-inf`` when open.
        maximum: upper end of the range, ``inf`` when open.
        needs_calibration: whether the value is no probability and must be mapped to [0, 1] for calibration metrics.
        source: where it is defined.
        given_by: what computes it.
    """

    name: str
    formula: str
    higher_is_confident: bool
    minimum: float
    maximum: float
    needs_calibration: bool
    source: str
    given_by: str

    def oriented(self, values: FloatArray) -> FloatArray:
        """Return the values so that higher is more confident: unchanged, or with the sign turned."""
        return values if self.higher_is_confident else -values


_OF_TOKENS = "our reading of what other tools offer"
_TOKENS, _SAMPLES = "the stored tokens of a unit", "`salt-tui study samples`"
_OURS, _COMBINE = "our reading", "`salt-tui study combine`"
_SECOND_MODEL = "`salt-tui study second-model`"
_VERBALISED = "`salt-tui study verbalised`"
_PROBE = "`salt-tui probe RUN --apply`"
FOREIGN = "`salt-tui signals add`"
_P_TRUE = "p(True) / (p(True) + p(False)) of the model's own label"
_CONSISTENCY = "self-consistency, Wang et al. 2023"

SECOND: dict[str, str] = {f"second_{name}": name for name in CONFIDENCE_FUNCTIONS}
"""What a second model would have been sure of: the signal, and the confidence function that it is."""

SIGNALS: dict[str, Signal] = {
    entry.name: entry
    for entry in (
        Signal("min_probability", "min p", True, 0.0, 1.0, False, _OF_TOKENS, _TOKENS),
        Signal(
            "mean_margin",
            "(1/k) Σ (p of the likeliest token − p of the second)",
            True,
            0.0,
            1.0,
            True,
            _OF_TOKENS,
            _TOKENS,
        ),
        Signal(
            "mean_rank",
            "(1/k) Σ rank of the chosen token, 1 for the likeliest; outside the stored 20 it counts as the next, 21",
            False,
            1.0,
            math.inf,
            True,
            _OF_TOKENS,
            _TOKENS,
        ),
        Signal("first_token_probability", "p of the first token", True, 0.0, 1.0, False, _OF_TOKENS, _TOKENS),
        Signal(
            "entropy_lower_bound",
            "(1/k) Σ (−Σ p ln p − r ln min(r, p of the last listed)) over the listed tokens, r: what is left",
            False,
            0.0,
            math.inf,
            True,
            _OURS,
            "the stored tokens of a unit whose engine lists the most probable ones only, before any sampler",
        ),
        Signal("probe", "share of trees that call the unit right", True, 0.0, 1.0, False, "ACUTE section 3", _PROBE),
        Signal("agreement", "share of samples with the same unit", True, 0.0, 1.0, True, _CONSISTENCY, _SAMPLES),
        Signal(
            "agreement_aligned",
            "share of samples whose aligned unit is the same",
            True,
            0.0,
            1.0,
            True,
            _CONSISTENCY,
            _SAMPLES,
        ),
        Signal(
            "cluster_entropy",
            "−Σ p ln p over equal texts",
            False,
            0.0,
            math.inf,
            True,
            "Farquhar et al. 2024",
            _SAMPLES,
        ),
        Signal("p_true", _P_TRUE, True, 0.0, 1.0, False, "SALT table 8; Kadavath et al. 2022", _VERBALISED),
        Signal(
            "p_true_independent",
            f"{_P_TRUE}, asked of each unit without its labels of earlier ones",
            True,
            0.0,
            1.0,
            False,
            "our reading of SALT table 8",
            _VERBALISED,
        ),
        Signal("p_true_broadcast", "p_true of the whole answer", True, 0.0, 1.0, False, "SALT table 8", _VERBALISED),
        Signal(
            "verbalised",
            "the number from 0 to 1 that the model says when it is asked how likely it is right",
            True,
            0.0,
            1.0,
            False,
            "SALT table 8; Tian et al. 2023",
            _VERBALISED,
        ),
        Signal(
            "verbalised_broadcast", "verbalised of the whole answer", True, 0.0, 1.0, False, "SALT table 8", _VERBALISED
        ),
        Signal(
            "combined_logistic",
            "P(right) by a ridge logistic model of all scores of the run, fitted on other answers",
            True,
            0.0,
            1.0,
            False,
            _OURS,
            _COMBINE,
        ),
        Signal(
            "combined_forest",
            "P(right) by a random forest of all scores of the run, fitted on other answers",
            True,
            0.0,
            1.0,
            False,
            _OURS,
            _COMBINE,
        ),
        Signal(
            "choice_probability",
            "p of the letter / Σ p of the letters",
            True,
            0.0,
            1.0,
            False,
            "calibration guide",
            "a run of problems with choices",
        ),
        Signal(
            "kl_lower_bound",
            "Σ p log(p / q) of a token over the stored alternatives and the rest as one",
            False,
            0.0,
            math.inf,
            True,
            _OURS,
            _SECOND_MODEL,
        ),
        *(
            Signal(
                name,
                f"{CONFIDENCE_FUNCTIONS[function].formula}, by the second model",
                CONFIDENCE_FUNCTIONS[function].higher_is_confident,
                CONFIDENCE_FUNCTIONS[function].minimum,
                CONFIDENCE_FUNCTIONS[function].maximum,
                CONFIDENCE_FUNCTIONS[function].needs_calibration,
                _OURS,
                _SECOND_MODEL,
            )
            for name, function in SECOND.items()
        ),
    )
}
"""Signals with a known meaning; of any other one the store knows which direction is more confident."""


FITTED_ANEW = frozenset({"combined_logistic", "combined_forest"})
"""Signals that are fitted on the very run that they are about: a threshold found on one run says nothing on another."""

FITTED_PER_FOLD = "fitted per fold: one scale for each fold, not one that ranks all units"
"""Why signals of `FITTED_ANEW` are not ranked over all units against others."""


def is_fitted_anew(name: str) -> bool:
    """Say whether a function or signal, as ``name`` or ``name@RUN.K``, is fitted on the run that it is about."""
    return name.partition("@")[0] in FITTED_ANEW


def confidence_entry(name: str, lower_is_confident: Collection[str] = ()) -> ConfidenceFunction | Signal:
    """Return how a column of confidences is read.

    Args:
        name: a confidence function, or a signal as ``name`` or ``name@RUN.K``.
        lower_is_confident: names, written alike, of the signals from elsewhere whose lower values are more confident.

    Returns:
        The entry of the registry; for a signal that nobody described, one with an open range that needs calibration.
    """
    if name in CONFIDENCE_FUNCTIONS:
        return CONFIDENCE_FUNCTIONS[name]
    plain = name.partition("@")[0]
    known = SIGNALS.get(plain)
    if known is not None:
        return known
    rising = name not in lower_is_confident
    return Signal(plain, "a number from elsewhere", rising, -math.inf, math.inf, True, "elsewhere", FOREIGN)
