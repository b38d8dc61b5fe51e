"""The atoms of a run arrive again, in order, and can be moved through."""

from __future__ import annotations

import pytest

from salt_tui.app.atom_map import AtomMap
from salt_tui.app.run_player import RunPlayer
from tests.app.unit_events import answer_events, started, state_of

pytestmark = pytest.mark.quick


def run() -> AtomMap:
    return state_of(
        started(), *answer_events(1, 0, ["··", "×"]), *answer_events(2, 1, [], status="no_answer"),
        *answer_events(3, 2, ["·×·"], status="truncated"),
    ).map  # fmt: skip


def statuses(atom_map: AtomMap) -> list[tuple[str, int, str]]:
    return [(str(answer.position), len(answer.units["atom"]), answer.status) for answer in atom_map.answers]


def test_what_has_arrived_is_shown_and_the_rest_is_not() -> None:
    player = RunPlayer(run())
    assert player.clock.total == 6
    seen = []
    for arrived in range(7):
        player.clock.go_to(arrived)
        player.fill()
        seen.append(statuses(player.map))
    assert seen == [
        [],
        [("0", 1, "streaming")],
        [("0", 2, "streaming")],
        [("0", 3, "complete")],
        [("0", 3, "complete"), ("1", 0, "no_answer"), ("2", 1, "streaming")],
        [("0", 3, "complete"), ("1", 0, "no_answer"), ("2", 2, "streaming")],
        [("0", 3, "complete"), ("1", 0, "no_answer"), ("2", 3, "truncated")],
    ]
    assert player.map.cells(0).statuses == run().cells(0).statuses


def test_going_back_shows_less() -> None:
    player = RunPlayer(run())
    player.clock.go_to(6)
    player.fill()
    player.clock.go_to(2)
    assert player.fill() == {1}
    assert statuses(player.map) == [("0", 2, "streaming")]
    assert len(player.map.answers[0].units["line"]) == 0, "its first line is not over"


def test_a_run_without_atoms_has_nothing_to_play() -> None:
    player = RunPlayer(AtomMap())
    player.clock.toggle()
    player.clock.pass_time(1.0)
    assert player.fill() == set()
    assert not player.clock.playing
