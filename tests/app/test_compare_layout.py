"""Where the atoms of two runs stand under each other, and where the flips are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.app.compare_layout import CompareLayout, Spot, said_atoms
from salt_tui.measure.answer_pairs import AnsweredIn, AnswerPair, pair_answers
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES

pytestmark = pytest.mark.quick

LETTERS = {
    ".": "correct", "x": "wrong", "+": "redundant", "-": "missing", "?": "abstained",
}  # fmt: skip


def answer(marks: str) -> AnsweredIn:
    """Return an answer with these verdicts; the columns are its own."""
    size = len(marks)
    codes = np.array([UNIT_STATUSES.index(LETTERS[mark]) for mark in marks], dtype=np.int64)
    zeros, index = np.zeros(size, dtype=np.int64), np.arange(size)
    columns = UnitColumns("atom", ("t",), zeros, zeros, zeros, index, zeros, codes, {})
    return AnsweredIn.read(columns, 0, 1, slice(0, size))


def pair(first: str, second: str) -> AnswerPair:
    return pair_answers("t", answer(first), answer(second))


marks = st.text(alphabet="".join(LETTERS), min_size=1, max_size=40)
pairs = st.lists(st.tuples(marks, marks), min_size=1, max_size=6)


def test_flips_are_atoms_that_are_right_in_one_run_only() -> None:
    found = pair("..x-?", ".x..")
    assert found.gained.tolist() == [False, False, True, True, False]
    assert found.lost.tolist() == [False, True, False, False, False]
    assert found.whole is None
    assert pair("..", "...").whole is None
    assert pair(".x", "..").whole == "gained"
    assert pair("..", "..+").whole == "lost"
    assert not pair("..", "..").is_changed
    assert pair("..", "..+").is_changed, "the answer as a whole became wrong"


def test_an_answer_without_change_is_one_row_and_a_common_tail_is_left_out() -> None:
    layout = CompareLayout([pair("..", ".."), pair("x----", ".")], 20)
    assert [(row.kind, row.pair, len(row.atoms)) for row in layout.rows] == [
        ("heading", 0, 0), ("heading", 1, 0), ("A", 1, 1), ("flips", 1, 1), ("B", 1, 1),
    ]  # fmt: skip
    assert layout.vertical(Spot(0, 0, 0), 1) == Spot(1, 0, 0)
    assert layout.vertical(Spot(1, 0, 0), 1) == Spot(1, 1, 0)
    assert layout.vertical(Spot(1, 1, 0), 1) == Spot(1, 1, 0), "the end"
    assert layout.vertical(Spot(1, 1, 0), -1) == Spot(1, 0, 0)
    assert layout.vertical(Spot(1, 0, 0), -1) == Spot(0, 0, 0)
    assert layout.beside(Spot(1, 0, 0), 1) == Spot(1, 0, 0)


@given(pairs=pairs, width=st.integers(4, 60))
def test_every_atom_that_is_shown_is_found_at_its_place(pairs: list[tuple[str, str]], width: int) -> None:
    layout = CompareLayout([pair(*two) for two in pairs], width)
    for number, found in enumerate(layout.pairs):
        for side in (0, 1):
            for atom in range(said_atoms(found) if found.is_changed else 0):
                spot = Spot(number, side, atom)
                row, column = layout.row_of(spot), layout.column_of(spot)
                assert layout.rows[row].kind == "AB"[side]
                assert atom in layout.rows[row].atoms
                assert 3 <= column < max(width, 4)
                assert layout.spot_at(row, column) == spot


@given(pairs=pairs)
def test_the_next_flip_visits_each_flip_once_in_order_and_back(pairs: list[tuple[str, str]]) -> None:
    layout = CompareLayout([pair(*two) for two in pairs], 30)
    flips = [
        (number, int(atom))
        for number, found in enumerate(layout.pairs)
        for atom in np.flatnonzero(found.gained | found.lost)
    ]
    forward: list[tuple[int, int]] = []
    spot = layout.next_flip(None, 1)
    while spot is not None:
        assert layout.flips_before(spot) == len(forward)
        forward.append((spot.pair, spot.atom))
        spot = layout.next_flip(spot, 1)
    assert forward == flips
    assert layout.flips == len(flips)
    backward: list[tuple[int, int]] = []
    spot = layout.next_flip(Spot(len(layout.pairs) - 1, 1, 10_000), -1)
    while spot is not None:
        backward.append((spot.pair, spot.atom))
        spot = layout.next_flip(spot, -1)
    assert backward == flips[::-1]
