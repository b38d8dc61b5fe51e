"""The letters of a choice as tokens of a model."""

from __future__ import annotations

import pytest

from salt_tui.engine.requests import Choice
from salt_tui.runner.asked_problems import letter_choice
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
