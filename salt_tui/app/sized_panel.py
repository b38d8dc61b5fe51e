"""A text that is made for the size of its panel, and made anew when that is another."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Static


class SizedPanel(Static):
    """Says when its size is another: a screen is told of its own size before its parts have theirs."""

    class Resized(Message):
        """The panel has another size."""

    def on_resize(self) -> None:
        """Say so."""
        self.post_message(self.Resized())
