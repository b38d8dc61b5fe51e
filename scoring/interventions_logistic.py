"""Logistic regression with one constant per problem, by iteratively reweighted least squares (SALT eq. 6).

The constants enter the Newton step as a diagonal block, so a step costs no more with hundreds of problems than with
one, and a resample of problems only changes weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.scored_units import FloatArray

STEPS = 60
CONVERGED = 1e-10
RESAMPLED = 1e-6
"""Relative change of the log-likelihood that ends the iteration, for the fit itself and for its resamples."""

LARGEST = 30.0
"""Log-odds beyond it are separation: the likelihood has no maximum there."""

NOT_CONVERGED = "the regression has no finite solution: the outcome is separated"


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """Coefficients with their log-likelihood.

    Attributes:
        slopes: shape ``(k,)``.
        constants: one per problem, shape ``(problems,)``.
        log_likelihood: Σ w (y ln p + (1 − y) ln(1 − p)).
        rank: independent columns, constants not counted.
        converged: whether a finite maximum was found.
    """

    slopes: FloatArray
    constants: FloatArray
    log_likelihood: float
    rank: int
    converged: bool


def fit_logistic(
    columns: FloatArray,
    outcome: FloatArray,
    problem: NDArray[np.int64],
    weights: FloatArray | None = None,
    start: LogisticFit | None = None,
    tolerance: float = CONVERGED,
) -> LogisticFit:
    """Maximise the binomial likelihood by Newton steps, halved while they do not raise it.

    Args:
        columns: shape ``(n, k)``, without a constant.
        outcome: in [0, 1], shape ``(n,)``; fractions give a quasi-likelihood.
        problem: the problem of each row, every number up to the largest with a row.
        weights: of the rows, at least 0; without, 1 each.
        start: a fit to begin from.
        tolerance: relative change of the log-likelihood that ends the iteration.
    """
    order = np.argsort(problem, kind="stable")
    columns, outcome, problem = columns[order], outcome[order], problem[order]
    starts = np.flatnonzero(np.diff(problem, prepend=-1))
    weight = np.ones(outcome.size) if weights is None else weights[order]
    totals = np.add.reduceat(weight, starts)
    used = totals > 0.0
    scale = np.sqrt((columns**2).mean(axis=0))
    scale = np.where(scale > 0.0, scale, 1.0)
    scaled = columns / scale
    if start is None:
        share = np.add.reduceat(weight * outcome, starts) / np.where(used, totals, 1.0)
        share = np.clip(share, 0.02, 0.98)
        constants, slopes = np.log(share / (1.0 - share)), np.zeros(columns.shape[1])
    else:
        constants, slopes = start.constants, start.slopes * scale
    rank = columns.shape[1]
    predictor = scaled @ slopes + constants[problem]
    best = _log_likelihood(predictor, outcome, weight)
    for _ in range(STEPS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(predictor, -500.0, 500.0)))
        gradient = weight * (outcome - probability)
        curvature = weight * np.maximum(probability * (1.0 - probability), 1e-12)
        weighted = scaled * curvature[:, None]
        diagonal = np.where(used, np.add.reduceat(curvature, starts), 1.0)
        border = np.add.reduceat(weighted, starts, axis=0)
        score = np.add.reduceat(gradient, starts)
        inner = scaled.T @ weighted - border.T @ (border / diagonal[:, None])
        right = scaled.T @ gradient - border.T @ (score / diagonal)
        slope_step, rank = _solve(inner, right)
        constant_step = np.where(used, (score - border @ slope_step) / diagonal, 0.0)
        size = 1.0
        for _ in range(20):
            tried = scaled @ (slopes + size * slope_step) + (constants + size * constant_step)[problem]
            value = _log_likelihood(tried, outcome, weight)
            if value >= best - 1e-12 * abs(best):
                break
            size /= 2.0
        else:
            break
        slopes, constants, predictor = slopes + size * slope_step, constants + size * constant_step, tried
        if abs(value - best) <= tolerance * (abs(best) + 1e-9):
            separated = bool((np.abs(predictor[weight > 0.0]) > LARGEST).any())
            return LogisticFit(slopes / scale, constants, value, rank, not separated)
        best = value
    return LogisticFit(slopes / scale, constants, best, rank, False)


def _log_likelihood(predictor: FloatArray, outcome: FloatArray, weight: FloatArray) -> float:
    return float((weight * (outcome * predictor - np.logaddexp(0.0, predictor))).sum())


def _solve(inner: FloatArray, right: FloatArray) -> tuple[FloatArray, int]:
    """Return the shortest solution and the rank of a symmetric system."""
    if not right.size:
        return right, 0
    values, vectors = np.linalg.eigh(inner)
    kept = values > 1e-10 * max(float(values.max()), 1e-300)
    solution: FloatArray = vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept])
    return solution, int(kept.sum())
