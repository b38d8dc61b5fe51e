"""Draws the curves of Reliability in braille, with axes that leave the room to the curves."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual_hires_canvas import Canvas, HiResMode

from salt_tui.app.reliability_pictures import Curve, FloatArray, Panel, Picture, Role
from salt_tui.app.text_rows import broken, fit
from salt_tui.number_text import number
from salt_tui.palette import DrawingMode, Look

LEFT = 6
"""Cells of the labels of the vertical axis and of the axis."""

LEAST_PANEL, PANEL_ROWS = 18, 4
"""Columns and rows of a panel that stands beside others, at least."""

QUARTERS = 24
"""From so many columns on the quarters of the horizontal axis are labelled."""

STYLES: dict[DrawingMode, dict[Role, str]] = {
    DrawingMode.ANSI: {
        Role.MAIN: "bold bright_blue",
        Role.GUIDE: "dim",
        Role.RIGHT: "bold bright_blue",
        Role.WRONG: "bold",
    },
    DrawingMode.PLAIN: {Role.MAIN: "bold", Role.GUIDE: "dim", Role.RIGHT: "bold", Role.WRONG: "bold"},
}
"""A mark or a line tells curves apart where colours do not."""

_DARK = {Role.MAIN: "#9ac4fe", Role.GUIDE: "dim", Role.RIGHT: "#9ac4fe", Role.WRONG: "#ffa758"}
_LIGHT = {Role.MAIN: "#1f5fa8", Role.GUIDE: "dim", Role.RIGHT: "#1f5fa8", Role.WRONG: "#9a5200"}
"""Blue and orange of the map as ink: 9:1 and 10:1 on the dark ground, 6:1 on the light one."""


class ConfidencePlot(Canvas):
    """Shows a `Picture`; a click says where it was.

    Args:
        look: how it is drawn.
    """

    ALLOW_SELECT: ClassVar[bool] = False

    class Clicked(Message):
        """The plot was clicked.

        Attributes:
            panel: name of the panel; empty for the only one.
            x: on the horizontal axis, 0 to 1.
        """

        def __init__(self, panel: str, x: float) -> None:
            super().__init__()
            self.panel = panel
            self.x = x

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(1, 1, id=id)
        self._look = look
        self._picture = Picture((), "")
        self._cursor: float | None = None

    def show(self, picture: Picture, cursor: float | None, look: Look) -> None:
        """Draw a picture.

        Args:
            picture: what is drawn.
            cursor: place of the threshold on the horizontal axis, None for none.
            look: how it is drawn.
        """
        self._picture, self._cursor, self._look = picture, cursor, look
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Say where the click was."""
        panels = self._picture.panels
        if len(panels) == 1:
            width = max(1, self.size.width - LEFT - 1)
            self.post_message(self.Clicked("", min(1.0, max(0.0, (event.x - LEFT) / width))))
            return
        for panel, left, top, width, height in self._tiles():
            if left <= event.x < left + width and top <= event.y < top + height:
                self.post_message(self.Clicked(panel.name, (event.x - left) / max(1, width)))

    # --- drawing ------------------------------------------------------------------------------------------------

    def _style(self, role: Role) -> str:
        if self._look.mode is DrawingMode.COLOUR:
            return (_LIGHT if self._look.light else _DARK)[role]
        return STYLES[self._look.mode][role]

    def _draw(self) -> None:
        width, height = self.size.width, self.size.height
        if not width or not height:
            return
        with self.batch_refresh():
            self.reset(size=self.size)
            if self._picture.missing:
                reason = broken(self._picture.missing, max(1, width - 2), height).split("\n")
                for row, words in enumerate(reason, (height - len(reason)) // 2):
                    self._write(1, row, words, "")
            elif len(self._picture.panels) == 1:
                self._draw_alone(self._picture.panels[0])
            else:
                for panel, left, top, columns, rows in self._tiles():
                    self._write(left, top, fit(panel.title, columns), "bold")
                    self._draw_curves(panel, left, top + 1, columns, rows - 1)

    def _draw_alone(self, panel: Panel) -> None:
        """Draw one panel with its axes: labels to the left and in the last row."""
        width, height = self.size.width - LEFT, self.size.height - 1
        if width < 2 or height < 2:
            return
        for row in range(height):
            label = ""
            if row in {0, (height - 1) // 2, height - 1}:
                share = (height - 1 - row) / (height - 1)
                label = number(panel.highest * (share**2 if panel.root else share), 2)
            self._write(0, row, f"{label:>{LEFT - 1}}{'┤' if label else '│'}", "")
        for share in (0.0, 0.25, 0.5, 0.75, 1.0) if width >= QUARTERS else (0.0, 0.5, 1.0):
            label = number(share, 2 if share in {0.25, 0.75} else 1)
            column = LEFT + round(share * (width - 1)) - (len(label) - 1 if share == 1.0 else 0)
            self._write(column, height, label, "")
        if self._cursor is not None:
            column = LEFT + round(min(1.0, max(0.0, self._cursor)) * (width - 1))
            self.set_pixels([(column, row) for row in range(height)], "┃", "bold")
        self._draw_curves(panel, LEFT, 0, width, height)

    def _draw_curves(self, panel: Panel, left: int, top: int, width: int, height: int) -> None:
        for curve in panel.curves:
            known = np.isfinite(curve.x) & np.isfinite(curve.y)
            across = np.clip(curve.x[known], 0.0, 1.0) * (width - 1)
            share = np.clip(curve.y[known] / panel.highest, 0.0, 1.0)
            down = (1.0 - (np.sqrt(share) if panel.root else share)) * (height - 1)
            if not across.size:
                continue
            if curve.mark:
                self._draw_marks(curve, across + left, down + top)
            else:
                self._draw_line(curve, across, down, left, top, width)

    def _draw_marks(self, curve: Curve, across: FloatArray, down: FloatArray) -> None:
        places = dict.fromkeys(
            zip(np.rint(across).astype(int).tolist(), np.rint(down).astype(int).tolist(), strict=True)
        )
        self.set_pixels(places, curve.mark, self._style(curve.role))

    def _draw_line(self, curve: Curve, across: FloatArray, down: FloatArray, left: int, top: int, width: int) -> None:
        kept = np.arange(across.size)
        if across.size > 4 * width:
            # More points than dots are not seen: 100,000 lines of one dot each took half a second.
            first = np.searchsorted(np.maximum.accumulate(across), np.arange(2 * width) / 2.0)
            kept = np.unique(np.append(first[first < across.size], across.size - 1))
        # A dot lies in the middle of its cell, as a mark does.
        x, y = across[kept] + left + 0.5, down[kept] + top + 0.5
        lines = zip(x[:-1].tolist(), y[:-1].tolist(), x[1:].tolist(), y[1:].tolist(), strict=True)
        self.draw_hires_lines(lines, HiResMode.BRAILLE, self._style(curve.role))

    def _tiles(self) -> list[tuple[Panel, int, int, int, int]]:
        """Return the panels that have room, each with its left, top, columns and rows."""
        panels, width, height = self._picture.panels, self.size.width, self.size.height
        if not panels:
            return []
        most = max(1, width // LEAST_PANEL)
        rows = max(1, min(-(-len(panels) // most), height // PANEL_ROWS))
        across = min(most, -(-len(panels) // rows))
        columns, high = width // across, height // rows
        return [
            (panel, place % across * columns + 1, place // across * high, columns - 2, high)
            for place, panel in enumerate(panels[: across * rows])
        ]

    @property
    def hidden_panels(self) -> int:
        """How many panels have no room."""
        panels = len(self._picture.panels)
        return panels - len(self._tiles()) if panels > 1 else 0

    def _write(self, x: int, y: int, text: str, style: str) -> None:
        """Write text as it is: `Canvas.write_text` would read it as markup."""
        for character in text:
            cells = cell_len(character)
            if cells:
                self.set_pixel(x, y, character, style)
            if cells == 2:
                self.set_pixel(x + 1, y, "", style)
            x += cells
