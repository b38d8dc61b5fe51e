"""Confidences and outcomes as every metric reads them: counts of right and wrong units per distinct confidence.

Sorting happens once; after it a metric is a few sums over the distinct confidences, ties need no special care, and
a bootstrap draw only changes the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Groups: TypeAlias = Sequence[object] | NDArray[np.generic]
Subject = TypeVar("Subject")
Result = TypeVar("Result")


class RowError(ValueError):
    """A row that no metric can read.

    Attributes:
        row: its 0-based index.
        problem: what is wrong with it, without the row.
    """

    def __init__(self, row: int, problem: str) -> None:
        """Name the row and the problem."""
        super().__init__(f"row {row}: {problem}")
        self.row = row
        self.problem = problem


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The distinct confidences, ascending, shape ``(k,)``, with what is derived from them alone.

    Bootstrap draws share one instance, so that nothing here is computed twice.
    """

    values: FloatArray

    @property
    def are_probabilities(self) -> bool:
        """Whether all values lie in [0, 1]; true for none at all."""
        return self.values.size == 0 or bool(self.values[0] >= 0.0 and self.values[-1] <= 1.0)

    @cached_property
    def log_values(self) -> FloatArray:
        """Natural logarithms; those of 0 are given as 0, to be masked by the reader."""
        return np.log(self.values, out=np.zeros_like(self.values), where=self.values > 0.0)

    @cached_property
    def log_complements(self) -> FloatArray:
        """Natural logarithms of 1 − value; those of 1 are given as 0, to be masked by the reader."""
        return np.log1p(-self.values, out=np.zeros_like(self.values), where=self.values < 1.0)


@dataclass(frozen=True, slots=True)
class GroupRanking:
    """How confidence ranks right against wrong units inside each generation that holds both.

    Attributes:
        auroc: area of each such generation, shape ``(g,)``.
        pairs: its number of (right, wrong) pairs, shape ``(g,)``.
        weight: how often it counts: 1, or its number of times in a bootstrap draw, shape ``(g,)``.
        left_out: number of generations without both classes.
    """

    auroc: FloatArray
    pairs: IntArray
    weight: IntArray
    left_out: int


@dataclass(frozen=True, eq=False)
class ScoredUnits:
    """Right and wrong units per distinct confidence, and the ranking inside generations where those are known.

    Attributes:
        thresholds: the distinct confidences, higher is more confident, shape ``(k,)``.
        correct: number of right units at each, shape ``(k,)``; whole numbers, exact below 2⁵³.
        wrong: number of wrong units at each, shape ``(k,)``.
        groups: None when no generations were given.
    """

    thresholds: Thresholds
    correct: FloatArray
    wrong: FloatArray
    groups: GroupRanking | None = None

    @classmethod
    def from_columns(
        cls,
        confidence: ArrayLike,
        correct: ArrayLike,
        groups: Groups | None = None,
        weights: ArrayLike | None = None,
    ) -> ScoredUnits:
        """Build from one row per unit.

        Args:
            confidence: finite numbers, higher is more confident, shape ``(n,)``.
            correct: booleans or 0 and 1, shape ``(n,)``.
            groups: the generation of each unit, any hashable labels, shape ``(n,)``.
            weights: how many units each row stands for, above 0, shape ``(n,)``; one each by default.

        Raises:
            RowError: for NaN, infinity, or a correctness other than 0 and 1; names the first such row.
            ValueError: for columns of different lengths.
        """
        return SortedColumns.from_columns(confidence, correct, groups, weights).units()

    @property
    def values(self) -> FloatArray:
        """The distinct confidences, ascending."""
        return self.thresholds.values

    @cached_property
    def n(self) -> float:
        """Number of units, or the sum of their weights."""
        return self.total_correct + self.total_wrong

    @cached_property
    def total_correct(self) -> float:
        """Number of right units, or the sum of their weights."""
        return total_of(self.correct)

    @cached_property
    def total_wrong(self) -> float:
        """Number of wrong units, or the sum of their weights."""
        return total_of(self.wrong)

    @cached_property
    def counts(self) -> FloatArray:
        """Number of units at each distinct confidence; 0 is possible in a bootstrap draw."""
        return self.correct + self.wrong

    @cached_property
    def correct_up_to(self) -> FloatArray:
        """Number of right units at or below each distinct confidence."""
        return np.cumsum(self.correct)

    @cached_property
    def wrong_up_to(self) -> FloatArray:
        """Number of wrong units at or below each distinct confidence."""
        return np.cumsum(self.wrong)

    @cached_property
    def counts_up_to(self) -> FloatArray:
        """Number of units at or below each distinct confidence."""
        return self.correct_up_to + self.wrong_up_to

    def require_probabilities(self) -> None:
        """Refuse confidences outside [0, 1].

        Raises:
            ValueError: naming the smallest or largest confidence.
        """
        if not self.thresholds.are_probabilities:
            value = self.values[0] if self.values[0] < 0.0 else self.values[-1]
            raise ValueError(f"this metric needs confidences in [0, 1], got {value}")


