"""What a request reads from a row of logits besides the token: listed ids, the rest, the mass of a named set."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from salt_tui.engine.errors import EngineError
from salt_tui.engine.events import ReadoutTaken
from salt_tui.engine.requests import Aside, Generate, Readout, Spelled
from salt_tui.engine.statistics import Distribution, Logits

IdSet = npt.NDArray[np.int64]
"""Distinct ids, ascending."""


def check_ids(ids: Iterable[int], size: int) -> None:
    """Refuse ids outside a vocabulary of ``size``; raises `EngineError`."""
    stray = next((token for token in ids if not 0 <= token < size), None)
    if stray is not None:
        raise EngineError(f"token {stray} is outside the vocabulary of {size}")


def refusal(request: Generate, sets: Mapping[str, IdSet], layers: Collection[int]) -> str | None:
    """Return why a request cannot be answered: an unknown set, a layer that is not taken, a choice of another kind."""
    asides = [segment.mass_of for segment in request.segments if isinstance(segment, Aside)]
    for name in (*asides, *(readout.mass_of for readout in request.readouts)):
        if name is not None and name not in sets:
            return f"no set of tokens is called {name!r}"
    if any(isinstance(segment, Spelled) for segment in request.segments):
        return "a choice among texts is for engines that give no token ids"
    if any(layer not in layers for layer in request.layers):
        return "the context was opened without activations of these layers"
    return None


def take_readout(
    key: int, readout: Readout, logits: Logits, distribution: Distribution, sets: Mapping[str, IdSet]
) -> ReadoutTaken:
    """Read one row of logits, in float64.

    Args:
        key: of the sequence.
        readout: what is asked.
        logits: shape ``(vocabulary size,)``.
        distribution: of these logits.
        sets: must hold the set that is asked for.
    """
    rest = mass = None
    if readout.rest:
        others = np.ones(logits.size, np.bool_)
        others[list(readout.ids)] = False
        rest = log_mass(logits[others], distribution)
    if readout.mass_of is not None:
        mass = log_mass(logits[sets[readout.mass_of]], distribution)
    listed = tuple(distribution.log_probability(float(logits[token])) for token in readout.ids)
    return ReadoutTaken(key, readout.position, listed, rest, mass)


def log_mass(logits: Logits, distribution: Distribution) -> float:
    """Return the natural logarithm of the summed probability of some logits of a distribution; -inf for none."""
    largest = float(logits.max()) if logits.size else -math.inf
    if largest == -math.inf:
        return -math.inf
    total = float(np.exp(logits.astype(np.float64) - largest).sum())
    return min(0.0, distribution.log_probability(largest) + math.log(total))
