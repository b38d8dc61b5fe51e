"""What a model says of its own answer: labels and numbers (SALT appendix F, table 8; Kadavath 2022; Tian 2023)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

HALF = 0.5
"""Below this mass on both labels a value says more about the question than about the answer."""

_NUMBER = re.compile(r"(?P<percent>\d{1,3}(?:\.\d+)?)\s*%|(?P<fraction>[01]?\.\d+|[01])", re.ASCII)


def p_true(true: Sequence[float], false: Sequence[float]) -> tuple[float | None, float]:
    """Return p(True) / (p(True) + p(False)) and the mass p(True) + p(False).

    Args:
        true: natural log-probabilities of the spellings of True, ``-inf`` for an impossible one.
        false: of the spellings of False.

    Returns:
        The share in [0, 1], None where both labels are impossible; higher is more confident.  The mass, in [0, 1]:
        rounding above 1 counts as 1.
    """
    largest = max((*true, *false), default=-math.inf)
    if largest == -math.inf:
        return None, 0.0
    right = math.fsum(math.exp(value - largest) for value in true)
    both = right + math.fsum(math.exp(value - largest) for value in false)
    return right / both, min(1.0, both * math.exp(largest))


def read_probability(text: str) -> float | None:
    """Return the probability that a reply consists of, None where it is anything else.

    ``97 %``, ``0.97``, ``.97``, ``1``, ``0`` are read, with white space around them and a full stop behind; ``1 %`` is
    0.01.  A bare ``97`` is no number from 0 to 1, ``1 of 10`` is none either, and nothing is guessed or clipped.

    Args:
        text: the reply, or the line of it that a unit has.
    """
    found = _NUMBER.fullmatch(text.strip().removesuffix("."))
    if found is None:
        return None
    value = float(found["percent"]) / 100 if found["percent"] is not None else float(found["fraction"])
    return value if 0.0 <= value <= 1.0 else None
