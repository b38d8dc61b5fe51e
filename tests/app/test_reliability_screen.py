"""Reliability through the app: what a reader looks for, every key, the mouse, files, runs that have little to say."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from salt_tui.app import reliability_screen
from salt_tui.app.answer_screen import AnswerScreen
from salt_tui.app.application import SaltApp
from salt_tui.app.dialogs import TextToRead
from salt_tui.app.live_screen import LiveScreen
from salt_tui.app.messages import OpenRun
from salt_tui.app.reliability_body import BinList, SignalList
from salt_tui.app.reliability_export import FIGURE_OF, figure_name, write_view
from salt_tui.app.reliability_pictures import Kind
from salt_tui.app.reliability_plot import ConfidencePlot
from salt_tui.app.reliability_screen import ReliabilityScreen
from salt_tui.app.reliability_state import ReliabilityState
from salt_tui.app.reliability_windows import BinWindow, SliceWindow, ViewFileWindow
from salt_tui.figures.registry import FIGURES
from salt_tui.measure import run_views
from salt_tui.measure.confidence_view import ViewChoice, confidence_view
from salt_tui.measure.row_selection import select_rows
from salt_tui.measure.run_report import measure_report
from salt_tui.measure.run_views import UNITS
from salt_tui.reports.text_tables import number
from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, Work
from salt_tui.store.store import open_store
from tests.app.conftest import request
from tests.app.pilot import drive, screen_text, shown, until
from tests.app.test_keys import press
from tests.stored_runs import store_run

TASKS = ("maze", "code", "arc_grid")
HOSTILE = "[red]own[/]\x1b]0;x"


DRAWS = 40


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the time, and no map is fitted ahead; the report that the screen is compared with draws as often."""
    monkeypatch.setattr(run_views, "DRAWS", DRAWS)
    monkeypatch.setattr(reliability_screen, "MAPS", ())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three tasks, with a signal under a hostile name; none of the tests changes it."""
    path = tmp_path_factory.mktemp("reliability") / "x.db"
    store_run(path, TASKS, answers=8, atoms=12)
    with open_queries(path) as queries:
        answers = [answer.generation for answer in queries.answers(1) if answer.generation is not None]
    random = np.random.default_rng(1)
    with open_store(path) as store:
        store.claim(Work(1))
        store.add_signals(
            Work(1),
            [
                SignalRecord(answer, "atom", atom, HOSTILE, float(random.random()), None)
                for answer in answers
                for atom in range(12)
            ],
        )
        store.release(Work(1), "finished")
    return path


async def opened(app: SaltApp, pilot: Pilot[int]) -> ReliabilityScreen:
    """Open the one stored run, and its reliability."""
    app.post_message(OpenRun(1))
    await until(pilot, lambda: isinstance(app.screen, LiveScreen) and not shown(app).reading)  # type: ignore[union-attr]
    await press(pilot, "app.reliability")
    await until(pilot, lambda: isinstance(app.screen, ReliabilityScreen))
    screen = app.screen
    assert isinstance(screen, ReliabilityScreen)
    await until(pilot, lambda: screen._view is not None or "reading" not in text_of(screen, "#reliability-title"))
    return screen


async def concluded(app: SaltApp, pilot: Pilot[int]) -> ReliabilityScreen:
    """Open it and wait until everything is concluded."""
    screen = await opened(app, pilot)
    await until(pilot, lambda: "measuring" not in text_of(screen, "#reliability-found"))
    await pilot.pause()
    return screen


def text_of(screen: ReliabilityScreen, name: str) -> str:
    return str(screen.query_one(name, Static).render())


def signals_measured(screen: ReliabilityScreen) -> Callable[[], bool]:
    """Return whether every signal is measured, raw and after the map."""

    def measured() -> bool:
        views, state = screen._views, screen.state
        if views is None or not views.signals_read:
            return False
        names = views.functions(state.unit)
        known = [views.known_numbers(state.choice, name, state.after) for name in names]
        return len(names) > 10 and all(found.raw and found.mapped for found in known)

    return measured


def measured(screen: ReliabilityScreen) -> Callable[[], bool]:
    """Return whether the view on the screen is the chosen one."""
    return lambda: screen._view is not None and screen._view.choice == screen.state.choice


def test_a_reader_finds_signal_map_and_coverage_as_the_report_has_them(whole: Path) -> None:
    report = measure_report(whole, "1", select_rows([], [], [], by=None, draws=DRAWS, full=False))
    best, maps = report.finding("function"), report.finding("map")
    assert best is not None
    assert maps is not None
    found: dict[str, str] = {}
    rows: dict[str, str] = {}

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await concluded(app, pilot)
        found["verdict"] = " ".join(text_of(screen, "#verdict").split())
        signals = screen.query_one(SignalList)
        for place, function in enumerate(screen._shown_signals):
            rows[function] = str(signals.get_option_at_index(place).prompt)
        await press(pilot, "reliability.words")
        assert isinstance(app.screen, TextToRead)
        found["words"] = " ".join(app.screen._text.split())
        await pilot.press("escape")

    drive(scenario, whole)
    with open_queries(whole) as queries:
        columns = queries.unit_columns(1, "atom", ("max_probability",))
    assert found["verdict"] == confidence_view(columns, ViewChoice("atom", "max_probability")).sentence
    assert f"Which signal: {' '.join(best.sentence.split())}" in found["words"]
    assert f"Recalibrate: {' '.join(maps.sentence.split())}" in found["words"]
    assert "cannot be promised" in found["words"] or "No policy" in found["words"]
    assert {function for function, row in rows.items() if row.startswith("●")} == set(best.best)
    assert len(rows) > 10
    for function, row in rows.items():
        raw, isotonic = report.row("atom", function, "none"), report.row("atom", function, "isotonic")
        assert raw is not None
        assert isotonic is not None
        low, high = raw.intervals["auroc"].low, raw.intervals["auroc"].high
        ends = "" if low is None else f" [{number(low, 2)} {number(high, 2)}]"
        assert f" {number(raw.values['auroc'].mean.value, 2)}{ends} " in row
        assert number(isotonic.values["ece"].mean.value) in row
        assert row.endswith(number(isotonic.values["brier"].mean.value))
        assert "\x1b" not in row


def test_keys_of_rows_of_what_is_looked_at_and_of_the_threshold(whole: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await until(pilot, signals_measured(screen), 60)
        state = screen.state
        # The rows of a list.
        bins = screen.query_one(BinList)
        assert screen.focused is bins
        await press(pilot, "reliability.last")
        assert bins.highlighted == bins.option_count - 1
        await press(pilot, "reliability.row_up")
        assert bins.highlighted == bins.option_count - 2
        await press(pilot, "reliability.page_up")
        await press(pilot, "reliability.first")
        await press(pilot, "reliability.page_down")
        assert bins.highlighted is not None
        assert bins.highlighted > 0
        await press(pilot, "reliability.first")
        await press(pilot, "reliability.row_down")
        assert bins.highlighted == 1
        # What is looked at.
        await press(pilot, "reliability.function")
        assert state.function != "max_probability"
        await press(pilot, "reliability.function_back")
        assert state.function == "max_probability"
        await press(pilot, "reliability.map")
        await until(pilot, measured(screen))
        assert state.calibrator == "z_sigmoid"
        assert "z_sigmoid:" in text_of(screen, "#signal-heads")
        await press(pilot, "reliability.map_back")
        assert state.calibrator == "none"
        await press(pilot, "reliability.task")
        await until(pilot, measured(screen))
        assert screen._view is not None
        assert (state.task, screen._view.n) == ("maze", screen._view.n)
        assert "maze" in text_of(screen, "#reliability-title")
        await press(pilot, "reliability.task_back")
        assert state.task is None
        await press(pilot, "reliability.bins")
        await until(pilot, measured(screen))
        assert (state.bins, screen._view.bins.requested) == (20, 20)  # type: ignore[union-attr]
        # The threshold.
        trusted = [state.trusted(screen._view).n]  # type: ignore[union-attr]
        for right in (True, False):
            if right:
                await press(pilot, "reliability.threshold")
            else:
                await press(pilot, "reliability.threshold_back")
            trusted.append(state.trusted(screen._view).n)  # type: ignore[union-attr]
            assert f"({trusted[-1]} of " in text_of(screen, "#threshold")
        assert trusted[0] < trusted[1] > trusted[2]
        await press(pilot, "reliability.export")
        assert isinstance(app.screen, ViewFileWindow)
        await pilot.press("escape")
        await press(pilot, "reliability.back")
        assert isinstance(app.screen, LiveScreen)

    drive(scenario, whole)


def test_keys_of_what_is_drawn(whole: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        state = screen.state
        drawn = {state.kind: screen._picture}
        for kind in [*list(Kind)[1:], Kind.DIAGRAM]:
            await press(pilot, "reliability.curves")
            await until(pilot, lambda kind=kind: kind.value in text_of(screen, "#plot-title"))  # type: ignore[misc]
            await pilot.pause()
            drawn[kind] = screen._picture
        assert all(picture.panels and not picture.missing for picture in drawn.values())
        assert [panel.name for panel in drawn[Kind.PARTS].panels] == list(TASKS)
        await press(pilot, "reliability.larger")
        assert not screen.query_one(SignalList).display
        await press(pilot, "reliability.larger")
        assert screen.query_one(SignalList).display
        # What was measured for a choice that is given up meanwhile is not shown.
        await pilot.press("k", "k")
        await until(pilot, lambda: screen._picture.horizontal == "coverage")
        await pilot.pause(0.1)
        assert screen._picture.horizontal == "coverage"

    drive(scenario, whole)


def test_keys_of_slices_and_units_and_down_to_an_answer(whole: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        state = screen.state
        # A slice.
        await press(pilot, "reliability.slice")
        assert isinstance(app.screen, SliceWindow)
        await pilot.press("down", "enter")
        await until(pilot, lambda: state.slice == "position" and measured(screen)())
        assert screen._view.n < 200  # type: ignore[union-attr]
        await press(pilot, "reliability.part")
        assert state.part == "0.1–0.2"
        await press(pilot, "reliability.part_back")
        assert state.part == "0.0–0.1"
        await until(pilot, measured(screen))
        await press(pilot, "reliability.slice")
        await pilot.press("enter")
        assert state.slice is None
        await until(pilot, measured(screen))
        # Units, with the atom to look at behind each.
        for unit in [*UNITS[1:], "atom"]:
            await press(pilot, "reliability.unit")
            assert state.unit == unit
            await until(pilot, measured(screen))
        # From a bin to an answer and back.
        await press(pilot, "reliability.units")
        await until(pilot, lambda: isinstance(app.screen, BinWindow))
        listed = app.screen._listed  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AnswerScreen) and app.screen._document is not None)
        assert app.screen._document.generation == listed[0].generation  # type: ignore[attr-defined]
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)

    drive(scenario, whole)


def test_everything_by_mouse(whole: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await until(pilot, signals_measured(screen), 60)
        state, plot = screen.state, screen.query_one(ConfidencePlot)
        await pilot.click(ConfidencePlot, offset=(plot.size.width - 3, 2))
        high = state.coverage
        await pilot.click(ConfidencePlot, offset=(plot.size.width // 2, 2))
        assert high is not None
        assert state.coverage is not None
        assert state.coverage > high
        first = screen.query_one(SignalList).scroll_offset.y
        await pilot.click(SignalList, offset=(6, 1))
        await until(pilot, measured(screen))
        assert state.function == screen._shown_signals[first + 1]
        state.kind, state.function = Kind.PARTS, "max_probability"
        screen._measure()
        await until(pilot, lambda: len(screen._picture.panels) == len(TASKS))
        await pilot.pause()
        await pilot.click(ConfidencePlot, offset=(plot.size.width - 6, 2))
        await until(pilot, measured(screen))
        assert (state.kind, state.task) == (Kind.DIAGRAM, TASKS[-1])
        await pilot.click(BinList, offset=(4, 0))
        await until(pilot, lambda: isinstance(app.screen, BinWindow))
        await pilot.press("escape")
        state.kind = Kind.RISK
        screen._measure()
        await until(pilot, lambda: screen._picture.horizontal == "coverage")
        await pilot.pause()
        await pilot.click(ConfidencePlot, offset=(plot.size.width // 2, 2))
        assert state.coverage == pytest.approx(0.5, abs=0.06)
        # The list of signals by its arrows; a signal with a hostile name.
        signals = screen.query_one(SignalList)
        signals.focus()
        await press(pilot, "reliability.first")
        assert state.function == screen._shown_signals[0]
        state.kind, state.task = Kind.DIAGRAM, None
        signals.highlighted = next(place for place, name in enumerate(screen._shown_signals) if "own" in name)
        await until(pilot, measured(screen))
        assert "[red]own[/]\\x1b]0;x" in screen_text(app)
        assert "needs a map" in " ".join(screen_text(app).split())
        assert "\x1b" not in screen_text(app)

    drive(scenario, whole)


def test_a_view_is_written_with_the_numbers_that_are_drawn(whole: Path, tmp_path: Path) -> None:
    views = run_views.RunViews(whole, 1)
    written: dict[Kind, list[list[str]]] = {}
    for kind in Kind:
        target = tmp_path / f"{kind.name}.csv"
        write_view(views, ReliabilityState(kind=kind), target)
        with target.open(newline="", encoding="utf-8") as file:
            written[kind] = list(csv.reader(file))
    view = views.view(ReliabilityState().choice)
    assert view.bins is not None
    assert view.risk is not None
    rows = written[Kind.DIAGRAM]
    assert rows[0] == ["units", "lower", "upper", "n", "confidence", "right", "gap"]
    assert [float(row[5]) for row in rows[1:]] == view.bins.accuracy.tolist()
    assert [int(row[3]) for row in rows[1:]] == view.bins.counts.astype(int).tolist()
    assert [float(row[2]) for row in written[Kind.RISK][1:]] == view.risk.error.tolist()
    assert {row[0] for row in written[Kind.PARTS][1:]} == set(TASKS)
    assert len(written[Kind.EURO]) == 102
    assert len(written[Kind.DENSITIES]) == 41
    assert {row[0] for row in written[Kind.POSITION][1:]} == {"correctness", "redundancy", "density", "calibration"}
    assert [row[0] for row in written[Kind.HISTORY][1:]] == ["history"] * 5


def test_every_figure_of_a_view_is_one_that_there_is() -> None:
    assert set(FIGURE_OF.values()) <= set(FIGURES)
    assert [figure_name(ReliabilityState(kind=kind)) for kind in FIGURE_OF] == list(FIGURE_OF.values())
    assert figure_name(ReliabilityState(unit="token")) is None


def test_the_window_for_a_file_says_what_is_in_the_way(whole: Path, tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await press(pilot, "reliability.export")
        line, problem = app.screen.query_one(Input), app.screen.query_one("#problem", Static)
        for name, words in (("nowhere/x.csv", "cannot be written"), ("x.docx", "x.docx: a name ends in .csv, or")):
            line.value = str(tmp_path / name)
            await pilot.press("enter")
            await until(pilot, lambda words=words: words in str(problem.render()))  # type: ignore[misc]
            assert not (tmp_path / name).exists()
        line.value = str(tmp_path / "x.csv")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        assert (tmp_path / "x.csv").read_text("utf-8").startswith("units,lower,upper,n,confidence,right,gap\nall,")
        # Of a slice there is no figure.
        screen.state.take_slice("position", ["0.0–0.1"])
        screen._measure()
        await until(pilot, measured(screen))
        await press(pilot, "reliability.export")
        app.screen.query_one(Input).value = str(tmp_path / "x.png")
        await pilot.press("enter")
        again = app.screen.query_one("#problem", Static)
        await until(pilot, lambda: "of this view there are the numbers only" in str(again.render()))
        await pilot.press("escape")

    drive(scenario, whole)


@pytest.mark.parametrize(
    ("spoil", "verdict", "drawn"),
    [
        ("UPDATE unit SET status = 'correct'", "At .93–1.00 it says", "reliability diagram"),
        (
            "UPDATE unit SET {}",
            "Nothing can be shown: no atoms with a confidence.",
            "nothing to draw: no atoms with a confidence",
        ),
        (
            "UPDATE unit SET status = 'abstained' WHERE generation IN"
            " (SELECT id FROM generation WHERE problem IN (SELECT id FROM problem WHERE task = 'code'))",
            "At .93–1.00 it says",
            "2 of 3 tasks",
        ),
    ],
)
def test_runs_that_have_little_to_say(tmp_path: Path, spoil: str, verdict: str, drawn: str) -> None:
    path = tmp_path / "x.db"
    store_run(path, TASKS, answers=6, atoms=10, statuses=None if "{}" not in spoil else ["correct", "wrong"] * 5)
    with open_queries(path) as queries:
        functions = queries.unit_columns(1, "atom").confidences
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(spoil.format(", ".join(f"{name} = NULL" for name in functions)))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await concluded(app, pilot)
        assert verdict in " ".join(screen_text(app).split())
        assert drawn in screen_text(app)
        if "correct" in spoil:
            assert "Cannot be said" in text_of(screen, "#reliability-found")
        for kind in Kind:
            screen.state.kind = kind
            screen._measure()
            await until(pilot, lambda kind=kind: screen._drawn_kind is kind)  # type: ignore[misc]

    drive(scenario, path)


def test_what_is_missing_from_the_plot_is_said_whole_under_a_title_without_gaps(whole: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        screen.state.function = "mean_entropy"
        screen._measure()
        await until(pilot, lambda: bool(screen._picture.missing))
        await pilot.pause()
        title = text_of(screen, "#plot-title")
        assert "──  ──" not in title
        rows = [row.strip() for row in screen_text(app).splitlines()]
        assert " ".join(screen._picture.missing.split()) in " ".join(rows)

    drive(scenario, whole, size=(60, 20))


def test_without_a_run_it_says_what_to_do(tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await press(pilot, "app.reliability")
        await until(pilot, lambda: "No run is open.  3 lists the stored ones" in screen_text(app))
        await press(pilot, "reliability.curves")
        await press(pilot, "reliability.back")
        assert isinstance(app.screen, LiveScreen)

    drive(scenario, tmp_path / "x.db")


def test_a_run_that_computes_shows_what_is_finished_and_says_so(script: Callable[..., Path], tmp_path: Path) -> None:
    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        def done() -> int:
            session = shown(app)
            return 0 if session is None else sum(task.done for task in session.state.view.tasks.values())

        await until(pilot, lambda: done() >= 2)
        await press(pilot, "app.reliability")
        await until(pilot, lambda: isinstance(app.screen, ReliabilityScreen) and app.screen._view is not None)
        text = " ".join(screen_text(app).split())
        assert re.search(r"run 1 so far, [1-7] of 8 answers", text), text
        assert isinstance(app.screen, ReliabilityScreen)
        assert 0 < app.screen._view.answers < 8  # type: ignore[union-attr]

    drive(scenario, tmp_path / "y.db", request=request(script(seconds_per_step=0.1)))
