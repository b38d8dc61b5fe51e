"""The list of stored runs: its keys, a database that cannot be read, long names, what is exported and deleted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input

from salt_tui.app.application import SaltApp
from salt_tui.app.export_window import ExportWindow, targets_of
from salt_tui.app.messages import ExportRuns
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.store.queries import open_queries
from tests.app.conftest import request
from tests.app.pilot import drive, screen_text, shown, until


def test_keys_right_after_opening_the_runs_are_no_filter(stored: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.press("3", "x")
        await pilot.pause()
        assert app.screen.query_one(Input).value == ""
        assert app.screen.query_one(DataTable).has_focus
        await pilot.press("1", "3", "y")
        assert app.screen.query_one(Input).value == ""

    drive(scenario, stored)


def test_runs_that_could_not_be_read_are_read_again(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = Path("other.db")  # a row of 80 columns has no room for a long path and the reason
    database.write_text("no database")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: "other.db" in screen_text(app) and "no" in screen_text(app).splitlines()[1])
        database.write_bytes(stored.read_bytes())
        await pilot.press("1", "3")
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 1)
        assert screen_text(app).splitlines()[1].startswith(" 1 run")

    drive(scenario, database)


def test_an_export_stays_open_until_the_file_is_there(stored: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("mine", encoding="utf-8")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        app.post_message(ExportRuns((1,)))
        await until(pilot, lambda: isinstance(app.screen, ExportWindow))
        field = app.screen.query_one(Input)
        for typed, words in (
            (tmp_path / "nowhere" / "out.csv", "nowhere"),
            (tmp_path / "out.txt", "cannot tell the format"),
            (target, "out.csv exists: enter again replaces it"),
        ):
            field.value = str(typed)
            await pilot.press("enter")
            await until(pilot, lambda words=words: f"! {words}" in screen_text(app) or words in screen_text(app))  # type: ignore[misc]
            assert isinstance(app.screen, ExportWindow)
            assert field.value == str(typed)
            assert target.read_text("utf-8") == "mine"
        await pilot.press("enter")
        await until(pilot, lambda: any(str(tmp_path) in note.message for note in app._notifications))
        assert "max_probability" in target.read_text("utf-8").splitlines()[0]

    drive(scenario, stored)


def test_several_runs_become_as_many_files(tmp_path: Path) -> None:
    assert targets_of(str(tmp_path / "a.csv"), (4,)) == {4: tmp_path / "a.csv"}
    assert targets_of(str(tmp_path / "a.csv"), (4, 7)) == {4: tmp_path / "a-4.csv", 7: tmp_path / "a-7.csv"}


def test_runs_with_long_names_fit_eighty_columns(stored: Path) -> None:
    with open_queries(stored) as queries:
        runs = [replace(run, model="Some-Very-Long-Model-Name-Instruct-Q4_K_M") for run in queries.list_runs()]

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: "1 run" in screen_text(app))
        assert isinstance(app.screen, RunsScreen)
        app.screen._take(runs)
        await until(pilot, lambda: "Some-Very…" in screen_text(app))
        lines = screen_text(app).splitlines()
        row = next(line for line in lines if "Some-Very…" in line)
        assert "finished" in row
        assert re.search(r"\d\d[-:]\d\d$", row)
        assert "begun" in screen_text(app)
        assert not app.screen.query_one(DataTable).show_horizontal_scrollbar
        assert "Some-Very-Long-Model-Name-Instruct-Q4_K_M" in screen_text(app)

    drive(scenario, stored)


def test_the_run_that_computes_here_is_not_deleted(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: shown(app) is not None and shown(app).run is not None)
        await pilot.press("3")
        await until(pilot, lambda: "running" in screen_text(app))
        await pilot.press("d")
        await pilot.pause()
        assert "stop it first" in " ".join(note.message for note in app._notifications)
        assert len(app.screen_stack) == 1

    drive(scenario, tmp_path / "salt.db", request(script(30, seconds_per_step=0.05), 30))
