"""The answers of two runs to one problem, atom by atom: what became right, what became wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES

NOTHING = -1
"""Where an answer has no atom at an index at which the other has one."""

_CORRECT = UNIT_STATUSES.index("correct")


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredIn:
    """An answer of one run.

    Attributes:
        position: of its problem in the task, counted from 0.
        generation: its number in the store.
        rows: its atoms in the columns of the run.
        row_of: by index of an atom its place in the columns, `NOTHING` without one, shape ``(atoms,)``.
        statuses: by index of an atom its code in ``UNIT_STATUSES``, `NOTHING` without one, shape ``(atoms,)``.
    """

    position: int
    generation: int
    rows: slice
    row_of: NDArray[np.int64]
    statuses: NDArray[np.int64]

    @classmethod
    def read(cls, columns: UnitColumns, position: int, generation: int, rows: slice) -> AnsweredIn:
        """Take an answer out of the columns of its run; ``rows`` is not empty."""
        index = columns.index[rows]
        row_of = np.full(int(index.max()) + 1, NOTHING)
        row_of[index] = np.arange(rows.start, rows.stop)
        statuses = np.full(row_of.size, NOTHING)
        statuses[index] = columns.status[rows]
        return cls(position, generation, rows, row_of, statuses)

    @property
    def right(self) -> int:
        """Number of right atoms."""
        return int((self.statuses == _CORRECT).sum())

    @property
    def atoms(self) -> int:
        """Number of atoms, said or missing."""
        return int((self.statuses != NOTHING).sum())


@dataclass(frozen=True, slots=True, eq=False)
class AnswerPair:
    """Two answers to one problem.

    Attributes:
        task: its task.
        first, second: the answers.
        gained, lost: whether the atom of an index is right in the second only, and in the first only, shape ``(n,)``
            with the larger number of atoms.
    """

    task: str
    first: AnsweredIn
    second: AnsweredIn
    gained: NDArray[np.bool_]
    lost: NDArray[np.bool_]

    @property
    def whole(self) -> str | None:
        """``gained`` or ``lost`` where the whole answer became right or wrong, else None."""
        before, after = (answer.right == answer.atoms for answer in (self.first, self.second))
        return None if before == after else "gained" if after else "lost"

    @property
    def is_changed(self) -> bool:
        """Whether an atom, or the answer as a whole, became right or wrong."""
        return bool(self.gained.any() or self.lost.any()) or self.whole is not None


def pair_answers(task: str, first: AnsweredIn, second: AnsweredIn) -> AnswerPair:
    """Lay two answers to one problem over each other, by the index of their atoms."""
    size = max(first.statuses.size, second.statuses.size)
    before, after = (
        np.pad(answer.statuses, (0, size - answer.statuses.size), constant_values=NOTHING) == _CORRECT
        for answer in (first, second)
    )
    return AnswerPair(task, first, second, after & ~before, before & ~after)
