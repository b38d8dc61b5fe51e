"""What the Live screen knows after events: counts, withdrawn regions, retries, ends, pauses."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.app.answer_cells import KINDS, STATUS_CODES, UnitCells
from salt_tui.app.live_state import Changes, PausableClock
from salt_tui.runner.events import AnswerRetried, Notice, RunEnded, UnitsWithdrawn
from salt_tui.store.unit_stream import AnswerUnits, UnitArrays
from scoring.labels import UNIT_STATUSES
from tests.app.unit_events import answer_events, scored, started, state_of

pytestmark = pytest.mark.quick


def test_atoms_and_lines_are_kept_with_what_was_said() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×", "-"], status=None))
    answer = state.map.answers[0]
    assert (answer.status, answer.units["atom"].correct, answer.units["atom"].generated) == ("streaming", 1, 2)
    assert [answer.units["atom"].status(unit) for unit in range(3)] == ["correct", "wrong", "missing"]
    assert answer.units["atom"].texts == [("a0", "a0"), ("a1", "b1"), (None, "b2")]
    assert answer.units["atom"].value(2, 0) is None
    assert len(answer.units["line"]) == 2


def test_texts_are_left_to_the_store_when_an_answer_is_finished() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×"]))
    assert state.map.answers[0].units["atom"].texts is None


def test_a_withdrawn_region_disappears_and_the_new_one_is_counted() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×"], status=None))
    state.apply(deque([UnitsWithdrawn(1, 1), scored(1, 0, 0, "·", 0.5)]))
    answer = state.map.answers[0]
    assert len(answer.units["atom"]) == 1
    assert len(answer.units["line"]) == 0
    assert (answer.units["atom"].correct, answer.units["atom"].generated) == (1, 1)
    assert state.map.height == 2


def test_an_answer_that_is_tried_again_begins_anew() -> None:
    state = state_of(started(), *answer_events(1, 0, ["··"], status=None), AnswerRetried(1, 2))
    state.apply(deque(answer_events(1, 0, ["×"], status=None)))
    assert [len(answer.units["atom"]) for answer in state.map.answers] == [1]


def test_what_changed_is_told() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·"], status=None))
    changes = state.apply(deque([scored(1, 1, 0, "×", 0.5), Notice("look here")]))
    assert changes == Changes({1}, ["look here"], True)
    assert list(state.log) == ["look here"]


def test_an_interrupted_run_leaves_unfinished_answers_open() -> None:
    state = state_of(
        started(),
        *answer_events(1, 0, ["·"]),
        *answer_events(2, 1, ["·"], status=None),
        RunEnded(7, "interrupted", None),
    )
    assert [answer.status for answer in state.map.answers] == ["complete", "open"]
    assert state.phase == "interrupted"
    assert not state.computing


def test_a_stored_answer_fills_a_place_but_never_replaces_one_that_is_being_written() -> None:
    state = state_of(started(), *answer_events(5, 0, ["·"], status=None))
    values = np.array([[1.0] * 9, [np.nan] * 9])
    stored = {
        "atom": UnitArrays(np.array([0, 2], dtype=np.uint8), np.array([0, 1]), values),
        "line": UnitArrays(np.array([1], dtype=np.uint8), np.array([0]), values[:1]),
    }
    state.add_stored(AnswerUnits(3, "maze", 2, "complete", 9, stored))
    state.add_stored(AnswerUnits(5, "maze", 0, "complete", 9, stored))
    assert [(answer.generation, answer.status, answer.units["atom"].generated) for answer in state.map.answers] == [
        (3, "complete", 1),
        (5, "streaming", 1),
    ]


@given(
    kind=st.sampled_from(KINDS),
    units=st.lists(
        st.tuples(
            st.sampled_from(UNIT_STATUSES),
            st.integers(0, 70_000),
            st.lists(st.none() | st.floats(-1e40, 1e40), min_size=9, max_size=9),
        )
    ),
)
def test_units_taken_at_once_are_those_added_one_by_one(
    kind: str, units: list[tuple[str, int, list[float | None]]]
) -> None:
    added, filled = UnitCells(kind), UnitCells(kind)
    for status, line, values in units:
        added.add(status, line, [None if value is None else max(value, -3e38) for value in values])
    numbers = np.array([values for *_, values in units], dtype=np.float64).reshape(-1, 9)
    filled.fill(
        np.array([STATUS_CODES[status] for status, *_ in units], dtype=np.uint8),
        np.array([line for _, line, _ in units], dtype=np.int64),
        np.maximum(numbers, -3e38),
    )
    assert (filled.statuses, filled.lines, filled.lengths) == (added.statuses, added.lines, added.lengths)
    assert np.array_equal(filled.values, added.values, equal_nan=True)


def test_a_pause_takes_no_time() -> None:
    now = 10.0
    clock = PausableClock(lambda: now)
    assert clock() == 10.0
    clock.pause()
    now = 25.0
    assert clock() == 10.0
    clock.go_on()
    now = 26.0
    assert clock() == 11.0


def test_functions_come_round() -> None:
    state = state_of(started())
    first = state.map.function
    names = [state.next_function() for _ in range(9)]
    assert len(set(names)) == 9
    assert names[-1] == first
