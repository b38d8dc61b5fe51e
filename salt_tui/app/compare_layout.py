"""Where the atoms of two runs stand under each other: rows, the place of an atom, the next flip.  No drawing here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from salt_tui.measure.answer_pairs import NOTHING, AnsweredIn, AnswerPair
from salt_tui.palette import GROUP
from scoring.labels import UNIT_STATUSES

LABEL = 3
"""Cells before the atoms of a row: which run it is."""

SIDES = ("A", "B")

_UNSAID = (NOTHING, UNIT_STATUSES.index("missing"))


@dataclass(frozen=True, slots=True)
class Spot:
    """An atom of one of two answers.

    Attributes:
        pair: number of the pair of answers.
        side: 0 for the first run, 1 for the second.
        atom: its index.
    """

    pair: int
    side: int
    atom: int


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row: the heading of a pair, a piece of one of its answers, or the flips between two such pieces.

    Attributes:
        kind: what it is.
        pair: number of the pair.
        atoms: indices of the atoms in it; empty in a heading.
    """

    kind: Literal["heading", "A", "flips", "B"]
    pair: int
    atoms: range


class CompareLayout:
    """Lays pairs of answers out: those that changed atom by atom, the others in one row each.

    A tail that neither run said is left out; the heading tells its length.

    Args:
        pairs: the answers.
        width: cells of a row.
    """

    def __init__(self, pairs: Sequence[AnswerPair], width: int) -> None:
        self.pairs = pairs
        self.width = width
        self.rows: list[PairRow] = []
        self._heads: list[int] = []
        self._flips = [np.flatnonzero(pair.gained | pair.lost).tolist() for pair in pairs]
        self.piece = _atoms_in(max(1, width - LABEL))
        for number, pair in enumerate(pairs):
            self._heads.append(len(self.rows))
            self.rows.append(PairRow("heading", number, range(0)))
            if not pair.is_changed:
                continue
            said = said_atoms(pair)
            for start in range(0, said, self.piece):
                atoms = range(start, min(start + self.piece, said))
                self.rows += [PairRow("A", number, atoms), PairRow("flips", number, atoms), PairRow("B", number, atoms)]

    def row_of(self, spot: Spot) -> int:
        """Return the row of an atom; of a pair in one row that row."""
        head = self._heads[spot.pair]
        if head + 1 >= len(self.rows) or self.rows[head + 1].pair != spot.pair:
            return head
        return head + 1 + 3 * (spot.atom // self.piece) + 2 * spot.side

    def column_of(self, spot: Spot) -> int:
        """Return the cell of an atom in its row."""
        return LABEL + column_in(spot.atom % self.piece)

    def spot_at(self, row: int, column: int, side: int = 0) -> Spot | None:
        """Return the atom at a place, the nearest in its row; of a heading the first atom of its pair."""
        if not 0 <= row < len(self.rows):
            return None
        found = self.rows[row]
        if not found.atoms:
            return Spot(found.pair, side, 0)
        place = max(0, column - LABEL)
        place -= (place + 1) // (GROUP + 1)
        atom = min(found.atoms.start + place, found.atoms.stop - 1)
        return Spot(found.pair, {"A": 0, "B": 1}.get(found.kind, side), atom)

    def vertical(self, spot: Spot, step: int) -> Spot:
        """Return the atom a row of atoms further down (1) or up (-1), or the pair in one row there."""
        row, column = self.row_of(spot), self.column_of(spot)
        while 0 <= (row := row + step) < len(self.rows):
            kind = self.rows[row].kind
            alone = kind == "heading" and self.row_of(Spot(self.rows[row].pair, 0, 0)) == row
            if kind in SIDES or alone:
                return self.spot_at(row, column, spot.side) or spot
        return spot

    def beside(self, spot: Spot, step: int) -> Spot:
        """Return the atom before or after, on the same side; the same at the ends of an answer."""
        last = max(0, said_atoms(self.pairs[spot.pair]) - 1)
        return Spot(spot.pair, spot.side, min(max(0, spot.atom + step), last))

    def next_pair(self, spot: Spot, step: int) -> Spot | None:
        """Return the first flip, or first atom, of the pair before or after; None at the ends."""
        number = spot.pair + step
        return self.first_of(number, spot.side) if 0 <= number < len(self.pairs) else None

    def first_of(self, number: int, side: int = 0) -> Spot:
        """Return the first flip of a pair, its first atom where there is none."""
        return Spot(number, side, next(iter(self._flips[number]), 0))

    def next_flip(self, spot: Spot | None, step: int) -> Spot | None:
        """Return the next (1) or previous (-1) atom that became right or wrong; None without a further one."""
        side = 0 if spot is None else spot.side
        here = -1 if spot is None else spot.pair
        if spot is not None:
            flips = self._flips[here]
            near = [atom for atom in flips if (atom > spot.atom if step > 0 else atom < spot.atom)]
            if near:
                return Spot(here, side, near[0] if step > 0 else near[-1])
        numbers = range(here + 1, len(self.pairs)) if step > 0 else range(here - 1, -1, -1)
        for number in numbers:
            if self._flips[number]:
                return Spot(number, side, self._flips[number][0 if step > 0 else -1])
        return None

    def flips_before(self, spot: Spot) -> int:
        """Return how many flips stand before an atom."""
        return sum(map(len, self._flips[: spot.pair])) + bisect_right(self._flips[spot.pair], spot.atom - 1)

    @property
    def flips(self) -> int:
        """How many atoms became right or wrong."""
        return sum(map(len, self._flips))

    def is_flip(self, spot: Spot) -> bool:
        """Whether an atom became right or wrong."""
        return spot.atom in self._flips[spot.pair]


def column_in(place: int) -> int:
    """Return the cell of the n-th atom of a row, a blank after every `GROUP`."""
    return place + place // GROUP


def _atoms_in(cells: int) -> int:
    """Return how many atoms a row holds: whole groups where one fits."""
    held = (cells + 1) * GROUP // (GROUP + 1)
    return held - held % GROUP if held >= GROUP else max(1, held)


def said_atoms(pair: AnswerPair) -> int:
    """Return up to which index at least one of the answers says something."""
    return max(_said(answer) for answer in (pair.first, pair.second))


def _said(answer: AnsweredIn) -> int:
    said = np.flatnonzero(~np.isin(answer.statuses, _UNSAID))
    return int(said[-1]) + 1 if said.size else 0
