"""Reliability while something is measured: a key shows at once what is chosen and known, and says what is not there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from salt_tui.app.application import SaltApp
from salt_tui.app.reliability_body import SignalList
from salt_tui.app.reliability_screen import ReliabilityScreen
from salt_tui.measure import run_views
from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice
from tests.app.pilot import drive, screen_text, until
from tests.app.test_keys import press
from tests.app.test_reliability_screen import concluded, measured, opened, signals_measured, text_of
from tests.stored_runs import store_run

TASKS = ("maze", "code", "arc_grid")


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three tasks; none of the tests changes it."""
    path = tmp_path_factory.mktemp("waiting") / "x.db"
    store_run(path, TASKS, answers=8, atoms=12)
    return path


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """No view after a map is measured before this is set, and no interval, conclusion or policy at all."""
    go_on = threading.Event()
    view = run_views.RunViews.view

    def held_view(views: run_views.RunViews, choice: ViewChoice) -> ConfidenceView:
        if choice.calibrator != "none":
            go_on.wait(20)
        return view(views, choice)

    monkeypatch.setattr(run_views.RunViews, "view", held_view)
    monkeypatch.setattr(run_views, "DRAWS", 40)
    return go_on


def raw_is_known(screen: ReliabilityScreen) -> bool:
    """Return whether every signal is measured as it is."""
    views, choice = screen._views, screen.state.choice
    if views is None or not views.signals_read:
        return False
    return all(views.known_numbers(choice, name, "isotonic").raw for name in views.functions("atom"))


def test_a_key_shows_what_is_chosen_before_it_is_measured(stored_run: Path, held: threading.Event) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await until(pilot, lambda: raw_is_known(screen))
        await pilot.pause()
        said = text_of(screen, "#verdict")
        await press(pilot, "reliability.map")
        assert text_of(screen, "#reliability-title").endswith("max_probability, z_sigmoid")
        assert text_of(screen, "#signal-heads").endswith("z_sigmoid: ECE Brier")
        row = str(screen.query_one(SignalList).get_option_at_index(0).prompt)
        assert row.split()[-1] == "…", "what is raw is known, what is after the map is not"
        assert row.split()[1].startswith(".")
        await until(pilot, lambda: "z_sigmoid is being fitted to max_probability …" in text_of(screen, "#verdict"))
        assert text_of(screen, "#plot-title").startswith("── still max_probability, raw: reliability diagram ─")
        assert text_of(screen, "#threshold") == "measuring …"
        # What was measured before is there at once, and no word of what is not.
        await press(pilot, "reliability.map_back")
        assert text_of(screen, "#verdict") == said
        assert "still" not in text_of(screen, "#plot-title")
        await press(pilot, "reliability.map")
        held.set()
        await until(pilot, measured(screen))
        assert "being fitted" not in screen_text(app)
        assert "still" not in screen_text(app)

    drive(scenario, stored_run)
    held.set()


def test_numbers_of_another_task_are_not_shown_for_this_one(stored_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_views, "DRAWS", 40)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await until(pilot, signals_measured(screen), 60)
        go_on = threading.Event()
        measure = run_views.RunViews.measure_numbers

        def held_numbers(views: run_views.RunViews, choice: ViewChoice, function: str, calibrator: str) -> None:
            go_on.wait(20)
            measure(views, choice, function, calibrator)

        monkeypatch.setattr(run_views.RunViews, "measure_numbers", held_numbers)
        await press(pilot, "reliability.task")
        await until(pilot, measured(screen))
        await pilot.pause()
        signals = screen.query_one(SignalList)
        rows = [str(signals.get_option_at_index(place).prompt) for place in range(signals.option_count)]
        assert all(set(row.split()[-5:]) == {"…"} for row in rows), rows
        go_on.set()
        await until(pilot, signals_measured(screen), 60)

    drive(scenario, stored_run)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_it_opens_at_the_best_signal_and_goes_to_the_chosen_one(
    stored_run: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(run_views, "DRAWS", 40)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await concluded(app, pilot)
        await pilot.pause()
        signals = screen.query_one(SignalList)
        assert signals.scroll_offset.y == 0
        await press(pilot, "reliability.function_back")
        await until(pilot, measured(screen))
        await pilot.pause()
        place = screen._shown_signals.index(screen.state.function)
        assert signals.scroll_offset.y <= place < signals.scroll_offset.y + signals.size.height

    drive(scenario, stored_run, size=size)
