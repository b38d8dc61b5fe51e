"""Grouped cross-fitting: no unit is calibrated by a map that saw its own generation."""

import numpy as np
import pytest

from scoring.calibrators import CALIBRATORS, calibrator
from scoring.calibrators_fitted import Unfitted
from scoring.cross_fitting import CrossFitted, cross_fit


def sample(generations=12, per_generation=20, seed=0):
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(generations), per_generation)
    scores = generator.random(owner.size)
    return scores, generator.random(owner.size) < scores, owner


@pytest.mark.parametrize("name", CALIBRATORS)
def test_folds_give_every_row_a_value_whatever_the_row_order(name):
    scores, correct, owner = sample()
    fitted = cross_fit(calibrator(name), scores, correct, owner)
    assert isinstance(fitted, CrossFitted)
    assert fitted.folds == 5
    assert fitted.rows.tolist() == list(range(scores.size))
    assert ((fitted.values >= 0) & (fitted.values <= 1)).all()
    order = np.random.default_rng(5).permutation(scores.size)
    shuffled = cross_fit(calibrator(name), scores[order], correct[order], owner[order])
    assert isinstance(shuffled, CrossFitted)
    assert shuffled.values == pytest.approx(fitted.values[order], abs=1e-9)


def test_a_generation_never_calibrates_itself():
    """Each generation has its own score and all its labels say 1 for one, 0 for the others: seen labels would show."""
    scores, owner = np.repeat(np.linspace(0, 1, 6), 50), np.repeat(list("abcdef"), 50)
    for special in "abcdef":
        correct = owner == special
        fitted = cross_fit(calibrator("binned:100"), scores, correct, owner)
        assert isinstance(fitted, CrossFitted)
        assert fitted.values[correct].max() == 0.0


def test_folds_are_balanced_and_fixed_by_default():
    scores, correct, owner = sample(generations=11)
    first, second = (cross_fit(calibrator("platt"), scores, correct, owner) for _ in range(2))
    other = cross_fit(calibrator("platt"), scores, correct, owner, generator=np.random.default_rng(1))
    assert isinstance(first, CrossFitted)
    assert isinstance(second, CrossFitted)
    assert isinstance(other, CrossFitted)
    assert first.values.tolist() == second.values.tolist()
    assert first.values.tolist() != other.values.tolist()


def test_one_split_values_only_the_held_out_half():
    scores, correct, owner = sample(generations=10)
    fitted = cross_fit(calibrator("z_sigmoid"), scores, correct, owner, one_split=True)
    assert isinstance(fitted, CrossFitted)
    assert fitted.folds == 1
    assert fitted.rows.size == fitted.values.size == scores.size // 2
    held_out = set(owner[fitted.rows].tolist())
    assert len(held_out) == 5
    training = ~np.isin(owner, list(held_out))
    direct = calibrator("z_sigmoid").fit(scores[training], correct[training])
    assert not isinstance(direct, Unfitted)
    assert fitted.values.tolist() == direct.apply(scores[fitted.rows]).tolist()


@pytest.mark.parametrize("one_split", [True, False])
@pytest.mark.parametrize("generations", [2, 3, 4])
def test_few_generations(one_split, generations):
    scores, correct, owner = sample(generations=generations)
    fitted = cross_fit(calibrator("isotonic"), scores, correct, owner, one_split=one_split)
    assert isinstance(fitted, CrossFitted)
    assert fitted.folds == (1 if one_split else generations)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_undefined_with_the_reason(name):
    entry = calibrator(name)
    assert cross_fit(entry, [0.1, 0.9], [0, 1], [7, 7]) == Unfitted(name, "fewer than two generations")
    assert cross_fit(entry, [], [], []) == Unfitted(name, "fewer than two generations")
    assert isinstance(cross_fit(entry, [0.1, np.inf], [0, 1], [1, 2]), Unfitted)


def test_a_score_outside_the_unit_interval_rules_the_map_out_in_every_fold():
    reason = "beta needs scores in [0, 1]"
    assert cross_fit(calibrator("beta"), [0.1, 0.2, 1.5], [0, 1, 1], [1, 2, 3]) == Unfitted("beta", reason)


def test_strictly_rising_and_notes_are_collected():
    scores, correct, owner = sample()
    rising = cross_fit(calibrator("z_sigmoid"), scores, correct, owner)
    assert isinstance(rising, CrossFitted)
    assert rising.strictly_rising
    assert rising.notes == ()
    flat = cross_fit(calibrator("z_sigmoid"), np.full(owner.size, 0.5), correct, owner)
    assert isinstance(flat, CrossFitted)
    assert not flat.strictly_rising
    assert flat.notes == ("constant scores",)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="2 scores need 2 generations"):
        cross_fit(calibrator("platt"), [0.1, 0.2], [0, 1], [1])


def test_each_value_names_its_fold():
    scores, correct, owner = sample()
    fitted = cross_fit(calibrator("isotonic"), scores, correct, owner)
    assert isinstance(fitted, CrossFitted)
    assert sorted(set(fitted.fold.tolist())) == [0, 1, 2, 3, 4]
    for generation in set(owner.tolist()):
        assert len(set(fitted.fold[owner == generation].tolist())) == 1
