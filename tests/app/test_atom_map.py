"""The map: rows, headings, the cursor, and the order of the surest wrong atoms."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.map_rows import Place
from salt_tui.app.row_flow import gaps as line_gaps
from salt_tui.app.row_flow import row_starts
from tests.app.unit_events import answer_events, scored, started, state_of

pytestmark = pytest.mark.quick


def rows(atom_map: AtomMap) -> list[str]:
    """Return the map as text: headings, and for every answer its number and its units, a u for each."""
    found = []
    for y in range(atom_map.height):
        row = atom_map.row(y)
        assert row is not None
        if row.heading is not None:
            found.append(row.heading)
            continue
        texts = []
        for part in row.parts:
            units = ""
            if part.row is not None:
                cells = zip(part.row.gaps, part.row.texts, strict=True)
                units = ("» " if part.row.goes_on else "") + "".join(f"{gap}{text or 'u'}" for gap, text in cells)
            label = f"{atom_map.answers[part.answer].position + 1}: " if part.first else ""
            texts.append(f"{label}{units}{' ' if units and part.words else ''}{part.words}")
        found.append("  ".join(texts))
    return found


def test_lines_share_a_row_and_a_new_task_gets_a_heading() -> None:
    state = state_of(
        started("maze", "code"), *answer_events(1, 0, ["··", "×"]), *answer_events(2, 0, ["·"], task="code")
    )
    assert rows(state.map) == ["maze", "1: uu│u", "code", "1: u"]


def test_nothing_stands_between_lines_of_one_atom() -> None:
    state = state_of(started("code"), *answer_events(1, 0, ["·"] * 13, task="code"))
    assert rows(state.map) == ["code", "1: uuuuuuuuuu uuu"]


def test_short_answers_stand_beside_each_other_in_columns() -> None:
    lines = ["··", "××"]
    events = [event for number in range(5) for event in answer_events(number + 1, number, lines)]
    state = state_of(started(), *events)
    assert rows(state.map) == ["maze", "1: uu│uu  2: uu│uu  3: uu│uu", "4: uu│uu  5: uu│uu"]
    first, second = state.map.position(Place(0, 0)), state.map.position(Place(1, 0))
    assert first[0] == second[0]
    assert state.map.position(Place(4, 3))[1] - state.map.position(Place(3, 3))[1] == second[1] - first[1]
    state.map.width = 40
    assert rows(state.map)[1:] == ["1: uu│uu", "2: uu│uu", "3: uu│uu", "4: uu│uu", "5: uu│uu"]


def test_the_lines_of_a_grid_stand_under_each_other() -> None:
    state = state_of(
        started("kronecker_product"),
        *answer_events(1, 0, ["···"] * 2, task="kronecker_product"),
        *answer_events(2, 1, ["··", "····"], task="kronecker_product", status="truncated"),
    )
    assert rows(state.map) == ["kronecker_product", "1: uuu  2: uu", "uuu  uuuu", "truncated"]


def test_an_answer_that_rambles_gets_a_band_of_its_own_and_the_others_keep_their_columns() -> None:
    events = [event for number in range(2) for event in answer_events(number + 1, number, ["···"])]
    state = state_of(started(), *events, *answer_events(3, 2, ["·" * 3 + "+" * 90]), *answer_events(4, 3, ["···"]))
    found = rows(state.map)
    assert found[1] == "1: uuu  2: uuu"
    assert found[2].startswith("3: uuuuuuuuuu uuuuuuuuuu ")
    assert found[-1] == "4: uuu"


def test_a_run_of_missing_atoms_is_one_number_and_one_step() -> None:
    state = state_of(started(), *answer_events(1, 0, ["··", "×" + "-" * 399]), *answer_events(2, 1, ["·"]))
    assert rows(state.map)[1] == "1: uu│u −399"
    assert state.map.beside(Place(0, 2), 1) == Place(0, 3)
    assert state.map.beside(Place(0, 3), 1) == Place(1, 0)
    assert state.map.beside(Place(1, 0), -1) == Place(0, 3)
    assert state.map.next_not_right(Place(0, 2), 1) == Place(0, 3)
    assert state.map.next_not_right(Place(0, 3), 1) is None
    assert state.map.next_not_right(Place(0, 3), -1) == Place(0, 2)
    assert state.map.position(Place(0, 200)) == state.map.position(Place(0, 3))
    few = state_of(started(), *answer_events(1, 0, ["··", "×---"]))
    assert rows(few.map)[1] == "1: uu│uuuu"


def test_a_run_over_several_lines_is_one_number() -> None:
    state = state_of(
        started("kronecker_product"), *answer_events(1, 0, ["··-", "---", "---"], task="kronecker_product")
    )
    assert rows(state.map)[1:] == ["1: uu −7"]
    inside = state_of(started(), *answer_events(1, 0, ["··-----··"]))
    assert rows(inside.map)[1:] == ["1: uu −5 uu"]


def test_a_long_line_is_broken_between_groups_of_ten() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·" * 23]))
    label = state.map.form("maze").label
    for content, expected in (
        (13, ["u" * 10, "» " + "u" * 10, "» uuu"]),
        (20, ["u" * 10, f"» {'u' * 10} uuu"]),
        (24, [f"{'u' * 10} {'u' * 10}", "» uuu"]),
        (25, [f"{'u' * 10} {'u' * 10} uuu"]),
    ):
        state.map.width = label + content
        assert rows(state.map)[1:] == [f"1: {expected[0]}", *expected[1:]]


def test_what_is_missing_on_an_early_line_comes_last() -> None:
    state = state_of(started(), *answer_events(1, 0, ["×", "××"], status=None), scored(1, 3, 0, "-", 0.5))
    assert rows(state.map)[1:] == ["1: u│uu│u"]


def test_a_step_down_goes_to_the_atom_below_on_the_screen() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·" * 15, "···", "·", "··"]))
    state.map.width = state.map.form("maze").label + 22
    assert rows(state.map)[1:] == [f"1: {'u' * 10} uuuuu", "uuu│u│uu"]
    assert state.map.vertical(Place(0, 10), 1) == Place(0, 20)
    assert state.map.vertical(Place(0, 3), 1) == Place(0, 17)
    assert state.map.vertical(Place(0, 18), -1) == Place(0, 4)


def test_a_step_down_stays_in_the_column_of_tiles() -> None:
    events = [event for number in range(6) for event in answer_events(number + 1, number, ["··"])]
    state = state_of(started(), *events)
    assert state.map.vertical(Place(1, 1), 1) == Place(4, 1)
    assert state.map.vertical(Place(5, 0), -1) == Place(2, 0)


def test_answers_and_tasks_are_steps_too() -> None:
    state = state_of(
        started("maze", "code"),
        *answer_events(1, 0, ["··"]),
        *answer_events(2, 1, ["·"]),
        *answer_events(3, 0, ["×"], task="code"),
    )
    assert state.map.answer_beside(Place(0, 1), 1) == Place(1, 0)
    assert state.map.answer_beside(Place(0, 1), -1) is None
    assert state.map.answer_beside(Place(0, 1), 1, of_other_task=True) == Place(2, 0)
    assert state.map.answer_beside(Place(2, 0), -1, of_other_task=True) == Place(0, 0)


def test_hidden_answers_take_no_row_and_no_step() -> None:
    state = state_of(
        started(), *answer_events(1, 0, ["×·"]), *answer_events(2, 1, ["×"], status="truncated"),
        *answer_events(3, 2, ["·×"]),
    )  # fmt: skip
    state.map.show_only(lambda answer: answer.status == "truncated")
    assert rows(state.map) == ["maze", "2: u truncated"]
    assert state.map.first() == state.map.last() == Place(1, 0)
    assert state.map.beside(Place(1, 0), 1) is None
    assert state.map.next_not_right(None, 1) == Place(1, 0)
    assert state.map.surest_wrong() == [Place(1, 0)]
    assert state.map.answer_beside(Place(1, 0), 1) is None
    state.map.show_only(lambda answer: False)
    assert (state.map.height, state.map.first(), state.map.row(0)) == (0, None, None)
    assert state.map.position(Place(0, 0)) == (0, 0)
    state.map.show_only(None)
    assert rows(state.map)[1].startswith("1: uu  2: u")


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
    state.map.width = 30
    assert rows(state.map)[1:] == ["1: uuuuu", "u", "2: uuu"]
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
    assert rows(state.map) == ["maze", "1: uu"]


def test_an_answer_read_later_takes_its_place_before_one_that_began_later() -> None:
    atom_map = AtomMap()
    for generation in (5, 3, 9):
        atom_map.add(AnswerCells(generation, "maze", generation, status="complete"))
    assert [answer.generation for answer in atom_map.answers] == [3, 5, 9]
    assert atom_map.number_of(9) == 2
    assert atom_map.number_of(4) is None


@settings(deadline=None)  # a busy machine is no mistake
@given(st.lists(st.lists(st.integers(1, 12), max_size=3), max_size=6), st.sampled_from([30, 60, 90]), st.randoms())
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
@given(
    st.lists(st.lists(st.text("·×-+", min_size=1, max_size=25), max_size=8), min_size=1, max_size=5),
    st.integers(24, 90),
    st.sampled_from(["maze", "kronecker_product"]),
)
def test_every_unit_stands_where_its_position_says(answers: list[list[str]], width: int, task: str) -> None:
    events = (event for number, lines in enumerate(answers) for event in answer_events(number + 1, number, lines, task))
    state = state_of(started(task), *events)
    state.map.width = width
    taken: dict[tuple[int, int], Place] = {}
    for number in range(len(answers)):
        for unit in range(len(state.map.cells(number))):
            y, cell = state.map.position(Place(number, unit))
            row = state.map.row(y)
            assert row is not None
            part = row.part_at(cell)
            shown = part.unit_at(cell)
            assert part.answer == number
            assert shown is not None
            assert state.map.cells(number).status(shown) == state.map.cells(number).status(unit)
            assert taken.setdefault((y, cell), Place(number, shown)) == Place(number, shown)
            assert cell < width


@given(st.lists(st.integers(1, 25), min_size=1, max_size=12), st.integers(10, 50))
def test_nothing_that_stands_moves_while_an_answer_is_written(lengths: list[int], width: int) -> None:
    def places(lines: list[int]) -> list[tuple[int, str]]:
        starts, _ = row_starts(lines, width)
        return [(bisect_right(starts, unit), gap) for unit, gap in enumerate(line_gaps(lines, starts))]

    whole = places(lengths)
    written: list[int] = []
    for length in lengths:
        for said in range(1, length + 1):
            assert places([*written, said]) == whole[: sum(written) + said]
        written.append(length)
