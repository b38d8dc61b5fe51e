"""What changing the correctness of the prefix does to the next atom (SALT tables 4, figures 4 and 25, appendix B.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scoring.intervals import DRAWS, Interval
from scoring.interventions import (
    FEWEST_PROBLEMS,
    NO_CORRECTION,
    NO_CORRUPTION,
    NO_ROWS,
    NO_TARGET_WITH_BOTH,
    NOTHING_CHANGED,
    ONE_DOSE,
    ROWS_PER_MODEL,
    SEED,
    TOO_FEW_PROBLEMS,
    InterventionTable,
    curve_grid,
    drawn_problems,
    percentile_interval,
)
from scoring.interventions_basis import DoseBasis, dose_basis
from scoring.interventions_least_squares import (
    clustered_test,
    nested_test,
    problem_moments,
    solve_moments,
    within_problems,
)
from scoring.scored_units import FloatArray
from scoring.value import Value, undefined

Treatment: TypeAlias = Literal["global", "local"]
TREATMENTS: tuple[Treatment, ...] = ("global", "local")
OTHER: dict[Treatment, Treatment] = {"global": "local", "local": "global"}

NEVER_CHANGED = "the curve does not leave 0 there"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the interval of 1,000 resamples of problems, each fitted again."""

    value: Value
    interval: Interval


@dataclass(frozen=True, slots=True)
class SideEffects:
    """What correction and corruption do, each on its side of dose 0.

    Attributes:
        plus: mean of the curve over grid points with T > 0 (the paper's ΔP₊).
        minus: mean over T < 0 (ΔP₋).
        ratio: |ΔP₋ / ΔP₊|; it mixes the range of the doses with the effect.
        plus_per_unit: mean of the curve over T > 0 less its value at 0, divided by the mean dose there (ours).
        minus_per_unit: the same for T < 0; positive when corruption hurts.
        ratio_per_unit: |the second / the first|: 1 for a linear effect whatever the doses.
        targets: targets behind it.
    """

    plus: Estimate
    minus: Estimate
    ratio: Estimate
    plus_per_unit: Estimate
    minus_per_unit: Estimate
    ratio_per_unit: Estimate
    targets: int


@dataclass(frozen=True, slots=True)
class Curve:
    """ΔP at the doses of the grid, with the pointwise 95 % interval where there is one.

    Attributes:
        dose: shape ``(60,)``.
        value: mean prediction of the paired outcome.
        low: lower end, empty without an interval.
        high: upper end.
        reason: why there is no interval, None where there is one.
    """

    dose: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    reason: str | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """One row of table 4 with the additions that this project makes.

    Attributes:
        treatment: which dose is varied.
        adjusted: whether the other treatment is a linear covariate.
        rows: replays, baselines included.
        baselines: targets.
        problems: distinct problems.
        models: distinct models.
        doses: smallest and largest dose.
        slope: secant slope of the curve over the full range of doses, per unit of T.
        sides: ΔP₊, ΔP₋ and their ratios on all targets.
        both_directions: the same on the targets with both directions, fitted to them alone.
        p_row: the paper's F-test of the basis; rows count as independent, so it is too sure.
        p_nonlinear_row: the paper's F-test of the spline against a line.
        difference_aic: AIC(linear) − AIC(spline); positive prefers the spline.
        p_clustered: the test of the basis with residuals clustered by problem.
        p_nonlinear_clustered: the test of the spline against a line, clustered.
        curve: the mean prediction, over rows of a model and then over models.
        per_model_curve: the mean of separate fits to each model (appendix B.2.10), empty with one model.
        note: why a line replaces the spline, None for a spline.
        reason: why there is no fit at all; everything else is then undefined.
    """

    treatment: Treatment
    adjusted: bool
    rows: int
    baselines: int
    problems: int
    models: int
    doses: tuple[float, float] | None
    slope: Estimate
    sides: SideEffects
    both_directions: SideEffects
    p_row: Value
    p_nonlinear_row: Value
    difference_aic: Value
    p_clustered: Value
    p_nonlinear_clustered: Value
    curve: Curve
    per_model_curve: tuple[float, ...]
    note: str | None
    reason: str | None


