"""The map as it is drawn, in each mode, row by row: text, and under it the style of every run of cells."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path

import pytest
from rich.style import Style
from textual.app import App, ComposeResult

from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.map_rows import Place
from salt_tui.palette import DrawingMode, Look
from tests.app.unit_events import answer_events, scored, started, state_of

GOLDENS = Path(__file__).parent / "goldens"
"""Written anew by ``SALT_TUI_WRITE_GOLDENS=1``; look at the difference before committing it."""


class MapApp(App[None]):
    """Nothing but the map."""

    CSS = "AtomHeatmap { scrollbar-size-vertical: 1; overflow-y: scroll; }"

    def __init__(self, atom_map: AtomMap, look: Look) -> None:
        super().__init__()
        self.heatmap = AtomHeatmap(atom_map, look)

    def compose(self) -> ComposeResult:
        """Show the map."""
        yield self.heatmap


def every_kind_of_row() -> AtomMap:
    """Tiles, grids, long answers, runs of missing atoms, every verdict, a prompt and an answer that streams."""
    grid, codons = "kronecker_product", "dna_translation"
    return state_of(
        started("maze", grid, codons),
        *answer_events(1, 0, ["·", "··", "×·"]),
        *answer_events(2, 1, ["×·×", "·?"], status="truncated"),
        *answer_events(3, 2, [], status="no_answer"),
        *answer_events(4, 3, ["··", "-----"]),
        *answer_events(5, 0, ["·" * 6, "·×·×××", "·" * 6], task=grid),
        *answer_events(6, 1, ["·" * 6, "-" * 6, "-" * 6], task=grid),
        *answer_events(7, 2, ["···", "×××"], task=grid, status="context_full"),
        *answer_events(8, 0, ["·" * 20 + "×" * 10 + "-" * 9], task=codons, status="truncated"),
        *answer_events(9, 1, ["·" * 10 + "+" * 40], task=codons, status=None),
        *answer_events(10, 2, [], task=codons, status=None)[:2],
    ).map


def picture(heatmap: AtomHeatmap, rows: int) -> str:
    lines = []
    for y in range(rows):
        strip = heatmap.draw_row(y)
        lines.append(strip.text.rstrip())
        runs: list[tuple[int, int, Style]] = []
        column = 0
        for segment in strip:
            if segment.style:
                if runs and runs[-1][2] == segment.style and runs[-1][0] + runs[-1][1] == column:
                    runs[-1] = (runs[-1][0], runs[-1][1] + segment.cell_length, segment.style)
                else:
                    runs.append((column, segment.cell_length, segment.style))
            column += segment.cell_length
        lines.extend(f"    {start}+{length} {style}" for start, length, style in runs)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("mode", list(DrawingMode))
def test_the_map_is_drawn_as_before(mode: DrawingMode) -> None:
    async def draw() -> str:
        app = MapApp(every_kind_of_row(), Look(mode))
        async with app.run_test(size=(60, 20)) as pilot:
            app.heatmap.go_to(Place(1, 1))
            await pilot.pause()
            return picture(app.heatmap, app.heatmap.map.height)

    drawn = asyncio.run(draw())
    golden = GOLDENS / f"heatmap-{mode.value}.txt"
    if os.environ.get("SALT_TUI_WRITE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(drawn, encoding="utf-8")
    assert drawn == golden.read_text("utf-8")


def test_what_changes_in_a_scrolled_map_is_drawn() -> None:
    answers = (event for number in range(40) for event in answer_events(number + 1, number, ["·" * 8]))
    state = state_of(started(total=41), *answers, *answer_events(41, 40, ["·"], status=None))

    def rows(app: MapApp) -> list[str]:
        strips = app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]

    async def draw() -> None:
        app = MapApp(state.map, Look(DrawingMode.PLAIN))
        async with app.run_test(size=(60, 12)) as pilot:
            app.heatmap.go_to(Place(38, 0))
            await pilot.press("end")
            assert app.heatmap.scroll_offset.y == 10
            assert rows(app)[-1].startswith("  41     1 [·]~")
            await pilot.press("up")
            assert [row[:11] for row in rows(app)[-2:]] == ["  39   8/8 ", "  41     1 "]
            state.apply(deque([scored(41, 1, 0, "×", 0.5)]))
            app.heatmap.show_changes({41})
            await pilot.pause()
            assert rows(app)[-1].startswith("  41     2  ·×~")

    asyncio.run(draw())


def test_a_click_chooses_the_atom_under_it_and_none_between() -> None:
    state = state_of(started(), *answer_events(1, 0, ["··", "×", "·" * 13]), *answer_events(2, 1, [], status="failed"))
    left = state.map.form("maze").label

    async def draw() -> None:
        app = MapApp(state.map, Look(DrawingMode.COLOUR))
        async with app.run_test(size=(60, 12)) as pilot:
            for unit, cell, y in ((1, 1, 1), (2, 3, 1), (3, 5, 1), (15, 18, 1), (12, 14, 1)):
                await pilot.click(AtomHeatmap, offset=(left + cell, y))
                assert app.heatmap.cursor == Place(0, unit)
            for cell, y in ((2, 1), (15, 1), (30, 1)):
                await pilot.click(AtomHeatmap, offset=(left + cell, y))
                assert app.heatmap.cursor == Place(0, 12)
            await pilot.click(AtomHeatmap, offset=(left + 2, 2))
            assert app.heatmap.cursor == Place(1, 0)

    asyncio.run(draw())
