"""Least squares with one constant per problem, tests between nested designs, and clustered tests.

Constants per problem are taken out by subtracting each problem's means, which gives the same coefficients, residuals
and F-tests as one dummy per problem.  A resample of problems then only adds up small matrices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.interventions import FEWER_ROWS_THAN_TERMS, FEWEST_PROBLEMS, TOO_FEW_PROBLEMS
from scoring.scored_units import FloatArray
from scoring.value import Value, undefined

TOLERANCE = 1e-10
"""Eigenvalues of the scaled cross-products below this share of the largest are rank deficiency."""

NO_RESIDUAL = "the design fits the outcome exactly"
NOTHING_TESTED = "the tested columns add nothing to the others"
MORE_TERMS_THAN_PROBLEMS = "as many tested terms as problems"


def within_problems(columns: FloatArray, problem: NDArray[np.int64]) -> FloatArray:
    """Subtract from every column its mean over each problem; shape ``(n, k)``."""
    counts = np.bincount(problem).astype(np.float64)
    means = np.array([np.bincount(problem, weights=column) for column in columns.T]).T / counts[:, None]
    centred: FloatArray = columns - means[problem]
    return centred


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """A fit of one column on others, all centred within problems.

    Attributes:
        coefficients: shape ``(k,)``; the shortest of the solutions where columns depend on each other.
        residual: sum of squared residuals.
        rank: number of independent columns, constants of the problems not counted.
    """

    coefficients: FloatArray
    residual: float
    rank: int


def solve_moments(moments: FloatArray) -> LeastSquares:
    """Fit the last variable on the others from their cross-products, shape ``(k + 1, k + 1)``."""
    inner, cross, total = moments[:-1, :-1], moments[:-1, -1], float(moments[-1, -1])
    if not inner.size:
        return LeastSquares(np.zeros(0), total, 0)
    scale = np.sqrt(np.diag(inner))
    usable = scale > 0.0
    scale = np.where(usable, scale, 1.0)
    values, vectors = np.linalg.eigh(inner / np.outer(scale, scale))
    kept = values > TOLERANCE * max(float(values.max()), TOLERANCE)
    projected = vectors.T @ (cross / scale)
    coefficients = (vectors[:, kept] @ (projected[kept] / values[kept])) / scale
    residual = total - float(coefficients @ cross)
    return LeastSquares(coefficients, max(residual, 0.0), int(kept.sum()))


def problem_moments(columns: FloatArray, problem: NDArray[np.int64]) -> FloatArray:
    """Return the cross-products of centred columns for each problem, shape ``(problems, k, k)``."""
    order = np.argsort(problem, kind="stable")
    ordered, starts = columns[order], np.searchsorted(problem[order], np.arange(int(problem.max()) + 2))
    return np.array([ordered[first:last].T @ ordered[first:last] for first, last in itertools.pairwise(starts)])


@dataclass(frozen=True, slots=True)
class NestedTest:
    """A design against the same design without some of its columns.

    Attributes:
        p_value: of the F-test that treats rows as independent, in [0, 1] (the paper's, too sure of itself).
        difference_aic: AIC of the smaller design minus that of the larger; positive prefers the larger.
    """

    p_value: Value
    difference_aic: Value


def nested_test(larger: LeastSquares, smaller: LeastSquares, rows: int, problems: int, total: float) -> NestedTest:
    """Compare two least-squares fits by the row-level F-test and by AIC (SALT appendix B.2.5).

    Args:
        larger: with the tested columns.
        smaller: without them; its columns lie in the span of the larger one's.
        rows: number of rows.
        problems: number of constants that were taken out.
        total: sum of squares of the centred outcome, for telling an exact fit.
    """
    freedom = rows - problems - larger.rank
    terms = larger.rank - smaller.rank
    reason = None
    if freedom <= 0:
        reason = FEWER_ROWS_THAN_TERMS
    elif terms <= 0:
        reason = NOTHING_TESTED
    elif larger.residual <= 1e-12 * total:
        reason = NO_RESIDUAL
    if reason is not None:
        return NestedTest(undefined(reason), undefined(reason))
    from scipy.stats import f as f_distribution

    gain = max(smaller.residual - larger.residual, 0.0)
    statistic = (gain / terms) / (larger.residual / freedom)
    difference = rows * np.log(smaller.residual / larger.residual) - 2.0 * terms
    return NestedTest(Value(float(f_distribution.sf(statistic, terms, freedom))), Value(float(difference)))


def clustered_test(tested: FloatArray, others: FloatArray, outcome: FloatArray, problem: NDArray[np.int64]) -> Value:
    """Return the p-value of the Wald test of some columns, with residuals that depend on each other within a problem.

    The covariance is the sandwich over problems, multiplied by G/(G−1)·(n−1)/(n−k) (k: terms without the constants
    of the problems, which lie within clusters); W/q is compared with F(q, G−1).  Refused below ten problems.

    Args:
        tested: columns, centred within problems, shape ``(n, q)``.
        others: the other columns, centred, shape ``(n, k − q)``.
        outcome: centred, shape ``(n,)``.
        problem: the problem of each row.
    """
    clusters = int(problem.max()) + 1
    rows = outcome.size
    if clusters < FEWEST_PROBLEMS:
        return undefined(TOO_FEW_PROBLEMS)
    rest = _orthonormal(others)
    pure = tested - rest @ (rest.T @ tested)
    pure = _orthonormal(pure, np.sqrt((tested**2).sum(axis=0)).max())
    terms = pure.shape[1]
    if not terms:
        return undefined(NOTHING_TESTED)
    if terms >= clusters:
        return undefined(MORE_TERMS_THAN_PROBLEMS)
    free = rows - rest.shape[1] - terms
    if free <= clusters - 1:
        return undefined(FEWER_ROWS_THAN_TERMS)
    estimate = pure.T @ outcome
    residuals = outcome - rest @ (rest.T @ outcome) - pure @ estimate
    if float(residuals @ residuals) <= 1e-12 * float(outcome @ outcome):
        return undefined(NO_RESIDUAL)
    scores = np.array([np.bincount(problem, weights=column * residuals, minlength=clusters) for column in pure.T]).T
    correction = clusters / (clusters - 1) * (rows - 1) / free
    covariance = correction * scores.T @ scores
    try:
        statistic = float(estimate @ np.linalg.solve(covariance, estimate)) / terms
    except np.linalg.LinAlgError:
        return undefined(NO_RESIDUAL)
    from scipy.stats import f as f_distribution

    return Value(float(f_distribution.sf(max(statistic, 0.0), terms, clusters - 1)))


def _orthonormal(columns: FloatArray, size: float | None = None) -> FloatArray:
    """Return an orthonormal basis of the span, without directions that are rounding beside ``size``."""
    if not columns.shape[1]:
        return columns
    norms = np.sqrt((columns**2).sum(axis=0))
    scaled = columns / (np.where(norms > 0.0, norms, 1.0) if size is None else (size or 1.0))
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    basis: FloatArray = left[:, values > 1e-7 * max(1.0, float(values.max(initial=0.0)))]
    return basis
