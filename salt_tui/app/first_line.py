"""The first row of every screen: which screens there are, which one this is, and how far the run is that computes."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from salt_tui.app.desk import Desk, Tab
from salt_tui.app.messages import ShowScreen

LOOKS_PER_SECOND = 2
_BAR = 6
_PAUSED = {"elsewhere": "elsewhere", "paused": "paused", "stopping": "stopping", "loading": "loading"}


class FirstLine(Widget):
    """Lists the screens; a click shows one.

    Args:
        desk: of the app.
        here: name of the screen that it stands on.
    """

    def __init__(self, desk: Desk, here: str) -> None:
        super().__init__(classes="first-line")
        self._desk = desk
        self._here = here
        self._drawn: tuple[str, ...] = ()

    def on_mount(self) -> None:
        """Look twice a second how far the run is."""
        self.set_interval(1 / LOOKS_PER_SECOND, self._look)

    def _look(self) -> None:
        words = (*(word for _, word in self._words()), self._progress())
        if words != self._drawn:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the row."""
        right, words = self._progress(), self._words()
        self._drawn = (*(word for _, word in words), right)
        segments = []
        for tab, word in words:
            here = tab.name == self._here
            segments += [Segment(" "), Segment(word, Style(bold=here, reverse=here)), Segment(" ")]
        used = sum(segment.cell_length for segment in segments)
        segments.append(Segment(right.rjust(max(0, self.size.width - used - 1))))
        return Strip(segments).adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Show the screen that was clicked."""
        x = 0
        for tab, word in self._words():
            x += cell_len(word) + 2
            if event.x < x:
                self.post_message(ShowScreen(tab.name))
                return

    def _words(self) -> list[tuple[Tab, str]]:
        """Return what is said of each screen; only of this one its title where not all have room."""
        room = self.size.width - cell_len(self._progress()) - 1
        words: list[tuple[Tab, str]] = []
        for whole in (True, False):
            words = []
            for tab in self._desk.tabs:
                mark = "●" if tab.name == "live" and self._desk.computing else ""
                title = f" {tab.title}" if whole or tab.name == self._here else ""
                words.append((tab, f"{tab.key}{title}{mark}"))
            if sum(cell_len(word) + 2 for _, word in words) <= room:
                break
        return words

    def _progress(self) -> str:
        """Say how far the run is that is computed here, or, on the screen, by another program; nothing without one."""
        runs = self._desk.runs if self._desk.loaded else None
        progress = None if runs is None else runs.progress() or runs.followed()
        if progress is None:
            return ""
        name = "a run" if progress.run is None else f"run {progress.run}"
        state = _PAUSED.get(progress.state, "")
        if progress.share is None:
            return f"{name} {state}".rstrip()
        full = int(progress.share * _BAR)
        bar = f"▕{'▓' * full}{'░' * (_BAR - full)}▏{progress.share:.0%}"
        minutes, seconds = divmod(round(progress.seconds or 0), 60)
        left = state or ("" if progress.seconds is None else f"{minutes}:{seconds:02d}")
        return f"{name} {bar} {left}".rstrip()
