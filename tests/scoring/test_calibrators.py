"""Calibration maps against golden numbers, worked examples and scikit-learn."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from scoring.calibrators import CALIBRATORS, UnknownCalibratorError, calibrator
from scoring.calibrators_fitted import Fitted, Unfitted
from scoring.calibrators_parametric import Beta, Logistic, Temperature

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))
CASES = GOLDEN["calibrators"]["cases"]
WORKED = GOLDEN["worked_examples"]


def fit(name, scores, correct, **options) -> Fitted:
    fitted = calibrator(name).fit(scores, correct, **options)
    assert isinstance(fitted, Fitted)
    return fitted


def golden_values(case, name):
    fitted = fit(name, case["train_scores"], case["train_correct"], higher_is_confident=case["higher_is_confident"])
    return fitted.apply(case["test_scores"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
@pytest.mark.parametrize(
    ("name", "block", "tolerance"),
    [
        ("z_sigmoid", "z_sigmoid", 1e-9),
        ("minmax", "minmax_q0.01", 1e-9),
        ("isotonic", "isotonic", 1e-9),
        ("platt", "platt", 5e-4),
    ],
)
def test_golden_values(case, name, block, tolerance):
    assert golden_values(case, name) == pytest.approx(case[block], abs=tolerance)


@pytest.mark.parametrize("case", [case for case in CASES if "temperature" in case], ids=lambda case: case["kind"])
def test_golden_temperature_and_beta(case):
    fitted = fit("temperature", case["train_scores"], case["train_correct"])
    assert isinstance(fitted.mapping, Temperature)
    assert fitted.mapping.temperature == pytest.approx(case["temperature"]["T"], abs=1e-3)
    assert golden_values(case, "temperature") == pytest.approx(case["temperature"]["values"], abs=1e-3)
    assert golden_values(case, "beta") == pytest.approx(case["beta_abm"], abs=1e-3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
@pytest.mark.parametrize("bins", ["5", "10", "100"])
def test_golden_binned_with_the_base_rate_for_empty_bins(case, bins):
    base_rate = float(np.mean(case["train_correct"]))
    expected = [base_rate if value is None else value for value in case["binned"][bins]]
    assert golden_values(case, f"binned:{bins}") == pytest.approx(expected, abs=1e-9)


def test_worked_examples_of_the_calibration_guide():
    platt = WORKED["platt"]
    assert Logistic(0.0, 1.0, platt["a"], platt["b"])(np.array(platt["s"])) == pytest.approx(platt["p"], abs=5e-4)
    isotonic = WORKED["isotonic"]
    scores, correct = [], []
    for score, rate in zip(isotonic["x"], isotonic["rate"], strict=True):
        scores += [score] * 10
        correct += [1] * round(10 * rate) + [0] * (10 - round(10 * rate))
    fitted = fit("isotonic", scores, correct)
    assert fitted.apply(isotonic["x"]) == pytest.approx(isotonic["fit"], abs=1e-12)
    assert fitted.apply([0.5]) == pytest.approx([isotonic["at_0.5"]], abs=1e-12)


def test_temperature_map_divides_the_logit():
    assert Temperature(2.0)(np.array([0.8])) == pytest.approx([1 / (1 + math.exp(-math.log(4) / 2))], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_isotonic_agrees_with_scikit_learn(seed):
    sklearn_isotonic = pytest.importorskip("sklearn.isotonic")
    generator = np.random.default_rng(seed)
    scores = np.round(generator.normal(size=3000), seed)
    correct = generator.random(3000) < 1 / (1 + np.exp(-scores + 0.3 * np.sin(9 * scores)))
    test = generator.normal(size=500) * 1.5
    reference = sklearn_isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, correct).predict(test)
    assert fit("isotonic", scores, correct).apply(test) == pytest.approx(reference, abs=1e-9)


def test_isotonic_when_pooling_takes_one_neighbour_at_a_time():
    """Rising rates and then a heavy group of wrong units, which swallows one neighbour after the other."""
    groups = 90
    correct = (np.arange(100)[None, :] < np.arange(groups)[:, None]).astype(float).ravel()
    scores = np.r_[np.repeat(np.arange(groups), 100), np.full(20_000, groups)]
    correct = np.r_[correct, np.arange(20_000) < 8_000]
    sklearn_isotonic = pytest.importorskip("sklearn.isotonic")
    test = np.arange(groups + 1)
    reference = sklearn_isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, correct).predict(test)
    assert fit("isotonic", scores, correct).apply(test) == pytest.approx(reference, abs=1e-9)
    assert reference[0] < reference[40] < reference[-1]


def test_platt_agrees_with_unregularised_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(7)
    scores = generator.normal(3.0, 2.0, 800)
    correct = generator.random(800) < 1 / (1 + np.exp(-0.7 * scores + 2))
    reference = linear.LogisticRegression(C=np.inf, tol=1e-10).fit(scores[:, None], correct)
    assert fit("platt", scores, correct).apply(scores) == pytest.approx(
        reference.predict_proba(scores[:, None])[:, 1], abs=1e-6
    )


def test_platt_keeps_a_negative_slope_and_says_so():
    fitted = fit("platt", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, 1, 0, 1, 0, 0])
    assert "negative slope" in (fitted.note or "")
    assert not fitted.strictly_rising
    assert np.all(np.diff(fitted.apply([0.1, 0.3, 0.6])) < 0)


def test_histogram_puts_equal_numbers_in_bins_with_edges_halfway():
    fitted = fit("histogram:2", [0.1, 0.2, 0.6, 0.8], [0, 1, 1, 1])
    assert fitted.apply([0.0, 0.39, 0.41, 9.0]).tolist() == [0.5, 0.5, 1.0, 1.0]
    assert fitted.note is None


def test_histogram_moves_a_tie_group_as_one():
    """Six units, 0.5 four times at sorted positions 1..4: bin ⌊3·6/12⌋ = 1, the ends bins 0 and 2."""
    fitted = fit("histogram:3", [0.5, 0.5, 0.5, 0.5, 0.1, 0.9], [1, 0, 1, 0, 0, 1])
    assert fitted.apply([0.1, 0.5, 0.9]).tolist() == [0.0, 0.5, 1.0]


def test_binned_is_not_made_monotone():
    fitted = fit("binned:2", [0.0, 0.1, 0.9, 1.0], [1, 1, 0, 0])
    assert fitted.apply([-5.0, 0.0, 1.0, 7.0]).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_binned_gives_an_empty_bin_the_base_rate():
    fitted = fit("binned:4", [0.0, 0.1, 0.9, 1.0], [0, 0, 0, 1])
    assert fitted.apply([0.4, 0.95]).tolist() == [0.25, 0.5]
    assert fitted.note == "2 of 4 bins have no training unit"


def test_minmax_uses_the_whole_range_when_the_trimmed_one_is_empty():
    fitted = fit("minmax", [0.0] + [0.5] * 998 + [1.0], [1] * 1000)
    assert fitted.apply([0.0, 0.5, 1.0]).tolist() == [0.0, 0.5, 1.0]
    assert "whole range" in (fitted.note or "")


@pytest.mark.parametrize("name", ["z_sigmoid", "minmax"])
def test_constant_scores_give_one_half(name):
    fitted = fit(name, [0.1 + 0.2] * 7, [1, 0, 1, 1, 1, 1, 1])
    assert fitted.apply([-3.0, 0.3, 8.0]).tolist() == [0.5, 0.5, 0.5]
    assert fitted.note == "constant scores"


@pytest.mark.parametrize("name", ["binned:10", "histogram:15", "isotonic", "platt", "beta"])
def test_constant_scores_give_the_base_rate_where_labels_are_used(name):
    fitted = fit(name, [0.7] * 4, [1, 0, 1, 1])
    assert fitted.apply([0.0, 0.7, 1.0]) == pytest.approx([0.75] * 3, abs=1e-12)
    assert fitted.note == "constant scores"


def test_constant_scores_get_the_base_rate_from_temperature_where_it_can():
    assert fit("temperature", [0.9] * 4, [1, 0, 1, 1]).apply([0.9]) == pytest.approx([0.75], abs=1e-9)
    assert fit("temperature", [0.5] * 4, [1, 0, 1, 1]).note == "all scores are 0.5"


@pytest.mark.parametrize("name", ["temperature", "beta"])
@pytest.mark.parametrize("scores", [[0.2, 1.5, 0.3], [-0.1, 0.4, 0.5]])
def test_scores_that_are_no_probability_are_undefined_with_the_reason(name, scores):
    assert calibrator(name).fit(scores, [0, 1, 1]) == Unfitted(name, f"{name} needs scores in [0, 1]")
    with pytest.raises(ValueError, match=rf"{name} needs scores in \[0, 1\]; score 2 of 2 is 1.2"):
        fit(name, [0.2, 0.7, 0.5], [0, 1, 0]).apply([0.4, 1.2])


def test_temperature_at_its_limits_is_noted():
    sure = fit("temperature", [0.2, 0.3, 0.7, 0.9], [0, 0, 1, 1])
    assert sure.mapping == Temperature(0.01)
    assert "lower limit" in (sure.note or "")
    opposite = fit("temperature", [0.2, 0.3, 0.7, 0.9], [1, 1, 0, 0])
    assert opposite.mapping == Temperature(100.0)
    assert "upper limit" in (opposite.note or "")


def test_uncertainty_in_the_unit_interval_is_turned_to_its_complement():
    up = fit("beta", [0.2, 0.7, 0.5, 0.4], [0, 1, 0, 1]).apply([0.1, 0.6])
    down = fit("beta", [0.8, 0.3, 0.5, 0.6], [0, 1, 0, 1], higher_is_confident=False).apply([0.9, 0.4])
    assert down == pytest.approx(up, abs=1e-12)


def test_separable_scores_become_a_cut_step():
    fitted = fit("platt", [1.0, 2.0, 4.0, 5.0], [0, 0, 1, 1])
    assert fitted.apply([2.0, 3.0, 4.0]) == pytest.approx([1e-6, 0.5, 1 - 1e-6], abs=1e-12)
    assert "separable" in (fitted.note or "")
    shared = fit("platt", [1.0, 2.0, 2.0, 2.0, 5.0], [0, 0, 1, 1, 1])
    assert shared.apply([1.0, 2.0])[0] == pytest.approx(1e-6, rel=1e-3)
    assert shared.apply([2.0]) == pytest.approx([2 / 3], abs=1e-9)
    falling = fit("platt", [1.0, 2.0, 4.0, 5.0], [1, 1, 0, 0])
    assert falling.apply([2.0, 4.0]) == pytest.approx([1 - 1e-6, 1e-6], abs=1e-12)


def test_beta_never_falls_even_on_reversed_data():
    fitted = fit("beta", [0.1, 0.2, 0.4, 0.5, 0.8, 0.9], [1, 1, 1, 0, 1, 0])
    assert fitted.apply([0.1, 0.9]) == pytest.approx([2 / 3, 2 / 3], abs=1e-12)
    assert "falls" in (fitted.note or "")


@pytest.mark.parametrize("mirrored", [False, True])
def test_beta_drops_the_side_that_would_fall(mirrored):
    """Rates that turn back at one end: free a and b have opposite signs, so the best allowed fit has one of them."""
    generator = np.random.default_rng(3)
    scores = generator.random(2000)
    correct = generator.random(2000) < np.where(scores < 0.3, 0.1, np.where(scores < 0.8, 0.9, 0.6))
    if mirrored:
        scores, correct = 1 - scores, ~correct
    mapping = fit("beta", scores, correct).mapping
    assert isinstance(mapping, Beta)
    assert min(mapping.a, mapping.b) == 0.0 < (mapping.b if mirrored else mapping.a)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_refusals(name):
    assert calibrator(name).fit([], []) == Unfitted(name, "no units to fit on")
    assert isinstance(calibrator(name).fit([0.5, math.inf], [0, 1]), Unfitted)
    with pytest.raises(ValueError, match="score 2 of 2 is NaN"):
        calibrator(name).fit([0.5, math.nan], [0, 1])
    with pytest.raises(ValueError, match=r"label 1 of 2 is 0\.5"):
        calibrator(name).fit([0.5, 0.6], [0.5, 1])
    with pytest.raises(ValueError, match="2 scores need 2 correctness labels"):
        calibrator(name).fit([0.5, 0.6], [1])
    with pytest.raises(ValueError, match="one column"):
        calibrator(name).fit([[0.5]], [[1]])
    with pytest.raises(ValueError, match="NaN"):
        fit(name, [0.5, 0.6, 0.4], [0, 1, 1]).apply([math.nan])


def test_names():
    assert calibrator("binned:37").name == "binned:37"
    assert calibrator("histogram:15") is CALIBRATORS["histogram:15"]
    with pytest.raises(UnknownCalibratorError) as caught:
        calibrator("plat")
    assert caught.value.name == "plat"
    assert set(CALIBRATORS) <= set(caught.value.known)
    with pytest.raises(ValueError, match="binned needs a number of bins from 1 to 100000, as in binned:10"):
        calibrator("binned")
    for wrong in ("binned:0", "binned:-3", "binned:1e3", "histogram:", "binned:9999999999", "binned:²"):
        with pytest.raises(ValueError, match="needs a number of bins"):
            calibrator(wrong)
    with pytest.raises(ValueError, match=r"^no calibrator 'qqqq'; there are z_sigmoid, minmax"):
        calibrator("qqqq")


def test_nearly_separable_scores_get_the_steepest_fit_that_helps():
    """Saturated scores: right and wrong ones overlap by 1e-8 near 1; a slope of a thousand leaves the loss far off."""
    scores = [0.3, 0.5, 1 - 3e-8, 1 - 2e-8, 1 - 1e-8, 1.0]
    correct = [0, 0, 0, 1, 0, 1]
    fitted = fit("platt", scores, correct)
    values = fitted.apply(scores)
    loss = -np.mean(np.log(np.where(correct, values, 1 - values)))
    # Without the two far scores, which are certain then, the fit is that of the four others alone.
    others = fit("platt", [0.0, 1.0, 2.0, 3.0], correct[2:]).apply([0.0, 1.0, 2.0, 3.0])
    assert loss <= -np.sum(np.log(np.where(correct[2:], others, 1 - others))) / 6 + 1e-5


def test_a_fit_knows_its_range():
    fitted = fit("isotonic", [3.0, 1.0, 2.0], [0, 1, 1], higher_is_confident=False)
    assert (fitted.lowest, fitted.highest) == (1.0, 3.0)
    assert fitted.outside([0.5, 1.0, 3.0, 3.5]) == 2