def total_of(counts: FloatArray) -> float:
    """Return a sum, as a whole number where it is one, so that products of counts stay exact."""
    total = float(counts.sum())
    return int(total) if total.is_integer() else total


@dataclass(frozen=True, slots=True)
class SortedColumns:
    """Rows sorted by confidence, from which units and their resamples are counted.

    Attributes:
        thresholds: distinct confidences, shape ``(k,)``.
        starts: index of the first row of each, shape ``(k,)``.
        correct: outcome of each row, 0.0 or 1.0, shape ``(n,)``.
        codes: generation of each row, 0-based, shape ``(n,)``; None when no generations were given.
        generations: number of generations; of rows when none were given.
        ranked: codes of the generations with both classes.
        ranking: how confidence ranks inside those; None when no generations were given.
        weights: how many units each row stands for, shape ``(n,)``; None for one each.
    """

    thresholds: Thresholds
    starts: IntArray
    correct: FloatArray
    codes: IntArray | None
    generations: int
    ranked: IntArray
    ranking: GroupRanking | None
    weights: FloatArray | None = None

    @classmethod
    def from_columns(
        cls,
        confidence: ArrayLike,
        correct: ArrayLike,
        groups: Groups | None = None,
        weights: ArrayLike | None = None,
    ) -> SortedColumns:
        """Check and sort the columns; see `ScoredUnits.from_columns`."""
        scores, outcomes = checked_columns(confidence, correct)
        codes = None if groups is None else group_codes(groups)
        if codes is not None and codes.size != scores.size:
            raise ValueError(f"confidence has {scores.size} rows and group {codes.size}")
        order = np.argsort(scores)
        scores, outcomes = scores[order], outcomes[order]
        is_start = np.concatenate(([True], scores[1:] != scores[:-1])) if scores.size else np.zeros(0, dtype=bool)
        starts = np.flatnonzero(is_start)
        thresholds = Thresholds(scores[starts])
        masses = None if weights is None else np.asarray(weights, dtype=np.float64)[order]
        if codes is None:
            nobody = np.zeros(0, dtype=np.int64)
            return cls(thresholds, starts, outcomes.astype(np.float64), None, scores.size, nobody, None, masses)
        codes = codes[order]
        ranked, ranking = _rank_inside_groups(np.cumsum(is_start), outcomes, codes)
        generations = int(codes.max()) + 1 if codes.size else 0
        return cls(thresholds, starts, outcomes.astype(np.float64), codes, generations, ranked, ranking, masses)

    def units(self, draws: IntArray | None = None) -> ScoredUnits:
        """Count the units.

        Args:
            draws: how often each generation (each row when none were given) counts, shape ``(generations,)``; once
                each by default.
        """
        if draws is None:
            weights = np.ones(self.correct.size)
        else:
            weights = draws.astype(np.float64)
            weights = weights if self.codes is None else np.take(weights, self.codes)
        if self.weights is not None:
            weights = weights * self.weights
        correct = weights * self.correct
        wrong = np.subtract(weights, correct, out=weights)
        if self.starts.size != self.correct.size:
            correct, wrong = np.add.reduceat(correct, self.starts), np.add.reduceat(wrong, self.starts)
        ranking = self.ranking
        if ranking is not None and draws is not None:
            weight = draws[self.ranked]
            ranking = GroupRanking(ranking.auroc, ranking.pairs, weight, int(draws.sum() - weight.sum()))
        return ScoredUnits(self.thresholds, correct, wrong, ranking)


