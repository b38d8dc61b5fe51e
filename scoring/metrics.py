"""The registry of metrics: every number of a table of confidences and outcomes, by its stable name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from scoring.calibration_error import (
    adaptive_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
)
from scoring.decision_utility import EuroAreas, euro_areas
from scoring.proper_scores import BrierDecomposition, brier_decomposition, brier_score, negative_log_likelihood
from scoring.ranking import area_under_risk_coverage, auroc, average_precision, micro_auroc, prediction_rejection_ratio
from scoring.scored_units import ScoredUnits, once_per
from scoring.smooth_calibration_error import smooth_calibration_error
from scoring.value import NO_UNITS, NOT_A_PROBABILITY, Value, json_number, undefined


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a set of scored units.

    Attributes:
        name: the key in the registry, in JSON and in reports.
        title: the name for screens.
        formula: the definition in one line.
        function: from scored units to a value; raises ValueError when it needs probabilities and gets others.
        higher_is_better: the direction; None for a quantity that is neither good nor bad.
        minimum: lower end of the range.
        maximum: upper end of the range, ``inf`` when open.
        needs_probability: whether confidences must lie in [0, 1].
        ranks_only: whether only the order of confidences counts, so that a strictly rising map changes nothing.
        rewards_approach: whether moving one confidence towards its outcome never makes the value worse; average
            precision does not: a right unit that overtakes ten tied right ones can lower it.
        degenerate: what no units, one class, and confidences of exactly 0 and 1 give; NaN is always refused.
        source: where it is defined.
    """

    name: str
    title: str
    formula: str
    function: Callable[[ScoredUnits], Value]
    higher_is_better: bool | None
    minimum: float
    maximum: float
    needs_probability: bool
    ranks_only: bool
    rewards_approach: bool
    degenerate: str
    source: str


def accuracy(units: ScoredUnits) -> Value:
    """Return the share of right units, in [0, 1], higher is better; undefined without units."""
    return Value(units.total_correct / units.n) if units.n else undefined(NO_UNITS)


def _micro_auroc(units: ScoredUnits) -> Value:
    return micro_auroc(units).mean


_decomposition = once_per(brier_decomposition)
_areas = once_per(euro_areas)


def _brier_part(part: str) -> Callable[[ScoredUnits], Value]:
    read: Callable[[BrierDecomposition], float] = attrgetter(part)

    def value(units: ScoredUnits) -> Value:
        decomposition = _decomposition(units)
        return undefined(NO_UNITS) if decomposition is None else Value(read(decomposition))

    return value


def _euro_area(part: str) -> Callable[[ScoredUnits], Value]:
    read: Callable[[EuroAreas], float] = attrgetter(part)

    def value(units: ScoredUnits) -> Value:
        areas = _areas(units)
        return undefined(NO_UNITS) if areas is None else Value(read(areas))

    return value


_ANY_CLASS = "undefined without units; defined for one class and for 0 and 1"
_BOTH_CLASSES = "undefined without units and with one class"
_SALT = "SALT section 2.3"
_GUIDE = "calibration guide"
_BRIER_SOURCE = f"{_GUIDE}, Brier score decomposition; remainder: our extension"
_EURO = "[(1−u)·TP + u·TN] / [(1−u)·P + u·N]"


