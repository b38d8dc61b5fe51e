"""Combined scores: better where there is something to combine, and nothing leaks from the answers they apply to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scoring.combined import ScoredTable, combine, folds_of, mean_auroc, what_each_adds

pytestmark = pytest.mark.slow


def drawn(seed: int, answers: int = 60, units: int = 8) -> ScoredTable:
    """Two scores that each know half of what decides, one that knows nothing, in two tasks."""
    random = np.random.default_rng(seed)
    size = answers * units
    first, second, noise = random.normal(size=(3, size))
    correct = first + second + random.normal(size=size) > 0
    group = np.repeat(np.arange(answers), units)
    return ScoredTable({"first": first, "second": second, "noise": noise}, correct, group, group % 2)


def test_folds_keep_answers_whole_and_even() -> None:
    group = np.repeat(np.arange(12), 3)
    fold = folds_of(group, np.random.default_rng(1))
    assert all(len(set(fold[group == answer])) == 1 for answer in range(12))
    assert sorted(np.bincount(fold) // 3) == [2, 2, 2, 3, 3]


@pytest.mark.parametrize("model", ["logistic", "forest"])
def test_a_combination_beats_its_parts(model) -> None:
    table = drawn(1)
    fold = folds_of(table.group, np.random.default_rng(2))
    both = mean_auroc(combine(table, model, fold, 3), table.correct, table.task, fold)
    alone = [mean_auroc(table.scores[name], table.correct, table.task, None) for name in ("first", "second")]
    assert both > max(alone) + 0.03
    np.testing.assert_array_equal(combine(table, model, fold, 3), combine(table, model, fold, 3))


def test_what_a_score_adds_is_what_is_lost_without_it() -> None:
    table = drawn(4)
    adds = what_each_adds(table, folds_of(table.group, np.random.default_rng(5)), ["first", "second", "noise"])
    assert min(adds["first"], adds["second"]) > 0.05
    assert abs(adds["noise"]) < 0.02
    assert what_each_adds(table.without("first").without("second"), table.group % 5, ["noise"])["noise"] is None


@pytest.mark.parametrize("model", ["logistic", "forest"])
def test_shuffled_labels_leave_chance(model, monkeypatch) -> None:
    """All units of an answer look alike and share a label: a split inside answers would know it."""
    monkeypatch.setattr("scoring.combined.TREES", 15)  # leaks do not need many, and time does
    answers, units = 80, 2
    group = np.repeat(np.arange(answers), units)
    draw = np.random.default_rng(6)
    scores = {name: draw.normal(size=answers)[group] + 0.01 * draw.normal(size=group.size) for name in ("a", "b")}
    found, task = [], np.zeros_like(group)
    for seed in range(20):
        random = np.random.default_rng(seed)
        table = ScoredTable(scores, random.permutation(np.arange(answers) % 2 == 0)[group], group, task)
        fold = folds_of(group, random)
        found.append(mean_auroc(combine(table, model, fold, seed), table.correct, task, fold))
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)


def test_missing_infinite_and_constant_scores_and_a_single_class() -> None:
    table = drawn(7, answers=10)
    gaps = {
        "gaps": np.where(np.arange(80) % 3 == 0, np.nan, table.scores["first"]),
        "infinite": np.where(np.arange(80) % 7 == 0, np.inf, table.scores["second"]),
        "same": np.ones(80),
        "nothing": np.full(80, np.nan),
    }
    values = combine(ScoredTable(gaps, table.correct, table.group, table.task), "logistic", table.group % 5, 0)
    assert np.all((values > 0.0) & (values < 1.0))
    one = ScoredTable(table.scores, np.ones(80, dtype=bool), table.group, table.task)
    assert np.isnan(combine(one, "logistic", table.group % 5, 0)).all()
    assert mean_auroc(table.scores["first"], one.correct, table.task, None) is None
    assert np.isnan(combine(ScoredTable({}, table.correct, table.group, table.task), "forest", table.group, 0)).all()


def test_auroc_counts_pairs_inside_folds_and_halves_ties() -> None:
    correct, task = np.array([True, False, True, False]), np.zeros(4, dtype=np.int64)
    scores = np.array([0.2, 0.1, 0.9, 0.9])
    assert mean_auroc(scores, correct, task, np.array([0, 0, 1, 1])) == 0.75
    assert mean_auroc(scores, correct, task, None) == pytest.approx((1 + 0 + 1 + 0.5) / 4)


def test_the_logistic_model_is_a_scikit_learn_pipeline_fitted_on_the_other_folds() -> None:
    table = drawn(8, answers=30)
    alone = ScoredTable(table.scores, table.correct, table.group, np.zeros_like(table.group))
    fold = folds_of(table.group, np.random.default_rng(9))
    features = np.column_stack([*table.scores.values()])
    expected = np.empty(table.correct.size)
    for number in range(5):
        held = fold == number
        pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, tol=1e-8)).fit(
            features[~held], table.correct[~held]
        )
        expected[held] = pipeline.predict_proba(features[held])[:, 1]
    # Scores beyond those that were trained on are clipped to them, so a few differ.
    found = combine(alone, "logistic", fold, 0)
    inside = np.ones(table.correct.size, dtype=bool)
    for number in range(5):
        held = fold == number
        low, high = features[~held].min(axis=0), features[~held].max(axis=0)
        inside[held] = ((features[held] >= low) & (features[held] <= high)).all(axis=1)
    assert inside.mean() > 0.9
    assert found[inside] == pytest.approx(expected[inside], abs=2e-3)


def test_what_adds_is_measured_on_the_units_that_count() -> None:
    table = drawn(10, answers=30)
    fold = folds_of(table.group, np.random.default_rng(11))
    counted = table.task == 1
    adds = what_each_adds(table, fold, ["first"], counted)
    values = [combine(part, "logistic", fold, 0) for part in (table, table.without("first"))]
    whole, rest = (
        mean_auroc(column[counted], table.correct[counted], table.task[counted], fold[counted]) for column in values
    )
    assert whole is not None
    assert rest is not None
    assert adds["first"] == pytest.approx(whole - rest)
    assert what_each_adds(table, fold, ["first"], np.zeros_like(counted)) == {"first": None}
