"""Maps with one to three parameters fitted by plain negative log-likelihood: Platt, beta, temperature.

Their values lie in [1e-6, 1 − 1e-6], whatever they are applied to: a fit on finitely many units is certain of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.calibrators_fitted import (
    LARGEST_SCORE,
    PROBABILITY_CLIP,
    ConfidenceMap,
    Constant,
    FloatArray,
    Sample,
    sigmoid,
)

LOWEST_TEMPERATURE = 0.01
HIGHEST_TEMPERATURE = 100.0
STEPS = 200
SMALLEST_GAIN = 1e-10
"""Nats a unit that another Newton step may gain at a maximum of the likelihood."""

TINY = 1e-300
SMALLEST_GAP = 1e-12  # of the range of the scores; a steeper step would resolve rounding
CLIP_LOGIT = float(np.log1p(-PROBABILITY_CLIP) - np.log(PROBABILITY_CLIP))


@dataclass(frozen=True, slots=True)
class Logistic:
    """σ(slope · (x − centre) / width + intercept)."""

    centre: float
    width: float
    slope: float
    intercept: float

    @property
    def strictly_rising(self) -> bool:
        """Where the slope is positive."""
        return self.slope > 0.0

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values in [1e-6, 1 − 1e-6]."""
        unit = np.clip((confidence - self.centre) / self.width, -LARGEST_SCORE, LARGEST_SCORE)
        return _clip(sigmoid(self.slope * unit + self.intercept))


@dataclass(frozen=True, slots=True)
class Beta:
    """σ(a · ln p − b · ln(1 − p) + c) with a, b ≥ 0 and p clipped at 1e-6 (Kull et al., 2017)."""

    a: float
    b: float
    c: float

    @property
    def strictly_rising(self) -> bool:
        """Where a or b is positive; the clip only keeps the logarithms finite."""
        return self.a > 0.0 or self.b > 0.0

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values in [1e-6, 1 − 1e-6]."""
        clipped = _clip(confidence)
        return _clip(sigmoid(self.a * np.log(clipped) - self.b * np.log1p(-clipped) + self.c))


@dataclass(frozen=True, slots=True)
class Temperature:
    """σ(logit(p) / temperature) with p clipped at 1e-6."""

    temperature: float

    @property
    def strictly_rising(self) -> bool:
        """Always; the clip only keeps logit(p) finite."""
        return True

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values in [1e-6, 1 − 1e-6]; 0.5 stays 0.5."""
        return _clip(sigmoid(_logit(_clip(confidence)) / self.temperature))


def fit_platt(sample: Sample) -> tuple[ConfidenceMap, str | None]:
    """σ(a·s + b), maximum likelihood without target smoothing, on the score as it is.

    A negative slope is kept and noted.  One class: the constant 1e-6 or 1 − 1e-6.  Constant scores: the base rate.
    Separable data have no maximum: the limit of the likelihood is kept, cut where the closest training score gets
    1e-6 or 1 − 1e-6.
    """
    degenerate = _constant_fit(sample)
    if degenerate is not None:
        return degenerate
    low, high = float(sample.confidence.min()), float(sample.confidence.max())
    width = high - low
    unit = (sample.confidence - low) / width
    rising = _separating_step(unit, sample.correct)
    if rising is not None:
        return Logistic(low, width, *rising), "separable: correctness is a step of the score"
    falling = _separating_step(-unit, sample.correct)
    if falling is not None:
        return Logistic(low, width, -falling[0], falling[1]), "separable and falling: lower scores are correct"
    coefficients, intercept, converged = _logistic_regression(unit[:, None], sample.correct)
    notes = []
    if coefficients[0] < 0.0:
        notes.append("negative slope: higher confidence goes with less correctness")
    if not converged:
        notes.append("nearly separable: the likelihood still rises with the slope")
    return Logistic(low, width, float(coefficients[0]), intercept), "; ".join(notes) or None


def fit_beta(sample: Sample) -> tuple[ConfidenceMap, str | None]:
    """σ(a·ln p − b·ln(1 − p) + c) with a, b ≥ 0, maximum likelihood; the constraint makes it never fall.

    The likelihood is concave, so where the free optimum breaks a constraint the best fit has a = 0 or b = 0 (Kull et
    al., 2017, as in betacal); where that falls too, it is the base rate and noted.  One class, constant scores and
    separable data as for Platt, in logit(p).
    """
    degenerate = _constant_fit(Sample(_clip(sample.confidence), sample.correct))
    if degenerate is not None:
        return degenerate
    clipped = _clip(sample.confidence)
    step = _separating_step(_logit(clipped), sample.correct)
    if step is not None:
        return Beta(step[0], step[0], step[1]), "separable: correctness is a step of the score"
    features = np.column_stack([np.log(clipped), -np.log1p(-clipped)])
    (a, b), c, converged = _logistic_regression(features, sample.correct)
    if converged and a >= 0.0 and b >= 0.0:
        return Beta(float(a), float(b), c), None
    best: Beta | None = None
    lowest = np.inf
    if _separating_step(-clipped, sample.correct) is None:
        for kept in (0, 1):
            (slope,), c, _ = _logistic_regression(features[:, [kept]], sample.correct)
            loss = _negative_log_likelihood(features[:, kept] * slope + c, sample.correct)
            if slope >= 0.0 and loss < lowest:
                best, lowest = Beta(float(slope) * (1 - kept), float(slope) * kept, c), loss
    if best is not None:
        return best, None
    return Constant(sample.base_rate), "correctness falls with confidence; the base rate is used"


