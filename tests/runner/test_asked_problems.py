"""The letters of a choice as tokens of a model, and what is known of each."""

from __future__ import annotations

import math

import pytest

from salt_tui.engine.events import Chosen
from salt_tui.engine.requests import Choice
from salt_tui.runner.asked_problems import choice_signals, letter_choice
from salt_tui.usage_error import UsageError

pytestmark = pytest.mark.quick


def test_every_way_to_write_a_letter_counts_for_it() -> None:
    vocabulary = (b"A", b"B", b" A", b"AB", b"", b" B", b"C", b"b", b"B")
    assert letter_choice(vocabulary, 2, sampled=False) == Choice(((0,), (2,), (1,), (8,), (5,)), (0, 0, 1, 1, 1), False)
    assert letter_choice(vocabulary, 3, sampled=True) == Choice(
        ((0,), (2,), (1,), (8,), (5,), (6,)), (0, 0, 1, 1, 1, 2), True
    )


def test_a_letter_without_a_token_is_named() -> None:
    with pytest.raises(UsageError, match="no token of this model is the letter D"):
        letter_choice((b"A", b" B", b"C"), 4, sampled=False)


def test_probabilities_of_letters_are_those_of_all_their_spellings() -> None:
    choice = Choice(((0,), (2,), (1,), (5,)), (0, 0, 1, 1))
    chosen = Chosen(7, 0, tuple(map(math.log, (0.1, 0.2, 0.05, 0.25))), 1)
    found = {(signal.kind, signal.name): signal.value for signal in choice_signals(3, choice, chosen)}
    assert found == {
        ("atom", "choice_probability"): pytest.approx(0.5),  # A has 0.1 + 0.2 of 0.6
        ("generation", "choice_probability"): pytest.approx(0.5),
        ("token", "choice_mass"): pytest.approx(0.6),
        ("token", "choice_A"): pytest.approx(0.5),
        ("token", "choice_B"): pytest.approx(0.5),
    }


def test_a_choice_among_impossible_letters_has_no_probability() -> None:
    signals = choice_signals(3, Choice(((0,), (1,))), Chosen(7, 0, (-math.inf, -math.inf), 0))
    by_name = {(signal.kind, signal.name): (signal.value, signal.reason) for signal in signals}
    assert by_name["atom", "choice_probability"] == (None, "no letter is possible")
    assert by_name["token", "choice_mass"] == (0.0, None)