def once_per(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
    """Return the function with its result per object kept as long as the object lives.

    For metrics that are parts of one computation, and for what all draws of a bootstrap share.
    """
    known: WeakKeyDictionary[Subject, Result] = WeakKeyDictionary()

    def kept(subject: Subject) -> Result:
        if subject not in known:
            known[subject] = function(subject)
        return known[subject]

    return kept


def weighted_sum(weights: FloatArray, values: FloatArray) -> float:
    """Return Σ weights · values; einsum stays in this thread, where ``np.dot`` waits for its own under load."""
    return float(np.einsum("i,i->", weights, values))


def checked_columns(confidence: ArrayLike, correct: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Return confidences as float64 and outcomes as 0 and 1.

    Raises:
        RowError: for a confidence that is not finite or an outcome other than 0 and 1.
        ValueError: for columns of different lengths or not one-dimensional.
    """
    scores = np.asarray(confidence, dtype=np.float64)
    outcomes = np.asarray(correct)
    if scores.ndim != 1 or scores.shape != outcomes.shape:
        raise ValueError(f"confidence and correct are two columns of one length, not {scores.shape}, {outcomes.shape}")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise RowError(int(bad[0]), f"confidence is {scores[bad[0]]}, not a finite number")
    if outcomes.dtype != np.bool_:
        bad = np.flatnonzero((outcomes != 0) & (outcomes != 1))
        if bad.size:
            raise RowError(int(bad[0]), f"correct is {outcomes[bad[0]]}, neither 0 nor 1")
    return scores, outcomes.astype(np.int64)


def require_probability_rows(confidence: ArrayLike) -> None:
    """Refuse a column with a value outside [0, 1].

    Raises:
        RowError: naming the first such row.
    """
    scores = np.asarray(confidence, dtype=np.float64)
    bad = np.flatnonzero(~((scores >= 0.0) & (scores <= 1.0)))
    if bad.size:
        raise RowError(int(bad[0]), f"confidence is {scores[bad[0]]}, outside [0, 1]")


def group_codes(groups: Groups) -> IntArray:
    """Return 0-based codes of the labels, in order of first appearance (of the sorted labels for integers)."""
    if isinstance(groups, np.ndarray) and np.issubdtype(groups.dtype, np.integer):
        return np.unique(groups, return_inverse=True)[1].astype(np.int64)
    known: dict[object, int] = {}
    labels = groups.tolist() if isinstance(groups, np.ndarray) else groups
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def _rank_inside_groups(ties: IntArray, correct: IntArray, codes: IntArray) -> tuple[IntArray, GroupRanking]:
    """Return the codes of the generations with both classes and their ranking; rows are sorted by confidence.

    ``ties`` numbers the distinct confidences.  Twice the number of rightly ordered pairs is an integer, so sums are
    exact.
    """
    if not codes.size:
        empty = np.zeros(0, dtype=np.int64)
        return empty, GroupRanking(np.zeros(0), empty, empty, 0)
    by_group = np.argsort(codes, kind="stable")
    codes, ties, correct = codes[by_group], ties[by_group], correct[by_group]
    new_group = np.concatenate(([True], codes[1:] != codes[:-1]))
    new_run = new_group | np.concatenate(([True], ties[1:] != ties[:-1]))
    runs = np.flatnonzero(new_run)
    run_correct = np.add.reduceat(correct, runs)
    run_wrong = np.diff(np.append(runs, codes.size)) - run_correct
    groups = np.flatnonzero(new_group[runs])
    sizes = np.diff(np.append(groups, runs.size))
    wrong_below = np.cumsum(run_wrong) - run_wrong
    wrong_below -= np.repeat(wrong_below[groups], sizes)
    twice_ordered = np.add.reduceat(run_correct * (2 * wrong_below + run_wrong), groups)
    pairs = np.add.reduceat(run_correct, groups) * np.add.reduceat(run_wrong, groups)
    both = pairs > 0
    ranking = GroupRanking(
        twice_ordered[both] / (2 * pairs[both]),
        pairs[both],
        np.ones(int(both.sum()), dtype=np.int64),
        int((~both).sum()),
    )
    return codes[runs[groups]][both], ranking
