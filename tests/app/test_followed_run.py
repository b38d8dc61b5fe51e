"""A run that another program computes: the list and Live follow it by reading, to its end."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun
from salt_tui.app.run_session import RunSession
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.runner.events import RunEnded
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
from tests.app.conftest import TASKS
from tests.app.pilot import drive, screen_text, shown, until
from tests.app.test_keys import press
from tests.app.written_run import session_of
from tests.stored_runs import store_run


def compute_elsewhere(database: Path, model: Path, limit: int) -> subprocess.Popen[bytes]:
    """Begin a run in a process of its own."""
    arguments = ["run", "-m", str(model), "--tasks", ",".join(TASKS), "--difficulty", "trivial", "--limit", str(limit)]
    arguments += ["--seed", "1", "--db", str(database), "--display", "none"]
    return subprocess.Popen(
        [sys.executable, "-m", "salt_tui", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )


def test_the_list_and_live_follow_another_program(script: Callable[..., Path], tmp_path: Path) -> None:
    database, limit = tmp_path / "salt.db", 8
    model = script(limit, seconds_per_step=0.05)
    programs: list[subprocess.Popen[bytes]] = []

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.runs")
        assert isinstance(app.screen, RunsScreen)
        await until(pilot, lambda: "no runs yet" in screen_text(app))
        programs.append(compute_elsewhere(database, model, limit))
        await until(pilot, lambda: "running" in screen_text(app), 60)
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and shown(app) is not None)
        session = shown(app)
        assert session is not None
        await until(pilot, lambda: session.state.phase == "elsewhere")
        await until(pilot, lambda: "another program computes this" in screen_text(app))
        await until(pilot, lambda: "elsewhere" in screen_text(app).splitlines()[0])

        def atoms() -> int:
            return sum(len(answer.units["atom"]) for answer in session.state.map.answers)

        before = atoms()
        await until(pilot, lambda: atoms() > before)
        assert {answer.status for answer in session.state.map.answers} <= {"complete", "streaming", "unclosed"}
        await until(pilot, lambda: session.state.phase == "finished", 60)
        assert session.state.view.tasks[TASKS[0]].done == limit
        with open_queries(database) as queries:
            for kind in ("atom", "line"):
                columns = queries.unit_columns(1, kind)
                assert sum(len(answer.units[kind]) for answer in session.state.map.answers) == columns.status.size
            right = sum(counts.correct for counts in queries.task_counts(1))
        assert sum(answer.units["atom"].correct for answer in session.state.map.answers) == right
        await until(pilot, lambda: "another program" not in screen_text(app) and "finished" in screen_text(app))
        await until(pilot, lambda: f"n {columns_with_confidence(database)}" in screen_text(app))

    drive(scenario, database)
    assert programs[0].wait(30) == 0


def columns_with_confidence(database: Path) -> int:
    with open_queries(database) as queries:
        columns = queries.unit_columns(1, "atom", ("max_probability",))
    return int((columns.confidences["max_probability"] == columns.confidences["max_probability"]).sum())


def test_a_program_that_is_killed_leaves_a_run_to_resume(script: Callable[..., Path], tmp_path: Path) -> None:
    database = tmp_path / "salt.db"
    program = compute_elsewhere(database, script(30, seconds_per_step=0.05), 30)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.runs")
        await until(pilot, lambda: "running" in screen_text(app), 60)
        app.post_message(OpenRun(1))
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "another program" in screen_text(app))
        os.killpg(program.pid, signal.SIGKILL)
        program.wait(60)
        await until(pilot, lambda: "interrupted, r resumes" in screen_text(app))
        session = shown(app)
        assert session is not None
        assert "streaming" not in {answer.status for answer in session.state.map.answers}
        await press(pilot, "app.runs")
        await until(pilot, lambda: "interrupted" in screen_text(app))

    drive(scenario, database)


def test_a_session_that_was_left_does_not_tell_the_end_of_the_run_once_more(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    work = Work(store_run(path, tasks=("maze",), answers=2, atoms=4))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET state = 'interrupted', finished_at = NULL")
    with open_store(path) as store:
        store.claim(work)
        # Resuming was refused, because the run is computed elsewhere; it was left at once and opened from the list.
        refused, background = session_of(path, RunEnded(work.run, "running", None))
        refused.run, background.ends = work.run, True
        refused.close()
        sessions = [refused, RunSession.stored(work.run, path)]
        told: list[str] = []

        def pull_until(done: Callable[[], bool]) -> None:
            deadline = time.monotonic() + 20
            while not done() and time.monotonic() < deadline:
                told.extend(message for session in sessions for message in session.pull().messages)
                time.sleep(0.02)
            assert done()

        # The app goes on to pull what was to be computed here, also when another session shows it.
        pull_until(lambda: all(session.state.phase == "elsewhere" for session in sessions))
        store.release(work, "failed", "the disk is full")
    pull_until(lambda: sessions[1].state.phase == "failed")
    time.sleep(1.2)  # as long as a session that followed would take to look again
    told.extend(message for session in sessions for message in session.pull().messages)
    assert told == ["the disk is full"]
    sessions[1].close()
