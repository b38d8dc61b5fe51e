"""All resamples at once give what measuring each resample gives."""

from __future__ import annotations

import numpy as np
import pytest

from scoring import pair_counts
from scoring.benchmark_intervals import (
    RESAMPLED,
    draw_generations,
    resampled_metrics,
)
from scoring.metrics import evaluate_units
from scoring.scored_units import ScoredUnits


def table(
    units: int, generations: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # confidence, correct, generation, draws
    generator = np.random.default_rng(seed)
    confidence = np.round(generator.random(units), 2) * 0.9 + 0.05
    correct = generator.random(units) < confidence
    return confidence, correct, generator.integers(0, generations, units), draw_generations(generations, 25, generator)


@pytest.mark.parametrize(
    ("largest", "batch"), [(pair_counts.LARGEST_PAIR_TABLE, pair_counts.BATCH_CELLS), (0, 50), (10**6, 50)]
)
@pytest.mark.parametrize(("units", "generations"), [(200, 11), (40, 30), (3, 2), (1, 4)])
def test_equals_metrics_of_the_drawn_units(
    monkeypatch: pytest.MonkeyPatch, units: int, generations: int, largest: int, batch: int
) -> None:
    monkeypatch.setattr(pair_counts, "LARGEST_PAIR_TABLE", largest)
    monkeypatch.setattr(pair_counts, "BATCH_CELLS", batch)
    confidence, correct, generation, draws = table(units, generations, units)
    found = resampled_metrics(confidence, correct, generation, draws)
    assert tuple(found) == RESAMPLED
    for number, weights in enumerate(draws.astype(int)):
        rows = np.repeat(np.arange(units), weights[generation])
        copies = np.concatenate([np.arange(weights[g]) for g in generation])
        owners = generation[rows] * 1000 + copies
        expected = evaluate_units(ScoredUnits.from_columns(confidence[rows], correct[rows], owners), RESAMPLED)
        for name, value in expected.items():
            got = found[name][number]
            assert np.isnan(got) if value.value is None else got == pytest.approx(value.value, abs=1e-9), name


def test_a_wrong_unit_at_one_makes_the_log_loss_of_its_draws_infinite() -> None:
    draws = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    nll = resampled_metrics(np.array([0.5, 1.0]), np.array([True, False]), np.array([0, 1]), draws)["nll"]
    assert nll[0] == pytest.approx(np.log(2))
    assert np.isposinf(nll[1:]).all()


def test_scores_that_are_no_probabilities_have_only_ranking_metrics() -> None:
    draws = draw_generations(2, 5, np.random.default_rng(1))
    found = resampled_metrics(
        np.array([-3.0, 7.0]), np.array([False, True]), np.array([0, 1]), draws, probability=False
    )
    assert set(found) == {"accuracy", "auroc", "auroc_micro", "prr"}
    assert found["accuracy"].max() <= 1.0


def test_no_units_and_no_draws_are_undefined() -> None:
    nothing = np.zeros(0)
    draws = draw_generations(3, 4, np.random.default_rng(1))
    found = resampled_metrics(nothing, nothing.astype(bool), nothing.astype(np.int64), draws)
    assert all(np.isnan(values).all() for values in found.values())
