"""What the Live screen says is true, what it offers can be done, and it stays where the user is."""

from __future__ import annotations

import re
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual import events
from textual.pilot import Pilot
from textual.scrollbar import ScrollTo
from textual.widgets import Input

from salt_tui.app import live_lines, live_screen
from salt_tui.app.answer_cells import FUNCTIONS, AnswerCells
from salt_tui.app.application import SaltApp
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.dialogs import Question
from salt_tui.app.live_body import LOG_ROWS, NO_RUN
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.live_state import LiveState
from salt_tui.app.map_rows import Place
from salt_tui.app.messages import RunsDeleted
from salt_tui.app.run_session import RunSession
from salt_tui.app.text_rows import broken
from salt_tui.runner.errors import EnvironmentChangedError
from salt_tui.runner.events import AnswerFinished, Notice, PromptEvaluated, RunEnded, TokenArrived
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.app.conftest import request
from tests.app.pilot import drive, screen_text, shown, until
from tests.app.unit_events import answer_events, started
from tests.app.written_run import session_of, show


def messages(app: SaltApp) -> str:
    return " ".join(note.message for note in app._notifications)


def test_the_counts_go_on_behind_an_open_question(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, ["·×"]))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        await until(pilot, lambda: "maze     1/4" in screen_text(app))
        await pilot.press("X")
        await until(pilot, lambda: "Stop this run?" in screen_text(app))
        run.mailbox.extend(answer_events(2, 1, ["··"]))
        await until(pilot, lambda: "maze     2/4" in screen_text(app))
        assert "Stop this run?" in screen_text(app)

    drive(scenario, tmp_path / "salt.db")


def test_the_ranking_is_computed_for_a_key_and_never_for_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, ["·×··×", "+"]))
    ranked = 0
    rank = AtomMap.surest_wrong

    def counted(self: AtomMap, count: int = 200) -> list[Place]:
        nonlocal ranked
        ranked += 1
        return rank(self, count)

    monkeypatch.setattr(AtomMap, "surest_wrong", counted)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        await pilot.press("c", "c")
        await pilot.pause()
        assert "no. 2 of the surest errors: " in screen_text(app)
        for generation in range(2, 8):
            run.mailbox.extend(answer_events(generation, generation, ["×·"]))
            await pilot.pause(0.05)
        assert ranked == 2
        await pilot.press("left")
        await pilot.pause()
        assert screen.heatmap.surest_rank is None
        await pilot.press("right")
        await pilot.pause()
        assert "of the surest errors" not in screen_text(app), "it was not reached by c"
        assert ranked == 2

    drive(scenario, tmp_path / "salt.db")


def test_an_answer_without_atoms_can_be_chosen_and_cancelled(tmp_path: Path) -> None:
    session, run = session_of(
        tmp_path / "salt.db",
        started(),
        *answer_events(1, 0, ["··"]),
        *answer_events(2, 1, [], status=None)[:2],
        *answer_events(3, 2, [], status="no_answer"),
    )

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        await pilot.press("home", "right_square_bracket")
        await pilot.pause()
        assert screen.heatmap.cursor == Place(1, 0)
        assert "answer 2" in screen_text(app)
        assert "10/20 tokens; x cancels it" in screen_text(app)
        await pilot.press("x")
        await until(pilot, lambda: "Cancel answer 2 of maze?" in screen_text(app))
        await pilot.press("n")
        assert run.cancelled == []
        await pilot.press("x", "y")
        await until(pilot, lambda: run.cancelled == [2])
        await pilot.press("right_square_bracket", "x")
        await pilot.pause()
        assert run.cancelled == [2]
        assert "answer 3 of maze is not being written: it is no answer" in messages(app)

    drive(scenario, tmp_path / "salt.db")


def test_the_answer_to_cancel_is_the_one_that_was_named_whatever_comes_meanwhile(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, ["·×"], status=None))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        assert screen.heatmap.following
        await pilot.press("x")
        await until(pilot, lambda: "Cancel answer 1 of maze?" in screen_text(app))
        run.mailbox.extend(answer_events(2, 1, ["··"], status=None))
        await until(pilot, lambda: len(session.state.map.answers) == 2)
        assert "Cancel answer 1 of maze?" in screen_text(app)
        await pilot.press("y")
        await until(pilot, lambda: run.cancelled == [1])
        await pilot.press("home", "x")
        await until(pilot, lambda: "Cancel answer 1 of maze?" in screen_text(app))
        run.mailbox.append(AnswerFinished(1, "maze", 0, "complete", 1, 2, 2, 30))
        await until(pilot, lambda: session.state.map.answers[0].status == "complete")
        await pilot.press("y")
        await until(pilot, lambda: "answer 1 of maze has ended by itself" in messages(app))
        assert run.cancelled == [1]

    drive(scenario, tmp_path / "salt.db")


