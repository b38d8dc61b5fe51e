"""The map: rows, headings, the cursor, and the order of the surest wrong atoms."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.atom_map import AtomMap, Place
from salt_tui.app.row_flow import gaps as line_gaps
from salt_tui.app.row_flow import row_starts
from tests.app.unit_events import answer_events, scored, started, state_of

pytestmark = pytest.mark.quick


def rows(atom_map: AtomMap) -> list[tuple[str | None, tuple[int, ...]]]:
    found = []
    for y in range(atom_map.height):
        row = atom_map.row(y)
        assert row is not None
        found.append((row.heading, tuple(row.units)))
    return found


def gaps(atom_map: AtomMap) -> list[str]:
    """Return the rows of units as text: a unit is a u."""
    found = []
    for y in range(atom_map.height):
        row = atom_map.row(y)
        assert row is not None
        if row.heading is None:
            found.append(("» " if row.goes_on else "") + "".join(f"{gap}u" for gap in row.gaps))
    return found


def test_short_lines_share_a_row_and_a_new_task_gets_a_heading() -> None:
    state = state_of(
        started("maze", "code"), *answer_events(1, 0, ["··", "×"]), *answer_events(2, 0, ["·"], task="code")
    )
    assert rows(state.map) == [("maze", ()), (None, (0, 1, 2)), ("code", ()), (None, (0,))]
    assert gaps(state.map) == ["uu│u", "u"]


def test_twelve_lines_of_two_take_two_rows_at_eighty_columns() -> None:
    state = state_of(started(), *answer_events(1, 0, ["··"] * 12))
    state.map.width = 30
    assert gaps(state.map) == ["│".join(["uu"] * 9), "│".join(["uu"] * 3)]


def test_the_rows_of_a_matrix_stand_under_each_other() -> None:
    state = state_of(started(), *answer_events(1, 0, ["······"] * 3))
    state.map.width = 47
    assert gaps(state.map) == ["uuuuuu"] * 3
    packed = state_of(started(), *answer_events(1, 0, ["····"] * 3))
    packed.map.width = 47
    assert gaps(packed.map) == ["uuuu│uuuu│uuuu"]


def test_a_long_line_is_broken_between_groups_of_ten() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·" * 23]))
    state.map.width = 20
    assert rows(state.map)[1:] == [(None, tuple(range(start, min(23, start + 10)))) for start in (0, 10, 20)]
    assert gaps(state.map) == ["u" * 10, "» " + "u" * 10, "» uuu"]
    state.map.width = 26
    assert gaps(state.map) == [f"{'u' * 10} {'u' * 10}", "» uuu"]
    state.map.width = 32
    assert len(rows(state.map)) == 2


def test_what_is_missing_on_an_early_line_comes_last() -> None:
    state = state_of(started(), *answer_events(1, 0, ["×", "×"], status=None), scored(1, 2, 0, "-", 0.5))
    assert gaps(state.map) == ["u│u│u"]


def test_a_step_down_goes_to_the_atom_below_on_the_screen() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·" * 15, "···", "·", "·"]))
    state.map.width = 30
    assert gaps(state.map) == [f"{'u' * 10} uuuuu", "uuu│u│u"]
    assert state.map.vertical(Place(0, 10), 1) == Place(0, 19)
    assert state.map.vertical(Place(0, 3), 1) == Place(0, 17)
    assert state.map.vertical(Place(0, 18), -1) == Place(0, 4)


def test_an_answer_that_waits_takes_no_row() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·"]), answer_events(2, 1, ["·"])[0])
    assert state.map.height == 2


def test_a_row_below_the_last_is_none() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·"]))
    assert state.map.row(2) is None
    assert state.map.row(-1) is None


def test_the_cursor_goes_over_the_ends_of_answers_and_stops_at_those_of_the_map() -> None:
    state = state_of(started(), *answer_events(1, 0, ["··"]), *answer_events(2, 1, []), *answer_events(3, 2, ["×"]))
    assert state.map.beside(Place(0, 1), 1) == Place(2, 0)
    assert state.map.beside(Place(2, 0), -1) == Place(0, 1)
    assert state.map.beside(Place(2, 0), 1) is None
    assert state.map.first() == Place(0, 0)
    assert state.map.last() == Place(2, 0)


def test_up_and_down_keep_the_column_or_take_the_last_before_it() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·····", "·"]), *answer_events(2, 1, ["···"]))
    assert state.map.vertical(Place(0, 2), 1) == Place(0, 5)
    assert state.map.vertical(Place(0, 1), 2) == Place(1, 1)
    assert state.map.vertical(Place(1, 2), -9) == Place(0, 2)
    assert state.map.vertical(Place(0, 0), -1) is None


def test_wrong_missing_redundant_and_abstained_atoms_are_found_in_both_directions() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×·-"]), *answer_events(2, 1, ["·+?"]))
    found = [Place(0, 1), Place(0, 3), Place(1, 1), Place(1, 2)]
    seen = []
    place = state.map.next_not_right(Place(0, 0), 1)
    while place is not None:
        seen.append(place)
        place = state.map.next_not_right(place, 1)
    assert seen == found
    assert state.map.next_not_right(Place(1, 1), -1) == Place(0, 3)
    assert state.map.next_not_right(Place(0, 1), -1) is None
    assert state.map.next_not_right(None, 1) == Place(0, 1)


def test_the_surest_wrong_atom_comes_first_by_the_function_that_is_shown() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×·×-"]), *answer_events(2, 1, ["+"]))
    assert state.map.surest_wrong() == [Place(1, 0), Place(0, 1), Place(0, 3)]
    state.map.function = "mean_entropy"
    assert state.map.surest_wrong() == [Place(1, 0), Place(0, 1), Place(0, 3)]


def test_the_surest_errors_of_one_task() -> None:
    other = started("kronecker_product", "maze")
    state = state_of(other, *answer_events(1, 0, ["·×"], "kronecker_product"), *answer_events(2, 0, ["×·"]))
    assert state.map.surest_wrong() == [Place(1, 0), Place(0, 1)]
    state.map.task = "maze"
    assert state.map.surest_wrong() == [Place(1, 0)]
    state.map.task = "kronecker_product"
    assert state.map.surest_wrong() == [Place(0, 1)]
    state.map.task = "code"
    assert state.map.surest_wrong() == []


def test_lines_instead_of_atoms() -> None:
    state = state_of(started(), *answer_events(1, 0, ["··", "×"]))
    state.map.kind = "line"
    assert [state.map.cells(0).status(unit) for unit in range(2)] == ["correct", "wrong"]
    assert gaps(state.map) == ["uu"]


def test_an_answer_read_later_takes_its_place_before_one_that_began_later() -> None:
    atom_map = AtomMap()
    for generation in (5, 3, 9):
        atom_map.add(AnswerCells(generation, "maze", generation, status="complete"))
    assert [answer.generation for answer in atom_map.answers] == [3, 5, 9]
    assert atom_map.number_of(9) == 2
    assert atom_map.number_of(4) is None


@settings(deadline=None)  # a busy machine is no mistake
@given(st.lists(st.lists(st.integers(1, 12), max_size=3), max_size=6), st.sampled_from([10, 23]), st.randoms())
def test_laying_out_step_by_step_gives_the_same_rows_as_at_once(
    answers: list[list[int]], width: int, random: object
) -> None:
    def events() -> list[list[object]]:
        return [
            list(answer_events(number + 1, number, ["·" * length for length in lines]))
            for number, lines in enumerate(answers)
        ]

    whole = state_of(started(), *(event for answer in events() for event in answer))  # type: ignore[misc]
    whole.map.width = width
    step_by_step = state_of(started())
    step_by_step.map.width = width
    for answer in events():
        for event in answer:
            from collections import deque

            step_by_step.apply(deque([event]))  # type: ignore[list-item]
            if random.random() < 0.3:  # type: ignore[attr-defined]
                assert step_by_step.map.height >= 0
    assert rows(step_by_step.map) == rows(whole.map)


@settings(deadline=None)  # a busy machine is no mistake
@given(st.lists(st.lists(st.integers(1, 25), max_size=8), min_size=1, max_size=5), st.integers(10, 50))
def test_every_unit_stands_where_its_position_says(answers: list[list[int]], width: int) -> None:
    state = state_of(
        started(),
        *(
            event
            for number, lines in enumerate(answers)
            for event in answer_events(number + 1, number, ["·" * length for length in lines])
        ),
    )
    state.map.width = width
    for number in range(len(answers)):
        for unit in range(len(state.map.cells(number))):
            y, cell = state.map.position(Place(number, unit))
            row = state.map.row(y)
            assert row is not None
            assert (row.answer, row.units[row.offsets.index(cell)]) == (number, unit)
            assert cell < width


@given(st.lists(st.integers(1, 25), min_size=1, max_size=12), st.integers(10, 50))
def test_nothing_that_stands_moves_while_an_answer_is_written(lengths: list[int], width: int) -> None:
    def places(lines: list[int]) -> list[tuple[int, str]]:
        starts = row_starts(lines, width)
        return [(bisect_right(starts, unit), gap) for unit, gap in enumerate(line_gaps(lines, starts))]

    whole = places(lengths)
    written: list[int] = []
    for length in lengths:
        for said in range(1, length + 1):
            assert places([*written, said]) == whole[: sum(written) + said]
        written.append(length)
