"""How the chance of the next atom falls with the length of the answer (SALT table 5, figures 26 and 27).

Length is not intervened on: this is an adjusted association, not an effect (SALT appendix B.2.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scoring.intervals import DRAWS, Interval
from scoring.interventions import (
    FEWER_ROWS_THAN_TERMS,
    FEWEST_PROBLEMS,
    NO_ROWS,
    ROWS_PER_MODEL,
    SEED,
    TOO_FEW_PROBLEMS,
    InterventionTable,
    Outcome,
    curve_grid,
    drawn_problems,
    percentile_interval,
)
from scoring.interventions_basis import DoseBasis, dose_basis
from scoring.interventions_contrasts import Curve, Estimate
from scoring.interventions_least_squares import NOTHING_TESTED
from scoring.interventions_logistic import NOT_CONVERGED, RESAMPLED, LogisticFit, fit_logistic
from scoring.scored_units import FloatArray
from scoring.value import Value, undefined

FIXED_LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Fractions of right atoms that figure 27 holds the prefix at."""

KNEE = 0.1
"""κ: the slope has fallen below this share of its peak (SALT eq. 8)."""

ACCRUED = 0.95
"""ξ: this share of the change has accrued (SALT eq. 9)."""

ONE_LENGTH = "one length of the prefix"
ALL_CONSTANT = "in every problem all outcomes are equal"
SLOPE_STAYS = "the slope does not fall below a tenth of its peak"
FLAT = "the curve is flat"
QUASI = "P(gold) is a fraction: there is no likelihood to test"


@dataclass(frozen=True, slots=True)
class FixedCurve:
    """The length curve with the correctness of the prefix held at one level and both treatments at 0 (figure 27).

    Attributes:
        level: fraction of right atoms, in [0, 1].
        value: at the points of the curve beside it.
        observed: whether some unchanged prefix was right to within a tenth of this level; else it is extrapolated.
    """

    level: float
    value: tuple[float, ...]
    observed: bool


@dataclass(frozen=True, slots=True)
class LengthResponse:
    """One row of table 5 with its curve.

    Attributes:
        controlled: whether the correctness of the prefix and both treatments are covariates.
        rows: rows in the regression.
        problems: problems in it.
        dropped_problems: problems left out because all their outcomes are equal.
        models: distinct models.
        start: t₀, the smallest grid point; it stands for length 0 in `drop` and ξ.
        knee: κ in atoms: from the steepest point on, the first grid point whose slope is below a tenth of the peak.
        saturation: ξ in atoms: the first grid point where 95 % of the change from t₀ to the end has accrued.
        drop: ŷ(t_max) − ŷ(t₀).
        resampled: what the intervals resample: ``problems`` (each fitted again) or ``models``.
        p_significant: likelihood-ratio test of the basis, rows independent (the paper's).
        p_nonlinear: of the spline against a line.
        difference_aic: AIC(linear) − AIC(spline).
        curve: mean predicted probability at the grid.
        fixed: figure 27, empty in the uncontrolled variant.
        note: why a line replaces the spline.
        reason: why there is no fit.
    """

    controlled: bool
    rows: int
    problems: int
    dropped_problems: int
    models: int
    start: float | None
    knee: Estimate
    saturation: Estimate
    drop: Estimate
    resampled: Literal["problems", "models"]
    p_significant: Value
    p_nonlinear: Value
    difference_aic: Value
    curve: Curve
    fixed: tuple[FixedCurve, ...]
    note: str | None
    reason: str | None


def length_responses(table: InterventionTable, outcome: Outcome, draws: int = DRAWS) -> tuple[LengthResponse, ...]:
    """Fit the controlled and the uncontrolled length response (SALT table 5).

    Binomial regression on the cubic B-spline of p*−1 with one constant per problem and per model; controlled also with
    the correctness of the unchanged prefix, of its last ten atoms, and both treatments.  All rows take part.

    Args:
        table: rows with their baselines.
        outcome: which outcome the table holds; P(gold) has no likelihood, so no test.
        draws: resamples behind the intervals: of models, or with one model of problems with refitting.
    """
    return tuple(length_response(table, outcome, controlled, draws) for controlled in (True, False))


