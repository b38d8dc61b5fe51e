"""Probes on activations with a planted direction: found where it is, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from scoring.combined import folds_of, mean_auroc
from scoring.forest_arrays import ForestArrays, ForestError
from scoring.probe_estimators import (
    ForestSettings,
    fit_forest,
    fit_histogram_regression,
    fit_kernel_regression,
)
from scoring.probe_features import cosine_features, depth_third, fit_components, intrinsic_dimensions
from scoring.probes import (
    BASELINES,
    PROBE_METRICS,
    Estimate,
    ProbeUnits,
    across_tasks,
    baseline_estimates,
    layer_metrics,
    probe_estimates,
    sample_complexity,
)
from scoring.scored_units import ScoredUnits
from scoring.smooth_calibration_error import smooth_calibration_error
from tests.scoring.measured import evaluate_metrics

pytestmark = pytest.mark.slow

FEW = ForestSettings(trees=8)


def ranks(estimate: Estimate, units: ProbeUnits) -> float:
    """AUROC: unlike the EURO area, one half without knowledge."""
    return evaluate_metrics(estimate.confidence, units.correct)["auroc"].value or 0.0


def units_with(signal_layer: int | None, problems: int = 60, layers: int = 4, seed: int = 1) -> ProbeUnits:
    """Return two answers a problem whose correctness one layer's first coordinates show; probabilities mean nothing."""
    draw = np.random.default_rng(seed)
    problem = np.repeat(np.arange(problems), 2)
    correct = draw.random(problem.size) < 0.5
    pools = draw.normal(size=(layers, problem.size, 12)).astype(np.float32)
    if signal_layer is not None:
        pools[signal_layer, :, :3] += 2.0 * correct[:, None]
    return ProbeUnits(pools, tuple(range(1, layers + 1)), layers, draw.random(problem.size), correct, problem)


def test_a_planted_direction_is_found_in_its_third() -> None:
    units = units_with(2)  # layer 3 of 4: late
    found = probe_estimates(units, np.random.default_rng(2), settings=FEW, search=FEW)
    assert set(found) == {"act early", "act middle", "act late", "cosine", "pca10", "pca20"}
    areas = {name: ranks(estimate, units) for name, estimate in found.items()}
    assert areas["act late"] > 0.85
    assert areas["act early"] < 0.65
    assert areas["pca10"] > areas["act early"]
    assert set(found["act late"].layers) == {3}
    assert found["act early"].layers == (1,) * 5
    assert tuple(found["cosine"].metrics) == PROBE_METRICS


def test_without_a_signal_no_estimator_knows_anything() -> None:
    """Folds that leaked a problem, or layers chosen on the judged units, would show here."""
    areas = []
    for seed in range(2):
        units = units_with(None, problems=40, layers=3, seed=seed)
        units = ProbeUnits(
            units.pools.repeat(2, axis=1),
            units.layers,
            units.depth,
            units.probability.repeat(2),
            units.correct.repeat(2),
            units.problem.repeat(2),
        )  # every answer twice: a split by answers would know it
        found = probe_estimates(units, np.random.default_rng(seed), settings=FEW, search=FEW)
        areas += [ranks(estimate, units) for estimate in found.values()]
    assert np.mean(areas) == pytest.approx(0.5, abs=0.08)


def test_shuffled_labels_leave_chance() -> None:
    """Answers to a problem look alike and share a label: a split inside problems would know it."""
    problems, answers = 60, 2
    problem = np.repeat(np.arange(problems), answers)
    draw = np.random.default_rng(8)
    pools = draw.normal(size=(1, problems, 12))[:, problem] + 0.01 * draw.normal(size=(1, problem.size, 12))
    found: dict[str, list[float | None]] = {"act late": [], "pca10": []}
    for seed in range(20):
        correct = np.random.default_rng(100 + seed).permutation(np.arange(problems) % 2 == 0)[problem]
        units = ProbeUnits(pools.astype(np.float32), (1,), 1, np.full(problem.size, 0.5), correct, problem)
        estimates = probe_estimates(units, np.random.default_rng(seed), settings=ForestSettings(trees=4))
        # Ranks are compared inside folds: a training part with fewer right ones is a held-out part with more.
        fold = folds_of(problem, np.random.default_rng(seed))
        for name, areas in found.items():
            areas.append(mean_auroc(estimates[name].confidence, correct, np.zeros_like(problem), fold))
    for name, areas in found.items():
        assert np.mean(areas) == pytest.approx(0.5, abs=0.05), name


