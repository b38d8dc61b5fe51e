"""A map of 1,000,000 atoms shows what it should; how long a key takes there, `tools/bench_app.py` measures."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from salt_tui.app.answer_cells import FUNCTIONS, AnswerCells
from salt_tui.app.atom_map import AtomMap

pytestmark = pytest.mark.quick

ANSWERS = 1_000
ATOMS = 1_000
WIDTH = 60


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


def test_the_surest_wrong_atoms_are_found(large_map: AtomMap) -> None:
    places = large_map.surest_wrong()
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


def test_another_granularity_is_laid_out(large_map: AtomMap) -> None:
    atoms = large_map.height
    for kind in ("line", "atom"):
        large_map.kind = kind
        height = large_map.height
        assert height == atoms if kind == "atom" else height < ANSWERS


def test_another_width_is_laid_out() -> None:
    atom_map = AtomMap()
    for number in range(1_000):
        answer = AnswerCells(number, "maze", number, status="complete")
        for line in range(50):
            for _ in range(2):
                answer.units["atom"].add("correct", line, [None] * len(FUNCTIONS))
        atom_map.add(answer)
    for width, rows in ((47, 5), (100, 2)):
        atom_map.width = width
        height = atom_map.height
        assert height == 1_000 * rows + 1
