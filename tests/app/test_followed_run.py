"""A run that another program computes: the list and Live follow it by reading, to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.store.queries import open_queries
from tests.app.conftest import TASKS
from tests.app.pilot import drive, screen_text, shown, until
from tests.app.test_keys import press


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
