"""The cubic B-spline of a treatment, or a straight line where there are too few doses (SALT appendix B.2.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scoring.scored_units import FloatArray

DEGREE = 3
TERMS = 5
"""Columns of the basis; the first of the six functions is left out, because the regression has a constant."""

MARGIN = 1e-6
"""The boundary knots stand this share of the range outside it."""

FEW_DOSES = "linear: fewer than six distinct doses"
COINCIDENT_KNOTS = "linear: knots of the spline coincide"


@dataclass(frozen=True, slots=True)
class DoseBasis:
    """Columns that a treatment enters a regression with.

    Attributes:
        knots: the full knot vector, boundary knots repeated; empty for a straight line.
        note: why it is a straight line, None for a spline.
    """

    knots: tuple[float, ...]
    note: str | None

    def columns(self, treatment: FloatArray) -> FloatArray:
        """Return the basis at these doses, shape ``(n, 5)``, or ``(n, 1)`` for a line; inside the boundary knots."""
        if not self.knots:
            return treatment[:, None]
        from scipy.interpolate import BSpline

        knots = np.array(self.knots)
        inside = np.clip(treatment, knots[0], knots[-1])
        columns: FloatArray = BSpline.design_matrix(inside, knots, DEGREE).toarray()[:, 1:]
        return columns


def dose_basis(treatment: FloatArray) -> DoseBasis:
    """Return the basis for these doses: five columns, inner knots at the quantiles ⅓ and ⅔ of the rows.

    This is ``bs(T, df=5, degree=3, lower_bound, upper_bound)`` of patsy, with bounds 1e-6 of the range outside.
    Fewer than six distinct doses, or knots that coincide (a third of all rows at one dose can do that), give a
    straight line and the note that says so (our reading).

    Args:
        treatment: shape ``(n,)``, at least two distinct doses.
    """
    if np.unique(treatment).size < TERMS + 1:
        return DoseBasis((), FEW_DOSES)
    low, high = float(treatment.min()), float(treatment.max())
    margin = MARGIN * (high - low)
    inner = np.quantile(treatment, [1.0 / 3.0, 2.0 / 3.0])
    if min(inner[0] - low, inner[1] - inner[0], high - inner[1]) <= margin:
        return DoseBasis((), COINCIDENT_KNOTS)
    ends = DEGREE + 1
    knots = [low - margin] * ends + inner.tolist() + [high + margin] * ends
    return DoseBasis(tuple(knots), None)
