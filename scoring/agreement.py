"""How far further samples of a problem agree with its answer, and with each other.

Self-consistency (Wang et al., arXiv:2203.11171) votes over whole answers; here every unit is voted on.  Cluster
entropy is the discrete semantic entropy of Farquhar et al. 2024 (Nature 630, 625), with equal normalised texts as the
clusters: the units of these tasks mean the same exactly when they are written the same.

All texts are normalised.  Units stand at their index; None stands where an answer leaves one out.  A sample without
answer has no units; it counts, and disagrees with everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from scoring.alignment import align

_Item = TypeVar("_Item", bound=Hashable)

Units: TypeAlias = Sequence[str | None]
"""Units of one kind of an answer by index; None where there is none."""


@dataclass(frozen=True, slots=True)
class AnswerTexts:
    """The generated units of one reply, normalised, by index.

    Attributes:
        atoms, lines: may be empty; None where an index has no unit.
        generation: the whole answer; None where there is none.
    """

    atoms: tuple[str | None, ...]
    lines: tuple[str | None, ...]
    generation: str | None


def unit_agreement(units: Units, samples: Sequence[Units]) -> tuple[float | None, ...]:
    """Return, for each unit of an answer, the share of samples with the same text at the same index.

    Args:
        units: of the answer, shape ``(n,)``; none gives an empty tuple.
        samples: units of the same kind of each sample, shape ``(K, …)``, K ≥ 1.  A sample that is too short disagrees.

    Returns:
        Shape ``(n,)``, multiples of 1/K in [0, 1], higher is more confident; None for no unit.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    return tuple(
        None if text is None else sum(_at(sample, index) == text for sample in samples) / len(samples)
        for index, text in enumerate(units)
    )


def aligned_agreement(units: Units, samples: Sequence[Units]) -> tuple[float | None, ...]:
    """Return, for each unit of an answer, the share of samples whose aligned partner has the same text.

    Each sample is aligned with the answer as `scoring.alignment.align` does, where a unit that one of them skips costs
    that unit alone.  Otherwise as `unit_agreement`, and never below it in the sum over units.

    Raises:
        ValueError: without samples.
        AlignmentTooLargeError: see `scoring.alignment`.
    """
    _require_samples(samples)
    places = [index for index, text in enumerate(units) if text is not None]
    written = _written(units)
    agreeing: list[float | None] = [None if text is None else 0.0 for text in units]
    for sample in samples:
        for pair in align(_written(sample), written).units:
            if pair.status == "correct" and pair.reference is not None:
                place = places[pair.reference]
                agreeing[place] = (agreeing[place] or 0.0) + 1
    return tuple(None if count is None else count / len(samples) for count in agreeing)


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


def unit_cluster_entropy(units: Units, samples: Sequence[Units]) -> tuple[float | None, ...]:
    """Return the cluster entropy of the samples' texts at each index, see `cluster_entropy`.

    Args:
        units: of the answer; only their indices are looked at.
        samples: units of one kind of each sample, K ≥ 1; those that are too short form a cluster at an index.

    Returns:
        Shape ``(n,)``, nats; None for no unit.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    return tuple(
        None if text is None else cluster_entropy([_at(sample, index) for sample in samples])
        for index, text in enumerate(units)
    )


def majority_units(samples: Sequence[Units]) -> tuple[str | None, ...]:
    """Return the majority answer: its length by majority, then each unit by majority of those that have one there.

    Ties go to what was seen first, in the order of the samples.  The result may equal no single sample.

    Args:
        samples: units of one kind of each sample, shape ``(K, …)``, K ≥ 1.

    Raises:
        ValueError: without samples.
    """
    _require_samples(samples)
    length = _most_common([len(sample) for sample in samples])
    votes = ([text for sample in samples if (text := _at(sample, index)) is not None] for index in range(length))
    return tuple(_most_common(texts) if texts else None for texts in votes)


def _at(units: Units, index: int) -> str | None:
    return units[index] if index < len(units) else None


def _written(units: Units) -> list[str]:
    return [text for text in units if text is not None]


def _most_common(items: Sequence[_Item]) -> _Item:
    # Counter keeps the order of first sight, and max takes the first of equals.
    counts = Counter(items)
    return max(counts, key=counts.__getitem__)


def _require_samples(samples: Sequence[object]) -> None:
    if not samples:
        raise ValueError("agreement needs at least one sample")
