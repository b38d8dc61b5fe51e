"""The reply of an answer, tinted by verdict and confidence, with one token marked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from salt_tui.app.answer_document import AnswerDocument, Letter
from salt_tui.palette import DrawingMode, Look, draw_cell

_HERE = {False: Style.parse("bold #000000 on #ffffff"), True: Style.parse("bold #ffffff on #000000")}
_HERE_WITHOUT_COLOURS = Style(bold=True, reverse=True, underline=True)


class ReplyView(ScrollView, can_focus=True):
    """Draws an `AnswerDocument` row by row.

    Args:
        look: how atoms are drawn.
    """

    class TokenChosen(Message):
        """A token was clicked."""

        def __init__(self, token: int) -> None:
            super().__init__()
            self.token = token

    def __init__(self, look: Look, *, id: str) -> None:
        super().__init__(id=id)
        self._look = look
        self._document: AnswerDocument | None = None
        self._styles: Sequence[Style] = ()
        self._token = 0
        self._shown: int | None = None
        self._rows: list[list[Letter]] = []

    def show(self, document: AnswerDocument | None, look: Look, strengths: Sequence[float | None]) -> None:
        """Show an answer.

        Args:
            document: the answer, None for none.
            look: how atoms are drawn.
            strengths: of every atom, its confidence on the scale from 0 to 1, None without one.
        """
        self._look = look
        self._document = document
        atoms = () if document is None else document.atoms
        self._styles = [
            Style.parse(draw_cell(look, atom.status, None if strength is None else look.step(strength))[1])
            for atom, strength in zip(atoms, strengths, strict=True)
        ]
        self._break_rows()

    def mark(self, token: int, shown: int | None = None) -> None:
        """Mark a token and bring it into view.

        Args:
            token: its number.
            shown: how many tokens are shown, None for all.
        """
        self._token, self._shown = token, shown
        rows = [y for y, row in enumerate(self._rows) if any(letter.token == token for letter in row)]
        if rows:
            self.scroll_to_region(Region(0, rows[0], 1, len(rows)), animate=False, immediate=True)
        self.refresh()

    def on_resize(self) -> None:
        """Break the rows for another width."""
        self._break_rows()
        self.mark(self._token, self._shown)

    def _break_rows(self) -> None:
        width = max(1, self.scrollable_content_region.width)
        self._rows = []
        for line in self._document.lines if self._document is not None else ():
            row: list[Letter] = []
            used = 0
            for letter in line:
                cells = cell_len(letter.text)
                if used + cells > width and row:
                    self._rows.append(row)
                    row, used = [], 0
                row.append(letter)
                used += cells
            self._rows.append(row)
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row of the view."""
        width, number = self.size.width, y + self.scroll_offset.y
        if number >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        segments: list[Segment] = []
        for letter in self._rows[number]:
            if self._shown is not None and letter.token >= self._shown:
                break
            style = self._style_of(letter)
            if segments and segments[-1].style is style:
                segments[-1] = Segment(segments[-1].text + letter.text, style)
            else:
                segments.append(Segment(letter.text, style))
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def _style_of(self, letter: Letter) -> Style:
        if letter.token == self._token:
            colour = self._look.mode is DrawingMode.COLOUR
            return _HERE[self._look.light] if colour else _HERE_WITHOUT_COLOURS
        if letter.atom is not None:
            return self._styles[letter.atom]
        return _DIM if letter.text == "⏎" else _PLAIN

    def on_click(self, event: events.Click) -> None:
        """Choose the token that was clicked."""
        number = event.y + self.scroll_offset.y
        if number >= len(self._rows):
            return
        x = 0
        for letter in self._rows[number]:
            x += cell_len(letter.text)
            if event.x < x:
                self.post_message(self.TokenChosen(letter.token))
                return


_DIM = Style(dim=True)
_PLAIN = Style()