def test_following_stands_on_a_prompt_while_there_is_no_atom(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, [], status=None)[:2])

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        assert screen.heatmap.cursor == Place(0, 0)

    drive(scenario, tmp_path / "salt.db")


def test_without_an_answer_x_says_why(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path / "salt.db", started())

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        await pilot.press("x")
        await pilot.pause()
        assert "choose one with the arrows" in messages(app)

    drive(scenario, tmp_path / "salt.db")


def test_the_log_shows_what_the_run_said_before_what_its_own_child_printed(tmp_path: Path, stored: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), Notice("look here"))
    assert session.log_path is not None
    with session.log_path.open("a", encoding="utf-8") as log:
        log.writelines(f"own line {number}\n" for number in range(12))
    session.pull()
    lines = live_lines.log_lines(session, LOG_ROWS)
    assert lines == ["look here", *(f"own line {number}" for number in range(8, 12))]
    run.mailbox.extend(Notice(f"notice {number}") for number in range(9))
    session.pull()
    assert live_lines.log_lines(session, LOG_ROWS) == [
        "… 6 earlier", "notice 5", "notice 6", "notice 7", "notice 8",
    ]  # fmt: skip
    run.mailbox.append(RunEnded(7, "finished", None))
    session.pull()
    assert session.engine_log()[-1] == "own line 11"
    assert RunSession.stored(1, stored).engine_log() == ()


def test_all_rows_of_the_log_are_seen(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path / "salt.db", started(), *(Notice(f"notice {number}") for number in range(5)))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        app.clear_notifications()
        await pilot.press("o")
        await pilot.pause()
        for number in range(5):
            assert f" notice {number}" in screen_text(app)

    drive(scenario, tmp_path / "salt.db")


def test_a_run_that_another_process_computes_offers_no_resume(stored: Path) -> None:
    with sqlite3.connect(stored) as connection:
        connection.execute("UPDATE run SET state = 'interrupted', finished_at = NULL")
    with open_store(stored) as store:
        store.claim(Work(1))
        session = RunSession.stored(1, stored)

        async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
            screen = await show(app, pilot, session)
            assert "another program computes this" in screen_text(app)
            assert "r resumes" not in screen_text(app)
            assert screen.check_action("resume", ()) is None
            await pilot.press("r")
            assert shown(app) is session

        drive(scenario, stored)


def test_a_start_that_failed_is_no_run(tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: shown(app) is not None and shown(app).state.phase == "failed")
        await until(pilot, lambda: "no run was begun" in screen_text(app))
        assert "r resumes" not in screen_text(app)
        assert app.screen.check_action("resume", ()) is None
        assert app.screen.check_action("export", ()) is None

    drive(scenario, tmp_path / "salt.db", request(tmp_path / "nothing.scripted.json"))


def test_atoms_that_were_never_said_are_not_counted() -> None:
    state = LiveState()
    state.phase = "finished"
    state.map.add(AnswerCells(1, "maze", 0, status="complete"))
    for status in ("correct", "missing", "missing"):
        state.map.answers[0].units["atom"].add(status, 0, [None] * len(FUNCTIONS))
    assert live_lines.instead_of_a_unit(state).startswith("1 atom. Arrows choose one")


