"""Quantiles agree with scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scoring.quantiles import beta_quantile, normal_quantile, student_quantile

SHARES = st.sampled_from([0.001, 0.025, 0.05, 0.5, 0.95, 0.975, 0.999])


@given(SHARES, st.floats(0.5, 1e5), st.floats(0.5, 1e5))
def test_beta(share: float, a: float, b: float) -> None:
    assert stats.beta.cdf(beta_quantile(share, a, b), a, b) == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.7, 10.0, 400.0, 1e6])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.975, 0.999])
def test_student(share: float, degrees: float) -> None:
    assert student_quantile(share, degrees) == pytest.approx(stats.t.ppf(share, degrees), abs=1e-8)


def test_normal_and_the_edges() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054)
    assert (beta_quantile(0.3, 0.0, 2.0), beta_quantile(0.3, 2.0, 0.0)) == (0.0, 1.0)
    for bad in (0.0, 1.0):
        with pytest.raises(ValueError, match="share"):
            beta_quantile(bad, 1.0, 1.0)
