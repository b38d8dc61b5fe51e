"""The sampler against a plain reference implementation."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salt_tui.engine.requests import Sampling
from salt_tui.engine.sampling import Sampler, choose
from tests.examples import examples

pytestmark = pytest.mark.quick


def plain(logits: list[float], sampling: Sampling, draw: float) -> int:
    """Choose with sorted lists: top-k, top-p, min-p, temperature, then the first whose sum exceeds the draw."""
    top = max(logits)
    kept = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if sampling.top_k:
        kept = kept[: sampling.top_k]
    if sampling.top_p < 1:
        weights = [math.exp(logits[i] - top) for i in kept]
        total, running, count = sum(weights), 0.0, 0
        while count < len(kept) and running < sampling.top_p * total:
            running += weights[count]
            count += 1
        kept = kept[:count]
    kept = [i for i in kept if sampling.min_p == 0 or math.exp(logits[i] - top) >= sampling.min_p]
    weights = [math.exp((logits[i] - top) / sampling.temperature) for i in kept]
    total, running = sum(weights), 0.0
    for i, weight in zip(kept, weights, strict=True):
        running += weight
        if running > draw * total:
            return i
    raise AssertionError("the draw lies beyond the sum")


@settings(max_examples=examples(300), deadline=None)
@given(
    logits=st.lists(st.integers(-60, 60).map(lambda n: n / 2) | st.just(-math.inf), min_size=1, max_size=60).filter(
        lambda values: max(values) > -math.inf
    ),
    temperature=st.sampled_from([0.1, 0.7, 1.0, 2.0, 10.0]),
    top_k=st.sampled_from([0, 1, 3, 40, 100]),
    top_p=st.sampled_from([0.05, 0.53, 0.91, 1.0]),
    min_p=st.sampled_from([0.0, 0.0513, 0.7]),
    draw=st.sampled_from([0.0, 0.137, 0.511, 0.873, 0.99917]),
)
def test_equals_the_plain_sampler(
    logits: list[float], temperature: float, top_k: int, top_p: float, min_p: float, draw: float
) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    assert choose(np.array(logits, np.float32), sampling, draw) == plain(logits, sampling, draw)


def test_a_large_vocabulary_is_sampled_like_a_small_one() -> None:
    generator = np.random.default_rng(3)
    logits = generator.normal(0, 2, 20_000).astype(np.float32)
    values = [float(logit) for logit in logits]
    for sampling in (
        Sampling(1.0),
        Sampling(3.0),
        Sampling(1.0, top_p=0.9),
        Sampling(0.8, 9000),
        Sampling(2, 0, 1, 1e-5),
    ):
        for draw in (0.0, 0.3, 0.77, 0.999):
            assert choose(logits, sampling, draw) == plain(values, sampling, draw)


def test_the_last_draw_never_gives_an_impossible_token() -> None:
    logits = np.full(1000, -np.inf, np.float32)
    logits[[5, 900]] = (0.0, -1.0)
    assert choose(logits, Sampling(1.0), math.nextafter(1.0, 0.0)) == 900


def test_draws_follow_the_seed_and_the_distribution() -> None:
    logits = np.log(np.array([0.2, 0.5, 0.3])).astype(np.float32)
    sampler = Sampler(Sampling(temperature=1.0, seed=11))
    chosen = [sampler.choose(position, logits, 1) for position in range(2000)]
    generator = random.Random(11)
    # Most probable first: 1 below 0.5, 2 below 0.8, then 0.
    draws = [generator.random() for _ in range(2000)]
    assert chosen == [1 if draw < 0.5 else 2 if draw < 0.8 else 0 for draw in draws]
    assert Sampler(Sampling(temperature=1.0, seed=11)).choose(7, logits, 1) == chosen[7]
    assert np.bincount(chosen) / 2000 == pytest.approx([0.2, 0.5, 0.3], abs=0.04)


def test_temperature_zero_is_greedy_and_takes_no_draw() -> None:
    assert Sampler(Sampling(temperature=0.0)).choose(0, np.zeros(4, np.float32), 3) == 3


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(-1.0),
        Sampling(math.nan),
        Sampling(top_k=-1),
        Sampling(top_p=0.0),
        Sampling(top_p=1.1),
        Sampling(min_p=1.0),
    ],
)
def test_impossible_options_are_refused(sampling: Sampling) -> None:
    with pytest.raises(ValueError, match="must be"):
        Sampler(sampling)


def test_a_draw_on_a_boundary_belongs_to_the_next_token() -> None:
    logits = np.zeros(4, np.float32)
    assert [choose(logits, Sampling(1.0), draw) for draw in (0.0, 0.25, 0.5, 0.75)] == [0, 1, 2, 3]
