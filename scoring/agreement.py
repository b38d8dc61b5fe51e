"""How far further samples of a problem agree with its answer, and with each other.

Self-consistency (Wang et al., arXiv:2203.11171) votes over whole answers; here every unit is voted on.  Cluster
entropy is the discrete semantic entropy of Farquhar et al. 2024 (Nature 630, 625), with equal normalised texts as the
clusters: the units of these tasks mean the same exactly when they are written the same.

All texts are normalised.  A sample without answer has no units; it counts, and disagrees with everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from scoring.alignment import align

_Item = TypeVar("_Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """The generated units of one reply, normalised, in order.

    Attributes:
        atoms, lines: may be empty.
        generation: the whole answer; None where there is none.
    """

    atoms: tuple[str, ...]
    lines: tuple[str, ...]
    generation: str | None


def unit_agreement(units: Sequence[str], samples: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Return, for each unit of an answer, the share of samples with the same text at the same index.

    Args:
        units: of the answer, shape ``(n,)``; none gives an empty tuple.
        samples: units of the same kind of each sample, shape ``(K, …)``, K ≥ 1.  A sample that is too short disagrees.

    Returns:
        Shape ``(n,)``, multiples of 1/K in [0, 1], higher is more confident.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    return tuple(
        sum(index < len(sample) and sample[index] == text for sample in samples) / len(samples)
        for index, text in enumerate(units)
    )


def aligned_agreement(units: Sequence[str], samples: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Return, for each unit of an answer, the share of samples whose aligned partner has the same text.

    Each sample is aligned with the answer as `scoring.alignment.align` does, where a unit that one of them skips costs
    that unit alone.  Otherwise as `unit_agreement`, and never below it in the sum over units.

    Raises:
        ValueError: without samples.
        AlignmentTooLargeError: see `scoring.alignment`.
    """
    _require_samples(samples)
    agreeing = [0] * len(units)
    for sample in samples:
        for pair in align(sample, units).units:
            if pair.status == "correct" and pair.reference is not None:
                agreeing[pair.reference] += 1
    return tuple(count / len(samples) for count in agreeing)


def answer_agreement(answer: AnswerTexts, samples: Sequence[AnswerTexts]) -> float:
    """Return the share of samples that equal an answer in all its atoms and lines, in [0, 1], higher is more confident.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    return sum(
        sample.generation is not None and (sample.atoms, sample.lines) == (answer.atoms, answer.lines)
        for sample in samples
    ) / len(samples)


def cluster_entropy(texts: Sequence[Hashable]) -> float:
    """Return −Σ p ln p over the shares p of equal texts, in nats, in [0, ln K], lower is more confident.

    Args:
        texts: one for each sample, shape ``(K,)``, K ≥ 1; None stands for a sample without this unit, and all of those
            are one cluster.

    Raises:
        ValueError: without samples.
    """
    _require_samples(texts)
    shares = [count / len(texts) for count in Counter(texts).values()]
    # A sum of negative numbers, but for one cluster, whose -0.0 would be printed with its sign.
    return math.fsum(-share * math.log(share) for share in shares) if len(shares) > 1 else 0.0


def unit_cluster_entropy(count: int, samples: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Return the cluster entropy of the samples' texts at each index, see `cluster_entropy`.

    Args:
        count: units of the answer; only their indices are looked at.
        samples: units of one kind of each sample, K ≥ 1; those that are too short form a cluster at an index.

    Returns:
        Shape ``(count,)``, nats.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    return tuple(
        cluster_entropy([sample[index] if index < len(sample) else None for sample in samples])
        for index in range(count)
    )


def majority_units(samples: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the majority answer: its length by majority, then each unit by majority of those that have one there.

    Ties go to what was seen first, in the order of the samples.  The result may equal no single sample.

    Args:
        samples: units of one kind of each sample, shape ``(K, …)``, K ≥ 1.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    length = _most_common([len(sample) for sample in samples])
    return tuple(_most_common([sample[index] for sample in samples if index < len(sample)]) for index in range(length))


def _most_common(items: Sequence[_Item]) -> _Item:
    # Counter keeps the order of first sight, and max takes the first of equals.
    counts = Counter(items)
    return max(counts, key=counts.__getitem__)


def _require_samples(samples: Sequence[object]) -> None:
    if not samples:
        raise ValueError("agreement needs at least one sample")
