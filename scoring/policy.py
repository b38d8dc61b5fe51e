"""From confidence to a decision: which units to trust, with a promise about how many of those are wrong.

A policy is a confidence function, perhaps a calibration map, and a threshold.  A third of the problems of each task
chooses all of these and the order in which thresholds are tried; the other problems test them in that order and stop
at the first that fails (fixed-sequence testing, Bauer 1991; as in Learn then Test, Angelopoulos et al. 2021).  So the
promise holds although many thresholds were looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from scoring.calibrators import calibrator
from scoring.calibrators_fitted import Fitted, Unfitted
from scoring.confidence import ConfidenceFunction
from scoring.cross_fitting import cross_fit
from scoring.decision_utility import Rewards
from scoring.ranking import area_under_risk_coverage
from scoring.risk_bounds import betting_growth, fewest_answers, pooled_bound
from scoring.scored_units import FloatArray, IntArray, ScoredUnits
from scoring.signals import Signal, confidence_entry

RAW = "none"
"""The map of scores as they are."""

MOST_THRESHOLDS = 20
CHOOSING_SHARE = 1.0 / 3.0
ALPHA = 0.05
DELTA = 0.1

TOO_FEW_ANSWERS = "cannot be promised: {held} answers with a trusted unit, and {needed} are needed"
TOO_FEW_IN_BRIEF = "{held} answers, {needed} needed"
NO_THRESHOLD = "no threshold passes"
NO_CANDIDATE = "no function has a value for these units"
TOO_FEW_PROBLEMS = "fewer than two problems"


@dataclass(frozen=True, slots=True)
class PolicyUnits:
    """The units of a run that a policy decides about.

    Attributes:
        correct: shape ``(n,)``.
        problem: a number of the problem of each unit, the same in no two tasks, shape ``(n,)``.
        task: a number of its task, shape ``(n,)``.
        scores: per confidence function or signal its column as stored, shape ``(n,)``, NaN where it has no value:
            such units are never trusted.
        lower_is_confident: those of them that are from elsewhere and whose lower values are more confident.
    """

    correct: NDArray[np.bool_]
    problem: IntArray
    task: IntArray
    scores: Mapping[str, FloatArray]
    lower_is_confident: frozenset[str] = frozenset()

    def part(self, kept: NDArray[np.bool_]) -> PolicyUnits:
        """Return some of the units."""
        columns = {name: column[kept] for name, column in self.scores.items()}
        return PolicyUnits(self.correct[kept], self.problem[kept], self.task[kept], columns, self.lower_is_confident)


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised of the trusted units.

    Attributes:
        alpha: at most this share of them is wrong, in (0, 1).
        delta: the promise fails in at most this share of cases, in (0, 1).
        exact: False: the share of all trusted units, by an approximate bound.  True: the mean over answers of each
            answer's share, by a test that holds for any number of answers.
    """

    alpha: float = ALPHA
    delta: float = DELTA
    exact: bool = False

    def __post_init__(self) -> None:
        """Refuse shares outside (0, 1).

        Raises:
            ValueError: naming the share.
        """
        for name, value in (("alpha", self.alpha), ("delta", self.delta)):
            if not 0.0 < value < 1.0:
                raise ValueError(f"{name} is between 0 and 1, not {value}")


