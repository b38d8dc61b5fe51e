"""Log-probability, entropy and the most probable tokens of one step, over the whole vocabulary.

Everything is computed in preallocated float32 arrays with partial sums in float64, which agrees with a float64
log-softmax to 1e-5 (tested on random, peaked, flat and -inf logits).  The most probable token is left out of the sum
and comes back as the 1 of log1p: where it has nearly all probability, its log-probability and the entropy are the small
numbers that they are, and not 0.  Rows are summarised together as far as they fit a core's own cache, and a row's
numbers are the same bits whatever rows stand beside it.

On the development machine (two cores, AVX2) a row of 1,024 logits takes 20 µs in a block of 16 and 50 alone; a row of
49,152 takes 0.13 ms, three fifths of that in ``exp``, alone or in a block of 16, which is why larger blocks do not
pay.  Right after an evaluation, which has emptied the caches, it takes twice as long at width 1, most of that because
every numpy call has to be fetched again: the fewer calls, the better.  Two threads for the rows of 16 slots took 4.0 ms
and one 3.3: the calls are too short to pass the interpreter around.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from salt_tui.engine.events import ALTERNATIVES

Logits = npt.NDArray[np.float32]

_BLOCK = 1024
"""Terms per float32 partial sum.  The entropy of almost flat logits is off by up to 4e-6 nats with this, 1.6e-5 with
4,096, and 8e-4 when 262,144 equal terms go into one float32 sum."""

_FLOATS_AT_ONCE = 1 << 16
"""Logits of the rows that are summarised together: two arrays of so many floats are 512 KiB."""

_LEAST = np.float32(-200.0)
"""Nats below the maximum that count as -inf, whose product with 0 is NaN: exp(-200) is 0 in float32 too."""

_GROUP = 256
_GROUPS = 64
"""The maximum of each group of at most 256 logits is found first, of at least 64 groups where there are so many
logits: the smallest top token is at least the 20th largest of these maxima."""

_MANY = 1024
"""Candidates that are sorted as they are; more, of almost flat logits, are thinned out first."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of one step, before any sampler.

    Attributes:
        maximum: the largest logit.
        log_normaliser: ``log(sum(exp(logit - maximum)))``, >= 0.
        entropy: nats, 0 to ``log(vocabulary size)``.
        alternatives: ids of the most probable tokens, most probable first, ties by id; at most `ALTERNATIVES`,
            without those of probability 0.
        alternative_log_probabilities: theirs, natural logarithm, <= 0.
    """

    maximum: float
    log_normaliser: float
    entropy: float
    alternatives: tuple[int, ...]
    alternative_log_probabilities: tuple[float, ...]

    def log_probability(self, logit: float) -> float:
        """Return the natural log-probability of a token from its logit: <= 0, -inf for a logit of -inf."""
        return min(0.0, logit - self.maximum - self.log_normaliser)


class Statistics:
    """Computes `Distribution` for one vocabulary size, reusing its arrays from step to step."""

    def __init__(self, vocabulary_size: int) -> None:
        """Allocate for a vocabulary of at least one token."""
        padded = -(-vocabulary_size // _BLOCK) * _BLOCK
        self._rows_at_once = max(1, _FLOATS_AT_ONCE // padded)
        # The padding stays 0 in both arrays and so adds nothing to the sums.
        self._shifted = np.zeros((self._rows_at_once, padded), np.float32)
        self._exponentials = np.zeros((self._rows_at_once, padded), np.float32)
        self._starts = np.arange(0, vocabulary_size, max(1, min(_GROUP, vocabulary_size // _GROUPS)))

    def of(self, rows: Logits) -> list[Distribution | None]:
        """Summarise rows of logits, shape ``(rows, vocabulary size)``; -inf is probability 0.

        A row with NaN or +inf, or of -inf only, is no distribution and gives None.
        """
        step = self._rows_at_once
        return [found for start in range(0, len(rows), step) for found in self._block(rows[start : start + step])]

    def _block(self, rows: Logits) -> list[Distribution | None]:
        maxima = np.maximum.reduceat(rows, self._starts, axis=1)
        maxima.sort(axis=1)  # NaN last
        many = maxima.shape[1] > ALTERNATIVES
        thresholds = maxima[:, -ALTERNATIVES].tolist() if many else [-math.inf] * len(rows)
        largest = maxima[:, -1:]
        tops = [
            _most_probable(row, threshold) if math.isfinite(maximum) else None
            for row, maximum, threshold in zip(rows, largest[:, 0].tolist(), thresholds, strict=True)
        ]
        others, moments = self._sums(rows, largest, [top[0][0] if top is not None else 0 for top in tops])
        found: list[Distribution | None] = []
        for top, maximum, other, moment in zip(tops, largest[:, 0].tolist(), others, moments, strict=True):
            if top is None:
                found.append(None)
                continue
            tokens, logits = top
            log_normaliser = math.log1p(other)
            found.append(
                Distribution(
                    maximum=maximum,
                    log_normaliser=log_normaliser,
                    entropy=max(0.0, log_normaliser - moment / (1.0 + other)),
                    alternatives=tuple(tokens),
                    alternative_log_probabilities=tuple(
                        [min(0.0, logit - maximum - log_normaliser) for logit in logits]
                    ),
                )
            )
        return found

    def _sums(self, rows: Logits, maxima: Logits, first: list[int]) -> tuple[list[float], list[float]]:
        """Return, per row, the sums of exp(s) and of s·exp(s), where s is the logit less the row's maximum.

        Args:
            rows: of logits.
            maxima: theirs, one column.
            first: an id of each row's maximum, which the sums leave out.
        """
        count, size = rows.shape
        shifted, exponentials = self._shifted[:count], self._exponentials[:count]
        within, results = shifted[:, :size], exponentials[:, :size]
        with np.errstate(invalid="ignore"):
            np.subtract(rows, maxima, out=within)
            np.exp(within, out=results)
            results[np.arange(count), first] = 0.0
            moments = _products(exponentials, shifted)
            if any(map(math.isnan, moments)):  # an infinite s; no other row's sums change by this
                np.maximum(within, _LEAST, out=within)
                moments = _products(exponentials, shifted)
        return np.add.reduce(exponentials, axis=1).tolist(), moments


def _products(exponentials: Logits, shifted: Logits) -> list[float]:
    """Return the sum of each row's products, float32 within blocks and float64 across them."""
    count = len(exponentials)
    partial = np.matmul(exponentials.reshape(count, -1, 1, _BLOCK), shifted.reshape(count, -1, _BLOCK, 1))
    sums: list[float] = np.add.reduce(partial.reshape(count, -1).astype(np.float64), axis=1).tolist()
    return sums


def _most_probable(logits: Logits, threshold: float) -> tuple[list[int], list[float]]:
    """Return ids and logits of `Distribution.alternatives`, all of which reach the threshold."""
    candidates = (logits >= np.float32(threshold)).nonzero()[0]
    values = logits[candidates]
    if candidates.size > _MANY:
        last = np.partition(values, -ALTERNATIVES)[-ALTERNATIVES]
        above = candidates[values > last]
        equal = candidates[values == last]  # ascending ids: the tie goes to the smaller
        candidates = np.sort(np.concatenate((above, equal[: ALTERNATIVES - above.size])))
        values = logits[candidates]
    order = np.argsort(-values, kind="stable")[:ALTERNATIVES]  # of equal ones the smaller id stays first
    ids, found = candidates[order].tolist(), values[order].tolist()
    possible = found.index(-math.inf) if found[-1] == -math.inf else len(found)
    return ids[:possible], found[:possible]
