"""Calibrated values for every unit, each from a map fitted on other generations only (calibration guide)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scoring.calibrators import Calibrator
from scoring.calibrators_fitted import (
    FloatArray,
    Unfitted,
    as_correct_column,
    as_score_column,
    training_sample,
)
from scoring.scored_units import IntArray
from scoring.value import TOO_FEW_GENERATIONS

FOLDS = 5
DEFAULT_SEED = 20260424
TRAINING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """Calibrated values of units whose map was fitted on other generations.

    Attributes:
        method: name of the calibrator.
        rows: shape (m,), the input rows that have a value, ascending; all of them under folds, those of the test
            generations under one split.
        values: shape (m,), in [0, 1], for these rows.
        fold: shape (m,), whose map gave the value: 0, 1, … in no order.
        strictly_rising: whether every fitted map is; ranking metrics are then computed from the raw scores, else
            inside folds, because pooling the folds would change the order (`scoring.ranking_inside_folds`).
        notes: what the fits had to say, each once.
        folds: number of maps that were fitted.
    """

    method: str
    rows: NDArray[np.int64]
    values: FloatArray
    fold: IntArray
    strictly_rising: bool
    notes: tuple[str, ...]
    folds: int


def cross_fit(
    calibrator: Calibrator,
    scores: ArrayLike,
    correct: ArrayLike,
    generations: ArrayLike,
    *,
    higher_is_confident: bool = True,
    one_split: bool = False,
    generator: np.random.Generator | None = None,
) -> CrossFitted | Unfitted:
    """Fits on some generations and applies to others, so that no unit is calibrated by its own answer.

    Units of one (model, task, method) and one confidence function belong in one call.  Which generation is in which
    fold depends on the generations' identities and the generator alone, not on the order of the rows.

    Args:
        calibrator: the map.
        scores: shape (n,), the confidence function's values.
        correct: shape (n,), 1 or true where the unit is correct.
        generations: shape (n,), the generation each unit belongs to (any sortable labels).
        higher_is_confident: False for scores such as perplexity.
        one_split: one split of the generations into halves as in the paper, instead of five folds.
        generator: draws the folds; by default one with a fixed seed.

    Returns:
        Values for the rows that were held out, or why there are none: fewer than two generations, or the reason of
        the fit.  With two to four generations there are as many folds.

    Raises:
        ValueError: a score is NaN, a label is neither 0 nor 1, or lengths differ.
    """
    column = as_score_column(scores)
    labels = as_correct_column(correct, column.size)
    identities, owner = np.unique(np.asarray(generations), return_inverse=True)
    if owner.shape != column.shape:
        raise ValueError(f"{column.size} scores need {column.size} generations, not {owner.size}")
    if identities.size < 2:
        return Unfitted(calibrator.name, TOO_FEW_GENERATIONS)
    # A map that a single score rules out must be ruled out whole, not only in the folds that train on it.
    whole = training_sample(
        calibrator.name,
        column,
        labels,
        higher_is_confident=higher_is_confident,
        needs_probability=calibrator.needs_probability,
    )
    if isinstance(whole, Unfitted):
        return whole
    draw = generator if generator is not None else np.random.default_rng(DEFAULT_SEED)
    fold_of_generation = _one_split(identities.size, draw) if one_split else _folds(identities.size, draw)
    fold = fold_of_generation[owner]
    values = np.zeros(column.size)
    notes: dict[str, None] = {}
    rising = True
    tested = np.unique(fold_of_generation[fold_of_generation >= 0])
    for number in tested:
        held_out = fold == number
        fitted = calibrator.fit(column[~held_out], labels[~held_out], higher_is_confident=higher_is_confident)
        if isinstance(fitted, Unfitted):
            return fitted
        values[held_out] = fitted.apply(column[held_out])
        rising = rising and fitted.strictly_rising
        if fitted.note is not None:
            notes[fitted.note] = None
    rows = np.flatnonzero(fold >= 0)
    return CrossFitted(calibrator.name, rows, values[rows], fold[rows], rising, tuple(notes), int(tested.size))


def answer_folds(answers: int) -> NDArray[np.int64]:
    """Return the fold of each answer as `cross_fit` draws them by default, shape ``(answers,)``."""
    return _folds(answers, np.random.default_rng(DEFAULT_SEED))


def _folds(generations: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Fold of each generation; sizes differ by at most one."""
    fold = np.empty(generations, dtype=np.int64)
    fold[generator.permutation(generations)] = np.arange(generations) % min(FOLDS, generations)
    return fold


def _one_split(generations: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """−1 for generations to train on, 0 for those to apply to; at least one of each."""
    trained = max(1, int(generations * TRAINING_SHARE))
    fold = np.zeros(generations, dtype=np.int64)
    fold[generator.permutation(generations)[:trained]] = -1
    return fold
