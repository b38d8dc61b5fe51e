"""Stated confidence beside what was right, for one choice of units: the curves and sentences of a reliability view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.rows import WHOLE, Part
from salt_tui.measure.task_scores import (
    RAW,
    FloatArray,
    IntArray,
    TaskScores,
    calibrated_scores,
    measure,
    raw_scores,
    task_units,
)
from salt_tui.number_text import confidence_text, number, percent
from salt_tui.store.results import UnitColumns
from scoring.analyses_confidence import ConfidenceDensities, confidence_densities
from scoring.calibration_error import BINS, Bins, equal_width_bins
from scoring.contrasts import FEWEST_ANSWERS, FEWEST_UNITS
from scoring.correctness import TaskMean, mean_over_tasks
from scoring.decision_utility import euro_curve
from scoring.ranking import risk_coverage
from scoring.rate_intervals import Rate, rate
from scoring.scored_units import ScoredUnits
from scoring.signals import confidence_entry
from scoring.value import NO_UNITS, NOT_A_PROBABILITY
from scoring.yardsticks import base_rate_units, oracle_units

METRICS = ("accuracy", "ece", "brier", "auroc")
"""The numbers of a view, by the names of `scoring.metrics.METRICS`."""

USUAL_RISK = 0.05
"""The share of wrong units among the trusted ones that a view looks for."""

EURO_STEPS = 100
"""EURO is drawn at this many equal steps of the utility, both ends included."""

UNITS = {
    "atom": "atoms",
    "line": "lines",
    "generation": "answers",
    "token": "tokens",
    "character": "characters",
}
"""The units of a view, in words."""


@dataclass(frozen=True, slots=True)
class ViewChoice:
    """What is looked at.

    Attributes:
        unit: a granularity, or a part of `measure.parts.PARTS`.
        function: a confidence function or signal.
        calibrator: a map, fitted on other answers of the task as the report does; `RAW` for none.
        task: None for all, whose units are pooled in bins and curves; single numbers are means over tasks.
        slice: the column that the units are sliced by; None for no slice.
        part: the value of that column.
        bins: of the diagram, at least 1.
    """

    unit: str
    function: str
    calibrator: str = RAW
    task: str | None = None
    slice: str | None = None
    part: str | None = None
    bins: int = BINS


@dataclass(frozen=True, slots=True)
class Trusted:
    """The units from one confidence on.

    Attributes:
        threshold: the lowest confidence among them; higher is surer.
        coverage: their share of all units, in [0, 1].
        error: share of wrong ones among them, in [0, 1]; None without one.
        n: their number.
    """

    threshold: float
    coverage: float
    error: float | None
    n: int


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """Error and coverage when the surest units are trusted; one entry per distinct confidence, the surest first.

    Attributes:
        threshold: units with at least this confidence are trusted; higher is surer.
        coverage: share of all units, in (0, 1].
        error: share of wrong ones among the trusted, in [0, 1].
        oracle: the error there if every right unit came before every wrong one.
        random: the error at any coverage if confidence told nothing: the share of wrong units.
        n: number of units.
    """

    threshold: FloatArray
    coverage: FloatArray
    error: FloatArray
    oracle: FloatArray
    random: float
    n: int

    def at(self, threshold: float) -> Trusted:
        """Return what is trusted with at least this confidence; nothing above the highest one."""
        place = int(np.searchsorted(-self.threshold, -threshold, side="right")) - 1
        return self.point(place) if place >= 0 else Trusted(threshold, 0.0, None, 0)

    def point(self, place: int) -> Trusted:
        """Return the entry at one place of the arrays."""
        coverage = float(self.coverage[place])
        return Trusted(float(self.threshold[place]), coverage, float(self.error[place]), round(coverage * self.n))

    def covering(self, coverage: float) -> Trusted:
        """Return the smallest set of surest units that covers at least a share; all where none does."""
        place = int(np.searchsorted(self.coverage, coverage - 1e-9))
        return self.point(min(place, self.coverage.size - 1))

    def beside(self, threshold: float, step: int) -> Trusted:
        """Return the set that ends one distinct confidence further on, or before; the last one stays.

        Args:
            threshold: one of the curve's.
            step: 1 for more units, -1 for fewer.
        """
        place = int(np.searchsorted(-self.threshold, -threshold)) + step
        return self.point(min(max(place, 0), self.threshold.size - 1))

    def within(self, risk: float, fewest: int = FEWEST_UNITS) -> Trusted | None:
        """Return the largest set of surest units of which at most a share is wrong; None where none is so good.

        This describes the units at hand; it promises nothing about others, for which `measure.policies` is there.

        Args:
            risk: the share, in [0, 1].
            fewest: sets of fewer units are passed over.
        """
        good = np.flatnonzero((self.error <= risk) & (np.rint(self.coverage * self.n) >= fewest))
        return self.point(int(good[-1])) if good.size else None


@dataclass(frozen=True, slots=True)
class EuroCurve:
    """EURO by the utility of rightly abstaining (ACUTE section 2.3); the perfect decider has 1 at each.

    Attributes:
        utility: in [0, 1], ascending.
        value: EURO of these confidences, None where it is undefined.
        base_rate: EURO if every unit had the share of right ones as its confidence, None where it is undefined.
        oracle: EURO of the perfect decider, None where it is undefined.
    """

    utility: tuple[float, ...]
    value: tuple[float | None, ...]
    base_rate: tuple[float | None, ...]
    oracle: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class BinSpoken:
    """The surest bin that holds enough to be spoken of: five answers and ten units.

    Attributes:
        place: in the arrays of the bins.
        right: share of right units, with the interval over answers.
    """

    place: int
    right: Rate


@dataclass(frozen=True, slots=True)
class ConfidenceView:
    """One choice of units, measured.

    Attributes:
        choice: what was asked for.
        n: units with a confidence.
        answers: answers that hold one.
        reason: why nothing at all can be shown; None where something can.
        no_probability: why nothing that needs probabilities can be shown: the function needs a map, or the map could
            not be fitted; None where it can.
        tasks_left_out: tasks whose units are not in it, with the reason.
        values: the metrics of `METRICS`, those of the report's row: means over tasks, each task equal.
        rows: places of the units in the columns, by task.
        confidence: of these units, higher is surer.
        correct: whether each is right.
        rising: whether the numbers of the function itself rise with confidence; those of a map always do.
        bins: equal-width bins of all these units that hold one; None without probabilities.
        spoken: the bin of the sentence; None where none holds enough.
        risk: risk and coverage by confidence, after a map by the calibrated one; None without units.
        euro: by the utility of rightly abstaining; None without probabilities.
        densities: of right and wrong units over confidence; None without probabilities.
        notes: what the fits of the map had to say, with the task.
    """

    choice: ViewChoice
    n: int
    answers: int
    reason: str | None
    no_probability: str | None
    tasks_left_out: Mapping[str, str]
    values: Mapping[str, TaskMean]
    rows: IntArray
    confidence: FloatArray
    correct: NDArray[np.bool_]
    rising: bool
    bins: Bins | None
    spoken: BinSpoken | None
    risk: RiskCurve | None
    euro: EuroCurve | None
    densities: ConfidenceDensities | None
    notes: tuple[str, ...]

    @property
    def unit_word(self) -> str:
        """The units, in words."""
        return UNITS.get(self.choice.unit, self.choice.unit)

    @property
    def sentence(self) -> str:
        """What the surest units show, and what is covered at `USUAL_RISK`; no more than n allows."""
        if self.reason is not None:
            return f"Nothing can be shown: {self.reason}."
        return f"{self._bin_sentence()} {self._trust_sentence(USUAL_RISK)}".rstrip()

    def shown(self, value: float) -> float:
        """Return a confidence in the numbers of its own function."""
        return value if self.rising or value == 0.0 else -value

    def bin_rows(self, place: int) -> IntArray:
        """Return the places in the columns of a bin's units, surest first.

        Args:
            place: in the arrays of `bins`.
        """
        if self.bins is None:
            return np.zeros(0, dtype=np.int64)
        low, high = self.bins.lower[place], self.bins.upper[place]
        inside = (self.confidence <= high) & ((self.confidence > low) | (low == 0.0))
        found = np.flatnonzero(inside)
        return self.rows[found[np.argsort(-self.confidence[found], kind="stable")]]

    def _bin_sentence(self) -> str:
        if self.bins is None:
            return f"No confidence is stated: {self.no_probability}."
        if self.spoken is None:
            return f"Too few {self.unit_word} to say how right it is where it is sure: {self.n:,} in {self._answers()}."
        bins, place, right = self.bins, self.spoken.place, self.spoken.right
        low, high = right.interval.low, right.interval.high
        interval = "" if low is None else f" [{number(low, 2)} {number(high, 2)}]"
        return (
            f"At {number(bins.lower[place], 2)}–{number(bins.upper[place], 2)} it says"
            f" {number(bins.confidence[place], 2)} and is right {number(right.value, 2)}{interval}:"
            f" {right.units:,} {self.unit_word}."
        )

    def _trust_sentence(self, risk: float) -> str:
        if self.n < FEWEST_UNITS:
            return ""
        found = None if self.risk is None else self.risk.within(risk)
        if found is None:
            return f"However few of the surest are trusted ({FEWEST_UNITS} or more), over {percent(risk)} are wrong."
        side = "or more" if self.rising else "or less"
        return (
            f"Of those at {confidence_text(self.shown(found.threshold))} {side}, {percent(found.error)} are wrong"
            f" and {percent(found.coverage)} covered ({found.n:,})."
        )

    def _answers(self) -> str:
        return f"{self.answers:,} answer{'' if self.answers == 1 else 's'}"


def map_scores(
    columns: UnitColumns, function: str, calibrator: str, raw: Mapping[str, TaskScores] | None = None
) -> dict[str, TaskScores]:
    """Return the scores of a function after a map, by task: what views of the same function and map share.

    Args:
        columns: units of one granularity with the function.
        function: a confidence function or signal of the columns.
        calibrator: a map, or `RAW`.
        raw: what this gave for `RAW`, where it is known.

    Raises:
        ValueError: for a function that the columns do not have, or the name of a map; names the nearest.
    """
    if function not in columns.confidences:
        raise ValueError(f"these units have no {function}; there are {', '.join(columns.confidences)}")
    if raw is None:
        raw = {task: raw_scores(columns, task_units(columns, task), function) for task in columns.task_names}
    return {task: calibrated_scores(scores, calibrator) for task, scores in raw.items()}


def view_values(scores: Mapping[str, TaskScores], task: str | None, part: Part = WHOLE) -> dict[str, TaskMean]:
    """Return the metrics of `METRICS` as a row of the report has them: of one task, or the mean over tasks.

    Args:
        scores: from `map_scores`.
        task: None for all.
        part: of the units; it has no units of some tasks at all, which are then no part of its means.
    """
    chosen = _chosen(scores, task, part)
    measured = {
        name: measure(found, METRICS) for name, found in chosen.items() if part.mask is None or found.correct.size
    }
    return {metric: mean_over_tasks({name: found[metric] for name, found in measured.items()}) for metric in METRICS}


def _chosen(scores: Mapping[str, TaskScores], task: str | None, part: Part) -> dict[str, TaskScores]:
    return {
        name: found if part.mask is None else found.part(part.mask)
        for name, found in scores.items()
        if task in (None, name)
    }


def confidence_view(
    columns: UnitColumns,
    choice: ViewChoice,
    part: Part = WHOLE,
    scores: Mapping[str, TaskScores] | None = None,
) -> ConfidenceView:
    """Measure one choice of units with the functions of the report.

    Args:
        columns: all units of the granularity, with the function.
        choice: what to look at.
        part: the slice that the choice names, from `measure.slices.slice_parts`; maps are fitted on the whole run.
        scores: from `map_scores` for the same columns, function and map; computed when None.

    Raises:
        ValueError: for an unknown function or map, or fewer than one bin.
    """
    if choice.bins < 1:
        raise ValueError(f"bins is at least 1, not {choice.bins}")
    by_task = map_scores(columns, choice.function, choice.calibrator) if scores is None else scores
    chosen = _chosen(by_task, choice.task, part)
    present = {task: found for task, found in chosen.items() if found.correct.size}
    fitted = {task: found for task, found in present.items() if found.confidence is not None}
    shown = fitted or present
    left_out = {task: NO_UNITS for task in chosen if task not in present}
    left_out |= {task: found.reason or NO_UNITS for task, found in present.items() if task not in shown}
    rows, confidence, correct = _pooled(shown)
    generation = _answer_codes(shown)
    by_answer = np.bincount(generation)
    no_probability = _no_probability(choice, present)
    nothing = columns.undefined.get(choice.function) or f"no {UNITS.get(choice.unit, choice.unit)} with a confidence"
    reason = None if rows.size else nothing
    probabilities = None if no_probability or reason else ScoredUnits.from_columns(confidence, correct)
    bins = None if probabilities is None else equal_width_bins(probabilities, choice.bins)
    ordered = probabilities if probabilities is not None else ScoredUnits.from_columns(confidence, correct)
    return ConfidenceView(
        choice=choice,
        n=int(rows.size),
        answers=int(np.count_nonzero(by_answer)),
        reason=reason,
        no_probability=no_probability,
        tasks_left_out=left_out,
        values=view_values(by_task, choice.task, part),
        rows=rows,
        confidence=confidence,
        correct=correct,
        rising=(choice.calibrator != RAW and bool(fitted))
        or confidence_entry(choice.function, columns.lower_is_confident).higher_is_confident,
        bins=bins,
        spoken=None if bins is None else _spoken(bins, confidence, correct, generation),
        risk=None if reason else _risk_curve(ordered),
        euro=None if probabilities is None else _euro_curve(probabilities),
        densities=None if probabilities is None else confidence_densities(confidence, correct),
        notes=tuple(f"{task}: {note}" for task, found in shown.items() for note in found.notes),
    )


def _pooled(shown: Mapping[str, TaskScores]) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
    """Return the units of all tasks; by calibrated values where there are any, else by the order of the scores."""
    found = list(shown.values())
    values = [scores.ranking if scores.confidence is None else scores.confidence for scores in found]
    return (
        np.concatenate([np.zeros(0, dtype=np.int64), *(scores.rows for scores in found)]),
        np.concatenate([np.zeros(0), *values]),
        np.concatenate([np.zeros(0, dtype=np.bool_), *(scores.correct for scores in found)]),
    )


def _answer_codes(shown: Mapping[str, TaskScores]) -> IntArray:
    """Return a code of the answer of each unit; there may be codes that none has."""
    first, codes = 0, [np.zeros(0, dtype=np.int64)]
    for scores in shown.values():
        codes.append(scores.generation + first)
        first += int(scores.generation.max()) + 1
    return np.concatenate(codes)


def _no_probability(choice: ViewChoice, present: Mapping[str, TaskScores]) -> str | None:
    if any(found.confidence is not None and found.probability for found in present.values()):
        return None
    reasons = dict.fromkeys(found.reason for found in present.values() if found.reason is not None)
    return "; ".join(reasons) or f"{choice.function} is {NOT_A_PROBABILITY} and needs a map"


def _spoken(bins: Bins, confidence: FloatArray, correct: NDArray[np.bool_], generation: IntArray) -> BinSpoken | None:
    for place in range(bins.counts.size - 1, -1, -1):
        if bins.counts[place] < FEWEST_UNITS:
            continue
        inside = confidence <= bins.upper[place]
        inside &= (confidence > bins.lower[place]) | (bins.lower[place] == 0.0)
        units = np.bincount(generation[inside])
        if np.count_nonzero(units) >= FEWEST_ANSWERS:
            right = np.bincount(generation[inside], weights=correct[inside])
            return BinSpoken(place, rate(right, units))
    return None


def _risk_curve(units: ScoredUnits) -> RiskCurve:
    curve = risk_coverage(units)
    right = units.total_correct / units.n
    oracle = np.maximum(curve.coverage - right, 0.0) / curve.coverage
    return RiskCurve(curve.threshold, curve.coverage, curve.risk, oracle, 1.0 - right, int(units.n))


def _euro_curve(units: ScoredUnits) -> EuroCurve:
    utilities = np.arange(EURO_STEPS + 1) / EURO_STEPS

    def at_each(scored: ScoredUnits) -> tuple[float | None, ...]:
        return tuple(None if np.isnan(value) else value for value in euro_curve(scored, utilities).tolist())

    return EuroCurve(
        tuple(utilities.tolist()), at_each(units), at_each(base_rate_units(units)), at_each(oracle_units(units))
    )
