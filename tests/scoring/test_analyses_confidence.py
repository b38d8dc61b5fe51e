"""Densities of right and wrong units, label noise, and units finer than atoms."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.analyses_confidence import confidence_densities, label_noise
from scoring.analyses_granularity import character_spans, correct_parts
from scoring.ranking import auroc
from scoring.scored_units import ScoredUnits


def test_densities_by_hand():
    found = confidence_densities([0.1, 0.4, 0.9, 0.2, 0.3], [1, 1, 1, 0, 0], bins=2)
    assert found.right == pytest.approx((4 / 3, 2 / 3))
    assert found.wrong == (2.0, 0.0)
    assert found.overlap.value == pytest.approx(2 / 3)
    assert (found.right_units, found.wrong_units) == (3, 2)


def test_densities_integrate_to_one_at_the_ends_of_the_range():
    found = confidence_densities([0.0, 1.0, 0.5, 0.025], [1, 1, 1, 0])
    assert np.mean(found.right) == pytest.approx(1.0)
    assert found.wrong[0] == 40.0


def test_one_class_has_no_overlap():
    found = confidence_densities([0.1], [1])
    assert found.wrong is None
    assert found.overlap.reason == "one class"
    assert confidence_densities([], []).right is None
    with pytest.raises(ValueError, match="outside"):
        confidence_densities([1.2], [1])
    with pytest.raises(ValueError, match="bins"):
        confidence_densities([0.2], [1], bins=0)


def test_label_noise_formulas_and_simulation_agree_in_balanced_data():
    """A perfect score under 10 % noise is measured at 0.9 (SALT appendix I.5)."""
    correct = np.repeat([0, 1], 1000)
    found = label_noise(np.arange(2000.0), correct, np.random.default_rng(0))
    assert found.auroc.value == 1.0
    assert found.right_share.value == 0.5
    at_ten = found.levels[1]
    assert at_ten.share == 0.1
    assert at_ten.expected_shift.value == pytest.approx(0.1)
    assert at_ten.largest_shift.value == pytest.approx(0.2)
    assert at_ten.simulated.value == pytest.approx(0.9, abs=0.005)


def test_simulated_area_is_that_of_the_flipped_labels():
    generator = np.random.default_rng(2)
    scores = np.round(generator.random(60), 1)
    correct = generator.random(60) < 0.4
    found = label_noise(scores, correct, np.random.default_rng(9), shares=[0.2], repeats=1)
    flipped = np.random.default_rng(9).choice(60, size=12, replace=False, shuffle=False)
    noisy = correct.copy()
    noisy[flipped] ^= True
    assert found.levels[0].simulated.value == pytest.approx(auroc(ScoredUnits.from_columns(scores, noisy)).value)


def test_no_noise_and_chance_change_nothing():
    found = label_noise([0.1, 0.2, 0.3, 0.4], [0, 1, 1, 0], np.random.default_rng(0), shares=[0.0])
    assert found.auroc.value == 0.5
    assert found.levels[0].simulated.value == 0.5
    assert found.levels[0].expected_shift.value == 0.0


def test_label_noise_undefined_and_refused():
    found = label_noise([0.1, 0.2], [1, 1], np.random.default_rng(0))
    level = found.levels[0]
    assert {level.expected_shift.reason, level.largest_shift.reason, level.simulated.reason} == {"one class"}
    assert label_noise([0.1, 0.2], [0, 1], np.random.default_rng(0), shares=[0.9]).levels[0].largest_shift.value == 1.0
    assert label_noise([], [], np.random.default_rng(0)).right_share.value is None
    drowned = label_noise([0.1, 0.2], [0, 1], np.random.default_rng(0), shares=[0.5], repeats=5)
    assert drowned.levels[0].simulated.reason == "undefined in every draw"
    with pytest.raises(ValueError, match="share"):
        label_noise([0.1, 0.2], [0, 1], np.random.default_rng(0), shares=[1.5])
    with pytest.raises(ValueError, match="repeats"):
        label_noise([0.1, 0.2], [0, 1], np.random.default_rng(0), repeats=0)


def test_partial_credit_inside_a_unit():
    assert correct_parts("134", "135", [(0, 1), (1, 2), (2, 3)]) == (True, True, False)
    assert correct_parts("134", "135", [(0, 2), (2, 3)]) == (True, False)
    assert correct_parts("-130", "135", character_spans("-130")) == (False, False, False, False)
    assert correct_parts("180", "18", [(0, 2), (2, 3)]) == (True, False)
    assert correct_parts("7", None, [(0, 1)]) == (False,)
    with pytest.raises(ValueError, match="inside it"):
        correct_parts("7", "7", [(0, 2)])


@given(st.text())
def test_characters_cover_the_text(text):
    spans = character_spans(text)
    assert len(spans) == len(text)
    assert all(correct_parts(text, text, spans))
    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]


def test_json_round_trip_never_holds_nan():
    found = confidence_densities([0.1, 0.8], [0, 1])
    assert "NaN" not in json.dumps([found.right, found.wrong, found.overlap.value], allow_nan=False)
