"""Which wrong units a confidence function is surest of, found among a million within a frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.measure.task_scores import raw_scores, task_units
from salt_tui.store.queries import Queries
from salt_tui.store.results import UnitColumns, WrongAtom
from salt_tui.store.schema import UNIT_STATUSES
from scoring.confidence import HEADLINE_FUNCTION

_SAID_WRONG = np.array([status in {"wrong", "redundant"} for status in UNIT_STATUSES])
_BLOCKS = 2_000
"""So many equal parts of the units are looked at for their greatest surety; ten times those that are wanted."""


@dataclass(frozen=True, slots=True)
class SurestMistake:
    """The wrong or redundant atom of a run with the highest raw `HEADLINE_FUNCTION`.

    Attributes:
        atom: what it is.
        surer_than: share of its task's atoms with strictly less confidence, in [0, 1].
    """

    atom: WrongAtom
    surer_than: float


def surest_mistake(queries: Queries, run: int, columns: UnitColumns) -> SurestMistake | None:
    """Return the mistake that a run was surest of; None where it made none with a confidence.

    Args:
        queries: the database.
        run: its number.
        columns: its atoms with `HEADLINE_FUNCTION`.
    """
    for atom in queries.confidently_wrong(run, 1):
        scores = raw_scores(columns, task_units(columns, atom.task), HEADLINE_FUNCTION)
        return SurestMistake(atom, float((scores.ranking < atom.max_probability).mean()))
    return None


def surest_wrong(statuses: NDArray[np.uint8], surety: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the places of the wrong and redundant units with the most confidence, surest first, equals in order.

    Nothing of the size of the columns is sorted: 16 to 22 ms for 1,000,000 atoms on a busy machine, where partitioning
    took 39 to 49.

    Args:
        statuses: codes of `UNIT_STATUSES`, shape ``(n,)``.
        surety: higher is surer, NaN for undefined, shape ``(n,)``; overwritten.
        count: the most that are returned.
    """
    surety[~_SAID_WRONG[statuses]] = np.nan
    found = np.flatnonzero(surety >= _least(surety, count))
    return found[np.argsort(-surety[found], kind="stable")[:count]]


def _least(surety: NDArray[np.float64], count: int) -> np.float64:
    """Return a value that at least ``count`` units reach, if so many have one: the last of the greatest of blocks."""
    size = max(1, len(surety) // _BLOCKS)
    blocks = len(surety) // size
    greatest = np.fmax.reduce(surety[: blocks * size].reshape(blocks, size), axis=1)
    greatest = greatest[~np.isnan(greatest)]
    return np.partition(greatest, -count)[-count] if len(greatest) >= count else np.float64(-np.inf)
