"""Wilcoxon's test over cells of several pairs of runs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.signed_rank import TOO_FEW_CELLS, holm, one_sided_wilcoxon, signed_rank_tests


def test_wilcoxon_by_hand():
    """Five positive differences: one of 32 signs is as extreme; the smallest one negative: two of 32."""
    assert one_sided_wilcoxon([1, 2, 3, 4, 5]) == pytest.approx(1 / 32)
    assert one_sided_wilcoxon([-1, 2, 3, 4, 5]) == pytest.approx(2 / 32)
    assert one_sided_wilcoxon([-1, -2, -3]) == 1.0


def test_wilcoxon_without_a_difference_is_1():
    assert one_sided_wilcoxon([]) == 1.0
    assert one_sided_wilcoxon([0.0, 0.0, 1e-15]) == 1.0
    with pytest.raises(ValueError, match="not NaN"):
        one_sided_wilcoxon([np.nan])


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_wilcoxon_with_ties_agrees_with_trying_every_sign(differences):
    kept = np.array([d for d in differences if d])
    if not kept.size:
        assert one_sided_wilcoxon(differences) == 1.0
        return
    size = np.abs(kept)
    ranks = np.array([(size < s).sum() + ((size == s).sum() + 1) / 2 for s in size])
    observed = ranks[kept > 0].sum()
    sums = [ranks[list(signs)].sum() for signs in itertools.product([True, False], repeat=kept.size)]
    assert one_sided_wilcoxon(differences) == pytest.approx(np.mean(np.array(sums) >= observed - 1e-9))


@pytest.mark.parametrize("size", [7, 50, 51, 400])
def test_wilcoxon_agrees_with_scipy(size):
    stats = pytest.importorskip("scipy.stats")
    differences = np.random.default_rng(size).normal(0.2, 1.0, size)
    expected = stats.wilcoxon(differences, alternative="greater", correction=False).pvalue
    assert one_sided_wilcoxon(differences) == pytest.approx(expected, rel=1e-9)


def test_wilcoxon_of_many_ties_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    differences = np.random.default_rng(1).integers(-3, 5, 300).astype(float)
    expected = stats.wilcoxon(differences, alternative="greater", correction=False, method="asymptotic").pvalue
    assert one_sided_wilcoxon(differences) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [8, 60])
def test_ties_that_rounding_breaks_are_ties(size):
    """Tenths added up in floats against the same as whole numbers; uncorrected, one in 300 such p crossed .05."""
    generator = np.random.default_rng(size)
    for _ in range(300):
        first, second = generator.integers(0, 8, (2, size))
        exact = one_sided_wilcoxon((first - second).astype(float))
        assert one_sided_wilcoxon((first * 0.1 + 0.7) - (second * 0.1 + 0.7)) == pytest.approx(exact, rel=1e-9)


def test_infinite_differences_rank_highest_and_tie():
    assert one_sided_wilcoxon([np.inf, np.inf, -1.0]) == one_sided_wilcoxon([5.0, 5.0, -1.0])
    many = [*range(1, 50), np.inf, np.inf]
    assert one_sided_wilcoxon(many) == one_sided_wilcoxon([*range(1, 50), 99.0, 99.0])


def test_several_metrics_over_twenty_cells_have_both_p_values():
    """Two metrics tested, one with too few cells: Holm doubles the smaller p only."""
    draw = np.random.default_rng(1)
    gains = {"auroc": draw.normal(0.6, 1.0, 20), "brier": draw.normal(0.0, 1.0, 25), "ece": draw.normal(9.0, 1.0, 19)}
    found = signed_rank_tests(gains)
    p = {name: one_sided_wilcoxon(gains[name]) for name in ("auroc", "brier")}
    assert p["auroc"] < p["brier"]
    assert found["auroc"].p_better.value == p["auroc"]
    assert found["auroc"].corrected_better.value == pytest.approx(2 * p["auroc"])
    assert found["brier"].corrected_better.value == pytest.approx(max(2 * p["auroc"], p["brier"]))
    assert found["auroc"].p_worse.value == one_sided_wilcoxon(-gains["auroc"])
    assert found["ece"].cells == 19
    assert found["ece"].p_better.reason == found["ece"].corrected_worse.reason == TOO_FEW_CELLS


def test_holm_by_hand():
    """.01·3, .03·2 and .04·1 raised to .06."""
    assert holm([0.03, 0.01, 0.04]).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]).size == 0
    with pytest.raises(ValueError, match="p-values"):
        holm([1.5])


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_only_raises(p_values):
    corrected = holm(p_values)
    assert (corrected >= np.array(p_values) - 1e-15).all()
    assert (corrected <= 1.0).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(corrected[order]) >= 0.0).all()
