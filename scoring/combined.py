"""Several confidence scores put together: a logistic model and a forest, always applied to answers not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scoring.cross_fitting import FOLDS

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Model: TypeAlias = Literal["logistic", "forest"]

TREES = 300
DEEPEST = 12
SMALLEST_LEAF = 5
STRENGTH = 1.0
"""Inverse of the ridge penalty of the logistic model, on standardised scores."""

MOST_ITERATIONS = 1000


@dataclass(frozen=True, slots=True)
class ScoredTable:
    """Units with several scores.

    Attributes:
        scores: by name a column of shape ``(n,)``, higher is more confident, NaN where there is none.
        correct: shape ``(n,)``.
        group: what is never split between training and application, such as the answer, shape ``(n,)``.
        task: code of the task, shape ``(n,)``.
    """

    scores: Mapping[str, FloatArray]
    correct: NDArray[np.bool_]
    group: IntArray
    task: IntArray

    def without(self, name: str) -> ScoredTable:
        """Return the table without one score."""
        kept = {other: column for other, column in self.scores.items() if other != name}
        return ScoredTable(kept, self.correct, self.group, self.task)


def folds_of(group: IntArray, generator: np.random.Generator) -> IntArray:
    """Return the fold of each unit: whole groups, five folds or as many as there are groups.

    Args:
        group: of each unit, shape ``(n,)``.
        generator: the only source of chance.
    """
    known, owner = np.unique(group, return_inverse=True)
    fold = np.empty(known.size, dtype=np.int64)
    fold[generator.permutation(known.size)] = np.arange(known.size) % FOLDS
    return fold[owner]


def combine(table: ScoredTable, model: Model, fold: IntArray, seed: int) -> FloatArray:
    """Return the probability that each unit is right, by a model fitted on the other folds.

    One model for all tasks, with the task among its inputs.  A score that is missing takes the median of those it is
    trained on, with a column of its own that says so.  Scores are standardised by the training units, infinite ones
    count as the largest finite one there.

    Args:
        table: units and scores.
        model: ``logistic`` (ridge) or ``forest``.
        fold: of each unit, from `folds_of`.
        seed: of the forest.

    Returns:
        Shape ``(n,)``, in [0, 1], higher is more confident; NaN in a fold whose training units are all right or all
        wrong, or where there is no score.
    """
    values = np.full(table.correct.size, np.nan)
    if not table.scores:
        return values
    for number in np.unique(fold):
        held_out = fold == number
        trained = ~held_out
        if np.unique(table.correct[trained]).size < 2:
            continue
        inputs = _inputs(table, trained)
        fitted = _MODELS[model](seed).fit(inputs[trained], table.correct[trained])
        values[held_out] = fitted.predict_proba(inputs[held_out])[:, 1]
    return values


def _inputs(table: ScoredTable, trained: NDArray[np.bool_]) -> FloatArray:
    columns = [(table.task == code).astype(np.float64) for code in np.unique(table.task)]
    for score in table.scores.values():
        finite = score[trained & np.isfinite(score)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        missing = np.isnan(score)
        filled = np.clip(np.where(missing, np.median(finite) if finite.size else 0.0, score), low, high)
        spread = float(np.std(filled[trained]))
        columns.append((filled - np.mean(filled[trained])) / spread if spread > 0.0 else np.zeros(score.size))
        if missing.any():
            columns.append(missing.astype(np.float64))
    return np.column_stack(columns)


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=STRENGTH, max_iter=MOST_ITERATIONS)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=TREES, max_depth=DEEPEST, min_samples_leaf=SMALLEST_LEAF, random_state=seed
    )


_MODELS: dict[Model, Callable[[int], Any]] = {"logistic": _logistic, "forest": _forest}


def mean_auroc(scores: FloatArray, correct: NDArray[np.bool_], task: IntArray, fold: IntArray | None) -> float | None:
    """Return the mean over tasks of the AUROC, counted inside folds; None where no task has both classes.

    Args:
        scores: shape ``(n,)``, higher is more confident; NaN is left out.
        correct: shape ``(n,)``.
        task: codes, shape ``(n,)``.
        fold: pairs count inside a fold only, as scores of different models do not compare; None: all pairs count.
    """
    values = [value for code in np.unique(task) if (value := _auroc(task == code, scores, correct, fold)) is not None]
    return float(np.mean(values)) if values else None


def _auroc(
    rows: NDArray[np.bool_], scores: FloatArray, correct: NDArray[np.bool_], fold: IntArray | None
) -> float | None:
    from scipy.stats import rankdata

    concordant = pairs = 0.0
    kept = rows & ~np.isnan(scores)
    for number in np.unique(fold[kept]) if fold is not None else (None,):
        inside = kept if number is None or fold is None else kept & (fold == number)
        right = correct[inside]
        positive, negative = int(right.sum()), int((~right).sum())
        concordant += float(rankdata(scores[inside])[right].sum()) - positive * (positive + 1) / 2
        pairs += positive * negative
    return concordant / pairs if pairs else None


def what_each_adds(
    table: ScoredTable, fold: IntArray, names: Sequence[str], counted: NDArray[np.bool_] | None = None
) -> dict[str, float | None]:
    """Return by how much the logistic model's mean AUROC falls without each score; below 0 it was better without.

    Args:
        table: units and all scores.
        fold: of each unit.
        names: of the scores to leave out, one at a time.
        counted: the units on which AUROC is measured, shape ``(n,)``; all are fitted on.  None counts all.

    Returns:
        By name, in [-1, 1]; None where it cannot be said.
    """
    measured = np.ones(table.correct.size, dtype=bool) if counted is None else counted
    whole = _logistic_auroc(table, fold, measured)
    found: dict[str, float | None] = {}
    for name in names:
        rest = None if whole is None else _logistic_auroc(table.without(name), fold, measured)
        found[name] = None if whole is None or rest is None else whole - rest
    return found


def _logistic_auroc(table: ScoredTable, fold: IntArray, counted: NDArray[np.bool_]) -> float | None:
    if not counted.any():
        return None
    values = combine(table, "logistic", fold, 0)[counted]
    return mean_auroc(values, table.correct[counted], table.task[counted], fold[counted])
