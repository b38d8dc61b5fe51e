"""Studies: listed, started after a question, watched, stopped, resumed, and what they found is shown."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import DataTable, Input

from salt_tui.app.application import SaltApp
from salt_tui.app.dialogs import LineOfInput, Question
from salt_tui.app.messages import ResumeRun
from salt_tui.app.runs_screen import RunsScreen
from salt_tui.app.studies_screen import StudiesScreen, StudyList
from salt_tui.app.studies_state import startable_kinds
from salt_tui.cli import run_command_line
from salt_tui.store.queries import open_queries
from tests.app.pilot import drive, screen_text, until
from tests.app.test_keys import press
from tests.conftest import ScriptedModel

TASK = "dna_translation"


def make_run(scripted_model: ScriptedModel, database: Path, seconds_per_step: float = 0.0) -> None:
    model = scripted_model(TASK, limit=3, seconds_per_step=seconds_per_step)
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", TASK, "--difficulty", "trivial", "--limit", "3", "--seed", "1",
         "--db", str(database), "--display", "none"]
    ) == 0  # fmt: skip


async def opened(app: SaltApp, pilot: Pilot[int]) -> StudiesScreen:
    """Open the studies of the one run by the key."""
    await pilot.press("3")
    await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.query_one(DataTable).row_count == 1)
    await press(pilot, "runs.studies")
    await until(pilot, lambda: isinstance(app.screen, StudiesScreen) and "Run 1" in screen_text(app))
    assert isinstance(app.screen, StudiesScreen)
    return app.screen


def studies_of(database: Path) -> list[tuple[str, str]]:
    with open_queries(database) as queries:
        return [(study.kind, study.state) for study in queries.studies(1)]


def test_a_study_is_started_after_a_question_watched_and_opened(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model, database)
    place = [kind.name for kind in startable_kinds()].index("activations")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        assert "no studies yet · 3 answers of" in screen_text(app)
        for _ in range(place + 1):
            await press(pilot, "studies.next")
        await press(pilot, "studies.previous")
        assert screen.query_one(StudyList).highlighted == place
        assert "salt-tui study activations 1" in " ".join(screen_text(app).split())
        await press(pilot, "studies.open")
        assert isinstance(app.screen, Question)
        await pilot.press("n")
        assert studies_of(database) == []
        await press(pilot, "studies.open")
        await pilot.press("y")
        await until(pilot, lambda: screen._computing is None and "1 study" in screen_text(app))
        assert studies_of(database) == [("activations", "finished")]
        assert screen._announced.startswith("3 answers to walk: it will write about")
        await pilot.press("home")
        await press(pilot, "studies.open")
        await until(pilot, lambda: "study 1.1: activations of run 1, finished, 3/3 done" in screen_text(app))
        await press(pilot, "studies.back")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))

    drive(scenario, database)


def test_a_study_is_stopped_and_goes_on(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model, database, seconds_per_step=0.02)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await press(pilot, "studies.open")  # samples
        await pilot.press("y")
        await until(pilot, lambda: screen._done >= 1)
        await until(pilot, lambda: "1.1     samples       running" in screen_text(app))
        assert f" 1.1 samples computes {screen._done}/{screen._total}" in screen_text(app)
        listed = screen.query_one(StudyList)
        assert listed.get_option_at_index(listed.highlighted or 0).id == "samples", "the item, not the row"
        assert "salt-tui study samples 1" in " ".join(screen_text(app).split())
        await press(pilot, "studies.open")
        assert not isinstance(app.screen, Question), "one at a time"
        await press(pilot, "studies.stop")
        await until(pilot, lambda: screen._computing is None and "interrupted" in screen_text(app))
        await pilot.press("home")
        await press(pilot, "studies.resume")
        await until(pilot, lambda: screen._computing is None and studies_of(database) == [("samples", "finished")], 40)

    drive(scenario, database)


def test_quitting_stops_a_study_and_tells_its_name(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model, database, seconds_per_step=0.1)

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        await press(pilot, "studies.open")  # samples
        await pilot.press("y")
        await until(pilot, lambda: screen._total > 0)
        app.post_message(ResumeRun(1))
        await until(pilot, lambda: any("a study computes already" in note.message for note in app._notifications))
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert "Quit while a study computes?" in screen_text(app)
        await pilot.press("n")
        await pilot.press("q", "y")
        await until(pilot, lambda: app.return_value is not None)

    app = drive(scenario, database)
    assert app.return_value == 0
    assert [str(work) for work in app.desk.runs.interrupted] == ["1.1"]
    assert studies_of(database) == [("samples", "interrupted")]


def test_another_model_is_asked_for(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(scripted_model, database)
    place = [kind.name for kind in startable_kinds()].index("second-model")

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await opened(app, pilot)
        for _ in range(place):
            await press(pilot, "studies.next")
        await press(pilot, "studies.open")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, LineOfInput))
        app.screen.query_one(Input).value = "nowhere.gguf"
        await pilot.press("enter")
        await until(pilot, lambda: any("nowhere.gguf" in note.message for note in app._notifications))
        await until(pilot, lambda: screen._computing is None)
        assert studies_of(database) == []
        assert app.desk.runs.shown is None
        await press(pilot, "app.reliability")
        assert app.desk.runs.shown is not None
        assert app.desk.runs.shown.run == 1, "the run whose studies are listed"

    drive(scenario, database)