def contrasts(table: InterventionTable, draws: int = DRAWS) -> tuple[Contrast, ...]:
    """Fit the four contrasts of table 4: both treatments, without and with the other one as a covariate.

    Paired outcome by least squares on the cubic B-spline of the dose, with standardised p*, correctness of the
    unchanged prefix (for the local treatment also of its last ten atoms), one constant per problem and per model.

    Args:
        table: rows with their baselines.
        draws: resamples of problems behind the intervals.
    """
    return tuple(contrast(table, name, adjusted, draws) for name in TREATMENTS for adjusted in (False, True))


def contrast(table: InterventionTable, treatment: Treatment, adjusted: bool, draws: int = DRAWS) -> Contrast:
    """Fit one contrast; a degenerate design gives a contrast that holds the reason and nothing else."""
    reason = _degenerate(table, treatment)
    if reason is not None:
        return _undefined(table, treatment, adjusted, reason)
    fit = _Fit(table, treatment, adjusted)
    curves = fit.curves(draws)
    slopes = (curves[:, -1] - curves[:, -2]) / (fit.high - fit.low)
    both = table.with_both_directions(treatment)
    return Contrast(
        treatment=treatment,
        adjusted=adjusted,
        rows=table.size,
        baselines=table.targets,
        problems=len(table.problems),
        models=len(table.models),
        doses=(fit.low, fit.high),
        slope=_estimate(slopes, ONE_DOSE),
        sides=_sides(fit.grid, curves, table.targets),
        both_directions=_both_directions(both, treatment, adjusted, draws),
        p_row=fit.significance.p_value,
        p_nonlinear_row=fit.nonlinearity.p_value,
        difference_aic=fit.nonlinearity.difference_aic,
        p_clustered=fit.clustered(nonlinear=False),
        p_nonlinear_clustered=fit.clustered(nonlinear=True),
        curve=_curve(fit.grid, curves[:, :-3]),
        per_model_curve=_per_model_curve(table, treatment, adjusted, fit.grid),
        note=fit.basis.note,
        reason=None,
    )


