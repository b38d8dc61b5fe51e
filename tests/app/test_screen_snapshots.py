"""Whole screens as text and styles, with all colours, sixteen and none: what a user sees changes on purpose only."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
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
from tests.app.pilot import drive, shown, until

GOLDENS = Path(__file__).parent / "goldens"
"""Written anew by ``SALT_TUI_WRITE_GOLDENS=1``; look at the difference before committing them."""

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


STEPS = {"setup": setup, "live": live, "answer": answer, "runs": runs, "help": help_of_marks}


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_the_screens_look_as_before(mode: DrawingMode, database: Path, tmp_path: Path) -> None:
    pictures: dict[str, str] = {}

    async def look(app: SaltApp, pilot: Pilot[int]) -> None:
        for name, step in STEPS.items():
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
