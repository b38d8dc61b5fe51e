"""How many examples a property draws where the usual hundred are too many, or too few."""

from __future__ import annotations

import hypothesis

USUAL = 100


def examples(number: int) -> int:
    """Return so many for `make test`, and as many times more for `make soak` as every other property draws."""
    return number * hypothesis.settings().max_examples // USUAL
