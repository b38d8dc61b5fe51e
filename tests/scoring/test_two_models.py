"""The divergence of two models on what both know of their next tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.two_models import kl_lower_bound


def logs(*values: float) -> list[float]:
    return [math.log(value) if value else -math.inf for value in values]


def test_by_hand() -> None:
    expected = 0.5 * math.log(2) + 0.25 * math.log(0.5) + 0.25 * math.log(1.0)
    assert kl_lower_bound(logs(0.5, 0.25), logs(0.25, 0.5), math.log(0.25)) == pytest.approx(expected)
    assert kl_lower_bound(logs(0.5, 0.25), logs(0.5, 0.25), -1.0) == 0.0
    assert kl_lower_bound(logs(0.5, 0.5), logs(1.0, 0.0), -math.inf) == math.inf
    assert kl_lower_bound(logs(0.5), logs(1.0), -math.inf) == math.inf
    assert kl_lower_bound(logs(0.5), logs(1.0), -60.0) == pytest.approx(
        0.5 * math.log(0.5) + 0.5 * (math.log(0.5) + 60)
    )
    assert kl_lower_bound(logs(1.0 - 1e-8), logs(1.0), -math.inf) == 0.0
    assert kl_lower_bound(logs(1.0, 0.0), logs(0.5, 0.5), -math.inf) == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match="shorter"):
        kl_lower_bound([0.0], [], 0.0)


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e-6, 1)), min_size=3, max_size=12), st.integers(1, 11))
def test_it_never_exceeds_the_divergence_over_everything(weights: list[tuple[float, float]], listed: int) -> None:
    p, q = (np.array(column) / sum(column) for column in zip(*weights, strict=True))
    whole = float(np.sum(p * np.log(p / q)))
    listed = min(listed, len(p))
    rest = float(np.log(q[listed:].sum())) if listed < len(q) else -math.inf
    assert 0.0 <= kl_lower_bound(np.log(p[:listed]), np.log(q[:listed]), rest) <= whole + 2e-5
