"""Metrics against numbers that other implementations computed, and against scikit-learn in the same run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from scoring.decision_utility import euro
from scoring.metrics import METRICS
from scoring.ranking import micro_auroc
from scoring.scored_units import ScoredUnits
from tests.scoring.measured import evaluate_metrics

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
CASES = GOLDEN["metrics"]["cases"]
NAMES_THERE = {"ece": "ece_15", "mce": "mce_15", "ace": "ace_15", "auprc": "average_precision"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}-{len(case['correct'])}")
@pytest.mark.parametrize("name", [name for name in METRICS if name != "accuracy"])
def test_metrics_reproduce_the_golden_numbers(case: dict[str, object], name: str) -> None:
    """Every metric within 1e-9, smooth ECE within 2e-3 (relplot could not compute that of a single unit)."""
    confidence, correct = np.array(case["confidence"]), np.array(case["correct"])
    value = evaluate_metrics(confidence, correct, np.arange(len(correct)) // int(str(case["group_size"])))[name].value
    expected = case[NAMES_THERE.get(name, name)]
    if name == "nll" and expected is None:  # the file has no word for infinity
        expected = np.inf
    if name == "smooth_ece" and case["kind"] == "one":
        assert value == pytest.approx(abs(confidence[0] - correct[0]), abs=2e-3)
    else:
        assert value == (None if expected is None else pytest.approx(expected, abs=2e-3 if "smooth" in name else 1e-9))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}-{len(case['correct'])}")
def test_euro_at_a_hundred_utilities(case: dict[str, object]) -> None:
    """EURO counted from its definition, and the number of generations without both classes."""
    correct = np.array(case["correct"])
    groups = np.arange(len(correct)) // int(str(case["group_size"]))
    units = ScoredUnits.from_columns(np.array(case["confidence"]), correct, groups)
    values = [euro(units, step / 100).value for step in range(101)]
    expected = case["euro_at_0_0.01_..._1"]
    assert isinstance(expected, list)
    assert values == [None if entry is None else pytest.approx(entry, abs=1e-9) for entry in expected]
    assert micro_auroc(units).left_out == case["auroc_micro_left_out"]


@pytest.mark.parametrize("levels", [3, 20, 10**9])
def test_scikit_learn_agrees(levels: int) -> None:
    """With few ties, many ties and none."""
    generator = np.random.default_rng(levels)
    for _ in range(20):
        confidence = generator.integers(1, levels, 300, endpoint=True) / (levels + 1)
        correct = generator.random(300) < confidence
        values = {name: value.value for name, value in evaluate_metrics(confidence, correct).items()}
        assert values["auroc"] == pytest.approx(roc_auc_score(correct, confidence), abs=1e-12)
        assert values["auprc"] == pytest.approx(average_precision_score(correct, confidence), abs=1e-12)
        assert values["brier"] == pytest.approx(brier_score_loss(correct, confidence), abs=1e-12)
        assert values["nll"] == pytest.approx(log_loss(correct, confidence), abs=1e-12)


def test_micro_auroc_is_the_mean_of_what_scikit_learn_gives_inside_generations() -> None:
    """Ties inside generations, generations interleaved, and the pair-weighted value beside it."""
    generator = np.random.default_rng(8)
    confidence, groups = generator.integers(0, 9, 500) / 8, generator.integers(0, 60, 500)
    correct = generator.random(500) < confidence
    areas, pairs = [], []
    for group in range(60):
        mine = groups == group
        if 0 < correct[mine].sum() < mine.sum():
            areas.append(roc_auc_score(correct[mine], confidence[mine]))
            pairs.append(int(correct[mine].sum() * (~correct[mine]).sum()))
    result = micro_auroc(ScoredUnits.from_columns(confidence, correct, groups))
    assert result.mean.value == pytest.approx(np.mean(areas), abs=1e-12)
    assert result.pair_weighted.value == pytest.approx(np.average(areas, weights=pairs), abs=1e-12)
    assert (result.generations, result.left_out) == (len(areas), len(set(groups.tolist())) - len(areas))
