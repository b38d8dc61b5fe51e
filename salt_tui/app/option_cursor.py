"""A list whose cursor can be seen without colours, and whether the list has the focus."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip
from textual.widgets import OptionList

_REVERSED = Style(reverse=True)


class VisibleCursorList(OptionList):
    """An `OptionList` that reverses the chosen row while it has the focus, with sixteen colours or none.

    Without the focus the stylesheet underlines the row.  A ``text-style: reverse`` there does not reach it.
    """

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        strip = super().render_line(y)
        if not self.has_pseudo_class("ansi") or not self.has_focus or self.highlighted is None:
            return strip
        here = any(segment.style and segment.style.meta.get("option") == self.highlighted for segment in strip)
        return strip.apply_style(_REVERSED) if here else strip
