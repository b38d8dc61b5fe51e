"""Reliability as text and styles, with all colours, sixteen and none: what a user sees changes on purpose only."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from salt_tui.app import reliability_screen
from salt_tui.app.application import SaltApp
from salt_tui.app.reliability_pictures import Kind
from salt_tui.measure import run_views
from salt_tui.palette import DrawingMode
from tests.app.pilot import drive, until
from tests.app.test_reliability_screen import concluded
from tests.app.test_screen_snapshots import GOLDENS, drawn
from tests.stored_runs import store_run

SHOWN = (Kind.DIAGRAM, Kind.RISK, Kind.DENSITIES)


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_reliability_looks_as_before(mode: DrawingMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_views, "DRAWS", 50)
    monkeypatch.setattr(reliability_screen, "MAPS", ())
    store_run(tmp_path / "x.db", ("maze", "code"), answers=8, atoms=12)
    pictures: dict[str, str] = {}

    async def look(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await concluded(app, pilot)
        pictures["reliability"] = drawn(app)
        await pilot.resize_terminal(60, 20)
        for kind in SHOWN[1:]:
            screen.state.kind = kind
            screen._measure()
            await until(pilot, lambda kind=kind: kind.value in str(screen.query_one("#plot-title", Static).render()))  # type: ignore[misc]
            await pilot.pause()
        pictures["reliability-small"] = drawn(app)

    drive(look, tmp_path / "x.db", mode=mode)
    differences = []
    for name, picture in pictures.items():
        golden = GOLDENS / f"screen-{name}-{mode.value}.txt"
        if os.environ.get("SALT_TUI_WRITE_GOLDENS"):
            golden.write_text(picture, encoding="utf-8")
        before = golden.read_text("utf-8")
        differences += unified_diff(before.splitlines(), picture.splitlines(), golden.name, lineterm="", n=1)
    assert not differences, "\n".join(differences[:40])
