"""A map of 1,000,000 atoms answers a key at once."""

from __future__ import annotations

import time
from array import array

import numpy as np
import pytest

from salt_tui.app.answer_cells import FUNCTIONS, AnswerCells
from salt_tui.app.atom_map import AtomMap

pytestmark = pytest.mark.quick

ANSWERS = 1_000
ATOMS = 1_000
WIDTH = 60
ONCE_SECONDS = 0.1
"""Measured: 16 to 22 ms with two thirds of the atoms wrong, on a busy machine."""


@pytest.fixture(scope="module")
def large_map() -> AtomMap:
    generator = np.random.default_rng(5)
    atom_map = AtomMap()
    for number in range(ANSWERS):
        answer = AnswerCells(number, "maze", number, status="complete")
        lines = -(-ATOMS // WIDTH)
        for kind, count, width in (("atom", ATOMS, WIDTH), ("line", lines, 1)):
            cells = answer.units[kind]
            cells.statuses = bytearray(generator.choice(3, count).astype(np.uint8).tobytes())
            cells.lines = array("H", [unit // width for unit in range(count)])
            cells.values = array("d", generator.random(count * len(FUNCTIONS)).tobytes())
            lengths = [min(width, count - line * width) for line in range(-(-count // width))]
            cells.lengths = array("I", lengths if kind == "atom" else [count])
        atom_map.add(answer)
    atom_map.width = 64
    return atom_map


def test_the_surest_wrong_atoms_are_found_within_a_key_press(large_map: AtomMap) -> None:
    before = time.thread_time()
    places = large_map.surest_wrong()
    assert time.thread_time() - before < ONCE_SECONDS
    assert len(places) == 200
    assert large_map.surest_wrong() is places, "walking down them looks nothing up"
    shades = [large_map.place_on_scale(place.answer, place.unit) for place in places]
    assert shades == sorted(shades, key=lambda shade: -(shade or 0.0))
    assert {large_map.cells(place.answer).status(place.unit) for place in places} <= {"wrong", "redundant"}
    last = shades[-1]
    assert last is not None
    surer = [
        (number, unit)
        for number in range(50)
        for unit in range(ATOMS)
        if large_map.cells(number).status(unit) == "wrong" and (large_map.place_on_scale(number, unit) or 0.0) >= last
    ]
    assert sorted((place.answer, place.unit) for place in places if place.answer < 50) == surer


def test_another_granularity_is_laid_out_within_a_key_press(large_map: AtomMap) -> None:
    atoms = large_map.height
    for kind in ("line", "atom"):
        before = time.thread_time()
        large_map.kind = kind
        height = large_map.height
        assert time.thread_time() - before < ONCE_SECONDS
        assert height == atoms if kind == "atom" else height < ANSWERS


def test_another_width_is_laid_out_within_a_key_press_with_100_000_atoms() -> None:
    atom_map = AtomMap()
    for number in range(1_000):
        answer = AnswerCells(number, "maze", number, status="complete")
        for line in range(50):
            for _ in range(2):
                answer.units["atom"].add("correct", line, [None] * len(FUNCTIONS))
        atom_map.add(answer)
    for width, rows in ((47, 5), (100, 2)):
        atom_map.width = width
        before = time.thread_time()
        height = atom_map.height
        assert time.thread_time() - before < 3 * ONCE_SECONDS
        assert height == 1_000 * rows + 1
