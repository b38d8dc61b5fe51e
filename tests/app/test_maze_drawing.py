"""A maze is drawn as the maze, on the map below its units, and its places lead to them."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.live_state import LiveState
from salt_tui.app.map_rows import Place
from salt_tui.app.maze_drawing import FREE, RIGHT_WAY, WALL, Maze, MazePlace, read_maze
from salt_tui.app.run_player import RunPlayer
from salt_tui.cli import run_command_line
from salt_tui.palette import DrawingMode, Look
from salt_tui.runner.events import AnswerStarted, AtomScored, RunEvent
from tests.app.pilot import drive, screen_text, until
from tests.app.test_heatmap_goldens import GOLDENS, MapApp, picture
from tests.app.test_keys import open_stored
from tests.app.unit_events import answer_events, started, state_of
from tests.conftest import ScriptedModel

QUESTION, REFERENCE = "G.#\n#..\n..S", "U\nL\nU\nL"


def walked(generation: int, position: int, moves: str, glyphs: str, status: str | None = "complete") -> list[RunEvent]:
    """Write an answer of one line to the maze, with what was said at each of its moves; a dash was not said."""
    events = []
    for event in answer_events(generation, position, [glyphs], status=status):
        if isinstance(event, AnswerStarted):
            event = replace(event, question=QUESTION, reference=REFERENCE)
        elif isinstance(event, AtomScored) and event.kind == "atom":
            event = replace(event, text=None if moves[event.index] == "-" else moves[event.index])
        events.append(event)
    return events


def mazes() -> LiveState:
    """One right, one through a wall and back, one off the grid, one that is being written, one without any move."""
    return state_of(
        started(total=5),
        *walked(1, 0, "ULUL", "····"),
        *walked(2, 1, "LLURL", "×××·+"),
        *walked(3, 2, "DL--", "××--"),
        *walked(4, 3, "U", "·", status=None),
        *walked(5, 4, "", "", status="no_answer"),
    )


def test_the_way_that_was_said_is_told_from_the_right_one() -> None:
    maze = read_maze(QUESTION, REFERENCE)
    assert maze == Maze(("G.#", "#..", "..S"), (2, 2), frozenset({(1, 2), (1, 1), (0, 1), (0, 0)}))
    rows = maze.places(["L", "L", "U", "x", "U"])
    assert rows == [
        (MazePlace("G"), MazePlace(RIGHT_WAY), MazePlace(WALL)),
        (MazePlace(WALL, 2), MazePlace(RIGHT_WAY), MazePlace(RIGHT_WAY)),
        (MazePlace(FREE, 1), MazePlace(FREE, 0), MazePlace("S")),
    ]
    assert maze.places(["L", "R"])[2][2] == MazePlace("S", 1), "back at the start"
    assert all(place.atom is None for row in maze.places(["D", "D"]) for place in row), "off the grid"
    assert maze.places(["D", "U"])[2][2] == MazePlace("S", 1), "and on it again"
    assert maze.places([None, "U"])[1][2] == MazePlace(RIGHT_WAY), "what was not said leads nowhere"


@pytest.mark.parametrize("text", ["", "no maze", "S.\n.", "G.\n..", "S[red]G", "S?G"])
def test_what_is_no_maze_is_not_drawn(text: str) -> None:
    assert read_maze(text, "U") is None


def test_a_maze_that_would_leave_room_for_one_answer_only_is_not_drawn() -> None:
    state = mazes()
    (begun,) = (event for event in walked(6, 0, "R", "·") if isinstance(event, AnswerStarted))
    state.apply(deque([replace(begun, question="S" + "." * 20)]))
    assert [answer.maze is not None for answer in state.map.answers] == [True] * 5 + [False]


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_mazes_are_drawn_as_before(mode: DrawingMode) -> None:
    async def draw() -> str:
        app = MapApp(mazes().map, Look(mode))
        async with app.run_test(size=(60, 24)) as pilot:
            app.heatmap.go_to(Place(1, 2))
            await pilot.pause()
            return picture(app.heatmap, app.heatmap.map.height)

    drawn = asyncio.run(draw())
    golden = GOLDENS / f"maze-{mode.value}.txt"
    if os.environ.get("SALT_TUI_WRITE_GOLDENS"):
        golden.write_text(drawn, encoding="utf-8")
    assert drawn == golden.read_text("utf-8")


def test_rows_of_a_maze_are_passed_over_and_its_places_can_be_clicked() -> None:
    state = mazes()
    state.map.width = 60
    left = state.map.form("maze").label
    band = state.map.rows_of_answer(0)
    assert list(band) == [1, 2, 3, 4]
    assert state.map.vertical(Place(0, 0), 1) == Place(2, 0)
    assert state.map.vertical(Place(2, 1), -1) == Place(0, 1)
    assert state.map.height == 13

    async def click() -> None:
        app = MapApp(state.map, Look(DrawingMode.COLOUR))
        async with app.run_test(size=(60, 20)) as pilot:
            for cell, y, unit in ((4, 3, 0), (3, 3, 1), (2, 2, 2), (0, 2, 3)):
                await pilot.click(AtomHeatmap, offset=(left + cell, y))
                assert app.heatmap.cursor == Place(0, unit)
            await pilot.click(AtomHeatmap, offset=(left + 4, 2))
            assert app.heatmap.cursor == Place(0, 3), "a wall leads nowhere"

    asyncio.run(click())


def test_the_way_grows_with_the_atoms_that_are_played() -> None:
    player = RunPlayer(mazes().map)
    player.clock.go_to(2)
    player.fill()
    (answer,) = player.map.answers
    assert answer.maze is not None
    assert [place.atom for row in answer.maze.places(answer.moves) for place in row].count(None) == 7


def test_a_stored_run_shows_its_mazes(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    model, database = scripted_model("maze", limit=2), tmp_path / "x.db"
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", "maze", "--difficulty", "trivial", "--limit", "2", "--seed", "1",
         "--db", str(database), "--display", "none"]
    ) == 0  # fmt: skip

    async def scenario(app: object, pilot: object) -> None:
        live = await open_stored(app, pilot)  # type: ignore[arg-type]
        await until(pilot, lambda: screen_text(app).count("██") >= 2)  # type: ignore[arg-type]
        (first, _) = live.heatmap.map.answers
        assert first.maze is not None
        assert len(first.moves) == len(first.units["atom"])

    drive(scenario, database)  # type: ignore[arg-type]
