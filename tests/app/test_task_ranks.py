"""How sure a unit is among those of its task."""

from __future__ import annotations

import math

import pytest

from salt_tui.app.task_ranks import TaskRanks
from scoring.confidence import unit_confidences
from tests.app.unit_events import answer_events, started, state_of

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("function", ["max_probability", "perplexity"])
def test_a_value_that_no_atom_has_is_counted_beside_them(function: str) -> None:
    state = state_of(started(), *answer_events(1, 0, ["·×·"]))  # at .95, .85, .75
    ranks = TaskRanks(state.map)

    def place(probability: float) -> tuple[int, int]:
        value = unit_confidences([math.log(probability)], [1.0 - probability])[function]
        assert value is not None
        return ranks.rank("maze", function, value)

    own = state.map.answers[0].units["atom"].copied(function)
    assert [ranks.rank("maze", function, value) for value in own] == [(1, 3), (2, 3), (3, 3)]
    assert place(0.99) == (1, 4)
    assert place(0.8) == (3, 4)
    assert place(0.01) == (4, 4), "an edited atom is the fourth of four, not of three"
    assert ranks.rank("code", function, 1.0) == (1, 1)
