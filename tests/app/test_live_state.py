"""What the Live screen knows after events: counts, withdrawn regions, retries, ends, pauses."""

from __future__ import annotations

from collections import deque

from salt_tui.app.live_state import Changes, PausableClock
from salt_tui.runner.events import AnswerRetried, Notice, RunEnded, UnitsWithdrawn
from salt_tui.store.unit_stream import AnswerUnits
from tests.app.unit_events import answer_events, scored, started, state_of


def test_atoms_and_lines_are_kept_with_what_was_said() -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×", "-"], status=None))
    answer = state.map.answers[0]
    assert (answer.status, answer.correct, answer.generated) == ("streaming", 1, 2)
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
    assert (answer.correct, answer.generated) == (1, 1)
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
    values = (1.0,) * 9
    stored = {"atom": [("correct", 0, values), ("missing", 1, (None,) * 9)], "line": [("wrong", 0, values)]}
    state.add_stored(AnswerUnits(3, "maze", 2, "complete", 9, stored))
    state.add_stored(AnswerUnits(5, "maze", 0, "complete", 9, stored))
    assert [(answer.generation, answer.status, answer.generated) for answer in state.map.answers] == [
        (3, "complete", 1),
        (5, "streaming", 1),
    ]


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