def test_a_stored_run_says_how_many_atoms_there_are_to_choose(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        session = RunSession.stored(1, stored)
        await show(app, pilot, session)
        count = sum(answer.units["atom"].generated for answer in session.state.map.answers)
        assert count > 0
        await until(pilot, lambda: f"{count} atoms. Arrows choose one" in screen_text(app))

    drive(scenario, stored)


def test_a_run_that_cannot_be_read_says_so(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, RunSession.stored(99, stored))
        await until(pilot, lambda: "cannot be read" in screen_text(app))
        assert "loading" not in screen_text(app)
        assert "r resumes" not in screen_text(app)

    drive(scenario, stored)


def test_another_environment_is_offered_only_where_the_run_is_shown(stored: Path) -> None:
    session, run = session_of(stored, started())
    session.run = 1

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        await pilot.press("3")
        run.failure = EnvironmentChangedError("run 1", ("llama.cpp: b1 → b2",))
        run.ends = True
        await pilot.press("slash", "y", "e", "s")
        await pilot.pause(0.2)
        assert len(app.screen_stack) == 1
        assert app.screen.query_one("#filter", Input).value == "yes"
        await pilot.press("escape", "2")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert "in another environment?" in screen_text(app)
        await pilot.press("escape")

    drive(scenario, stored)


def test_the_log_is_named_after_the_run_that_is_shown(tmp_path: Path, stored: Path) -> None:
    session, _ = session_of(tmp_path / "salt.db", started(), Notice("look here"))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        await pilot.press("o")
        assert "engine-own.log" in str(screen.query_one("#log").border_title)
        await show(app, pilot, RunSession.stored(1, stored))
        assert not screen.query_one("#log").border_title

    drive(scenario, stored)


def test_lines_are_cut_by_cells_and_say_so(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path / "salt.db", replace(started(*"abcdefgh"), model="漢字" * 40))
    session.pull()
    for width in (60, 80, 120):
        title = live_lines.title_line(session, width)
        assert cell_len(title) == width
        assert title.endswith("running")
        assert all(cell_len(line) <= width for line in live_lines.task_lines(session.state, {}, None, 2, width))
        rows = broken("confidently wrong: " + "漢字 word " * 40, width, 2).split("\n")
        assert len(rows) == 2
        assert all(cell_len(row) <= width for row in rows)
        assert rows[1].endswith("…")
        assert live_lines.rule("漢" * 90, width).endswith("…")
    assert broken("漢" * 30, 20, 2) == "漢" * 10 + "\n" + "漢" * 9 + "…"
    assert broken("short", 20, 2) == "short"
    text = "about 4.4 k, at most 12.9 k tokens; 5 % wrong, 90 % sure"
    for width in range(8, 60):
        rows = broken(text, width).split("\n")
        assert " ".join(rows) == text
        assert not any(row.startswith(("k", "%")) for row in rows), "a number keeps its unit"


def test_another_granularity_stays_at_the_place(tmp_path: Path) -> None:
    session, _ = session_of(
        tmp_path / "salt.db", started(), *answer_events(1, 0, ["···"]), *answer_events(2, 1, ["··", "·×·"])
    )

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        screen.heatmap.go_to(Place(1, 3))
        await pilot.press("g")
        assert (session.state.map.kind, screen.heatmap.cursor) == ("line", Place(1, 1))
        await pilot.press("g")
        assert (session.state.map.kind, screen.heatmap.cursor) == ("atom", Place(1, 3))
        await pilot.press("g", "left", "g")
        assert screen.heatmap.cursor == Place(1, 0), "the first atom of another line"

    drive(scenario, tmp_path / "salt.db")


def test_the_lines_of_a_stored_run_have_their_atoms(stored: Path) -> None:
    session = RunSession.stored(1, stored)
    deadline = time.monotonic() + 20
    while session.reading and time.monotonic() < deadline:
        session.pull()
    atom_map = session.state.map
    places = [Place(number, 0) for number in range(len(atom_map.answers)) if len(atom_map.cells(number))]
    assert places
    assert all(atom_map.counterpart(place, "line") == place for place in places)


def test_the_scrollbar_stops_following(tmp_path: Path) -> None:
    session, run = session_of(
        tmp_path / "salt.db", started(), *(event for n in range(60) for event in answer_events(n + 1, n, ["·×"]))
    )

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        assert screen.heatmap.following
        assert screen.heatmap.scroll_offset.y == screen.heatmap.max_scroll_y
        await pilot.click("#map", offset=(screen.heatmap.outer_size.width - 1, 1))
        await until(pilot, lambda: not screen.heatmap.following)
        await pilot.press("end")
        assert screen.heatmap.following
        screen.heatmap.post_message(ScrollTo(y=3, animate=False))
        await until(pilot, lambda: screen.heatmap.scroll_offset.y == 3)
        assert not screen.heatmap.following
        run.mailbox.extend(answer_events(99, 99, ["··"]))
        await pilot.pause(0.1)
        assert screen.heatmap.scroll_offset.y == 3

    drive(scenario, tmp_path / "salt.db")


def test_following_goes_on_while_answers_come(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started())

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        for number in range(40):
            run.mailbox.extend(answer_events(number + 1, number, ["·×"]))
            await pilot.pause(0.02)
        await until(pilot, lambda: len(session.state.map.answers) == 40)
        await until(
            pilot, lambda: screen.heatmap.scroll_offset.y == session.state.map.height - screen.heatmap.size.height
        )
        assert screen.heatmap.following

    drive(scenario, tmp_path / "salt.db")


def test_the_computing_run_is_heard_while_another_is_shown_and_the_function_stays(stored: Path) -> None:
    session, run = session_of(stored, started())

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        await pilot.press("f")
        chosen = session.state.map.function
        other = RunSession.stored(1, stored)
        await show(app, pilot, other)
        assert other.state.map.function == chosen != LiveState().map.function
        run.mailbox.append(Notice("the model died"))
        await until(pilot, lambda: "run 7: the model died" in messages(app))

    drive(scenario, stored)


def test_the_prompt_of_an_answer_is_counted_from_one(tmp_path: Path) -> None:
    session, _ = session_of(
        tmp_path / "salt.db", started(), *answer_events(1, 0, [], status=None)[:1], PromptEvaluated(1, 5, 20)
    )

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        assert any(re.match(r" +1 +\[prompt 5/20", line) for line in screen_text(app).splitlines())

    drive(scenario, tmp_path / "salt.db")


def test_the_tokens_of_an_answer_without_units_are_counted_on_the_screen(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, [], status=None))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        assert screen_text(app).count("~ 1 token") == 2
        version = session.state.map.version
        run.mailbox.extend(TokenArrived(1, token) for token in range(1, 5))
        await until(pilot, lambda: screen_text(app).count("~ 5 tokens") == 2, 5.0)
        assert session.state.map.version == version, "there is nothing to measure"

    drive(scenario, tmp_path / "salt.db")