class _Fit:
    """One design with its moments, fitted to all rows and to resamples of problems; for this module only."""

    def __init__(self, table: InterventionTable, treatment: Treatment, adjusted: bool) -> None:
        dose = table.treatments[treatment]
        self.table = table
        self.basis: DoseBasis = dose_basis(dose)
        self.grid = curve_grid(dose)
        self.low, self.high = float(dose.min()), float(dose.max())
        raw = self.basis.columns(dose)
        self._raw = raw
        self._terms = raw.shape[1]
        others = _covariates(table, treatment, adjusted)
        centred = within_problems(np.column_stack([raw, others, dose, table.paired]), table.problem)
        basis, rest = centred[:, : self._terms], centred[:, self._terms : -2]
        line, outcome = centred[:, -2:-1], centred[:, -1:]
        self._columns = np.column_stack([basis, rest])
        self._centred = (basis, rest, line, outcome[:, 0])
        self._moments = problem_moments(np.column_stack([self._columns, outcome]), table.problem)
        total = self._moments.sum(axis=0)
        self.full = solve_moments(total)
        kept = [*range(self._terms, total.shape[0])]
        flat = solve_moments(total[np.ix_(kept, kept)])
        straight_columns = np.column_stack([line, rest, outcome])
        straight = solve_moments(straight_columns.T @ straight_columns)
        size, problems, squares = table.size, len(table.problems), float(total[-1, -1])
        self.significance = nested_test(self.full, flat, size, problems, squares)
        self.nonlinearity = nested_test(self.full, straight, size, problems, squares)
        self._sums = _sums(np.column_stack([table.paired, raw]), table)

    def clustered(self, *, nonlinear: bool) -> Value:
        """Return the clustered p-value of the basis, or of what it has beyond a line."""
        basis, rest, line, outcome = self._centred
        others = np.column_stack([rest, line]) if nonlinear else rest
        return clustered_test(basis, others, outcome, self.table.problem)

    def curves(self, draws: int) -> FloatArray:
        """Return the curve at the grid, at 0 and at the smallest and largest dose, shape ``(1 + draws, 63)``.

        The first row is the fit: mean predictions over at most 2,000 rows of each model, then over models.  The others
        are resamples of problems, with all rows and the basis as it is; there are none below ten problems.
        """
        dose = np.append(self.grid, [0.0, self.low, self.high])
        if len(self.table.problems) < FEWEST_PROBLEMS:
            return self.at(dose)[None, :]
        return np.vstack([self.at(dose), self._resampled(dose, draws)])

    def at(self, dose: FloatArray) -> FloatArray:
        """Return the curve at these doses, which lie inside the range of the rows."""
        beta = self.full.coefficients[: self._terms]
        table = self.table
        residual = self._centred[3] - self._columns @ self.full.coefficients
        rest = table.paired - residual - self._raw @ beta
        generator = np.random.default_rng(SEED)
        levels = []
        for model in range(len(table.models)):
            rows = np.flatnonzero(table.model == model)
            if rows.size > ROWS_PER_MODEL:
                rows = generator.choice(rows, ROWS_PER_MODEL, replace=False)
            levels.append(float(rest[rows].mean()))
        values: FloatArray = self.basis.columns(dose) @ beta + float(np.mean(levels))
        return values

    def _resampled(self, dose: FloatArray, draws: int) -> FloatArray:
        at = self.basis.columns(dose)
        values = np.empty((draws, dose.size))
        for index, weights in enumerate(drawn_problems(self.table, draws)):
            beta = solve_moments(np.tensordot(weights, self._moments, axes=1)).coefficients[: self._terms]
            sums = np.tensordot(weights, self._sums, axes=1)
            present = sums[:, 0] > 0.0
            levels = (sums[present, 1] - sums[present, 2:] @ beta) / sums[present, 0]
            values[index] = at @ beta + levels.mean()
        return values


def _covariates(table: InterventionTable, treatment: Treatment, adjusted: bool) -> FloatArray:
    columns = [table.target.astype(np.float64), table.correct_before["global"]]
    if treatment == "local":
        columns.append(table.correct_before["local"])
    if adjusted:
        columns.append(table.treatments[OTHER[treatment]])
    columns.extend((table.model == model).astype(np.float64) for model in range(1, len(table.models)))
    position = columns[0]
    spread = float(position.std())
    columns[0] = (position - position.mean()) / (spread if spread > 0.0 else 1.0)
    return np.column_stack(columns)


def _sums(columns: FloatArray, table: InterventionTable) -> FloatArray:
    """Rows, then sums of the columns, by problem and model: shape ``(problems, models, 1 + k)``."""
    shape = (len(table.problems), len(table.models))
    cell = table.problem * shape[1] + table.model
    count = shape[0] * shape[1]
    ones = np.ones((table.size, 1))
    sums = [np.bincount(cell, weights=column, minlength=count) for column in np.hstack([ones, columns]).T]
    return np.array(sums, dtype=np.float64).T.reshape(*shape, -1)


def _degenerate(table: InterventionTable, treatment: Treatment) -> str | None:
    if not table.size:
        return NO_ROWS
    if np.ptp(table.treatments[treatment]) == 0.0:
        return ONE_DOSE
    if not table.paired.any():
        return NOTHING_CHANGED
    return None


def _sides(grid: FloatArray, curves: FloatArray, targets: int) -> SideEffects:
    """Summarise rows of `_Fit.curves`."""
    plus, minus, zero = grid > 0.0, grid < 0.0, curves[:, -3]
    over = {"plus": _mean_over(curves[:, :-3], plus), "minus": _mean_over(curves[:, :-3], minus)}
    dose = {name: float(grid[side].mean()) if side.any() else 1.0 for name, side in (("plus", plus), ("minus", minus))}
    unit = {name: (over[name] - zero) / dose[name] for name in over}
    missing = NO_CORRECTION if not plus.any() else NO_CORRUPTION if not minus.any() else NEVER_CHANGED
    return SideEffects(
        plus=_estimate(over["plus"], NO_CORRECTION),
        minus=_estimate(over["minus"], NO_CORRUPTION),
        ratio=_estimate(_ratio(over["minus"], over["plus"]), missing),
        plus_per_unit=_estimate(unit["plus"], NO_CORRECTION),
        minus_per_unit=_estimate(unit["minus"], NO_CORRUPTION),
        ratio_per_unit=_estimate(_ratio(unit["minus"], unit["plus"]), missing),
        targets=targets,
    )


