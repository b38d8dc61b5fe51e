"""Four whole screens as pictures: what a user sees of Setup, Live, Runs and help changes on purpose only."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from difflib import unified_diff
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from textual.pilot import Pilot
from textual.widgets import DataTable

from salt_tui.app import setup_state
from salt_tui.app.application import SaltApp
from salt_tui.app.live_screen import LiveScreen
from salt_tui.engine.models import ModelRow
from tests.app.pilot import drive, shown, until
from tools.screenshots import PICTURE

GOLDENS = Path(__file__).parent / "goldens"
"""Written anew by ``SALT_TUI_WRITE_GOLDENS=1``; look at the pictures before committing them."""

MODELS = (
    ModelRow("smollm2", "SmolLM2 135M Instruct", None, None, True, "instruct", Path("small.gguf"), 98_000_000,
             "llama", "Q4_1", 8_192, True, None, None),
    ModelRow("large", "A model that is not here", None, None, False, None, None, None,
             None, None, None, None, "not here", "curl example.org"),
)  # fmt: skip


@pytest.fixture
def database(stored: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A finished run under a short name, begun long ago in a known zone, and two models on every machine."""
    with closing(sqlite3.connect(stored)) as connection, connection:
        connection.execute("UPDATE run SET created_at = '2024-05-06T07:08:09+00:00'")
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
            lambda place, files: replace(look_around(place), models=tuple(map(setup_state.offered, MODELS))),
        )
        yield Path(stored.name)
    time.tzset()


def picture(app: SaltApp, name: str) -> str:
    """Return the screen, with what stands behind its window, as SVG with one element per run of cells and style."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=StringIO(), force_terminal=True, color_system="truecolor", record=True,
        legacy_windows=False, safe_box=False,
    )  # fmt: skip
    console.print(app.screen._compositor.render_update(full=True, screen_stack=app._background_screens, simplify=True))
    return console.export_svg(title="salt-tui", code_format=PICTURE, unique_id=name)


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


async def help_of_marks(app: SaltApp, pilot: Pilot[int]) -> None:
    """Open help over the run, where it explains what the map shows."""
    await live(app, pilot)
    await pilot.press("question_mark")
    await until(pilot, lambda: bool(app.screen.query("#text-scroll")))


STEPS = {"setup": setup, "live": live, "runs": runs, "help": help_of_marks}


@pytest.mark.parametrize("name", STEPS)
def test_the_screen_looks_as_before(name: str, database: Path, tmp_path: Path) -> None:
    drawn: list[str] = []

    async def look(app: SaltApp, pilot: Pilot[int]) -> None:
        await STEPS[name](app, pilot)
        await pilot.wait_for_scheduled_animations()
        await pilot.pause()
        drawn.append(picture(app, name))

    drive(look, database)
    golden = GOLDENS / f"screen-{name}.svg"
    if os.environ.get("SALT_TUI_WRITE_GOLDENS"):
        golden.write_text(drawn[0], encoding="utf-8")
    before = golden.read_text("utf-8")
    (tmp_path / golden.name).write_text(drawn[0], encoding="utf-8")
    difference = list(unified_diff(before.splitlines(), drawn[0].splitlines(), lineterm="", n=0))
    assert not difference, f"look at {tmp_path / golden.name}:\n" + "\n".join(difference[:20])