def length_response(table: InterventionTable, outcome: Outcome, controlled: bool, draws: int = DRAWS) -> LengthResponse:
    """Fit one variant; a degenerate design gives the reason and nothing else."""
    if not table.size:
        return _undefined(table, controlled, 0, NO_ROWS)
    kept = _varying(table)
    dropped = len(table.problems) - len(set(table.problem[kept].tolist()))
    if not kept.any():
        return _undefined(table, controlled, dropped, ALL_CONSTANT)
    table = table.selected(kept)
    length = table.target.astype(np.float64) - 1.0
    if np.ptp(length) == 0.0:
        return _undefined(table, controlled, dropped, ONE_LENGTH)
    fit = _Fit(table, length, controlled)
    if table.size <= fit.full.rank + len(table.problems):
        return _undefined(table, controlled, dropped, FEWER_ROWS_THAN_TERMS)
    if not fit.full.converged:
        return _undefined(table, controlled, dropped, NOT_CONVERGED)
    curves, reason = fit.curves(draws)
    tests = fit.tests() if outcome == "outcome" else (undefined(QUASI),) * 3
    knees = [_knee(fit.grid, curve) for curve in curves]
    saturations = [_saturation(fit.grid, curve) for curve in curves]
    return LengthResponse(
        controlled=controlled,
        rows=table.size,
        problems=len(table.problems),
        dropped_problems=dropped,
        models=len(table.models),
        start=float(fit.grid[0]),
        knee=_estimate(knees, SLOPE_STAYS, reason),
        saturation=_estimate(saturations, FLAT, reason),
        drop=_estimate((curves[:, -1] - curves[:, 0]).tolist(), FLAT, reason),
        resampled="models" if len(table.models) > 1 else "problems",
        p_significant=tests[0],
        p_nonlinear=tests[1],
        difference_aic=tests[2],
        curve=_curve(fit.grid, curves, reason),
        fixed=fit.fixed() if controlled else (),
        note=fit.basis.note,
        reason=None,
    )


class _Fit:
    """One design; for this module only."""

    def __init__(self, table: InterventionTable, length: FloatArray, controlled: bool) -> None:
        self.table = table
        self.grid = curve_grid(length)
        self.basis: DoseBasis = dose_basis(length)
        others = [
            *(table.correct_before.values() if controlled else ()),
            *(table.treatments.values() if controlled else ()),
            *((table.model == model).astype(np.float64) for model in range(1, len(table.models))),
        ]
        self._others = np.array(others).T.reshape(table.size, len(others))
        self._columns = np.column_stack([self.basis.columns(length), self._others])
        self._terms = self._columns.shape[1] - len(others)
        self._length = length
        self._at_grid = self.basis.columns(self.grid)
        self.full = fit_logistic(self._columns, table.outcome, table.problem)
        generator = np.random.default_rng(SEED)
        self._rows = []
        for model in range(len(table.models)):
            rows = np.flatnonzero(table.model == model)
            if rows.size > ROWS_PER_MODEL:
                rows = generator.choice(rows, ROWS_PER_MODEL, replace=False)
            self._rows.append(rows)

    def tests(self) -> tuple[Value, Value, Value]:
        """Return p of the basis, p of the spline against a line, and ΔAIC."""
        from scipy.stats import chi2

        outcome, problem = self.table.outcome, self.table.problem
        flat = fit_logistic(self._others, outcome, problem)
        line = fit_logistic(np.column_stack([self._length, self._others]), outcome, problem)
        values = []
        for smaller in (flat, line):
            terms = self.full.rank - smaller.rank
            if terms <= 0 or not smaller.converged:
                values.append(undefined(NOTHING_TESTED if terms <= 0 else NOT_CONVERGED))
                continue
            statistic = 2.0 * max(self.full.log_likelihood - smaller.log_likelihood, 0.0)
            values.append(Value(float(chi2.sf(statistic, terms))))
        terms = self.full.rank - line.rank
        difference = 2.0 * (self.full.log_likelihood - line.log_likelihood) - 2.0 * terms
        return values[0], values[1], Value(difference) if terms > 0 else undefined(NOTHING_TESTED)

    def curves(self, draws: int) -> tuple[FloatArray, str | None]:
        """Return the curve and its resamples, shape ``(1 + draws, 60)``, and why there are none."""
        own = np.array([self._model_curve(self.full, rows) for rows in self._rows])
        if len(self._rows) > 1:
            generator = np.random.default_rng(SEED)
            drawn = generator.integers(0, len(own), size=(draws, len(own)))
            return np.vstack([own.mean(axis=0)[None, :], own[drawn].mean(axis=1)]), None
        if len(self.table.problems) < FEWEST_PROBLEMS:
            return own, TOO_FEW_PROBLEMS
        curves = [own[0]]
        rows, problem = self._rows[0], self.table.problem
        for weights in drawn_problems(self.table, draws):
            weight = weights.astype(np.float64)[problem]
            fit = fit_logistic(self._columns, self.table.outcome, problem, weight, self.full, RESAMPLED)
            curves.append(self._model_curve(fit, rows, weight[rows]))
        return np.array(curves), None

    def fixed(self) -> tuple[FixedCurve, ...]:
        """Return the curve for each level of correctness, both treatments at 0."""
        before = self.table.correct_before["global"]
        curves = []
        for level in FIXED_LEVELS:
            others = self._others.copy()
            others[:, :2], others[:, 2:4] = level, 0.0
            own = [self._model_curve(self.full, rows, None, others) for rows in self._rows]
            observed = bool((np.abs(before - level) <= 0.1 + 1e-12).any())
            curves.append(FixedCurve(level, tuple(np.mean(own, axis=0).tolist()), observed))
        return tuple(curves)

    def _model_curve(
        self,
        fit: LogisticFit,
        rows: NDArray[np.int64],
        weight: FloatArray | None = None,
        others: FloatArray | None = None,
    ) -> FloatArray:
        """Return the mean predicted probability over some rows at every point of the grid."""
        columns = self._others if others is None else others
        level = columns[rows] @ fit.slopes[self._terms :] + fit.constants[self.table.problem[rows]]
        at = self._at_grid @ fit.slopes[: self._terms]
        # The exponential of a sum is a product of exponentials: ten times faster for a thousand resamples.
        odds = np.outer(np.exp(-np.clip(at, -300.0, 300.0)), np.exp(-np.clip(level, -300.0, 300.0)))
        probabilities = np.reciprocal(np.add(odds, 1.0, out=odds), out=odds)
        if weight is None or not weight.any():
            weight = np.ones(rows.size)
        mean: FloatArray = probabilities @ weight / weight.sum()
        return mean