def _mean_over(curves: FloatArray, side: NDArray[np.bool_]) -> FloatArray:
    means: FloatArray = curves[:, side].mean(axis=1) if side.any() else np.full(len(curves), np.nan)
    return means


def _ratio(first: FloatArray, second: FloatArray) -> FloatArray:
    ratio: FloatArray = np.abs(first / np.where(second == 0.0, np.nan, second))
    return ratio


def _estimate(values: FloatArray, reason: str) -> Estimate:
    """The first value is the point, NaN where it is undefined; the rest are its resamples."""
    if np.isnan(values[0]):
        return Estimate(undefined(reason), _no_interval(reason))
    interval = percentile_interval(values[1:]) if values.size > 1 else _no_interval(TOO_FEW_PROBLEMS)
    return Estimate(Value(float(values[0])), interval)


def _no_interval(reason: str) -> Interval:
    return Interval(None, None, reason=reason)


def _curve(grid: FloatArray, curves: FloatArray) -> Curve:
    value = tuple(curves[0].tolist())
    if len(curves) == 1:
        return Curve(tuple(grid.tolist()), value, (), (), TOO_FEW_PROBLEMS)
    low, high = np.quantile(curves[1:], [0.025, 0.975], axis=0)
    return Curve(tuple(grid.tolist()), value, tuple(low.tolist()), tuple(high.tolist()), None)


def _both_directions(both: InterventionTable, treatment: Treatment, adjusted: bool, draws: int) -> SideEffects:
    if not both.size:
        return _no_sides(NO_TARGET_WITH_BOTH)
    reason = _degenerate(both, treatment)
    if reason is not None:
        return _no_sides(reason)
    fit = _Fit(both, treatment, adjusted)
    return _sides(fit.grid, fit.curves(draws), both.targets)


def _per_model_curve(
    table: InterventionTable, treatment: Treatment, adjusted: bool, grid: FloatArray
) -> tuple[float, ...]:
    """Models whose own design is degenerate are left out; doses beyond a model's own range take its end."""
    if len(table.models) < 2:
        return ()
    curves = []
    for model in range(len(table.models)):
        own = table.selected(table.model == model)
        if _degenerate(own, treatment) is None:
            fit = _Fit(own, treatment, adjusted)
            curves.append(fit.at(np.clip(grid, fit.low, fit.high)))
    return tuple(np.mean(curves, axis=0).tolist()) if curves else ()


def _no_sides(reason: str) -> SideEffects:
    nothing = Estimate(undefined(reason), _no_interval(reason))
    return SideEffects(nothing, nothing, nothing, nothing, nothing, nothing, 0)


def _undefined(table: InterventionTable, treatment: Treatment, adjusted: bool, reason: str) -> Contrast:
    missing = undefined(reason)
    doses = table.treatments[treatment]
    return Contrast(
        treatment=treatment,
        adjusted=adjusted,
        rows=table.size,
        baselines=table.targets,
        problems=len(table.problems),
        models=len(table.models),
        doses=(float(doses.min()), float(doses.max())) if table.size else None,
        slope=Estimate(missing, _no_interval(reason)),
        sides=_no_sides(reason),
        both_directions=_no_sides(reason),
        p_row=missing,
        p_nonlinear_row=missing,
        difference_aic=missing,
        p_clustered=missing,
        p_nonlinear_clustered=missing,
        curve=Curve((), (), (), (), reason),
        per_model_curve=(),
        note=None,
        reason=reason,
    )
