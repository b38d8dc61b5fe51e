"""Probabilities of all options of a multiple-choice problem: are they calibrated, and how good are they?

A row is one problem.  Its options have letters; rows may offer different numbers of them.  Source: the
calibration guide, sections "Multiclass calibration gets trickier", "Temperature scaling" and "Multiple choice is the
easy LLM case".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoring.calibration_error import expected_calibration_error
from scoring.calibrators_fitted import Unfitted
from scoring.calibrators_parametric import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from scoring.cross_fitting import answer_folds
from scoring.scored_units import FloatArray, IntArray, ScoredUnits
from scoring.value import NO_UNITS, TOO_FEW_GENERATIONS, Value, undefined

TEMPERATURE = "temperature"
IMPOSSIBLE = "the right letter has probability 0"
NOTHING_TO_FIT = "every answer gives its letters equal probability, or all of it to one"

_SUM_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTable:
    """Probabilities of the letters of problems, renormalised over those that each offers.

    Attributes:
        probability: shape ``(n, k)``, in [0, 1]; NaN where a row does not offer the letter.
        right: column of the right letter, shape ``(n,)``.
    """

    probability: FloatArray
    right: IntArray

    @classmethod
    def of(cls, probability: ArrayLike, right: ArrayLike) -> ChoiceTable:
        """Check the rows.

        Raises:
            ValueError: probabilities outside [0, 1] or that do not sum to 1, or a right letter that is not offered.
        """
        values = np.asarray(probability, dtype=np.float64)
        places = np.asarray(right, dtype=np.int64)
        if values.ndim != 2 or places.shape != (len(values),):
            raise ValueError(f"rows of letters and one right letter each, not {values.shape} and {places.shape}")
        if places.size and not (places.min() >= 0 and places.max() < values.shape[1]):
            raise ValueError("a right letter is none of the columns")
        if np.isnan(values[np.arange(len(values)), places]).any():
            raise ValueError("a right letter is not offered")
        if ((values < 0.0) | (values > 1.0)).any():
            raise ValueError("a probability lies outside [0, 1]")
        if len(values) and np.abs(np.nansum(values, axis=1) - 1.0).max() > _SUM_ROUNDING:
            raise ValueError("the probabilities of a row do not sum to 1")
        return cls(values, places)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.right)

    @property
    def outcome(self) -> FloatArray:
        """1 at the right letter of each row, 0 at the others, shape ``(n, k)``."""
        hit = np.zeros(self.probability.shape)
        hit[np.arange(self.n), self.right] = 1.0
        return hit

    def part(self, rows: NDArray[np.bool_]) -> ChoiceTable:
        """Return some of the rows."""
        return ChoiceTable(self.probability[rows], self.right[rows])


def brier_losses(table: ChoiceTable) -> FloatArray:
    """Return Σ over the offered letters of (p − y)² for each row, in [0, 2], shape ``(n,)``."""
    losses: FloatArray = np.nansum((table.probability - table.outcome) ** 2, axis=1)
    return losses


def multiclass_brier(table: ChoiceTable) -> Value:
    """Return the mean over rows of Σ (p − y)² over the letters, in [0, 2], lower is better.

    It is not divided by the number of letters: for two letters it is twice the Brier score of one.  Undefined without
    rows.  Source: calibration guide.
    """
    return Value(float(brier_losses(table).mean())) if table.n else undefined(NO_UNITS)


def classwise_ece(table: ChoiceTable) -> Value:
    """Return the mean over letters of the expected calibration error of each, in [0, 1], lower is better.

    For a letter, its probability in the rows that offer it is compared with how often it is right, in 15 equal-width
    bins.  Letters that no row offers are not in the mean; one that is offered and never right is.  Undefined without
    rows.  Source: calibration guide; the mean over letters is our reading.
    """
    errors = []
    for letter, values in enumerate(table.probability.T):
        offered = ~np.isnan(values)
        if offered.any():
            units = ScoredUnits.from_columns(values[offered], table.right[offered] == letter)
            errors.append(expected_calibration_error(units).value or 0.0)
    return Value(float(np.mean(errors))) if errors else undefined(NO_UNITS)


def multiclass_nll(table: ChoiceTable) -> Value:
    """Return the mean of −ln p of the right letter, in [0, ∞], lower is better; a right letter at 0 makes it ∞.

    Undefined without rows.  Source: calibration guide.
    """
    if not table.n:
        return undefined(NO_UNITS)
    with np.errstate(divide="ignore"):
        losses = -np.log(table.probability[np.arange(table.n), table.right])
    return Value(float(losses.mean()) + 0.0)


@dataclass(frozen=True, slots=True)
class ChoiceMetric:
    """One metric of all letters.

    Attributes:
        name: the key in the registry.
        title: for tables.
        function: from rows to a value.
        formula: the definition in one line.
        maximum: upper end of the range, which begins at 0; lower is better.
        degenerate: what it gives where something is special, in one line.
        source: where it is defined.
    """

    name: str
    title: str
    function: Callable[[ChoiceTable], Value]
    formula: str
    maximum: float
    degenerate: str
    source: str


CHOICE_METRICS: dict[str, ChoiceMetric] = {
    metric.name: metric
    for metric in (
        ChoiceMetric(
            "multiclass_brier",
            "Brier (0–2)",
            multiclass_brier,
            "mean over problems of Σ (p − y)² over the letters; not divided by the number of letters",
            2.0,
            "no problem: undefined; two letters: twice the Brier score of one of them",
            "calibration guide",
        ),
        ChoiceMetric(
            "classwise_ece",
            "class-wise ECE",
            classwise_ece,
            "mean over letters of the ECE (15 equal-width bins) of the letter's probability, over the problems that "
            "offer it",
            1.0,
            "no problem: undefined; a letter that nobody offers is not in the mean, one that is never right is",
            "calibration guide; the mean over letters is our reading",
        ),
        ChoiceMetric(
            "multiclass_nll",
            "NLL",
            multiclass_nll,
            "mean over problems of −ln p of the right letter",
            np.inf,
            "no problem: undefined; a right letter at probability 0: ∞",
            "calibration guide",
        ),
    )
}
"""By name."""


@dataclass(frozen=True, slots=True)
class ChoiceTemperature:
    """The temperature that fits rows best.

    Attributes:
        temperature: T, in [0.01, 100].
        note: what the fit had to say; None for nothing.
    """

    temperature: float
    note: str | None


def at_temperature(table: ChoiceTable, temperature: float) -> ChoiceTable:
    """Return the rows with p^(1/T), renormalised: softmax of the log-probabilities divided by T.

    The order of the letters stays, and 0 stays 0.

    Args:
        table: the rows.
        temperature: T, above 0; larger ones make rows flatter.

    Raises:
        ValueError: T is not above 0.
    """
    if not temperature > 0.0:
        raise ValueError(f"a temperature is above 0, not {temperature}")
    logits = _logits(table.probability) / temperature
    weights = np.exp(logits - np.nanmax(logits, axis=1, keepdims=True)) if table.n else logits
    return ChoiceTable(weights / np.nansum(weights, axis=1, keepdims=True), table.right)


def fit_temperature(table: ChoiceTable) -> ChoiceTemperature | Unfitted:
    """Return the T in [0.01, 100] with the least mean of −ln p of the right letter (Guo et al. 2017).

    The loss is convex in 1/T, so its slope has one zero.  Rows whose right letter has probability 0 have an infinite
    loss at every T: they are left out of the fit, and noted.

    Returns:
        Why there is none: no rows, or none whose right letter is possible.
    """
    possible = table.probability[np.arange(table.n), table.right] > 0.0
    kept = table.part(possible)
    if not kept.n:
        return Unfitted(TEMPERATURE, f"{IMPOSSIBLE} in every answer" if table.n else NO_UNITS)
    left_out = table.n - kept.n
    said = f"{left_out} of {table.n} answers not used in the fit: {IMPOSSIBLE}" if left_out else None
    logits = _logits(kept.probability)
    rows = np.arange(kept.n)
    finite = np.where(np.isfinite(logits), logits, 0.0)
    right = finite[rows, kept.right]

    def slope(inverse: float) -> float:
        expected = np.nansum(at_temperature(kept, 1.0 / inverse).probability * finite, axis=1)
        return float(np.mean(expected - right))

    low, high = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
    if not (np.nanmax(logits, axis=1) > _lowest_possible(logits)).any():
        return ChoiceTemperature(1.0, _joined(NOTHING_TO_FIT, said))
    if slope(low) >= 0.0:
        note = "T is at its upper limit 100: the probabilities say nothing, or the opposite"
        return ChoiceTemperature(HIGHEST_TEMPERATURE, _joined(note, said))
    if slope(high) <= 0.0:
        note = "T is at its lower limit 0.01: the likeliest letter is right in every answer"
        return ChoiceTemperature(LOWEST_TEMPERATURE, _joined(note, said))
    from scipy.optimize import brentq

    return ChoiceTemperature(1.0 / float(brentq(slope, low, high, xtol=1e-14, rtol=1e-14)), said)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledChoices:
    """Rows after temperature scaling, each at a temperature that was fitted on other rows.

    Attributes:
        table: all rows.
        notes: what the fits had to say, each once.
    """

    table: ChoiceTable
    notes: tuple[str, ...]


def cross_fit_temperature(table: ChoiceTable) -> ScaledChoices | Unfitted:
    """Scale every row by the temperature of the other folds: five, by problem, as for every other map.

    Args:
        table: one row per problem, in the order of their answers.

    Returns:
        Why there is none: fewer than two rows, or the reason of a fit.
    """
    if table.n < 2:
        return Unfitted(TEMPERATURE, TOO_FEW_GENERATIONS)
    fold = answer_folds(table.n)
    scaled = np.full(table.probability.shape, np.nan)
    notes: dict[str, None] = {}
    for number in np.unique(fold):
        held_out = fold == number
        fitted = fit_temperature(table.part(~held_out))
        if isinstance(fitted, Unfitted):
            return fitted
        if fitted.note is not None:
            notes[fitted.note] = None
        scaled[held_out] = at_temperature(table.part(held_out), fitted.temperature).probability
    return ScaledChoices(ChoiceTable(scaled, table.right), tuple(notes))


def _logits(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(probability)


def _lowest_possible(logits: FloatArray) -> FloatArray:
    """Return the least finite log-probability of each row."""
    lowest: FloatArray = np.nanmin(np.where(np.isneginf(logits), np.nan, logits), axis=1)
    return lowest


def _joined(*notes: str | None) -> str:
    return "; ".join(note for note in notes if note)
