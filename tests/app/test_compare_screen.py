"""Compare: two runs from the list or typed, their table, their flips, their answers, and what cannot be compared."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from salt_tui.app.answer_screen import AnswerScreen
from salt_tui.app.application import SaltApp
from salt_tui.app.compare_screen import CompareScreen
from salt_tui.app.dialogs import LineOfInput
from salt_tui.app.messages import CompareRuns
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.measure.two_runs import RunName, RunPair, compare_two
from salt_tui.number_text import number
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.app.pilot import drive, screen_text, until
from tests.app.test_keys import press
from tests.stored_runs import store_run

TASKS = ("maze", "code")
SAMPLING = {"temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 3}


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "x.db"
    store_run(path, tasks=TASKS, answers=6, atoms=10)
    store_run(path, tasks=TASKS, answers=6, atoms=10, seed=2, plan={"sampling": SAMPLING})
    return path


@pytest.fixture
def database(_made: Path, tmp_path: Path) -> Path:
    """Two runs of the same problems that differ in how they were sampled."""
    path = tmp_path / "x.db"
    path.write_bytes(_made.read_bytes())
    return path


async def compared(app: SaltApp, pilot: Pilot[int], first: RunName, second: RunName) -> CompareScreen:
    """Compare two runs and wait until all is there."""
    app.switch_mode("runs")
    app.post_message(CompareRuns(first, second))
    await until(pilot, lambda: isinstance(app.screen, CompareScreen))
    screen = app.screen
    assert isinstance(screen, CompareScreen)
    await until(pilot, lambda: screen._state is not None and not screen._state.waiting_for)
    await pilot.pause()
    return screen


def notes(app: SaltApp) -> str:
    return " ".join(note.message for note in app._notifications)


def test_two_marked_runs_are_compared_with_the_digits_of_the_command(database: Path, tmp_path: Path) -> None:
    expected = compare_two(RunName(database, "1"), RunName(database, "2"))
    flips = sum(problem.gained + problem.lost for problem in expected.changed)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.compare")
        await until(pilot, lambda: "No two runs are chosen" in screen_text(app))
        await press(pilot, "app.runs")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.table.row_count == 2)
        await press(pilot, "runs.mark")
        await press(pilot, "runs.mark")
        await press(pilot, "runs.compare")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and "mean of 2 tasks" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        state = screen._state
        assert state is not None
        await until(pilot, lambda: not state.waiting_for)
        lines = screen_text(app).splitlines()
        assert lines[1].startswith(" A run 1 · greedy · tiny")
        assert lines[2].startswith(" B run 2 · temperature 0.7 sampler seed 3 · tiny")
        assert lines[3] == " differs in: temperature, sampler_seed · 12 problems in both"
        for name in ("precision", "recall", "brier"):
            assert state.metric == name
            rows = {row.split()[0].lstrip(">"): row for row in screen_text(app).splitlines()[5:8]}
            for label, found in (*expected.metrics[name].tasks.items(), ("mean", expected.metrics[name].mean)):
                assert number(found.first.value) in rows[label]
                assert number(found.second.value) in rows[label]
                assert f"[{number(found.interval.low)} {number(found.interval.high)}]" in rows[label]
            await press(pilot, "compare.metric")
        await press(pilot, "compare.metric_back")
        await press(pilot, "compare.metric_back")
        assert state.metric == "recall"
        assert f"flip 1 of {flips}" in screen_text(app)
        await pilot.press("n", "n")
        await until(pilot, lambda: f"flip 3 of {flips}" in " ".join(screen_text(app).split()))
        await pilot.press("end")
        while state.layout.next_flip(state.spot, 1) is not None:
            await pilot.press("n")
        await pilot.pause()
        assert f"flip {flips} of {flips}" in " ".join(screen_text(app).split())
        await press(pilot, "pairs.next_flip")
        await until(pilot, lambda: "that was the last flip" in notes(app))
        await press(pilot, "pairs.previous_flip")
        assert f"flip {flips - 1} of {flips}" in " ".join(screen_text(app).split())

        for ending in ("csv", "json", "md", "html"):
            await press(pilot, "compare.export")
            app.screen.query_one(Input).value = str(tmp_path / f"out.{ending}")
            await pilot.press("enter")
            await until(pilot, lambda ending=ending: (tmp_path / f"out.{ending}").exists())  # type: ignore[misc]
            await until(pilot, lambda: app.screen is screen)
        data = json.loads((tmp_path / "out.json").read_text("utf-8"))
        assert data["mean"]["recall"]["difference"] == expected.metrics["recall"].mean.difference.value
        assert len(list(csv.DictReader((tmp_path / "out.csv").read_text("utf-8").splitlines()))) == 5 * 3
        await press(pilot, "compare.export")
        app.screen.query_one(Input).value = str(tmp_path / "out.doc")
        await pilot.press("enter")
        await until(pilot, lambda: "out.doc: a comparison's file ends in .csv" in " ".join(screen_text(app).split()))
        await pilot.press("escape")

    drive(scenario, database)


def test_keys_of_the_answers_and_the_way_to_either_answer(database: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await compared(app, pilot, RunName(database, "1"), RunName(database, "2"))
        state = screen._state
        assert state is not None
        first = state.spot
        assert first is not None
        await press(pilot, "pairs.right")
        assert state.spot == state.layout.beside(first, 1)
        await press(pilot, "pairs.left")
        assert state.spot == first
        await press(pilot, "pairs.down")
        assert state.spot == state.layout.vertical(first, 1)
        assert state.spot is not None
        assert state.spot.side == 1
        await press(pilot, "pairs.up")
        assert state.spot == first
        await press(pilot, "pairs.next_answer")
        assert state.spot == state.layout.next_pair(first, 1)
        await press(pilot, "pairs.previous_answer")
        assert state.spot == first
        await press(pilot, "pairs.page_down")
        assert state.layout.row_of(state.spot) > state.layout.row_of(first)
        await press(pilot, "pairs.page_up")
        await press(pilot, "pairs.last")
        assert state.spot.pair == 11
        await press(pilot, "pairs.first")
        assert state.spot.pair == 0
        await press(pilot, "pairs.task")
        assert state.task == "code"
        assert ">code" in screen_text(app)
        await press(pilot, "pairs.task")
        assert state.task == "maze"
        await press(pilot, "compare.function")
        assert state.function != "max_probability"
        await until(pilot, lambda: not state.waiting_for)
        await press(pilot, "pairs.down")
        spot = state.spot
        assert spot is not None
        assert spot.side == 1
        generation = state.answer_at(spot).generation  # type: ignore[union-attr]
        await press(pilot, "pairs.open")
        await until(pilot, lambda: isinstance(app.screen, AnswerScreen) and app.screen._document is not None)
        assert app.screen._document.generation == generation  # type: ignore[attr-defined]
        assert app.desk.runs.shown is not None
        assert app.desk.runs.shown.run == 2
        await press(pilot, "answer.back")
        await until(pilot, lambda: app.screen is screen)
        assert state.spot == spot
        await press(pilot, "compare.swap")
        await until(pilot, lambda: screen._state is not state and not screen._state.waiting_for)  # type: ignore[union-attr]
        assert screen_text(app).splitlines()[1].startswith(" A run 2 ")
        await press(pilot, "compare.stop")  # nothing is at work by now
        await press(pilot, "compare.read_again")
        await until(pilot, lambda: screen._state is not None and not screen._state.waiting_for)
        await press(pilot, "compare.back")
        assert isinstance(app.screen, RunsScreen)

    drive(scenario, database)


def test_a_run_of_another_file_is_typed_and_its_answers_are_opened(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    store_run(other, tasks=TASKS[:1], answers=6, atoms=10, seed=5)
    store_run(other, tasks=TASKS[:1], answers=6, atoms=10, seed=6)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.compare")
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        await press(pilot, "compare.choose_a")
        assert isinstance(app.screen, LineOfInput)
        await pilot.press("1", "enter")
        await until(pilot, lambda: "now choose run B: b" in notes(app))
        await press(pilot, "compare.choose_b")
        app.screen.query_one(Input).value = f"{other}:2"
        await pilot.press("enter")
        await until(pilot, lambda: screen._state is not None and not screen._state.waiting_for)
        assert " B run 2 of other.db" in screen_text(app)
        assert "6 problems in both, 6 only in A" in screen_text(app)
        await press(pilot, "pairs.down")
        await press(pilot, "pairs.open")
        await until(pilot, lambda: isinstance(app.screen, AnswerScreen) and app.screen._document is not None)
        session = app.desk.runs.shown
        assert session is not None
        assert (session.database, session.run, session.foreign) == (other, 2, True)
        await press(pilot, "answer.replay")
        assert "run 2 is of other.db" in notes(app)
        await press(pilot, "app.live")
        await until(pilot, lambda: "run 2 of other.db" in screen_text(app))

    drive(scenario, database)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_before_two_runs_are_chosen_no_word_is_broken(database: Path, size: tuple[int, int]) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.compare")
        await until(pilot, lambda: "No two runs" in screen_text(app))
        assert "c compares two that are marked; here a and b choose one each." in " ".join(screen_text(app).split())

    drive(scenario, database, size=size)


def test_what_cannot_be_compared_is_one_sentence(database: Path) -> None:
    store_run(database, tasks=("arc_grid",), answers=6, atoms=4)
    store_run(database, tasks=TASKS, answers=6, atoms=4, tokenless=True)
    one, nothing, tokenless = (RunName(database, run) for run in ("1", "3", "4"))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        for other, words in (
            (one, "run 1 is compared with itself; name two runs"),
            (nothing, "1 and 3 share 0 answered problems (12 are only in the first, 6 only in the second); 6 are"),
            (RunName(database, "9"), "there is no run '9'"),
            (RunName(database.with_name("no.db"), "1"), "there is no database at"),
        ):
            await compared(app, pilot, one, other)
            assert words in " ".join(screen_text(app).split())
            await press(pilot, "pairs.next_flip")
            await press(pilot, "pairs.open")
            assert isinstance(app.screen, CompareScreen)
        screen = await compared(app, pilot, one, tokenless)
        assert "perplexity only in A" in screen_text(app)
        await pilot.press("m", "m")
        await until(pilot, lambda: "no max_probability in B" in screen_text(app))
        assert screen._state is not None
        assert screen._state.metrics["recall"].mean.difference.value is not None
        with open_store(database) as store:
            store.delete_work(Work(4))
        await pilot.press("r")
        await until(pilot, lambda: "there is no run '4'" in screen_text(app))

    drive(scenario, database, size=(140, 24))


def test_an_unfinished_run_is_compared_as_far_as_it_is(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE run SET state = 'interrupted', finished_at = NULL WHERE id = 2")
        connection.execute("UPDATE generation SET answer_status = 'cancelled' WHERE id > 20")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await compared(app, pilot, RunName(database, "1"), RunName(database, "2"))
        assert " B run 2 (interrupted: 8 of 12 answers)" in screen_text(app)
        assert "8 problems in both, 4 only in A" in screen_text(app)

    drive(scenario, database)


def test_a_third_mark_is_told_and_one_run_asks_for_the_other(database: Path) -> None:
    store_run(database, tasks=TASKS, answers=6, atoms=4)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.runs")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.table.row_count == 3)
        await press(pilot, "runs.compare")
        assert isinstance(app.screen, LineOfInput)
        await pilot.press("9", "enter")
        await until(pilot, lambda: "there is no run '9'" in notes(app))
        assert isinstance(app.screen, RunsScreen)
        for _ in range(3):
            await press(pilot, "runs.mark")
        await press(pilot, "runs.compare")
        assert "two runs are compared and 3 are marked" in notes(app)

    drive(scenario, database)


def test_another_signal_prints_no_run_for_the_name_of_its_work(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[object] = []
    monkeypatch.setattr(RunPair, "__repr__", lambda pair: str(printed.append(pair)))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await compared(app, pilot, RunName(database, "1"), RunName(database, "2"))
        before = screen._state.function  # type: ignore[union-attr]
        await press(pilot, "compare.function")
        state = screen._state
        assert state is not None
        assert state.function != before
        assert f"── {state.function[:4]}" in screen_text(app), "what the cells are shaded by"
        await until(pilot, lambda: not state.waiting_for)
        assert not printed

    drive(scenario, database)
