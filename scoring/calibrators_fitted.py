"""What every calibration map shares: the training sample, the fitted map and the reasons for having none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

PROBABILITY_CLIP = 1e-6  # keeps logarithms and separable fits finite
LARGEST_SCORE = 1e150  # squares of larger scores overflow


class ConfidenceMap(Protocol):
    """Maps oriented scores (higher is more confident) to [0, 1], element by element."""

    @property
    def strictly_rising(self) -> bool:
        """Whether a higher score always gets a higher value, so that the raw scores rank as the values do."""
        ...

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Values for the scores, same shape."""
        ...


@dataclass(frozen=True, slots=True)
class Unfitted:
    """No map could be fitted; the calibrated values are undefined for ``reason``."""

    method: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibration map fitted on one set of units, to be applied to others.

    Attributes:
        method: name of the calibrator, such as ``binned:10``.
        higher_is_confident: direction of the scores it was fitted on and is applied to.
        needs_probability: whether scores outside [0, 1] are refused.
        mapping: the map of oriented scores, with its parameters.
        lowest: the lowest score it was fitted on, as given.
        highest: the highest one.
        note: what a reader should know about the fit (constant scores, one class, …), or None.
    """

    method: str
    higher_is_confident: bool
    needs_probability: bool
    mapping: ConfidenceMap
    lowest: float
    highest: float
    note: str | None

    @property
    def strictly_rising(self) -> bool:
        """Whether the values rank exactly as the raw confidences; ranking metrics then use the raw ones."""
        return self.mapping.strictly_rising

    def outside(self, scores: ArrayLike) -> int:
        """Count the scores, shape (n,), beyond those that the map was fitted on; there it can only guess.

        Raises:
            ValueError: a score is NaN.
        """
        column = as_score_column(scores)
        return int(((column < self.lowest) | (column > self.highest)).sum())

    def apply(self, scores: ArrayLike) -> FloatArray:
        """Calibrated values in [0, 1], finite, one per score and in the same order.

        Args:
            scores: shape (n,), the same confidence function as in the fit; infinite ones count as very large.

        Raises:
            ValueError: a score is NaN, or is outside [0, 1] where the map needs a probability.
        """
        column = as_score_column(scores)
        if self.needs_probability:
            _refuse_outside_unit_interval(self.method, column)
        oriented = orient(column, higher_is_confident=self.higher_is_confident, probability=self.needs_probability)
        bounded = np.clip(oriented, -LARGEST_SCORE, LARGEST_SCORE)
        with np.errstate(over="ignore", under="ignore"):
            return np.clip(self.mapping(bounded), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """Training units: oriented scores (higher is more confident) and 1.0 or 0.0 for correct or not; n ≥ 1.

    Wrong units come first, then correct ones, each with ascending scores.
    """

    confidence: FloatArray
    correct: FloatArray

    @property
    def base_rate(self) -> float:
        """Share of correct units, in [0, 1]."""
        return float(self.correct.mean())

    @property
    def constant(self) -> bool:
        """Whether all scores are equal."""
        return bool(self.confidence.min() == self.confidence.max())

    @property
    def one_class(self) -> bool:
        """Whether all units are correct or all are wrong."""
        return bool(self.correct.min() == self.correct.max())


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every score."""

    value: float

    @property
    def strictly_rising(self) -> bool:
        """Never: all scores are tied."""
        return False

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """``value`` for each score."""
        return np.full(confidence.shape, self.value)


def as_score_column(scores: ArrayLike) -> FloatArray:
    """Scores as a float64 column.

    Raises:
        ValueError: not one-dimensional, or a score is NaN.
    """
    column = np.asarray(scores, dtype=np.float64)
    if column.ndim != 1:
        raise ValueError(f"scores must be one column, not an array of shape {column.shape}")
    not_a_number = np.flatnonzero(np.isnan(column))
    if not_a_number.size:
        raise ValueError(f"score {not_a_number[0] + 1} of {column.size} is NaN; leave out units without a score")
    return column


def as_correct_column(correct: ArrayLike, size: int) -> FloatArray:
    """Correctness as 1.0 and 0.0.

    Raises:
        ValueError: another length than the scores, or a value that is neither true (1) nor false (0).
    """
    column = np.asarray(correct, dtype=np.float64)
    if column.shape != (size,):
        raise ValueError(f"{size} scores need {size} correctness labels, not an array of shape {column.shape}")
    odd = np.flatnonzero((column != 0.0) & (column != 1.0))
    if odd.size:
        raise ValueError(f"correctness label {odd[0] + 1} of {size} is {column[odd[0]]:g}; only 0 and 1 are labels")
    return column


def orient(scores: FloatArray, *, higher_is_confident: bool, probability: bool) -> FloatArray:
    """Scores turned so that higher is more confident: negated, or 1 − u for an uncertainty u that must lie in [0, 1].

    The complement is our reading; the paper's maps that need a probability only meet rising ones.
    """
    if higher_is_confident:
        return scores
    return 1.0 - scores if probability else -scores


def training_sample(
    method: str, scores: ArrayLike, correct: ArrayLike, *, higher_is_confident: bool, needs_probability: bool
) -> Sample | Unfitted:
    """The oriented training sample, or why a map cannot be fitted on it (no units, infinite scores, no probability).

    Raises:
        ValueError: a score is NaN, a label is not 0 or 1, or lengths differ.
    """
    column = as_score_column(scores)
    labels = as_correct_column(correct, column.size)
    if not column.size:
        return Unfitted(method, "no units to fit on")
    if needs_probability and not bool(np.all((column >= 0.0) & (column <= 1.0))):
        return Unfitted(method, f"{method} needs scores in [0, 1]")
    if not bool(np.all(np.abs(column) <= LARGEST_SCORE)):
        return Unfitted(method, "infinite scores, or beyond 1e150")
    oriented = orient(column, higher_is_confident=higher_is_confident, probability=needs_probability)
    # In one order whatever the order of the rows, so that rounding cannot make a fit depend on it.
    wrong, right = np.sort(oriented[labels == 0.0]), np.sort(oriented[labels == 1.0])
    return Sample(np.concatenate([wrong, right]), np.repeat([0.0, 1.0], [wrong.size, right.size]))


def sigmoid(logits: FloatArray) -> FloatArray:
    """1 / (1 + e^−x) without overflow, in [0, 1]."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def _refuse_outside_unit_interval(method: str, column: FloatArray) -> None:
    outside = np.flatnonzero((column < 0.0) | (column > 1.0))
    if outside.size:
        first = outside[0]
        raise ValueError(f"{method} needs scores in [0, 1]; score {first + 1} of {column.size} is {column[first]:g}")
