"""Laws that every registered calibration map obeys; a new entry is tested by being registered."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scoring.calibrators import CALIBRATORS
from scoring.calibrators_fitted import Fitted
from tests.examples import examples

TWO_VALUES = [0.25, 0.75, 0.25, 0.75, 0.25, 0.75]
DEGENERATE = {
    "one row": ([0.3], [1]),
    "two rows": ([0.3, 0.8], [0, 1]),
    "two rows falling": ([0.3, 0.8], [1, 0]),
    "one class": ([0.1, 0.5, 0.9], [1, 1, 1]),
    "all wrong": ([0.1, 0.5, 0.9], [0, 0, 0]),
    "constant": ([0.4, 0.4, 0.4], [0, 1, 1]),
    "constant one": ([1.0, 1.0, 1.0], [0, 1, 1]),
    "two values": (TWO_VALUES, [0, 1, 1, 0, 0, 1]),
    "zero and one": ([0.0, 1.0, 0.0, 1.0], [1, 0, 0, 1]),
    "saturated float32": (np.float32([1.0, 0.99999994, 1.0, 0.9999999, 1.0]), [1, 0, 1, 1, 0]),
    "subnormal range": ([0.0, 5e-324, 1e-323, 0.0], [0, 1, 0, 1]),
    "separable by rounding": ([0.0, 2.2e-311, 1.0], [1, 0, 0]),
    "separable": ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
    "quasi-separable": ([0.1, 0.5, 0.5, 0.9], [0, 0, 1, 1]),
    "separable falling": ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]),
    "tiny gap": ([0.5, np.nextafter(0.5, 1.0)], [0, 1]),
    "booleans": ([0.2, 0.4, 0.9], np.array([False, True, True])),
}
FAR = [-1e308, -1.0, 0.0, 0.5, 1.0, 2.0, 1e308, -np.inf, np.inf]
NAMES = list(CALIBRATORS)
RISES_BY_ITS_SLOPE = {"platt", "beta", "temperature", "z_sigmoid"}
"""Maps of two or three parameters, which rise strictly or not at all; the others have steps."""

training = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)
wide_training = st.lists(st.tuples(st.floats(-1e12, 1e12), st.booleans()), min_size=1, max_size=40)
fast = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fitted_on(name, rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = CALIBRATORS[name].fit([row[0] for row in rows], [row[1] for row in rows], **options)
    return fit


def apply(fit: Fitted, scores):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit.apply(scores)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("higher_is_confident", [True, False])
def test_degenerate_training_gives_finite_values_in_range(name, kind, higher_is_confident):
    scores, correct = DEGENERATE[kind]
    fit = fitted_on(name, list(zip(scores, correct, strict=True)), higher_is_confident=higher_is_confident)
    assert isinstance(fit, Fitted)
    values = apply(fit, [0.0, 0.5, 1.0, *scores] if fit.needs_probability else [*FAR, *scores])
    assert np.isfinite(values).all()
    assert values.min() >= 0.0
    assert values.max() <= 1.0


@pytest.mark.parametrize("name", NAMES)
def test_small_or_one_sided_training_is_noted(name):
    assert "one unit" in (fitted_on(name, [(0.3, 1)]).note or "")
    assert "two units" in (fitted_on(name, [(0.3, 1), (0.6, 0)]).note or "")
    note = fitted_on(name, [(0.3, 1), (0.6, 1), (0.7, 1)]).note or ""
    assert ("every training unit is correct" in note) == CALIBRATORS[name].uses_labels
    assert fitted_on(name, [(0.4, 1), (0.4, 0), (0.4, 1)]).note or name == "temperature"


@pytest.mark.parametrize("name", NAMES)
@fast
@given(rows=training, test=st.lists(st.floats(0, 1), min_size=1, max_size=20))
@example(rows=[(0.0, False), (1.0, False), (7.7e-263, True)], test=[0.25])
def test_range_order_of_rows_and_monotone_where_promised(name, rows, test):
    fit = fitted_on(name, rows)
    values = apply(fit, test)
    assert np.isfinite(values).all()
    assert ((values >= 0) & (values <= 1)).all()
    assert apply(fit, test[::-1]).tolist() == values[::-1].tolist()
    assert [float(apply(fit, [score])[0]) for score in test] == pytest.approx(values.tolist(), abs=1e-15)
    assert apply(fitted_on(name, rows[::-1]), test).tolist() == values.tolist()
    if CALIBRATORS[name].never_falls:
        assert (np.diff(apply(fit, np.sort(test))) >= 0).all()


@pytest.mark.parametrize("name", [name for name in NAMES if not CALIBRATORS[name].needs_probability])
@fast
@given(rows=wide_training, test=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@example(rows=[(0.0, False)] * 6 + [(0.0, True), (1e-6, False)], test=[0.0, 4.6e-299])
def test_any_scores_and_both_directions(name, rows, test):
    fit = fitted_on(name, rows, higher_is_confident=False)
    values = apply(fit, test)
    assert ((values >= 0) & (values <= 1)).all()
    mirrored = fitted_on(name, [(-score, correct) for score, correct in rows])
    assert apply(mirrored, [-score for score in test]).tolist() == values.tolist()
    if CALIBRATORS[name].never_falls:
        assert (np.diff(apply(fit, np.sort(test))) <= 0).all()


@pytest.mark.parametrize("name", NAMES)
@fast
@given(rows=training)
@example(rows=[(0.0, True), (1.0, False), (2.2e-311, False)])
def test_a_strictly_rising_map_ranks_as_the_scores_do(name, rows):
    fit = fitted_on(name, rows)
    rising = np.diff(apply(fit, np.linspace(0.0, 1.0, 21))) >= 0
    low, high = apply(fit, [0.0, 1.0] if fit.needs_probability else [-1e300, 1e300])
    if fit.strictly_rising:
        assert rising.all()
        assert low < high
    elif name in RISES_BY_ITS_SLOPE:
        assert low >= high


@pytest.mark.parametrize("name", ["platt", "beta", "temperature"])
@fast
@given(rows=training, test=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_fits_by_likelihood_are_certain_of_nothing(name, rows, test):
    values = apply(fitted_on(name, rows), test)
    assert (values >= 1e-6).all()
    assert (values <= 1.0 - 1e-6).all()


@pytest.mark.parametrize("name", [name for name in NAMES if CALIBRATORS[name].uses_labels and name != "temperature"])
def test_large_calibrated_samples_stay_calibrated(name):
    generator = np.random.default_rng(11)
    scores = generator.random(20_000)
    correct = generator.random(20_000) < scores
    fit = CALIBRATORS[name].fit(scores, correct)
    assert isinstance(fit, Fitted)
    grid = np.linspace(0.05, 0.95, 50)
    assert np.abs(apply(fit, grid) - grid).mean() < 0.06


def test_every_entry_describes_itself():
    for name, entry in CALIBRATORS.items():
        assert entry.name == name
        assert entry.formula
        assert entry.degenerate
        assert entry.source
