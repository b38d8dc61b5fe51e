"""A list whose cursor can be seen without colours."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip
from textual.widgets import OptionList

_REVERSED = Style(reverse=True)


class VisibleCursorList(OptionList):
    """An `OptionList` that reverses the chosen row where `NO_COLOR` takes its background away.

    A ``text-style: reverse`` in the stylesheet does not reach the rows of an `OptionList`.
    """

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        strip = super().render_line(y)
        if not self.app.no_color or self.highlighted is None:
            return strip
        here = any(segment.style and segment.style.meta.get("option") == self.highlighted for segment in strip)
        return strip.apply_style(_REVERSED) if here else strip
