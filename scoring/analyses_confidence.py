"""How well confidence separates right from wrong, and what label noise would hide (SALT appendices I and J)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scoring.ranking import auroc
from scoring.scored_units import FloatArray, IntArray, ScoredUnits, checked_columns, require_probability_rows
from scoring.value import ONE_CLASS, UNDEFINED_IN_EVERY_DRAW, Value, undefined

DENSITY_BINS = 40
NOISE_SHARES = (0.05, 0.1, 0.2)
NOISE_REPEATS = 50  # 1,000,000 units: 2 s


@dataclass(frozen=True, slots=True)
class ConfidenceDensities:
    """Densities of confidence over [0, 1], each with mean 1 over the bins ((j−1)/bins, j/bins].

    Attributes:
        edges: shape ``(bins + 1,)``.
        right: density of right units, None without one.
        wrong: density of wrong units, None without one.
        right_units: how many right units there are.
        wrong_units: how many wrong units there are.
        overlap: area under the lower of both, in [0, 1]; 1 when confidence separates nothing.
    """

    edges: tuple[float, ...]
    right: tuple[float, ...] | None
    wrong: tuple[float, ...] | None
    right_units: int
    wrong_units: int
    overlap: Value


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """What a share of wrong labels does to the AUROC.

    Attributes:
        share: wrong labels e / N, in [0, 1].
        expected_shift: e/N · |2A − 1| for random errors in balanced data (equation 11).
        largest_shift: 2e/N, the bound for adversarial errors in balanced data (equation 13), at most 1.
        simulated: mean AUROC when e labels of these units are flipped at random.
        simulated_deviation: population standard deviation of it over the draws.
    """

    share: float
    expected_shift: Value
    largest_shift: Value
    simulated: Value
    simulated_deviation: Value


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """The AUROC without noise, the share of right units (both equations assume one half), and every noise level."""

    auroc: Value
    right_share: Value
    levels: tuple[NoiseLevel, ...]


def confidence_densities(confidence: ArrayLike, correct: ArrayLike, bins: int = DENSITY_BINS) -> ConfidenceDensities:
    """Return the densities of confidence among right and wrong units (SALT figure 44, there after ``z_sigmoid``).

    Args:
        confidence: in [0, 1], shape ``(n,)``.
        correct: shape ``(n,)``.
        bins: number of equal-width bins; the overlap depends on it.

    Returns:
        The densities; the overlap is undefined with one class.

    Raises:
        ValueError: for a confidence outside [0, 1], columns of different lengths, or fewer than one bin.
    """
    if bins < 1:
        raise ValueError(f"bins is at least 1, not {bins}")
    scores, outcomes = checked_columns(confidence, correct)
    require_probability_rows(scores)
    right = _density(np.sort(scores[outcomes == 1]), bins)
    wrong = _density(np.sort(scores[outcomes == 0]), bins)
    overlap = undefined(ONE_CLASS)
    if right is not None and wrong is not None:
        overlap = Value(float(np.minimum(right, wrong).mean()))
    return ConfidenceDensities(
        edges=tuple(number / bins for number in range(bins + 1)),
        right=None if right is None else tuple(right.tolist()),
        wrong=None if wrong is None else tuple(wrong.tolist()),
        right_units=int(outcomes.sum()),
        wrong_units=int(outcomes.size - outcomes.sum()),
        overlap=overlap,
    )


def label_noise(
    confidence: ArrayLike,
    correct: ArrayLike,
    generator: np.random.Generator,
    shares: Sequence[float] = NOISE_SHARES,
    repeats: int = NOISE_REPEATS,
) -> LabelNoise:
    """Return what an imperfect judge would have measured instead of the AUROC (SALT figure 42, equations 11 and 13).

    Args:
        confidence: finite, higher is more confident, shape ``(n,)``.
        correct: shape ``(n,)``.
        generator: draws the flipped labels.
        shares: shares of labels to flip; e is rounded to whole units.
        repeats: draws per share.

    Returns:
        Undefined AUROC and shifts with one class.

    Raises:
        ValueError: for a share outside [0, 1], fewer than one repeat, or columns no metric can read.
    """
    if repeats < 1:
        raise ValueError(f"repeats is at least 1, not {repeats}")
    for share in shares:
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a share of wrong labels is in [0, 1], not {share:g}")
    scores, outcomes = checked_columns(confidence, correct)
    area = auroc(ScoredUnits.from_columns(scores, outcomes))
    right_share = undefined(area.reason or ONE_CLASS) if not outcomes.size else Value(float(outcomes.mean()))
    twice_ranks = _twice_average_ranks(scores)
    levels = tuple(_noise_level(area, share, twice_ranks, outcomes, generator, repeats) for share in shares)
    return LabelNoise(area, right_share, levels)


def _noise_level(
    area: Value, share: float, twice_ranks: IntArray, outcomes: IntArray, generator: np.random.Generator, repeats: int
) -> NoiseLevel:
    if area.value is None:
        missing = undefined(area.reason or ONE_CLASS)
        return NoiseLevel(share, missing, missing, missing, missing)
    flips = round(share * outcomes.size)
    right, rank_sum = int(outcomes.sum()), int(twice_ranks @ outcomes)
    signs = 1 - 2 * outcomes
    measured = []
    for _ in range(repeats):
        flipped = generator.choice(outcomes.size, size=flips, replace=False, shuffle=False)
        noisy_right = right + int(signs[flipped].sum())
        noisy_wrong = outcomes.size - noisy_right
        if noisy_right and noisy_wrong:
            noisy_sum = rank_sum + int(twice_ranks[flipped] @ signs[flipped])
            measured.append((noisy_sum - noisy_right * (noisy_right + 1)) / (2 * noisy_right * noisy_wrong))
    simulated = Value(float(np.mean(measured))) if measured else undefined(UNDEFINED_IN_EVERY_DRAW)
    deviation = Value(float(np.std(measured))) if measured else undefined(UNDEFINED_IN_EVERY_DRAW)
    expected, largest = Value(share * abs(2.0 * area.value - 1.0)), Value(min(1.0, 2.0 * share))
    return NoiseLevel(share, expected, largest, simulated, deviation)


def _density(ascending: FloatArray, bins: int) -> FloatArray | None:
    if not ascending.size:
        return None
    up_to = np.searchsorted(ascending, np.arange(1, bins + 1) / bins, side="right")
    return np.diff(up_to, prepend=0) * (bins / ascending.size)


def _twice_average_ranks(scores: FloatArray) -> IntArray:
    """Return twice the 1-based rank, ties averaged, which is a whole number."""
    from scipy.stats import rankdata

    ranks: IntArray = np.asarray(2.0 * rankdata(scores)).astype(np.int64)
    return ranks