@dataclass(frozen=True, slots=True)
class Band:
    """The units above one threshold, as the testing problems show them.

    Attributes:
        promise: what holds for them.
        threshold: units with a higher value are in it; ``-inf`` takes all that have a value.
        coverage: share of all units that are.
        trusted: their number.
        wrong: how many of them are wrong.
        answers: how many problems have one.
        bound: upper bound of the share of wrong ones, for the approximate promise; None for the exact one.
    """

    promise: Promise
    threshold: float
    coverage: float
    trusted: int
    wrong: int
    answers: int
    bound: float | None

    @property
    def pooled_error(self) -> float:
        """Share of wrong units among the trusted ones, in [0, 1]; 0 without one."""
        return self.wrong / self.trusted if self.trusted else 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How a policy reads a unit: a confidence function and perhaps a map; higher is more confident.

    Attributes:
        function: name of the confidence function or signal.
        map: name of the calibration map, `RAW` for none.
        fitted: the map, fitted on the choosing problems of all tasks; None for none.
        rising: whether higher values of the function itself are more confident.
    """

    function: str
    map: str
    fitted: Fitted | None
    rising: bool

    def values(self, column: FloatArray) -> FloatArray:
        """Return the values that are compared with thresholds, ``-inf`` where the function has none."""
        known = ~np.isnan(column)
        found = np.full(column.size, -np.inf)
        if self.fitted is None:
            found[known] = column[known] if self.rising else -column[known]
        else:
            found[known] = self.fitted.apply(column[known])
        return found


@dataclass(frozen=True, slots=True)
class Policy:
    """A scale with one band of trusted units, or two of trusted and of trusted and checked ones.

    Attributes:
        scale: how units are read.
        bands: the narrower first.  Of the units in the second but not in the first alone nothing is promised, neither
            is it of single tasks or of another mixture of tasks.
        choosing: number of problems that chose.
        testing: number of problems that tested.
    """

    scale: Scale
    bands: tuple[Band, ...]
    choosing: int
    testing: int

    def decide(self, column: FloatArray) -> IntArray:
        """Return the band of each unit, 0 for the first, ``len(bands)`` for units to withhold.

        Args:
            column: the function's values as stored, shape ``(n,)``; NaN is withheld.
        """
        return bands_of(self.scale, [band.threshold for band in self.bands], column)


def bands_of(scale: Scale, thresholds: Sequence[float], column: FloatArray) -> IntArray:
    """Return the band of each unit: the place of the first threshold that its value exceeds, their number for none.

    Args:
        scale: how units are read.
        thresholds: falling.
        column: the function's values as stored, shape ``(n,)``; NaN is in no band.
    """
    values = scale.values(column)
    found = np.full(column.size, len(thresholds), dtype=np.int64)
    for number in range(len(thresholds) - 1, -1, -1):
        found[values > thresholds[number]] = number
    return found


@dataclass(frozen=True, slots=True)
class NoPolicy:
    """Why nothing can be promised.

    Attributes:
        reason: as a part of a sentence.
        brief: the same for a place with little room; empty where the reason is short itself.
    """

    reason: str
    brief: str = ""


@dataclass(frozen=True, slots=True)
class RewardPolicy:
    """A scale of probabilities with the threshold that rewards ask for.

    Attributes:
        scale: how units are read; its map was fitted on the choosing problems.
        threshold: trust iff the value is above it, `Rewards.threshold`.
        mean_reward: reward per unit on the testing problems.
        trust_all: reward per unit there of trusting every unit.
        trust_none: reward per unit there of trusting none.
        coverage: share of trusted units there.
        choosing: number of problems that chose.
        testing: number of testing problems.
    """

    scale: Scale
    threshold: float
    mean_reward: float
    trust_all: float
    trust_none: float
    coverage: float
    choosing: int
    testing: int


def promise_policy(
    units: PolicyUnits,
    promises: Sequence[Promise],
    generator: np.random.Generator,
    *,
    maps: Sequence[str] = (RAW,),
) -> Policy | NoPolicy:
    """Return the policy that trusts most units under the promises.

    Two promises make bands: the first of trusted units, the second, with a larger alpha, of trusted and checked ones.
    Each is tested at half its delta then, so that both hold together.

    Args:
        units: what to decide about.
        promises: one or two, both exact or neither.
        generator: splits the problems.
        maps: calibration maps to choose among, beside each function.

    Returns:
        The reason where nothing can be promised: too few answers for any threshold, or none passes.

    Raises:
        ValueError: for no or more than two promises, a second alpha that is not larger, or mixed kinds.
    """
    _check(promises)
    split = _split(units, generator)
    if split is None:
        return NoPolicy(TOO_FEW_PROBLEMS)
    choosing, testing = split
    shared = [Promise(promise.alpha, promise.delta / len(promises), promise.exact) for promise in promises]
    scale = _choose_scale(choosing, maps, shared[0])
    if scale is None:
        return NoPolicy(NO_CANDIDATE)
    first = _Values(scale.values(choosing.scores[scale.function]), choosing)
    second = _Values(scale.values(testing.scores[scale.function]), testing)
    bands: list[Band] = []
    for promise in shared:
        needed = fewest_answers(promise.alpha, promise.delta)
        held = second.counts(-np.inf).answers
        if held < needed:
            counts = {"held": held, "needed": needed}
            return NoPolicy(TOO_FEW_ANSWERS.format(**counts), TOO_FEW_IN_BRIEF.format(**counts))
        band = _tested(first, second, promise)
        if band is None and not bands:
            return NoPolicy(NO_THRESHOLD)
        bands.append(band if band is not None else _as_second(bands[0], promise))
    if len(bands) == 2 and bands[1].threshold > bands[0].threshold:
        bands[1] = _as_second(bands[0], shared[1])
    return Policy(scale, tuple(bands), int(np.unique(choosing.problem).size), int(np.unique(testing.problem).size))


def reward_policy(
    units: PolicyUnits, rewards: Rewards, generator: np.random.Generator, *, maps: Sequence[str] = (RAW,)
) -> RewardPolicy | NoPolicy:
    """Return the function and map that earn most on the choosing problems, and what they earn on the others.

    Args:
        units: what to decide about.
        rewards: what each outcome is worth; its threshold is that of trusting (ACUTE section 2.3).
        generator: splits the problems.
        maps: calibration maps to choose among; functions that are no probabilities need one.
    """
    split = _split(units, generator)
    if split is None:
        return NoPolicy(TOO_FEW_PROBLEMS)
    choosing, testing = split
    best: tuple[float, Scale] | None = None
    for name in units.scores:
        for method in maps:
            found = _inner_values(choosing, name, method)
            scale = _scale(choosing, name, method)
            if found is None or scale is None or not _is_probability(name, method):
                continue
            earned = _reward(found > rewards.threshold, choosing.correct, rewards)
            if best is None or earned > best[0]:
                best = (earned, scale)
    if best is None:
        return NoPolicy(NO_CANDIDATE)
    scale = best[1]
    trusted = scale.values(testing.scores[scale.function]) > rewards.threshold
    everything = np.ones_like(trusted)
    return RewardPolicy(
        scale=scale,
        threshold=rewards.threshold,
        mean_reward=_reward(trusted, testing.correct, rewards),
        trust_all=_reward(everything, testing.correct, rewards),
        trust_none=_reward(~everything, testing.correct, rewards),
        coverage=float(trusted.mean()),
        choosing=int(np.unique(choosing.problem).size),
        testing=int(np.unique(testing.problem).size),
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """Trusted and wrong units of each problem that has a trusted one."""

    wrong: FloatArray
    trusted: FloatArray

    @property
    def answers(self) -> int:
        return int(self.trusted.size)


@dataclass(frozen=True, slots=True)
class _Values:
    """Units by value, ready to be counted above a threshold."""

    values: FloatArray
    units: PolicyUnits

    def counts(self, threshold: float) -> _Counts:
        inside = self.values > threshold
        problems, owner = np.unique(self.units.problem[inside], return_inverse=True)
        wrong = np.bincount(owner, weights=~self.units.correct[inside], minlength=problems.size)
        trusted = np.bincount(owner, minlength=problems.size).astype(np.float64)
        return _Counts(wrong.astype(np.float64), trusted)

    def thresholds(self) -> list[float]:
        known = self.values[np.isfinite(self.values)]
        if not known.size:
            return []
        cuts = np.quantile(known, np.arange(1, MOST_THRESHOLDS) / MOST_THRESHOLDS, method="inverted_cdf")
        return [-np.inf, *np.unique(cuts).tolist()]


def _check(promises: Sequence[Promise]) -> None:
    if not 1 <= len(promises) <= 2:
        raise ValueError(f"one or two promises, not {len(promises)}")
    if len(promises) == 2:
        if not promises[1].alpha > promises[0].alpha:
            raise ValueError("the second band, of trusted and checked units, promises a larger alpha than the first")
        if promises[0].exact != promises[1].exact:
            raise ValueError("both promises are exact, or neither is")


def _split(units: PolicyUnits, generator: np.random.Generator) -> tuple[PolicyUnits, PolicyUnits] | None:
    """Return choosing and testing units: a third of each task's problems, at least one of each kind overall."""
    chosen: list[IntArray] = []
    for task in np.unique(units.task):
        problems = np.unique(units.problem[units.task == task])
        share = problems.size * CHOOSING_SHARE
        # The fraction decides at random, so that many tasks of two problems do not all test.
        count = int(share) + int(generator.random() < share - int(share))
        chosen.append(generator.permutation(problems)[:count])
    numbers = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)
    held = np.isin(units.problem, numbers)
    if not held.any() or held.all():
        problems = np.unique(units.problem)
        if problems.size < 2:
            return None
        held = np.isin(units.problem, generator.permutation(problems)[: max(problems.size // 3, 1)])
    return units.part(held), units.part(~held)


def _tested(first: _Values, second: _Values, promise: Promise) -> Band | None:
    """Try thresholds in the order of the choosing problems; of those before the first failure, the widest."""
    candidates = [(threshold, first.counts(threshold)) for threshold in first.thresholds()]
    candidates = [(threshold, counts) for threshold, counts in candidates if counts.answers]
    if promise.exact:
        grown = [(betting_growth(_losses(counts), promise.alpha), threshold) for threshold, counts in candidates]
        order = sorted(grown, key=lambda entry: -entry[0].growth)
        tried = [(threshold, growth.stake) for growth, threshold in order]
    else:
        bounds = [(pooled_bound(c.wrong, c.trusted, promise.delta), threshold) for threshold, c in candidates]
        tried = [(threshold, 0.0) for _, threshold in sorted(bounds)]
    best: Band | None = None
    for threshold, stake in tried:
        counts = second.counts(threshold)
        bound = None
        if counts.answers < fewest_answers(promise.alpha, promise.delta):
            break
        if promise.exact:
            growth = float(np.log1p(stake * (promise.alpha - _losses(counts))).sum())
            passed = growth >= -log(promise.delta)
        else:
            bound = pooled_bound(counts.wrong, counts.trusted, promise.delta)
            passed = bound <= promise.alpha
        if not passed:
            break
        trusted, wrong = int(counts.trusted.sum()), int(counts.wrong.sum())
        band = Band(promise, threshold, trusted / second.values.size, trusted, wrong, counts.answers, bound)
        if best is None or band.coverage > best.coverage:
            best = band
    return best


def _losses(counts: _Counts) -> FloatArray:
    losses: FloatArray = counts.wrong / counts.trusted
    return losses


def _as_second(band: Band, promise: Promise) -> Band:
    """Return the first band as the second: what is promised with the smaller alpha holds with the larger."""
    return Band(promise, band.threshold, band.coverage, band.trusted, band.wrong, band.answers, band.bound)


def _choose_scale(choosing: PolicyUnits, maps: Sequence[str], promise: Promise) -> Scale | None:
    """Return the function and map that would trust most under the promise on the choosing problems.

    Where none would trust any unit, the best risk–coverage curve there decides.
    """
    best: tuple[float, float, Scale] | None = None
    for name in choosing.scores:
        for method in maps:
            found, scale = _inner_values(choosing, name, method), _scale(choosing, name, method)
            if found is None or scale is None:
                continue
            values = _Values(found, choosing)
            coverage = max((_coverage_on_choosing(values, cut, promise) for cut in values.thresholds()), default=0.0)
            ranked = np.where(np.isfinite(found), found, np.min(found[np.isfinite(found)]) - 1.0)
            risk = area_under_risk_coverage(ScoredUnits.from_columns(ranked, choosing.correct)).value
            entry = (coverage, -(1.0 if risk is None else risk), scale)
            if best is None or entry[:2] > best[:2]:
                best = entry
    return None if best is None else best[2]


def _coverage_on_choosing(values: _Values, threshold: float, promise: Promise) -> float:
    counts = values.counts(threshold)
    if not counts.answers or pooled_bound(counts.wrong, counts.trusted, 0.5) > promise.alpha:
        return 0.0  # the median of the bound: a third of the problems shows little
    return float(counts.trusted.sum()) / values.values.size


def _is_probability(name: str, method: str) -> bool:
    return method != RAW or not confidence_entry(name).needs_calibration


def _is_readable(entry: ConfidenceFunction | Signal, method: str) -> bool:
    """Say whether a map can read every value that a function may have.

    That the choosing units lie in [0, 1] says nothing of the testing ones, and of those that come later.
    """
    return method == RAW or not calibrator(method).needs_probability or (entry.minimum >= 0.0 and entry.maximum <= 1.0)


def _scale(choosing: PolicyUnits, name: str, method: str) -> Scale | None:
    column = choosing.scores[name]
    known = ~np.isnan(column)
    if not known.any():
        return None
    entry = confidence_entry(name, choosing.lower_is_confident)
    rising = entry.higher_is_confident
    if not _is_readable(entry, method):
        return None
    if method == RAW:
        return Scale(name, RAW, None, rising)
    fitted = calibrator(method).fit(column[known], choosing.correct[known], higher_is_confident=rising)
    return None if isinstance(fitted, Unfitted) else Scale(name, method, fitted, rising)


def _inner_values(choosing: PolicyUnits, name: str, method: str) -> FloatArray | None:
    """Return values of the choosing units, each by a map fitted on other choosing problems; None without a map."""
    column = choosing.scores[name]
    known = ~np.isnan(column)
    entry = confidence_entry(name, choosing.lower_is_confident)
    found = np.full(column.size, -np.inf)
    if not known.any():
        return None
    if method == RAW:
        found[known] = entry.oriented(column[known])
        return found
    fitted = cross_fit(
        calibrator(method),
        column[known],
        choosing.correct[known],
        choosing.problem[known],
        higher_is_confident=entry.higher_is_confident,
    )
    if isinstance(fitted, Unfitted):
        return None
    found[np.flatnonzero(known)[fitted.rows]] = fitted.values
    return found


def _reward(trusted: NDArray[np.bool_], correct: NDArray[np.bool_], rewards: Rewards) -> float:
    earned = np.where(
        trusted,
        np.where(correct, rewards.trusted_right, rewards.trusted_wrong),
        np.where(correct, rewards.abstained_right, rewards.abstained_wrong),
    )
    return float(earned.mean())