def test_maps_are_fitted_on_inner_folds() -> None:
    units = units_with(1, problems=60, layers=2)
    found = probe_estimates(units, np.random.default_rng(3), settings=FEW, search=FEW, maps=["platt"])
    assert "act late + platt" in found
    better = found["act late + platt"].metrics["smooth_ece"].value
    assert better is not None
    assert better < 0.2
    assert found["act late + platt"].confidence.max() <= 1.0


def test_baselines_read_the_probability_alone() -> None:
    draw = np.random.default_rng(4)
    probability = draw.random(400)
    correct = draw.random(400) < probability**2
    units = ProbeUnits(np.zeros((1, 400, 2)), (1,), 1, probability, correct, np.arange(400))
    found = baseline_estimates(units, np.random.default_rng(5))
    assert tuple(found) == BASELINES
    assert found["none"].confidence.tolist() == probability.tolist()
    raw = found["none"].metrics["smooth_ece"].value or 0.0
    for name in BASELINES[1:]:
        assert (found[name].metrics["smooth_ece"].value or 1.0) < raw / 2


def test_histogram_regression_by_hand() -> None:
    predict = fit_histogram_regression(np.array([0.0, 0.01, 0.28, 1.0]), np.array([True, False, True, False]))
    assert predict(np.array([0.02, 0.279, 0.28, 0.31999, 0.32, 0.99])).tolist() == [0.5, 0.5, 1.0, 1.0, 0.5, 0.0]
    third = fit_histogram_regression(np.array([0.5]), np.array([True]))
    assert third(np.array([0.1])).tolist() == [1.0]  # an empty bin has the base rate


def test_kernel_regression_is_a_weighted_mean_with_reflections() -> None:
    probability, correct = np.array([0.1, 0.2, 0.8]), np.array([False, True, True])
    width = max(smooth_calibration_error(ScoredUnits.from_columns(probability, correct)).value or 0.0, 0.001)
    at = 0.15
    weights = sum(np.exp(-0.5 * ((at - image) / width) ** 2) for image in (probability, -probability, 2 - probability))
    expected = float((weights * correct).sum() / weights.sum())
    assert fit_kernel_regression(probability, correct)(np.array([at])) == pytest.approx([expected])


def test_kernel_regression_far_from_everything_is_the_base_rate() -> None:
    """Perfectly calibrated ends: the bandwidth is its floor of .001, and the middle sees nothing."""
    probability = np.array([0.0] * 50 + [1.0] * 50)
    predict = fit_kernel_regression(probability, probability > 0.5)
    assert predict(np.array([0.5, 0.0, 1.0])) == pytest.approx([0.5, 0.0, 1.0], abs=1e-6)