def fit_temperature(sample: Sample) -> tuple[ConfidenceMap, str | None]:
    """σ(logit(p) / T), T in [0.01, 100] by negative log-likelihood; a T on the border is noted.

    All p = 0.5: T = 1, noted.  The loss is convex in 1/T, so its slope has one zero.
    """
    logits = _logit(_clip(sample.confidence))
    if not logits.any():
        return Temperature(1.0), "all scores are 0.5"
    signed = np.where(sample.correct == 1.0, logits, -logits)

    def slope(inverse: float) -> float:
        return -float(np.mean(signed * sigmoid(-inverse * signed)))

    low, high = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
    if slope(low) >= 0.0:
        return Temperature(HIGHEST_TEMPERATURE), "T is at its upper limit 100: confidence says nothing, or the opposite"
    if slope(high) <= 0.0:
        return Temperature(LOWEST_TEMPERATURE), "T is at its lower limit 0.01: 0.5 separates correct from wrong"
    from scipy.optimize import brentq

    return Temperature(1.0 / float(brentq(slope, low, high, xtol=1e-14, rtol=1e-14))), None


def _clip(confidence: FloatArray) -> FloatArray:
    return np.clip(confidence, PROBABILITY_CLIP, 1.0 - PROBABILITY_CLIP)


def _logit(probability: FloatArray) -> FloatArray:
    return np.log(probability) - np.log1p(-probability)


def _constant_fit(sample: Sample) -> tuple[ConfidenceMap, str | None] | None:
    """The fit without a slope, where the data hold one class (no note here: every map states it) or one score."""
    rate = float(_clip(np.array(sample.base_rate)))
    if sample.one_class:
        return Constant(rate), None
    if sample.constant:
        return Constant(rate), "constant scores"
    return None


def _separating_step(confidence: FloatArray, correct: FloatArray) -> tuple[float, float] | None:
    """Slope and intercept of a steep logistic curve where no wrong unit is above a correct one, else None.

    With a gap, the curve passes 0.5 halfway and reaches 1e-6 and 1 − 1e-6 at the gap's ends.  Where correct and wrong
    units share the score between them, it passes their rate there and reaches 1e-6 or 1 − 1e-6 at the closest other.
    """
    highest_wrong = float(confidence[correct == 0.0].max())
    lowest_correct = float(confidence[correct == 1.0].min())
    if highest_wrong > lowest_correct:
        return None
    if highest_wrong < lowest_correct:
        slope = CLIP_LOGIT / max(0.5 * (lowest_correct - highest_wrong), SMALLEST_GAP)
        return slope, -slope * (highest_wrong + 0.5 * (lowest_correct - highest_wrong))
    shared = confidence == lowest_correct
    rate = float(correct[shared].mean())
    at_shared = float(np.log(rate) - np.log1p(-rate))
    distance = float(np.abs(confidence[~shared] - lowest_correct).min())
    slope = (CLIP_LOGIT + abs(at_shared)) / max(distance, SMALLEST_GAP)
    return slope, at_shared - slope * lowest_correct


def _negative_log_likelihood(logits: FloatArray, correct: FloatArray) -> float:
    return float(np.mean(np.logaddexp(0.0, logits) - correct * logits))


def _logistic_regression(features: FloatArray, correct: FloatArray) -> tuple[FloatArray, float, bool]:
    """Coefficients (k,), intercept and whether they are a maximum of the likelihood; both classes present."""
    from scipy.optimize import minimize, root

    centre = features.mean(axis=0)
    design = np.column_stack([features - centre, np.ones(correct.size)])
    rate = float(correct.mean())
    start = np.zeros(design.shape[1])
    start[-1] = np.log(rate) - np.log1p(-rate)

    def gradient(weights: FloatArray) -> FloatArray:
        slopes: FloatArray = design.T @ (sigmoid(design @ weights) - correct) / correct.size
        return slopes

    def hessian(weights: FloatArray) -> FloatArray:
        fitted = sigmoid(design @ weights)
        curvature: FloatArray = (design * (fitted * (1.0 - fitted))[:, None]).T @ design / correct.size
        return curvature

    def loss(weights: FloatArray) -> float:
        return _negative_log_likelihood(design @ weights, correct)

    def gain_of_a_newton_step(weights: FloatArray) -> float:
        slopes, curvature = gradient(weights), hessian(weights)
        # The weights differ by six orders of magnitude where scores saturate; the gradient alone says nothing then.
        scale = 1.0 / np.sqrt(np.maximum(np.diag(curvature), TINY))
        step = np.linalg.lstsq(curvature * scale[:, None] * scale, slopes * scale, rcond=None)[0]
        return float((slopes * scale) @ step)

    weights = np.asarray(root(gradient, start, jac=hessian, method="hybr", options={"xtol": 1e-13}).x)
    if not gain_of_a_newton_step(weights) <= SMALLEST_GAIN:
        # Seven times slower and needed where scores are nearly separable, with slopes of 1e6 and more: the region that
        # a step may leave has no limit.
        options = {"gtol": 1e-14, "maxiter": STEPS, "max_trust_radius": 1e15}
        first = min((start, weights), key=loss)
        other = minimize(loss, first, jac=gradient, hess=hessian, method="trust-exact", options=options).x
        weights = min((weights, np.asarray(other)), key=loss)
    converged = gain_of_a_newton_step(weights) <= SMALLEST_GAIN
    return weights[:-1], float(weights[-1] - weights[:-1] @ centre), converged