def _metric(
    name: str,
    title: str,
    formula: str,
    function: Callable[[ScoredUnits], Value],
    source: str,
    *,
    higher_is_better: bool | None,
    range_: tuple[float, float] = (0.0, 1.0),
    needs_probability: bool = True,
    ranks_only: bool = False,
    rewards_approach: bool = False,
    degenerate: str = _ANY_CLASS,
) -> Metric:
    return Metric(
        name=name,
        title=title,
        formula=formula,
        function=function,
        higher_is_better=higher_is_better,
        minimum=range_[0],
        maximum=range_[1],
        needs_probability=needs_probability,
        ranks_only=ranks_only,
        rewards_approach=rewards_approach,
        degenerate=degenerate,
        source=source,
    )


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _metric(
            "accuracy",
            "accuracy",
            "right units / units",
            accuracy,
            _SALT,
            higher_is_better=True,
            needs_probability=False,
            ranks_only=True,
            rewards_approach=True,
        ),
        _metric(
            "ece",
            "ECE",
            "Σⱼ n_j/n · |confidence_j − accuracy_j|, 15 bins ((j−1)/15, j/15], 0 in the first",
            expected_calibration_error,
            _SALT,
            higher_is_better=False,
        ),
        _metric(
            "mce",
            "MCE",
            "maxⱼ |confidence_j − accuracy_j|, the bins of ECE",
            maximum_calibration_error,
            "Naeini et al. 2015",
            higher_is_better=False,
        ),
        _metric(
            "ace",
            "ACE",
            "Σⱼ n_j/n · |confidence_j − accuracy_j|, 15 equal-mass bins, tie s..e in bin ⌊15(s+e+1)/(2n)⌋",
            adaptive_calibration_error,
            "Nixon et al. 2019; ties: our reading",
            higher_is_better=False,
        ),
        _metric(
            "smooth_ece",
            "smooth ECE",
            "the bandwidth σ with σ = ∫₀¹ |(1/n) Σᵢ K_σ(t, pᵢ)(pᵢ − yᵢ)| dt, K a Gaussian reflected at 0 and 1",
            smooth_calibration_error,
            "Błasiok and Nakkiran 2024; relplot",
            higher_is_better=False,
        ),
        _metric(
            "brier",
            "Brier score",
            "(1/n) Σ (p − y)²",
            brier_score,
            f"{_GUIDE}, Brier score",
            higher_is_better=False,
            rewards_approach=True,
        ),
        _metric(
            "brier_reliability",
            "Brier reliability",
            "Σⱼ n_j/n · (confidence_j − accuracy_j)², the bins of ECE",
            _brier_part("reliability"),
            _BRIER_SOURCE,
            higher_is_better=False,
        ),
        _metric(
            "brier_resolution",
            "Brier resolution",
            "Σⱼ n_j/n · (accuracy_j − accuracy)², the bins of ECE",
            _brier_part("resolution"),
            _BRIER_SOURCE,
            higher_is_better=True,
            range_=(0.0, 0.25),
        ),
        _metric(
            "brier_uncertainty",
            "Brier uncertainty",
            "accuracy · (1 − accuracy)",
            _brier_part("uncertainty"),
            _BRIER_SOURCE,
            higher_is_better=None,
            range_=(0.0, 0.25),
        ),
        _metric(
            "brier_remainder",
            "Brier remainder",
            "within-bin variance of p − 2 · within-bin covariance of p and y; makes the sum exact",
            _brier_part("remainder"),
            _BRIER_SOURCE,
            higher_is_better=None,
            range_=(-1.0, 1.0),
        ),
        _metric(
            "nll",
            "NLL",
            "−(1/n) Σ [y ln p + (1 − y) ln(1 − p)]",
            negative_log_likelihood,
            f"{_GUIDE}, Brier score vs log loss",
            higher_is_better=False,
            range_=(0.0, math.inf),
            rewards_approach=True,
            degenerate="undefined without units; infinite for a right unit at 0 or a wrong one at 1, as is the mean",
        ),
        _metric(
            "auroc",
            "macro AUROC",
            "Pr[confidence of a wrong unit < that of a right unit], a tie is half, all units pooled",
            auroc,
            f"{_SALT}, equation 2",
            higher_is_better=True,
            needs_probability=False,
            ranks_only=True,
            rewards_approach=True,
            degenerate=_BOTH_CLASSES,
        ),
        _metric(
            "auroc_micro",
            "micro AUROC",
            "mean over the generations with both classes of the AUROC inside each",
            _micro_auroc,
            f"{_SALT}, equation 2; mean over generations: our reading",
            higher_is_better=True,
            needs_probability=False,
            ranks_only=True,
            rewards_approach=True,
            degenerate="undefined without units, without groups, and when no generation holds both classes",
        ),
        _metric(
            "auprc",
            "AUPRC",
            "Σₖ (recall_k − recall_{k−1}) · precision_k over distinct confidences from the highest, right is positive",
            average_precision,
            "scikit-learn's average precision",
            higher_is_better=True,
            needs_probability=False,
            ranks_only=True,
            degenerate="undefined without units and without a right unit; 1 when all are right",
        ),
        _metric(
            "prr",
            "PRR",
            "(random − area) / (random − oracle) under the errors left after rejecting the least confident",
            prediction_rejection_ratio,
            "Malinin and Gales 2021; SALT appendix G.4",
            higher_is_better=True,
            range_=(-1.0, 1.0),
            needs_probability=False,
            ranks_only=True,
            rewards_approach=True,
            degenerate=_BOTH_CLASSES,
        ),
        _metric(
            "aurc",
            "AURC",
            "(1/n) Σₖ E[risk of the k most confident units], ties by expectation",
            area_under_risk_coverage,
            f"{_GUIDE}, Risk-coverage; ties: our reading",
            higher_is_better=False,
            needs_probability=False,
            ranks_only=True,
            rewards_approach=True,
            degenerate="undefined without units; 0 when all are right, 1 when all are wrong",
        ),
        *(
            _metric(
                f"euro_auc{suffix}",
                f"EURO area{title}",
                f"mean of euro(u) = {_EURO} over u in {interval}",
                _euro_area(part),
                "ACUTE section 2.3",
                higher_is_better=True,
                rewards_approach=True,
            )
            for suffix, title, interval, part in (
                ("", "", "(0, 1)", "all"),
                ("_low", ", low risk", "(0, ⅓)", "low"),
                ("_medium", ", medium risk", "[⅓, ⅔)", "medium"),
                ("_high", ", high risk", "[⅔, 1)", "high"),
            )
        ),
    )
}
"""In the order of reports and JSON."""


def evaluate_units(
    units: ScoredUnits,
    names: Iterable[str] = tuple(METRICS),
    probability: bool = True,
    ranking: ScoredUnits | None = None,
) -> dict[str, Value]:
    """Return the named metrics.

    Args:
        units: what to measure.
        names: keys of `METRICS`.
        probability: whether the confidences mean probabilities; without, metrics that need them are undefined.
        ranking: the same units with the scores that metrics of the order alone read; `units` by default.  A column of
            error probabilities p is ranked by −p: 1 − p makes 1e-17 and 2e-17 equal.

    Raises:
        ValueError: for confidences outside [0, 1] that are said to be probabilities.
    """
    wanted = [METRICS[name] for name in names]
    return {
        metric.name: undefined(NOT_A_PROBABILITY)
        if metric.needs_probability and not probability
        else metric.function(ranking if ranking is not None and metric.ranks_only else units)
        for metric in wanted
    }


def metrics_record(n: int, values: Mapping[str, Value]) -> dict[str, int | float | str | dict[str, str] | None]:
    """Return the JSON object of ``salt-tui metrics``: n, the values with None for undefined, and the reasons."""
    record: dict[str, int | float | str | dict[str, str] | None] = {"n": n}
    record.update({name: json_number(value.value) for name, value in values.items()})
    record["reasons"] = {name: value.reason for name, value in values.items() if value.reason is not None}
    return record