def test_a_forest_of_one_class_is_constant_and_a_seed_repeats() -> None:
    draw = np.random.default_rng(6)
    features = draw.normal(size=(40, 5))
    assert fit_forest(features, np.ones(40, dtype=bool), FEW)(features[:3]).tolist() == [1.0] * 3
    assert fit_forest(features, np.zeros(40, dtype=bool), FEW)(features[:3]).tolist() == [0.0] * 3
    correct = features[:, 0] > 0
    first, second = (fit_forest(features, correct, FEW)(features) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert ((first >= 0) & (first <= 1)).all()


def test_cosines_and_thirds() -> None:
    pools = np.array([[[1.0, 0.0]], [[0.0, 0.0]], [[-2.0, 0.0]], [[3.0, 4.0]]])
    assert cosine_features(pools) == pytest.approx(np.array([[0.6, 0.0, -0.6]]))
    with pytest.raises(ValueError, match="two layers"):
        cosine_features(pools[:1])
    assert [depth_third(layer, 20) for layer in (1, 8, 9, 13, 14, 20)] == ["early"] * 2 + ["middle"] * 2 + ["late"] * 2
    with pytest.raises(ValueError, match="outside"):
        depth_third(21, 20)


def test_components_are_limited_by_units_and_fitted_on_those_given() -> None:
    draw = np.random.default_rng(7)
    pools = draw.normal(size=(2, 6, 9))
    components = fit_components(pools, 20)
    assert components.directions.shape == (2, 5, 9)
    features = components.features(pools)
    assert features.shape == (6, 10)
    centred = pools[0] - pools[0].mean(axis=0)
    assert (features[:, :5] ** 2).sum() == pytest.approx((centred**2).sum())
    with pytest.raises(ValueError, match="two units"):
        fit_components(pools[:, :1], 3)


def test_intrinsic_dimension_counts_components() -> None:
    """Variances 8, 1, 1 of 10: one holds 50 and 70 %, two 90 %, three 95 %."""
    draw = np.random.default_rng(8)
    orthogonal = np.linalg.qr(draw.normal(size=(50, 3)) - 0.0)[0]
    orthogonal -= orthogonal.mean(axis=0)
    orthogonal = np.linalg.qr(orthogonal)[0]
    pool = orthogonal * np.sqrt([8.0, 1.0, 1.0])
    found = intrinsic_dimensions(np.stack([pool, np.ones((50, 3))]), (4, 7))
    assert (found[0].layer, found[0].components) == (4, (1, 1, 2, 3))
    assert (found[0].units, found[0].width) == (50, 3)
    assert found[1].components == (None,) * 4


def test_more_answers_help_and_too_few_are_undefined() -> None:
    units = units_with(3, problems=80)
    small, large, beyond = sample_complexity(
        units, 3, np.random.default_rng(9), sizes=(10, 100, 1000), draws=5, settings=FEW
    )
    assert small.units == 10
    assert (large.means["euro_auc"].value or 0.0) > (small.means["euro_auc"].value or 1.0)
    assert (small.deviations["euro_auc"].value or 0.0) > 0.0
    assert beyond.means["euro_auc"].reason == "fewer than 1000 units to train on"


def test_single_layers_are_measured_out_of_fold() -> None:
    found = layer_metrics(units_with(1), np.random.default_rng(10), FEW)
    areas = {layer: metrics["euro_auc"].value for layer, metrics in found.items()}
    assert max(areas, key=lambda layer: areas[layer] or 0.0) == 2
    with pytest.raises(ValueError, match="two problems"):
        layer_metrics(units_with(1, problems=1), np.random.default_rng(11), FEW)


def test_a_forest_of_arrays_is_scikit_learns() -> None:
    draw = np.random.default_rng(12)
    features = draw.normal(size=(120, 7))
    correct = features[:, 0] + draw.normal(size=120) > 0
    others = draw.normal(size=(50, 7))
    expected = fit_forest(features, correct, FEW)(others)
    assert ForestArrays.grown(features, correct, FEW).predict(others) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ForestError, match="right and wrong"):
        ForestArrays.grown(features, np.ones(120, dtype=bool), FEW)


def test_components_are_scikit_learns_with_more_units_than_numbers_and_with_fewer() -> None:
    draw = np.random.default_rng(13)
    for shape in ((2, 40, 9), (2, 8, 30)):
        pools = draw.normal(size=shape)
        directions = fit_components(pools, 5).directions
        for pool, found in zip(pools, directions, strict=True):
            expected = PCA(5, svd_solver="full").fit(pool).components_
            assert np.abs(np.einsum("ij,ij->i", found, expected)) == pytest.approx(np.ones(5))


def test_a_direction_that_one_task_lacks_does_not_carry_to_it() -> None:
    units = units_with(2, problems=90)
    task = np.arange(units.correct.size) % 3
    alone = task == 2
    units.pools[2, alone, :3] = np.random.default_rng(14).normal(size=(int(alone.sum()), 3))
    found = across_tasks(units, task, 2, np.random.default_rng(15), FEW)
    areas = [one.metrics["auroc"].value or 0.0 for one in found]
    assert min(areas[:2]) > 0.8
    assert areas[2] < 0.7
    assert [one.units for one in found] == [60, 60, 60]
    assert [one.right for one in found] == [int(units.correct[task == code].sum()) for code in range(3)]
    assert across_tasks(units, np.zeros(units.correct.size, dtype=np.int64), 2, np.random.default_rng(1), FEW) == ()


def test_a_task_with_one_wrong_unit_has_no_auroc() -> None:
    units = units_with(2, problems=30)
    task = np.arange(units.correct.size) // 20
    units.correct[task == 1] = True
    units.correct[20] = False
    found = across_tasks(units, task, 2, np.random.default_rng(16), FEW)
    for part in (found[1].metrics, found[1].inside, found[1].raw):
        assert part["auroc"].reason == "fewer than two answers with a right and two with a wrong unit"
        assert part["smooth_ece"].value is not None
    assert found[0].metrics["auroc"].value is not None
