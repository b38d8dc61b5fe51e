"""What a model says of its answer, from hand-made distributions and replies."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.verbalised import p_true, read_probability

LOGS = st.lists(st.floats(-50.0, 0.0), min_size=1, max_size=4)


def test_p_true_is_the_share_of_all_spellings_of_true_and_the_mass_is_that_of_both_labels() -> None:
    value, mass = p_true([math.log(0.3), math.log(0.15)], [math.log(0.05), -math.inf])
    assert value == pytest.approx(0.9)
    assert mass == pytest.approx(0.5)
    assert p_true([math.log(0.25)], [math.log(0.25)]) == (0.5, pytest.approx(0.5))
    assert p_true([-math.inf], [math.log(0.5)]) == (0.0, pytest.approx(0.5))
    assert p_true([-math.inf], [-math.inf]) == (None, 0.0)
    value, mass = p_true([-800.0], [-800.0 + math.log(3)])
    assert value == pytest.approx(0.25)
    assert mass == 0.0


@given(LOGS, LOGS)
def test_p_true_and_its_opposite_add_up_to_one(true: list[float], false: list[float]) -> None:
    value, mass = p_true(true, false)
    opposite, same = p_true(false, true)
    assert value is not None
    assert opposite is not None
    assert value + opposite == pytest.approx(1.0)
    assert mass == pytest.approx(same)
    assert 0.0 <= value <= 1.0
    assert 0.0 <= mass <= 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("97 %", 0.97), (" 97%\n", 0.97), ("0.97", 0.97), (".97", 0.97), ("1", 1.0), ("0", 0.0), ("1 %", 0.01),
        ("1.0", 1.0), ("1.", 1.0), ("0.5.", 0.5), ("0 %", 0.0), ("100 %", 1.0), ("99.5 %", 0.995), ("0.9, well", None),
        ("1 of 10", None), ("0.9\n", 0.9),
        ("97", None), ("", None), ("about 0.9", None), ("-0.5", None), ("1.5", None), ("101 %", None), ("2", None),
        ("10", None), ("1e-3", None), ("0,9", None), ("sure", None), ("1/2", None), ("%", None),
    ],
)  # fmt: skip
def test_numbers_from_0_to_1_are_read_and_nothing_is_guessed(text: str, value: float | None) -> None:
    assert read_probability(text) == value
