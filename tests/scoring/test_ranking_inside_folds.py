"""Ranking by values of several maps: pairs inside folds only."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.calibrators import calibrator
from scoring.cross_fitting import CrossFitted, cross_fit
from scoring.ranking_inside_folds import RANKING, auroc_inside_folds, ranking_metrics
from scoring.value import NO_CORRECT_UNIT, TOO_FEW_PAIRS, undefined
from tests.scoring.measured import evaluate_metrics


@pytest.mark.parametrize("name", ["isotonic", "binned:5", "platt"])
def test_six_answers_at_one_confidence_say_nothing(name: str) -> None:
    """Pooled over folds their AUROC was 0 and their PRR −1: each value is the rate among the others."""
    scores, correct, owner = np.full(6, 0.7), np.array([1, 1, 1, 0, 0, 0], dtype=bool), np.arange(6)
    fitted = cross_fit(calibrator(name), scores, correct, owner)
    assert isinstance(fitted, CrossFitted)
    assert not fitted.strictly_rising
    found = ranking_metrics(fitted.values, correct, owner, fitted.fold)
    assert found["auroc"] == found["prr"] == undefined(TOO_FEW_PAIRS)
    assert evaluate_metrics(fitted.values, correct, owner)["auroc"].value == pytest.approx(0.0, abs=0.2)


def test_pairs_are_counted_inside_folds() -> None:
    """Two folds of five right and five wrong units each: 40 of 50 pairs in order, whatever the level of a fold."""
    inside = np.array([0.9] * 4 + [0.0] + [0.1] * 5)
    correct = np.array([True] * 5 + [False] * 5)
    values, labels = np.concatenate([inside, inside + 5.0]), np.concatenate([correct, correct])
    fold = np.repeat([3, 8], 10)
    found = ranking_metrics(values, labels, np.arange(20), fold)
    assert found["auroc"].value == pytest.approx(0.8)
    assert found["prr"].value == pytest.approx(0.6)
    one = evaluate_metrics(inside, correct, probability=False)
    assert found["aurc"].value == pytest.approx(one["aurc"].value)
    assert found["auprc"].value == pytest.approx(one["auprc"].value)


def test_folds_weigh_by_pairs_units_and_right_units() -> None:
    draw = np.random.default_rng(1)
    fold = np.repeat([0, 1], [30, 10])
    correct, values = draw.random(40) < np.where(fold == 0, 0.3, 0.7), draw.random(40)
    parts = [evaluate_metrics(values[fold == code], correct[fold == code]) for code in (0, 1)]
    right = np.array([correct[fold == code].sum() for code in (0, 1)])
    units = np.array([30, 10])
    found = ranking_metrics(values, correct, np.arange(40), fold)
    for name, weights in (("auroc", right * (units - right)), ("aurc", units), ("auprc", right)):
        expected = np.average([part[name].value or 0.0 for part in parts], weights=weights)
        assert found[name].value == pytest.approx(expected)


def test_one_fold_and_no_folds_are_the_plain_metrics() -> None:
    draw = np.random.default_rng(2)
    values, correct, owner = draw.random(60), draw.random(60) < 0.5, np.repeat(np.arange(6), 10)
    plain = evaluate_metrics(values, correct, owner)
    assert ranking_metrics(values, correct, owner) == {name: plain[name] for name in RANKING}
    assert ranking_metrics(values, correct, owner, np.zeros(60, dtype=np.int64)) == ranking_metrics(
        values, correct, owner
    )
    assert ranking_metrics(values, correct, owner, np.repeat([0, 1], 30), ["auroc_micro"]) == {
        "auroc_micro": plain["auroc_micro"]
    }


def test_one_class_is_undefined() -> None:
    values, fold = np.linspace(0, 1, 20), np.repeat([0, 1], 10)
    found = ranking_metrics(values, np.zeros(20, dtype=bool), np.arange(20), fold)
    assert found["auroc"] == undefined(TOO_FEW_PAIRS)
    assert found["auprc"] == undefined(NO_CORRECT_UNIT)
    assert found["aurc"].value == 1.0
    assert auroc_inside_folds(values, np.ones(20, dtype=bool), fold) == undefined(TOO_FEW_PAIRS)
