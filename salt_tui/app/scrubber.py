"""How much has arrived again while something is played, as a bar that can be clicked."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import Static

from salt_tui.app.live_lines import progress_bar
from salt_tui.app.token_player import TokenPlayer


class Scrubber(Static):
    """How much of the answer has arrived again; a click goes there."""

    class Moved(Message):
        """A place was clicked, from 0 to 1."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def on_click(self, event: events.Click) -> None:
        """Go to the place that was clicked."""
        self.post_message(self.Moved(min(1.0, max(0.0, (event.x - 1) / max(1, self.bar_width)))))

    @property
    def bar_width(self) -> int:
        """Cells of the bar."""
        return max(1, self.size.width // 3)


def played_words(player: TokenPlayer, what: str, width: int) -> str:
    """Say how much has arrived again, behind a bar of so many cells.

    Args:
        player: counts it.
        what: is counted, in the plural.
        width: cells of the bar.
    """
    bar = progress_bar(player.arrived / player.total if player.total else 0.0, width)
    words = "pauses" if player.playing else "goes on"
    return f" {bar} {player.arrived:,}/{player.total:,} {what} · {player.speed:,} a second · space {words}"
