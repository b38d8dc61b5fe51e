"""Choosing a token: temperature, top-k, top-p and min-p, by inverse distribution function.

The order is llama.cpp's: top-k, then top-p on what is left, then min-p, then the temperature.  Each keeps the most
probable tokens of the one before it (ties by id), so together they keep the longest prefix that all of them allow.
"""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from salt_tui.engine.requests import Sampling

_CUTS = (10.0, 30.0)
"""Distances in nats below the maximum that are sorted first: a whole vocabulary takes 20 ms to sort, this 0.1."""


class Sampler:
    """Chooses the tokens of one sequence; position t uses draw t of its generator."""

    def __init__(self, sampling: Sampling) -> None:
        """Check the options.

        Raises:
            ValueError: for a temperature below 0, ``top_k`` below 0, ``top_p`` outside (0, 1] or ``min_p`` outside
                [0, 1).
        """
        if not sampling.temperature >= 0:
            raise ValueError(f"temperature must be 0 or more, not {sampling.temperature}")
        if sampling.top_k < 0:
            raise ValueError(f"top-k must be 0 or more, not {sampling.top_k}")
        if not 0 < sampling.top_p <= 1:
            raise ValueError(f"top-p must be above 0 and at most 1, not {sampling.top_p}")
        if not 0 <= sampling.min_p < 1:
            raise ValueError(f"min-p must be at least 0 and below 1, not {sampling.min_p}")
        self._sampling = sampling
        self._generator = random.Random(sampling.seed)
        self._drawn = 0

    def draw(self, position: int) -> float:
        """Return the draw of a position of the reply, in [0, 1); positions must ascend."""
        while self._drawn < position:  # forced tokens take theirs
            self._generator.random()
            self._drawn += 1
        self._drawn += 1
        return self._generator.random()

    def choose(self, position: int, logits: npt.NDArray[np.float32], most_probable: int) -> int:
        """Return a token id.

        Args:
            position: of the token in the reply, from 0; must ascend from call to call.
            logits: shape ``(vocabulary size,)``, at least one finite, none NaN or +inf.
            most_probable: the id of the largest logit (the smallest such id): the greedy choice.
        """
        if self._sampling.temperature == 0:
            return most_probable
        return choose(logits, self._sampling, self.draw(position))


def choose(logits: npt.NDArray[np.float32], sampling: Sampling, draw: float) -> int:
    """Return the token at ``draw``, in [0, 1), of the distribution function; temperature above 0."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max()
    keeps_all = sampling.top_k == 0 and sampling.top_p == 1 and sampling.min_p == 0
    total = float(np.exp(shifted / sampling.temperature).sum()) if keeps_all else 0.0
    normaliser = float(np.exp(shifted).sum()) if sampling.top_p < 1 else 0.0
    for cut in (*_CUTS, np.inf):
        ids = np.flatnonzero(shifted >= -cut)
        ids = ids[np.lexsort((ids, -shifted[ids]))]
        ordered = shifted[ids]
        complete = ids.size == shifted.size
        if not keeps_all:
            kept = _kept(ordered, sampling, normaliser, complete)
            if kept is None and not complete:
                continue
            ids, ordered = ids[:kept], ordered[:kept]
        cumulative = np.cumsum(np.exp(ordered / sampling.temperature))
        target = draw * (total if keeps_all else float(cumulative[-1]))
        index = int(np.searchsorted(cumulative, target, side="right"))
        if index < ids.size:
            return int(ids[index])
    # Rounding can leave the target a hair above the last sum: then the least probable that is possible.
    return int(ids[np.searchsorted(cumulative, cumulative[-1], side="left")])


def _kept(ordered: npt.NDArray[np.float64], sampling: Sampling, normaliser: float, complete: bool) -> int | None:
    """Return how many of the most probable tokens the filters keep; None when that lies beyond ``ordered``."""
    kept: int | None = ordered.size if complete else None
    if 0 < sampling.top_k <= ordered.size:
        kept = sampling.top_k
    if sampling.top_p < 1:
        if sampling.top_k > 0:
            if kept is None:
                return None
            normaliser = float(np.exp(ordered[:kept]).sum())
        cumulative = np.cumsum(np.exp(ordered[:kept]))
        reached = int(np.searchsorted(cumulative, sampling.top_p * normaliser, side="left"))
        if reached < cumulative.size:
            kept = reached + 1
    if sampling.min_p > 0:
        above = int(np.searchsorted(-ordered, -np.log(sampling.min_p), side="right"))
        if above < ordered.size:
            kept = above if kept is None else min(kept, above)
    return kept
