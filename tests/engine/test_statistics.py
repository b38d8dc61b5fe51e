"""Statistics of one step against a float64 log-softmax."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from salt_tui.engine.events import ALTERNATIVES
from salt_tui.engine.statistics import Distribution, Statistics

pytestmark = pytest.mark.quick

SIZES = (49_152, 151_936, 262_144)


def reference(logits: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float64], float]:
    """Return log-probabilities and entropy, computed the plain way in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max()
    log_probabilities = wide - math.log(math.fsum(np.exp(wide)))
    probabilities = np.exp(log_probabilities)
    possible = probabilities > 0
    return log_probabilities, -math.fsum(probabilities[possible] * log_probabilities[possible])


def only(statistics: Statistics, logits: npt.NDArray[np.float32]) -> Distribution:
    """Return the distribution of a single row."""
    (distribution,) = statistics.of(logits[np.newaxis])
    assert distribution is not None
    return distribution


def examples(size: int) -> dict[str, npt.NDArray[np.float32]]:
    generator = np.random.default_rng(size)
    normal = generator.normal(0, 3, size)
    peaked = normal.copy()
    peaked[7] = 60.0
    almost_flat = np.full(size, -0.01)
    almost_flat[size // 2] = 0.0
    masked = normal.copy()
    masked[generator.random(size) < 0.9] = -np.inf
    masked[3] = 0.0
    one = np.full(size, -np.inf)
    one[size - 1] = -3.0
    shapes = {
        "random": normal,
        "wide": normal * 20,
        "standard": generator.normal(0, 1, size),
        "peaked": peaked,
        "flat": np.zeros(size),
        "almost flat": almost_flat,
        "high": normal + 1e4,
        "masked": masked,
        "one": one,
    }
    return {name: values.astype(np.float32) for name, values in shapes.items()}


@pytest.mark.parametrize("size", SIZES)
def test_log_probabilities_and_entropy_equal_float64(size: int) -> None:
    statistics = Statistics(size)
    for name, logits in examples(size).items():
        log_probabilities, entropy = reference(logits)
        distribution = only(statistics, logits)
        assert distribution.entropy == pytest.approx(entropy, abs=1e-5), name
        assert distribution.entropy >= 0
        for token in (0, 7, size // 2, size - 1, int(logits.argmax())):
            expected = log_probabilities[token]
            assert distribution.log_probability(float(logits[token])) == pytest.approx(expected, abs=1e-5), name


@pytest.mark.parametrize("size", [1, 5, ALTERNATIVES, ALTERNATIVES + 1, 1024, 1025, *SIZES])
def test_alternatives_are_the_most_probable_with_ties_by_id(size: int) -> None:
    statistics = Statistics(size)
    shapes = examples(size) if size > 7 else {"small": np.arange(size, dtype=np.float32) // 2}
    shapes["ties"] = (np.arange(size, dtype=np.float32) * 7 % 5).astype(np.float32)
    for name, logits in shapes.items():
        order = np.lexsort((np.arange(size), -logits.astype(np.float64)))[:ALTERNATIVES]
        expected = [int(token) for token in order if logits[token] > -np.inf]
        distribution = only(statistics, logits)
        assert list(distribution.alternatives) == expected, name
        assert distribution.alternative_log_probabilities == pytest.approx(reference(logits)[0][expected], abs=1e-5)
        assert max(distribution.alternative_log_probabilities) <= 0


def test_one_row_leaves_nothing_behind_for_the_next() -> None:
    statistics = Statistics(3000)
    shapes = examples(3000)
    alone = {name: only(Statistics(3000), logits) for name, logits in shapes.items()}
    assert {name: only(statistics, logits) for name, logits in shapes.items()} == alone


@pytest.mark.parametrize("size", [5, 50, 1024, 3000, 49_152])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(size: int) -> None:
    shapes = examples(size) if size > 7 else {"small": np.arange(size, dtype=np.float32)}
    bad = np.full(size, math.nan, np.float32)
    rows = np.stack([*shapes.values(), bad, *reversed(shapes.values()), np.zeros(size, np.float32)])
    statistics = Statistics(size)
    together = statistics.of(rows)
    assert together == [statistics.of(row[np.newaxis])[0] for row in rows]
    generator = np.random.default_rng(3)
    for count in range(1, len(rows)):
        chosen = generator.permutation(len(rows))[:count]
        assert statistics.of(rows[chosen]) == [together[index] for index in chosen]


def test_by_hand() -> None:
    # Probabilities 1/2, 1/4, 1/4: entropy 1.5 bits.
    logits = np.log(np.array([0.25, 0.5, 0.25, 0.0]), where=[True, True, True, False], out=np.full(4, -np.inf))
    distribution = only(Statistics(4), logits.astype(np.float32))
    assert distribution.entropy == pytest.approx(1.5 * math.log(2), abs=1e-6)
    assert distribution.alternatives == (1, 0, 2)
    assert distribution.log_probability(math.log(0.25)) == pytest.approx(-2 * math.log(2), abs=1e-6)
    assert distribution.log_probability(-math.inf) == -math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_no_distribution(bad: float) -> None:
    logits = np.zeros((3, 100), np.float32)
    logits[0, 50] = bad
    logits[2] = -np.inf
    first, second, third = Statistics(100).of(logits)
    assert first is None
    assert second is not None
    assert second.entropy == pytest.approx(math.log(100), abs=1e-6)
    assert third is None


@pytest.mark.parametrize("size", SIZES)
def test_many_equal_terms_do_not_lose_their_last_bits(size: int) -> None:
    statistics = Statistics(size)
    logits = np.empty(size, np.float32)
    for depth in np.linspace(0.003, 9, 40):
        logits[:] = -depth
        logits[3] = 0.0
        assert only(statistics, logits).entropy == pytest.approx(reference(logits)[1], abs=1e-5)


@pytest.mark.parametrize("distance", [5.0, 17.0, 40.0, 80.0])
@pytest.mark.parametrize("size", [2, 40, 49_152])
def test_one_token_with_nearly_all_probability_keeps_its_small_numbers(size: int, distance: float) -> None:
    # By hand: the rivals' sum r = (size - 1) e^-d; log p = -log(1 + r); H = log(1 + r) + d r / (1 + r).
    logits = np.zeros(size, np.float32)
    logits[size // 2] = distance
    found = only(Statistics(size), logits)
    rivals = (size - 1) * math.exp(-distance)
    assert found.alternatives[0] == size // 2
    assert found.log_probability(distance) == pytest.approx(-math.log1p(rivals), rel=1e-5)
    assert found.alternative_log_probabilities[0] == found.log_probability(distance)
    assert found.entropy == pytest.approx(math.log1p(rivals) + distance * rivals / (1 + rivals), rel=1e-5)


def test_seventeen_nats_above_the_one_rival() -> None:
    found = only(Statistics(2), np.array([17.0, 0.0], np.float32))
    assert found.log_probability(17.0) == pytest.approx(-4.1399e-8, rel=1e-4)
    assert found.entropy == pytest.approx(7.4519e-7, rel=1e-4)
