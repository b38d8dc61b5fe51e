"""Ranking metrics: does confidence put right units before wrong ones.  Any real confidence; only its order counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from scoring.scored_units import FloatArray, ScoredUnits, weighted_sum
from scoring.value import (
    NO_CORRECT_UNIT,
    NO_GROUP_WITH_BOTH_CLASSES,
    NO_GROUPS,
    NO_UNITS,
    ONE_CLASS,
    Value,
    undefined,
)


def auroc(units: ScoredUnits) -> Value:
    """Return the macro AUROC: how often a right unit outranks a wrong one, all units pooled; a tie is half.

    In [0, 1], higher is better, 0.5 is chance (SALT section 2.3, equation 2).  Undefined without units or with one
    class.
    """
    if not units.n:
        return undefined(NO_UNITS)
    pairs = units.total_correct * units.total_wrong
    if not pairs:
        return undefined(ONE_CLASS)
    twice_ordered = weighted_sum(units.correct, 2 * units.wrong_up_to - units.wrong)
    return Value(twice_ordered / (2 * pairs))


@dataclass(frozen=True, slots=True)
class MicroAuroc:
    """AUROC inside generations.

    Attributes:
        mean: mean over the generations with both classes, each equal (our reading of equation 2 with x⁽¹⁾ = x⁽²⁾).
        pair_weighted: mean over the pairs of one generation, the other reading.
        generations: how many generations hold both classes.
        left_out: how many do not.
    """

    mean: Value
    pair_weighted: Value
    generations: int
    left_out: int


def micro_auroc(units: ScoredUnits) -> MicroAuroc:
    """Return the AUROC inside generations, in [0, 1], higher is better, 0.5 is chance (SALT section 2.3).

    Undefined without units, without known generations, and when no generation holds both classes.
    """
    ranking = units.groups
    if not units.n or ranking is None:
        reason = undefined(NO_GROUPS if units.n else NO_UNITS)
        return MicroAuroc(reason, reason, 0, 0 if ranking is None else ranking.left_out)
    generations = int(ranking.weight.sum())
    if not generations:
        reason = undefined(NO_GROUP_WITH_BOTH_CLASSES)
        return MicroAuroc(reason, reason, 0, ranking.left_out)
    pairs = ranking.weight * ranking.pairs
    return MicroAuroc(
        Value(float((ranking.weight * ranking.auroc).sum()) / generations),
        Value(float((pairs * ranking.auroc).sum()) / int(pairs.sum())),
        generations,
        ranking.left_out,
    )


def average_precision(units: ScoredUnits) -> Value:
    """Return the area under the precision-recall curve, right units positive, in (0, 1], higher is better.

    As scikit-learn's average precision: units with one confidence are one threshold.  Chance is the accuracy.
    Undefined without units or without a right unit; 1 when all are right.
    """
    if not units.n:
        return undefined(NO_UNITS)
    if not units.total_correct:
        return undefined(NO_CORRECT_UNIT)
    kept = units.counts - units.counts_up_to
    kept += units.n
    precision = units.correct - units.correct_up_to
    precision += units.total_correct
    precision /= np.maximum(kept, 1.0, out=kept)
    return Value(min(weighted_sum(units.correct, precision) / units.total_correct, 1.0))


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Error rate among the most confident units; one entry per distinct confidence, most confident first.

    Attributes:
        threshold: answer when the confidence is at least this.
        coverage: share of units answered, in (0, 1].
        risk: share of wrong units among those, in [0, 1].
    """

    threshold: FloatArray
    coverage: FloatArray
    risk: FloatArray


def risk_coverage(units: ScoredUnits) -> RiskCoverage:
    """Return the risk-coverage curve (calibration guide, "Risk-coverage"); empty arrays without units."""
    kept = (units.n - units.counts_up_to + units.counts)[::-1]
    wrong = (units.total_wrong - units.wrong_up_to + units.wrong)[::-1]
    return RiskCoverage(units.values[::-1], kept / max(units.n, 1), wrong / np.maximum(kept, 1))


def area_under_risk_coverage(units: ScoredUnits) -> Value:
    """Return AURC = (1/n) Σₖ E[risk of the k most confident], in [0, 1], lower is better.

    Ties are averaged over all their orders: inside a tie group the expected number of wrong units grows linearly.
    0 when all are right, 1 when all are wrong; undefined without units.
    """
    if not units.n:
        return undefined(NO_UNITS)
    count = int(units.n)
    harmonic = _harmonic_numbers(1 << (count + 1).bit_length())
    before = units.n - units.counts_up_to
    fixed = np.maximum(units.counts, 1.0)
    np.divide(units.wrong, fixed, out=fixed)
    fixed *= before
    fixed += units.wrong_up_to
    np.subtract(units.total_wrong, fixed, out=fixed)
    steps = np.take(harmonic, before.astype(np.intp))
    steps[1:], steps[0] = steps[:-1] - steps[1:], harmonic[count] - steps[0]
    return Value(min(max((units.total_wrong + weighted_sum(fixed, steps)) / units.n, 0.0), 1.0))


@lru_cache(maxsize=2)
def _harmonic_numbers(size: int) -> FloatArray:
    """Return H(0), H(1), …, shape ``(size,)``; sizes are powers of two, so that bootstrap draws share one."""
    numbers = np.zeros(size)
    np.cumsum(1.0 / np.arange(1, size), out=numbers[1:])
    numbers.flags.writeable = False
    return numbers


def prediction_rejection_ratio(units: ScoredUnits) -> Value:
    """Return PRR, in [−1, 1], higher is better, 0 is chance (Malinin and Gales 2021).

    Units are rejected from the least confident on and handed to an oracle; the curve is the number of errors left
    among all units, ties by expectation.  The ratio is the area saved against random rejection over that saved by
    rejecting wrong units first.  It equals 2·AUROC − 1.  Undefined without units or with one class.
    """
    if not units.n:
        return undefined(NO_UNITS)
    if not units.total_correct or not units.total_wrong:
        return undefined(ONE_CLASS)
    errors_left = units.total_wrong - units.wrong_up_to
    twice_area = weighted_sum(units.counts, 2 * errors_left + units.wrong)
    twice_random = units.n * units.total_wrong
    twice_oracle = units.total_wrong**2
    return Value((twice_random - twice_area) / (twice_random - twice_oracle))
