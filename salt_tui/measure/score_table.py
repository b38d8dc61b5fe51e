"""Everything that is measured of a table of scores and outcomes that came from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from salt_tui.inputs.score_tables import ScoreTable
from salt_tui.measure.draws import generator_of
from scoring.analyses_confidence import ConfidenceDensities, LabelNoise, confidence_densities, label_noise
from scoring.bootstrap import bootstrap_intervals
from scoring.calibration_error import BINS, Bins, equal_width_bins, error_by_bin_count
from scoring.decision_utility import Rewards, Utility, euro, expected_utility
from scoring.intervals import Interval
from scoring.metrics import METRICS, evaluate_units
from scoring.ranking import RiskCoverage, risk_coverage
from scoring.scored_units import ScoredUnits
from scoring.value import Value, undefined
from scoring.yardsticks import Yardstick, yardsticks

NOT_WITH_WEIGHTS = "not defined with weights"
UNWEIGHTED = ("ace", "smooth_ece", "aurc", "auroc_micro")
"""Metrics of single units in a row or of whole answers, which a weighted row is not."""

EURO_STEPS = 100
"""Utilities at which the curve of EURO is given, besides both ends."""


@dataclass(frozen=True, slots=True)
class TableMeasures:
    """What a table of scores shows.

    Attributes:
        rows: units.
        skipped: rows that are not among them, by reason.
        values: by name of `METRICS`.
        intervals: the same, 95 %; empty without resamples.
        bins: equal-width bins that hold units; None where scores are no probabilities.
        errors: ECE by number of bins; empty where scores are no probabilities.
        utility: what deciding by confidence earns; None without rewards.
        yardsticks: both ends of metrics that need one; empty without rewards.
        units: for curves.
        ranking: the same units with the scores that metrics of the order read.
    """

    rows: int
    skipped: Mapping[str, int]
    values: Mapping[str, Value]
    intervals: Mapping[str, Interval]
    bins: Bins | None
    errors: Mapping[int, Value]
    utility: Utility | None
    yardsticks: Mapping[str, Yardstick]
    units: ScoredUnits
    ranking: ScoredUnits


def measure_table(
    table: ScoreTable,
    *,
    probability: bool,
    lower_is_confident: bool,
    rewards: Rewards | None,
    bins: int = BINS,
    draws: int = 0,
) -> TableMeasures:
    """Measure a table.

    Args:
        table: its rows.
        probability: whether scores mean probabilities; without, metrics that need them are undefined.
        lower_is_confident: whether a low score means sure: 1 − p is measured for probabilities, and −x is ranked.
        rewards: of trusting and abstaining; None for none.
        bins: how many equal-width bins are shown; metrics keep theirs.
        draws: bootstrap resamples; 0 for no intervals.
    """
    sign = -1.0 if lower_is_confident else 1.0
    ranked = sign * table.score
    stated = 1.0 - table.score if lower_is_confident and probability else ranked
    ranking = ScoredUnits.from_columns(ranked, table.correct, table.groups, table.weights)
    units = (
        ranking if stated is ranked else ScoredUnits.from_columns(stated, table.correct, table.groups, table.weights)
    )
    names = [name for name in METRICS if table.weights is None or name not in UNWEIGHTED]
    found = evaluate_units(units, names, probability, ranking)
    intervals: dict[str, Interval] = {}
    if draws and table.score.size:
        intervals = bootstrap_intervals(
            stated, table.correct, table.groups, generator_of("table"), names, probability, draws, weights=table.weights
        )
    return TableMeasures(
        rows=int(table.score.size),
        skipped=table.skipped,
        values={name: found.get(name, undefined(NOT_WITH_WEIGHTS)) for name in METRICS},
        intervals=intervals,
        bins=equal_width_bins(units, bins) if probability else None,
        errors=error_by_bin_count(units) if probability else {},
        utility=None if rewards is None else expected_utility(units, rewards),
        yardsticks={} if rewards is None else yardsticks(units),
        units=units,
        ranking=ranking,
    )


def risk_curve(measures: TableMeasures) -> RiskCoverage:
    """Return risk against coverage, one point per distinct score, most confident first."""
    return risk_coverage(measures.ranking)


def euro_curve(measures: TableMeasures) -> list[tuple[float, float | None]]:
    """Return EURO at utilities from 0 to 1, None where it is undefined; needs probabilities."""
    return [(step / EURO_STEPS, euro(measures.units, step / EURO_STEPS).value) for step in range(EURO_STEPS + 1)]


def table_densities(table: ScoreTable, *, lower_is_confident: bool) -> ConfidenceDensities:
    """Return where right and wrong units stand in [0, 1]; needs probabilities."""
    return confidence_densities(1.0 - table.score if lower_is_confident else table.score, table.correct)


def table_label_noise(table: ScoreTable, *, lower_is_confident: bool) -> LabelNoise:
    """Return what wrong labels would do to the AUROC."""
    sign = -1.0 if lower_is_confident else 1.0
    return label_noise(sign * table.score, np.asarray(table.correct), generator_of("label noise"))
