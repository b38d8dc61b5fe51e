"""Parts of the Live screen that draw or listen by themselves: the legend of the map and the lines of the tasks."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from salt_tui.palette import DrawingMode, Look, draw_cell


class Legend(Widget):
    """The heading of the map: granularity, confidence function, shades from 0 to 1."""

    def __init__(self) -> None:
        """Start without words."""
        super().__init__(id="legend")
        self.words = ("", "")
        self.look = Look(DrawingMode.COLOUR)

    @property
    def room(self) -> int:
        """Cells for the words."""
        return self.size.width - 1 - sum(segment.cell_length for segment in self._shades())

    def _shades(self) -> list[Segment]:
        """Return the cells of a right atom from unsure to sure, and of a wrong one."""
        shown = [
            *dict.fromkeys(draw_cell(self.look, "correct", step) for step in range(self.look.steps)),
            (" ", "none"),
            *dict.fromkeys(draw_cell(self.look, "wrong", step) for step in range(self.look.steps)),
        ]
        return [Segment(glyph, Style.parse(style)) for glyph, style in shown]

    def render_line(self, y: int) -> Strip:
        """Draw the one line."""
        width = self.size.width
        left, right = self.words
        if not left:
            return Strip.blank(width, self.rich_style)
        segments = [Segment(f" {left}", Style(bold=True)), *self._shades()]
        used = sum(segment.cell_length for segment in segments)
        segments.append(Segment(right.ljust(max(0, width - used), "─"), Style(bold=True)))
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)


class TaskLines(Static):
    """The lines of the tasks; a click on one chooses its task."""

    class Chosen(Message):
        """The line of a task was clicked; the first line and column are 0."""

        def __init__(self, line: int, column: int) -> None:
            super().__init__()
            self.line = line
            self.column = column

    def on_click(self, event: events.Click) -> None:
        """Say which line it was."""
        self.post_message(self.Chosen(event.y, event.x))
