"""Replay: atoms of an answer are changed by keys, and the model goes on from there."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

from textual.pilot import Pilot
from textual.widgets import Input

from salt_tui.app.answer_screen import AnswerScreen
from salt_tui.app.application import SaltApp
from salt_tui.app.dialogs import Question, TextToRead
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun
from salt_tui.app.replay_screen import ReplayScreen
from salt_tui.app.replay_state import load_experiment, load_replay
from salt_tui.cli import run_command_line
from salt_tui.runner.request import RunRequest
from salt_tui.store.queries import open_queries
from tests.app.pilot import drive, screen_text, until
from tests.app.test_keys import press
from tests.conftest import ScriptedModel

TASK = "dna_translation"


def make_run(scripted_model: ScriptedModel, database: Path) -> int:
    model = scripted_model(TASK, limit=2, difficulty="medium")
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", TASK, "--difficulty", "medium", "--limit", "2", "--seed", "1",
         "--db", str(database), "--display", "none"]
    ) == 0  # fmt: skip
    with open_queries(database) as queries:
        generation = queries.answers(1)[0].generation
    assert generation is not None
    return generation


def test_edits_are_made_and_taken_back(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    state = load_replay(database, make_run(scripted_model, database), 1)
    said = [unit.text for unit in state.atoms]
    wrong = [unit.index for unit in state.atoms if unit.status != "correct"]
    state.move(100)
    assert state.cursor == len(said) - 1
    assert state.fix_before() is None
    assert set(state.edits) == {index for index in wrong if index < len(said) - 1}
    assert state.undo() is None
    assert state.edits == {}
    assert state.undo() == "nothing was changed"
    state.cursor = 2
    assert state.corrupt(Random(1)) is None
    assert state.write(said[2] or "") is None
    assert state.edits == {}  # what stands there already is no edit
    assert state.write("a;b") == "an atom is a text without semicolons"
    assert state.write("AAA CCC") == "AAA CCC: it is 2 atoms, not one"
    assert state.write("AAA\x1b") == "AAA\\x1b: an atom has no line breaks and no control characters"
    assert state.write("  ") == "an atom is not empty"
    assert state.edits == {}
    assert state.write("AAA" if said[2] != "AAA" else "CCC") is None
    assert state.target == 3
    assert state.options()["target"] == 4
    state.cursor = len(said) - 1
    # What an edit made wrong, or right, counts as it is now.
    right = sum(state.edits.get(unit.index, unit.text) == unit.reference for unit in state.atoms[:-1])
    assert state.corrupt_before(right + 1, Random(1)) == f"{right} atoms before the cursor are right"
    assert state.corrupt_before(2, Random(1)) is None


async def opened(app: SaltApp, pilot: Pilot[int], generation: int, atom: int) -> ReplayScreen:
    """Open the answer, and it in Replay by the key."""
    app.post_message(OpenRun(1))
    await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not app.desk.runs.shown.reading, 60)  # type: ignore[union-attr]
    app.desk.runs.answer = generation, atom
    app.action_show_screen("answer")
    await until(pilot, lambda: isinstance(app.screen, AnswerScreen) and app.screen._document is not None)
    await press(pilot, "answer.replay")
    await until(pilot, lambda: isinstance(app.screen, ReplayScreen) and app.screen.state is not None)
    assert isinstance(app.screen, ReplayScreen)
    return app.screen


async def line(app: SaltApp, pilot: Pilot[int], text: str) -> None:
    """Answer a line of input."""
    await until(pilot, lambda: bool(app.screen.query("#line")))
    app.screen.query_one("#line", Input).value = text
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, ReplayScreen))


def test_keys_edit_an_answer_and_show_what_the_model_writes_then(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    generation = make_run(scripted_model, database)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot, generation, 2)
        state = screen.state
        assert state is not None
        assert state.cursor == 2
        assert screen.check_action("undo", ()) is None, "nothing is changed yet"
        await press(pilot, "replay.compute")
        assert screen._computing is None  # nothing is changed yet
        await press(pilot, "replay.next_atom")
        await press(pilot, "replay.previous_atom")
        assert state.cursor == 2
        await press(pilot, "replay.corrupt")
        assert len(state.edits) == 1
        await pilot.pause()
        assert "edits in brackets, not replayed yet" in screen_text(app)
        assert screen.check_action("undo", ()) is True
        await press(pilot, "replay.undo")
        assert state.edits == {}
        await press(pilot, "replay.fix")
        assert state.edits == ({} if state.atoms[2].status == "correct" else {2: state.atoms[2].reference})
        await press(pilot, "replay.write")
        await line(app, pilot, "[b]X")
        assert state.edits == {2: "[b]X"}
        assert "[[b]X]" in screen_text(app)
        await press(pilot, "replay.compute")
        await press(pilot, "replay.stop")
        await until(pilot, lambda: screen._computing is None, 90)
        if not state.branches:
            await press(pilot, "replay.compute")
            await until(pilot, lambda: bool(state.branches), 90)
        branch = state.branches[-1]
        assert branch.edits == {2: "[b]X"}
        assert branch.atoms[2].text == "[b]X"
        await pilot.pause(0.2)
        assert branch.name in screen_text(app)
        assert "target atom 4   P(right) " in screen_text(app)
        assert "not replayed yet" not in screen_text(app)
        await press(pilot, "replay.next_atom")
        await press(pilot, "replay.corrupt")
        await pilot.pause()
        assert "without the edits that are not replayed yet" in " ".join(screen_text(app).split())
        await press(pilot, "replay.undo")
        await branches(app, pilot, screen)
        state.cursor = 9
        before = dict(state.edits)
        await press(pilot, "replay.corrupt_before")
        await line(app, pilot, "1")
        assert len(state.edits) == len(before) + 1
        await press(pilot, "replay.fix_before")
        assert all(state.atoms[index].reference == text for index, text in state.edits.items())
        await press(pilot, "replay.back")
        await until(pilot, lambda: isinstance(app.screen, AnswerScreen))

    drive(scenario, database)


async def branches(app: SaltApp, pilot: Pilot[int], screen: ReplayScreen) -> None:
    """Edit the branch b1, open, rename and delete branches."""
    state = screen.state
    assert state is not None
    edits, first = dict(state.edits), state.branches[0]
    await press(pilot, "replay.edit_shown")
    assert (state.base, state.edits) == (first.generation, {})
    assert state.atoms == first.atoms
    state.cursor = 4
    await press(pilot, "replay.write")
    await line(app, pilot, "AAA" if state.atoms[4].text != "AAA" else "CCC")
    assert app.desk.keeper.held is None or "the model stays loaded, " in screen_text(app)
    await press(pilot, "replay.compute")
    await until(pilot, lambda: len(state.branches) == 2, 90)
    second = state.branches[1]
    assert (second.stored.parent_name, second.stored.depth, state.shown) == ("b1", 1, second.generation)
    assert [branch.atoms[2].text for branch in state.branches] == ["[b]X", "[b]X"]
    starts = ("  the answer", " *  b1  ", "›     b2  ")
    assert all(row.text.startswith(start) for row, start in zip(state.tree(), starts, strict=True))
    await press(pilot, "replay.open")
    await until(pilot, lambda: isinstance(app.screen, AnswerScreen) and app.screen._document is not None)
    await until(pilot, lambda: "b2, edited from b1" in screen_text(app))
    await press(pilot, "answer.back")
    await until(pilot, lambda: app.screen is screen)
    await press(pilot, "replay.rename")
    await line(app, pilot, "b1")
    await pilot.pause(0.3)
    await press(pilot, "replay.rename")
    await line(app, pilot, "[b]mine")
    await until(pilot, lambda: state.branches[1].name == "[b]mine")
    await pilot.pause(0.2)
    assert "[b]mine" in screen_text(app)
    await press(pilot, "replay.branch_above")
    assert state.shown == first.generation
    await press(pilot, "replay.branch_below")
    assert state.shown == second.generation
    await press(pilot, "replay.branch_above")
    await press(pilot, "replay.delete")
    await until(pilot, lambda: isinstance(app.screen, Question))
    assert "Delete branch b1 and the branch that was edited from it?" in screen_text(app)
    await press(pilot, "question.yes")
    await until(pilot, lambda: not state.branches)
    assert (state.base, state.shown, state.edits) == (None, None, {})
    state.edits = edits


def test_the_planned_experiment_runs_from_the_screen_and_shows_what_it_found(
    scripted_model: ScriptedModel, tmp_path: Path
) -> None:
    database = tmp_path / "x.db"
    generation = make_run(scripted_model, database)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot, generation, 2)
        for answer, words in (("question.no", "No experiment was made"), ("question.yes", "prefix interventions")):
            await press(pilot, "replay.experiment")
            await until(pilot, lambda: isinstance(app.screen, Question))
            await pilot.press(answer.removeprefix("question.")[0])
            await until(pilot, lambda: isinstance(app.screen, TextToRead), 90)
            await until(pilot, lambda words=words: words in screen_text(app))
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)

    drive(scenario, database)
    assert "what follows is of these" not in load_experiment(database, 1, 72)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "UPDATE study SET state = 'interrupted', finished_at = NULL, plan = json_set(plan, '$.jobs', 1632)"
        )
        connection.commit()
    with open_queries(database) as queries:
        done = len(queries.generations(queries.studies(1)[0].work))
    first = load_experiment(database, 1, 72).splitlines()[0]
    assert first == f"interrupted, {done} of 1,632 replays: what follows is of these"


def test_a_replay_waits_for_a_run_that_computes_or_stops_it(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    generation = make_run(scripted_model, database)
    script = json.loads((tmp_path / "model.scripted.json").read_text())
    (tmp_path / "slow.scripted.json").write_text(json.dumps({**script, "seconds_per_step": 0.1}))
    slow = RunRequest(str(tmp_path / "slow.scripted.json"), (TASK,), difficulty="medium", limit=2, seed=1)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot, generation, 2)
        await press(pilot, "replay.corrupt")
        app.desk.runs.begin(slow)
        await until(pilot, lambda: app.desk.computing)
        await press(pilot, "replay.compute")
        await until(pilot, lambda: isinstance(app.screen, Question))
        await press(pilot, "question.no")
        await until(pilot, lambda: app.screen is screen)
        assert screen._waiting
        await until(pilot, lambda: bool(screen.state and screen.state.branches), 90)

    drive(scenario, database)