def test_the_key_of_live_shows_the_run_that_computes_and_leaves_no_other_open(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[RunSession] = []
    monkeypatch.setattr(RunSession, "close", lambda self: closed.append(self))
    session, run = session_of(stored, started())

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        first, second = RunSession.stored(1, stored), RunSession.stored(1, stored)
        await show(app, pilot, first)
        await pilot.press("3", "2")
        await until(pilot, lambda: shown(app) is session)
        assert closed == [first]
        await show(app, pilot, second)
        await pilot.press("2")
        await until(pilot, lambda: shown(app) is session)
        assert closed == [first, second]
        run.ends = True
        await show(app, pilot, RunSession.stored(1, stored))
        assert closed == [first, second, session]

    drive(scenario, stored)


def wheel_up(screen: LiveScreen, *, shift: bool = False) -> None:
    """Turn the wheel over the map."""
    screen.heatmap.post_message(events.MouseScrollUp(screen.heatmap, 5, 2, 0, -1, 0, shift, False, False))


def test_the_legend_says_whether_the_newest_is_followed(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, ["·×"]))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)

        async def check(following: bool) -> None:
            await until(pilot, lambda: screen.heatmap.following is following)
            await until(pilot, lambda: ("newest below" if following else "end follows") in screen_text(app))
            assert ("end follows" if following else "newest below") not in screen_text(app)

        await check(True)
        wheel_up(screen)
        await check(True)
        await pilot.press("left", "right")
        await check(False)
        await pilot.press("end")
        await check(True)
        run.mailbox.extend(event for n in range(2, 60) for event in answer_events(n, n, ["·×"]))
        await until(
            pilot,
            lambda: screen.heatmap.max_scroll_y > 0 and screen.heatmap.scroll_offset.y == screen.heatmap.max_scroll_y,
        )
        wheel_up(screen, shift=True)
        await check(True)
        wheel_up(screen)
        await check(False)

    drive(scenario, tmp_path / "salt.db")


def test_a_stored_run_and_another_task_are_measured_without_waiting_for_the_tick(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_screen, "NUMBERS_PER_SECOND", 0.001)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, RunSession.stored(1, stored))
        await until(pilot, lambda: "in 8 answers" in screen_text(app) and "measuring" not in screen_text(app))
        await pilot.press("t")
        await until(pilot, lambda: "in 4 answers" in screen_text(app) and "measuring" not in screen_text(app))
        assert "AUROC" in screen_text(app)

    drive(scenario, stored)


def test_nothing_is_left_of_a_run_that_was_deleted(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, RunSession.stored(1, stored))
        await pilot.press("home")
        await until(pilot, lambda: screen.check_action("copy", ()) is True)
        app.post_message(RunsDeleted((1,)))
        await until(pilot, lambda: NO_RUN in screen_text(app))
        await pilot.pause()
        assert "end follows" not in screen_text(app)
        assert "Task" not in screen_text(app).splitlines()[-1]
        assert screen.check_action("copy", ()) is None
        await pilot.press("y")
        assert not app.clipboard

    drive(scenario, stored)
