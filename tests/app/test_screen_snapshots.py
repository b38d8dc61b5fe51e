"""Whole screens as text and styles, with all colours, sixteen and none: what a user sees changes on purpose only."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest
from rich.style import Style
from textual.pilot import Pilot
from textual.widgets import DataTable

from salt_tui.app import setup_state
from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.engine.models import ModelRow
from salt_tui.palette import DrawingMode
from salt_tui.store.records import StudyRecord
from salt_tui.store.store import open_store
from tests.app.pilot import drive, screen_text, shown, until
from tests.stored_runs import ENVIRONMENT, store_run

GOLDENS = Path(__file__).parent / "goldens"
"""Written anew by ``SALT_TUI_WRITE_GOLDENS=1``; look at the difference before committing them."""

MODELS = (
    ModelRow("smollm2", "SmolLM2 135M Instruct", None, None, True, "instruct", Path("small.gguf"), 98_000_000,
             "llama", "Q4_1", 8_192, True, None, None),
    ModelRow("large", "A model that is not here", None, None, False, None, None, None,
             None, None, None, None, "not here", "curl example.org"),
)  # fmt: skip


@pytest.fixture
def database(stored: Path) -> Iterator[Path]:
    """A finished run under a short name."""
    yield from _long_ago(stored)


@pytest.fixture
def several(tmp_path: Path) -> Iterator[Path]:
    """Two runs of the same problems, an unfinished one, and two studies of the first."""
    path = tmp_path / "salt.db"
    sampling = {"temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 3}
    store_run(path, tasks=("maze", "code"), answers=6, atoms=14)
    store_run(path, tasks=("maze", "code"), answers=6, atoms=14, seed=2, plan={"sampling": sampling})
    store_run(path, tasks=("arc_grid",), answers=2, atoms=5)
    with open_store(path) as store:
        for kind, state in (("samples", "finished"), ("second-model", "interrupted")):
            work = store.create_study(1, StudyRecord(kind, "{}", "p", json.dumps(ENVIRONMENT), "e", True, ()))
            store.claim(work)
            store.release(work, state)
        store.set_note(2, "as warm as usual")
    yield from _long_ago(path, unfinished=3)


def _long_ago(stored: Path, unfinished: int = 0) -> Iterator[Path]:
    """Let runs have begun long ago in a known zone, with a short path, and two models on every machine."""
    with closing(sqlite3.connect(stored)) as connection, connection:
        connection.execute("UPDATE run SET created_at = '2024-05-06T07:08:09+00:00'")
        connection.execute("UPDATE study SET created_at = '2024-05-06T07:09:09+00:00'")
        connection.execute("UPDATE run SET state = 'interrupted', finished_at = NULL WHERE id = ?", (unfinished,))
    look_around = setup_state.look_around
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(stored.parent)
        patch.setenv("SALT_TUI_HOME", str(stored.parent / "home"))
        patch.delenv("NO_COLOR", raising=False)
        patch.setenv("TZ", "UTC")
        time.tzset()
        patch.setattr(
            setup_state,
            "look_around",
            lambda place, files, own: replace(look_around(place), models=tuple(map(setup_state.offered, MODELS))),
        )
        yield Path(stored.name)
    time.tzset()


def drawn(app: SaltApp) -> str:
    """Return the screen row by row: its text, and under it the cells that look otherwise than most of the row."""
    lines = []
    strips = app.screen._compositor.render_strips()  # the only view of the whole screen there is
    for strip in strips:
        lines.append("".join(segment.text for segment in strip).rstrip())
        looks: list[tuple[int, int, str]] = []
        column = 0
        for segment in strip:
            look = look_of(segment.style)
            if looks and looks[-1][2] == look:
                looks[-1] = (looks[-1][0], looks[-1][1] + segment.cell_length, look)
            else:
                looks.append((column, segment.cell_length, look))
            column += segment.cell_length
        usual = Counter({look: 0 for _, _, look in looks})
        for _, length, look in looks:
            usual[look] += length
        most = usual.most_common(1)[0][0] if usual else ""
        lines.extend(f"    {start}+{length} {look}" for start, length, look in looks if look != most)
    return "\n".join(lines) + "\n"


def look_of(style: Style | None) -> str:
    """Return the colours and the weight of a style, without what is only known while the app runs."""
    return (
        ""
        if style is None
        else str(
            Style(
                color=style.color,
                bgcolor=style.bgcolor,
                bold=style.bold,
                reverse=style.reverse,
                underline=style.underline,
                dim=style.dim,
            )
        )
    )


async def setup(app: SaltApp, pilot: Pilot[int]) -> None:
    """Wait until models and tasks are there."""
    await until(pilot, lambda: "1 run" in str(app.screen.query_one("#setup-title").render()))


async def runs(app: SaltApp, pilot: Pilot[int]) -> None:
    """Wait until the run is listed."""
    await pilot.press("3")
    await until(pilot, lambda: bool(app.screen.query(DataTable)) and app.screen.query_one(DataTable).row_count == 1)
    await until(pilot, lambda: "tiny" in str(app.screen.query_one("#run-details").render()))


async def live(app: SaltApp, pilot: Pilot[int]) -> None:
    """Open the run, put the cursor on the wrong atom the model was surest of, and wait for the numbers."""
    await runs(app, pilot)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    await until(pilot, lambda: shown(app) is not None and not shown(app).reading)
    await until(pilot, lambda: "[" in str(app.screen.query_one("#metrics").render()))
    await pilot.press("c")
    await until(pilot, lambda: "surest" in str(app.screen.query_one("#sentence").render()))


async def answer(app: SaltApp, pilot: Pilot[int]) -> None:
    """Open the answer of that atom."""
    await live(app, pilot)
    await pilot.press("enter")
    await until(pilot, lambda: bool(app.screen.query("#token")))
    await until(pilot, lambda: "entropy" in str(app.screen.query_one("#token").render()))


async def help_of_marks(app: SaltApp, pilot: Pilot[int]) -> None:
    """Open help over the run, where it explains what the map shows."""
    await live(app, pilot)
    await pilot.press("question_mark")
    await until(pilot, lambda: bool(app.screen.query("#text-scroll")))


async def replay(app: SaltApp, pilot: Pilot[int]) -> None:
    """Open that answer in Replay and make its wrong atom right."""
    await answer(app, pilot)
    await pilot.press("i")
    await until(pilot, lambda: "edits in brackets" in screen_text(app))
    await pilot.press("e")
    await until(pilot, lambda: "1 edit" in screen_text(app))


async def marked_runs(app: SaltApp, pilot: Pilot[int]) -> None:
    """Mark two of three runs, sorted by model."""
    await pilot.press("3")
    await until(pilot, lambda: bool(app.screen.query(DataTable)) and app.screen.query_one(DataTable).row_count == 3)
    await until(pilot, lambda: "…" not in str(app.screen.query_one(DataTable).get_cell_at((0, 7))))
    await pilot.press("s", "down", "space", "space")
    await until(pilot, lambda: "2 marked" in screen_text(app) and "…" not in screen_text(app).splitlines()[6])


async def compare(app: SaltApp, pilot: Pilot[int]) -> None:
    """Compare them, at the second flip."""
    await pilot.press("c")
    await until(pilot, lambda: "mean of 2 tasks" in screen_text(app))
    await until(pilot, lambda: "Stop" not in screen_text(app).splitlines()[-1])
    await pilot.press("n")
    await until(pilot, lambda: "flip 2 of" in screen_text(app))


async def compare_brier(app: SaltApp, pilot: Pilot[int]) -> None:
    """Compare their Brier scores, at an answer of the second task."""
    await pilot.press("m", "m", "t")
    await until(pilot, lambda: ">code" in screen_text(app) and "Brier" in screen_text(app))


async def studies(app: SaltApp, pilot: Pilot[int]) -> None:
    """Look at what studies the first run has, at a kind that can be started."""
    await pilot.press("3", "home", "down", "down", "S")
    await until(pilot, lambda: "2 studies" in screen_text(app))
    await pilot.press("down", "down")
    await until(pilot, lambda: "takes others" in " ".join(screen_text(app).split()))


async def studies_question(app: SaltApp, pilot: Pilot[int]) -> None:
    """Be asked before it is started."""
    await pilot.press("enter")
    await until(pilot, lambda: "y yes" in screen_text(app))


STEPS = {"setup": setup, "live": live, "answer": answer, "replay": replay, "runs": runs, "help": help_of_marks}
STEPS_OF_SEVERAL = {
    "runs-marked": marked_runs,
    "compare": compare,
    "compare-brier": compare_brier,
    "studies": studies,
    "studies-question": studies_question,
}


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_the_screens_look_as_before(mode: DrawingMode, database: Path) -> None:
    look_through(STEPS, mode, database)


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_the_screens_of_several_runs_look_as_before(mode: DrawingMode, several: Path) -> None:
    look_through(STEPS_OF_SEVERAL, mode, several)


def look_through(
    steps: dict[str, Callable[[SaltApp, Pilot[int]], Awaitable[None]]], mode: DrawingMode, database: Path
) -> None:
    """Go through the screens and compare each with its golden."""
    pictures: dict[str, str] = {}

    async def look(app: SaltApp, pilot: Pilot[int]) -> None:
        for name, step in steps.items():
            await step(app, pilot)
            await pilot.wait_for_scheduled_animations()
            await pilot.pause()
            pictures[name] = drawn(app)

    drive(look, database, mode=mode)
    differences = []
    for name, picture in pictures.items():
        golden = GOLDENS / f"screen-{name}-{mode.value}.txt"
        if os.environ.get("SALT_TUI_WRITE_GOLDENS"):
            golden.write_text(picture, encoding="utf-8")
        before = golden.read_text("utf-8")
        differences += unified_diff(before.splitlines(), picture.splitlines(), golden.name, lineterm="", n=1)
    assert not differences, "\n".join(differences[:40])
