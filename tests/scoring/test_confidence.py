"""Confidence functions: numbers computed from logits, ranges, directions, and input that is refused."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.confidence import (
    CONFIDENCE_FUNCTIONS,
    HEADLINE_FUNCTION,
    OF_ENTROPY,
    SAME_ORDER,
    unit_confidences,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
tokens = st.lists(st.tuples(st.floats(-800.0, 1e-6), st.floats(-1e-6, 12.0)), min_size=1, max_size=6)


def test_the_registry_has_the_order_of_the_columns() -> None:
    """The order is that of the store; the headline function is one of them."""
    assert list(CONFIDENCE_FUNCTIONS) == [
        "perplexity",
        "log_perplexity",
        "mean_probability",
        "median_probability",
        "max_probability",
        "logprob_sum",
        "mean_entropy",
        "max_entropy",
        "joint_probability",
    ]
    assert not CONFIDENCE_FUNCTIONS[HEADLINE_FUNCTION].needs_calibration


@pytest.mark.parametrize("case", GOLDEN["confidence"]["cases"])
def test_functions_over_the_whole_vocabulary(case: dict[str, object]) -> None:
    """Table 7 from logits: log-softmax and entropy here, the functions there."""
    logits = np.array(case["logits"])
    log_softmax = logits - logits.max(axis=1, keepdims=True)
    log_softmax -= np.log(np.exp(log_softmax).sum(axis=1, keepdims=True))
    chosen = log_softmax[np.arange(len(logits)), np.array(case["chosen"])]
    values = unit_confidences(chosen, -(np.exp(log_softmax) * log_softmax).sum(axis=1))
    expected = case["full_vocabulary"]
    assert isinstance(expected, dict)
    assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-9)
    assert values["joint_probability"] == pytest.approx(math.exp(chosen.sum()), abs=1e-12)


@given(tokens)
def test_values_stay_in_their_range(pairs: list[tuple[float, float]]) -> None:
    """Also for log-probabilities just above 0, which rounding makes, and for products below the smallest double."""
    values = unit_confidences([log for log, _ in pairs], [entropy for _, entropy in pairs])
    assert list(values) == list(CONFIDENCE_FUNCTIONS)
    for name, value in values.items():
        entry = CONFIDENCE_FUNCTIONS[name]
        assert math.isfinite(value)
        assert entry.minimum <= value <= entry.maximum


@given(st.lists(st.floats(-20.0, -0.5), min_size=1, max_size=5), st.floats(0.1, 0.4))
def test_surer_tokens_never_look_less_confident(logs: list[float], step: float) -> None:
    """Raising every probability, or lowering every entropy, moves each function in its own direction or not at all."""
    low = unit_confidences(logs, [-log for log in logs])
    high = unit_confidences([log + step for log in logs], [-log - step for log in logs])
    for name, entry in CONFIDENCE_FUNCTIONS.items():
        before, after = entry.oriented(np.array([low[name], high[name]]))
        assert after >= before


def test_a_unit_of_one_token_by_hand() -> None:
    """A token of probability 1/4: perplexity 4, every probability 1/4."""
    values = unit_confidences([math.log(0.25)], [1.5])
    assert values["perplexity"] == pytest.approx(4.0)
    names = ("mean_probability", "median_probability", "max_probability", "joint_probability")
    assert [values[name] for name in names] == pytest.approx([0.25] * 4)
    assert (values["mean_entropy"], values["max_entropy"]) == (1.5, 1.5)


def test_an_impossible_token_saturates_perplexity() -> None:
    """exp(800) does not fit a double; the largest one stands for it, and the product is 0."""
    values = unit_confidences([-800.0], [0.0])
    assert values["perplexity"] == pytest.approx(sys.float_info.max, rel=1e-9)
    assert values["joint_probability"] == 0.0
    assert values["logprob_sum"] == -800.0


@pytest.mark.parametrize(
    ("logs", "entropies"),
    [([], []), ([-1.0], []), ([math.nan], [0.0]), ([-math.inf], [0.0]), ([-1.0], [math.nan]), ([-1.0], [math.inf])],
)
def test_what_cannot_be_scored_is_refused(logs: list[float], entropies: list[float]) -> None:
    """No tokens, unequal lengths, NaN and infinity."""
    with pytest.raises(ValueError, match="log-probabilities"):
        unit_confidences(logs, entropies)


def test_functions_of_one_order_rank_alike() -> None:
    draw = np.random.default_rng(1)
    columns: dict[str, list[float]] = {}
    for _ in range(200):
        logs = -draw.exponential(1.0, 3)
        for name, value in unit_confidences(logs, np.ones(3)).items():
            columns.setdefault(name, []).append(value)
    for group in SAME_ORDER:
        orders = {tuple(np.argsort(CONFIDENCE_FUNCTIONS[name].oriented(np.array(columns[name])))) for name in group}
        assert len(orders) == 1


def test_what_is_not_known_leaves_out_just_what_needs_it() -> None:
    """Without entropies those of entropies are undefined; a token without probability leaves nothing."""
    whole, some = unit_confidences([-0.5, -1.0], [0.3, 0.7]), unit_confidences([-0.5, -1.0], [0.3, None])
    assert {name for name, value in some.items() if value is None} == OF_ENTROPY == {"mean_entropy", "max_entropy"}
    assert {name: value for name, value in some.items() if name not in OF_ENTROPY} == {
        name: value for name, value in whole.items() if name not in OF_ENTROPY
    }
    assert set(unit_confidences([-0.5, None], [0.3, 0.7]).values()) == {None}
    assert list(unit_confidences([None], [None])) == list(CONFIDENCE_FUNCTIONS)
