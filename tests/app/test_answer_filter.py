"""Which answers a filter of the map shows."""

from __future__ import annotations

import pytest

from salt_tui.app.answer_filter import answers_with
from tests.app.unit_events import answer_events, started, state_of

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("words", "shown"),
    [("", [1, 2, 3]), ("maze", [1, 2]), ("TRUNC", [2]), ("wrong", [2]), ("right", [1]), ("maze 2", [2]),
     ("code 1", [3]), ("no answer", [3]), ("nothing", [])],
)  # fmt: skip
def test_every_word_must_fit(words: str, shown: list[int]) -> None:
    state = state_of(
        started("maze", "code"),
        *answer_events(1, 0, ["··"]),
        *answer_events(2, 1, ["·×"], status="truncated"),
        *answer_events(3, 0, [], task="code", status="no_answer"),
    )
    wanted = answers_with(words)
    found = [answer.generation for answer in state.map.answers if wanted is None or wanted(answer)]
    assert found == shown


def test_a_word_may_be_said_in_the_text() -> None:
    state = state_of(started("maze"), *answer_events(1, 0, ["··"]), *answer_events(2, 1, ["·×"]))
    wanted = answers_with("wrong north", {"north": frozenset({1, 2}), "wrong": frozenset()})
    assert wanted is not None
    assert [answer.generation for answer in state.map.answers if wanted(answer)] == [2]
