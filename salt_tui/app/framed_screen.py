"""What all screens share: the first line, the keys in the last row, and the sentence over a terminal too small."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Static

from salt_tui.app.desk import Desk
from salt_tui.app.first_line import FirstLine
from salt_tui.app.key_footer import KeyFooter
from salt_tui.app.messages import Say, Severity
from salt_tui.app.size_cover import SizeCover


class FramedScreen(Screen[None]):
    """A screen between the first line and the row of keys; a subclass lays out what is between in `compose_body`.

    Args:
        desk: what the app hands to every screen.
    """

    NAME: ClassVar[str]
    """Of the entry in the registry."""

    TAB: ClassVar[str] = ""
    """Name of the screen that the first line marks, for one that is opened from there."""

    FOOTER: ClassVar[tuple[str, ...]]
    """Ids of the bindings in the last row, the most useful first."""

    WIDGETS: ClassVar[tuple[type[DOMNode], ...]] = ()
    """The widgets on it that have keys of their own."""

    GROWING: ClassVar[frozenset[str]] = frozenset()
    """Ids of the parts that are as high as their text."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self._look_taken = desk.look
        self._texts: dict[str, str | Text] = {}

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield FirstLine(self.desk, self.TAB or self.NAME)
        yield from self.compose_body()
        yield KeyFooter(self.FOOTER)
        yield SizeCover()

    def compose_body(self) -> ComposeResult:
        """Lay out what is between the first and the last row."""
        yield from ()

    def on_screen_resume(self) -> None:
        """Take a look that was chosen on another screen."""
        self.take_look()

    def take_look(self) -> None:
        """Draw anew where the look is another."""
        if self._look_taken != self.desk.look:
            self._look_taken = self.desk.look
            self.look_changed()

    def look_changed(self) -> None:
        """Draw with another look; a subclass that draws cells does."""

    @property
    def run_of_interest(self) -> int | None:
        """Number of the run that another screen would be about; None for the one that Live shows."""
        return None

    @property
    def text_width(self) -> int:
        """Cells of a line with a blank at either end."""
        return max(1, self.size.width - 2)

    def shown_text(self, name: str) -> str:
        """Return the text of a part."""
        return str(self._texts.get(name, ""))

    def set_text(self, name: str, text: str | Text) -> None:
        """Change the text of a part where it is another."""
        before = self._texts.get(name)
        if before != text:
            self._texts[name] = text
            # Laying the screen out costs more than drawing it.
            taller = name in self.GROWING and (before is None or str(before).count("\n") != str(text).count("\n"))
            self.query_one(f"#{name}", Static).update(text, layout=taller)

    def say(self, line: str, severity: Severity = "information") -> None:
        """Tell the user one line."""
        self.post_message(Say(line, severity))

    def say_error(self, line: str) -> None:
        """Tell the user what failed."""
        self.say(line, "error")