def _varying(table: InterventionTable) -> NDArray[np.bool_]:
    """Say of each row whether its problem has different outcomes."""
    low = np.full(len(table.problems), np.inf)
    high = np.full(len(table.problems), -np.inf)
    np.minimum.at(low, table.problem, table.outcome)
    np.maximum.at(high, table.problem, table.outcome)
    varying: NDArray[np.bool_] = (low < high)[table.problem]
    return varying


def _knee(grid: FloatArray, curve: FloatArray) -> float:
    """κ, NaN where the slope never falls below a tenth of its peak after it."""
    slope = np.abs(np.gradient(curve, grid))
    peak = int(slope.argmax())
    after = np.flatnonzero(slope[peak:] < KNEE * slope[peak])
    return float(grid[peak + after[0]]) if after.size else float("nan")


def _saturation(grid: FloatArray, curve: FloatArray) -> float:
    """ξ, NaN for a curve that ends where it began."""
    change = curve - curve[0]
    if change[-1] == 0.0:
        return float("nan")
    return float(grid[np.flatnonzero(change / change[-1] >= ACCRUED)[0]])


def _estimate(values: list[float], reason: str, no_interval: str | None) -> Estimate:
    """The first value is the point, the rest are its resamples."""
    if np.isnan(values[0]):
        return Estimate(undefined(reason), _no_interval(reason))
    interval = _no_interval(no_interval) if no_interval else percentile_interval(np.array(values[1:]))
    return Estimate(Value(values[0]), interval)


def _no_interval(reason: str) -> Interval:
    return Interval(None, None, reason=reason)


def _curve(grid: FloatArray, curves: FloatArray, reason: str | None) -> Curve:
    value = tuple(curves[0].tolist())
    if reason is not None:
        return Curve(tuple(grid.tolist()), value, (), (), reason)
    low, high = np.quantile(curves[1:], [0.025, 0.975], axis=0)
    return Curve(tuple(grid.tolist()), value, tuple(low.tolist()), tuple(high.tolist()), None)


def _undefined(table: InterventionTable, controlled: bool, dropped: int, reason: str) -> LengthResponse:
    missing = undefined(reason)
    nothing = Estimate(missing, _no_interval(reason))
    return LengthResponse(
        controlled=controlled,
        rows=table.size,
        problems=len(table.problems) - dropped if reason == ALL_CONSTANT else len(table.problems),
        dropped_problems=dropped,
        models=len(table.models),
        start=None,
        knee=nothing,
        saturation=nothing,
        drop=nothing,
        resampled="models" if len(table.models) > 1 else "problems",
        p_significant=missing,
        p_nonlinear=missing,
        difference_aic=missing,
        curve=Curve((), (), (), (), reason),
        fixed=(),
        note=None,
        reason=reason,
    )
