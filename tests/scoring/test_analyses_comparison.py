"""Paired comparisons: the test, the winner, and when there is none."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.analyses_comparison import (
    compare,
    compare_granularities,
    compare_maps,
    one_sided_wilcoxon,
    paired_change,
)


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


def test_the_winner_beats_another_and_is_beaten_by_none():
    cells = np.linspace(0.1, 0.4, 6)
    found = compare({"good": cells, "also": cells, "bad": cells + 0.2}, higher_is_better=False)
    assert found.winners == ("good", "also")
    assert found.best == "good"
    assert found.p_values[0][2] == pytest.approx(1 / 64)
    assert found.p_values[2][0] == 1.0
    assert found.p_values[0][1] == 1.0
    assert found.p_values[0][0] is None
    middle = compare({"good": cells, "middle": cells + 0.1, "bad": cells + 0.2}, higher_is_better=False)
    assert middle.winners == ("good",)
    up = compare({"good": cells, "also": cells, "bad": cells + 0.2}, higher_is_better=True)
    assert up.best == "bad"


def test_of_several_winners_the_best_median():
    base = np.linspace(0.5, 0.6, 6)
    noise = np.array([0.01, -0.02, 0.03, -0.01, 0.02, 0.02])
    found = compare({"low": base - 0.3, "mid": base, "top": base + noise}, higher_is_better=True)
    assert set(found.winners) == {"mid", "top"}
    assert found.best == "top"


def test_without_support_there_is_no_winner():
    few = compare({"a": [0.9, 0.9, 0.9, 0.9], "b": [0.1, 0.1, 0.1, 0.1]}, higher_is_better=True)
    assert few.best is None
    assert few.reason == "no alternative is significantly better than another"
    assert compare({}, higher_is_better=True).reason == "no cells"
    apart = compare({"a": [0.9, None], "b": [None, 0.1], "c": [None, None]}, higher_is_better=True)
    assert apart.p_values[0][1] is None
    assert apart.medians["c"].reason == "no cells"
    with pytest.raises(ValueError, match="one value per cell"):
        compare({"a": [0.1], "b": [0.1, 0.2]}, higher_is_better=True)


def test_undefined_cells_are_left_out_pair_by_pair():
    found = compare({"a": [0.9, None, 0.8], "b": [0.1, 0.2, None]}, higher_is_better=True)
    assert found.cells == ((2, 1), (1, 2))


def test_every_map_stands_with_the_function_that_suits_it():
    cells = np.linspace(0.0, 0.05, 6)
    found = compare_maps(
        {
            "binned:10": {"perplexity": cells + 0.02, "max_probability": cells + 0.05},
            "minmax": {"perplexity": cells + 0.3, "max_probability": cells + 0.2, "rare": [0.0] + [None] * 5},
            "beta": {"perplexity": [None] * 6},
        },
        higher_is_better=False,
    )
    assert [(choice.map, choice.function, choice.cells) for choice in found.choices] == [
        ("binned:10", "perplexity", 6),
        ("minmax", "max_probability", 6),
    ]
    assert found.choices[0].mean.value == pytest.approx(0.045)
    assert found.comparison.best == "binned:10"


def test_granularities_over_all_and_by_task():
    atoms = [0.5, 0.5, 0.6, 0.5, 0.6, None]
    lines = [0.7, 0.8, 0.9, 0.6, 0.9, 0.9]
    found = compare_granularities(atoms, lines, ["a", "a", "a", "b", "b", "c"], higher_is_better=True)
    assert found.overall.pairs == 5
    assert found.overall.p_second_better.value == pytest.approx(1 / 32)
    assert found.overall.p_first_better.value == 1.0
    assert found.tasks["b"].first.value == pytest.approx(0.55)
    assert found.tasks["b"].second.value == pytest.approx(0.75)
    assert found.tasks["c"].p_second_better.reason == "no cells"


def test_relative_change_is_positive_where_better():
    base = {"dna": 0.4, "code": 0.5, "maze": 0.0, "logic": None, "gone": 0.3}
    second = {"dna": 0.2, "code": 0.6, "maze": 0.1, "logic": 0.3}
    found = paired_change(base, second, higher_is_better=True)
    assert found.cells["dna"].value == pytest.approx(-0.5)
    assert found.cells["code"].value == pytest.approx(0.2)
    assert found.cells["maze"].reason == "the base is 0"
    assert found.cells["logic"].reason == "undefined in one of the runs"
    assert "gone" not in found.cells
    assert found.median.value == pytest.approx(-0.15)
    lower = paired_change(base, second, higher_is_better=False)
    assert lower.cells["dna"].value == pytest.approx(0.5)
    assert lower.p_better.value == pytest.approx(found.p_worse.value)
    nothing = paired_change({"a": None}, {"a": 0.5}, higher_is_better=True)
    assert nothing.median.reason == nothing.p_better.reason == "no cells"
