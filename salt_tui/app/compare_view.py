"""The answers of two runs under each other, with the flips between them, drawn row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from salt_tui.app import compare_lines
from salt_tui.app.compare_layout import SIDES, PairRow, Spot, column_in
from salt_tui.app.compare_lines import GAINED, LOST
from salt_tui.app.compare_state import CompareState
from salt_tui.app.shade_scale import shade_scale
from salt_tui.measure.answer_pairs import NOTHING
from salt_tui.palette import GROUP, DrawingMode, Look, draw_cell
from scoring.labels import UNIT_STATUSES

_HERE = {False: Style.parse("bold #000000 on #ffffff"), True: Style.parse("bold #ffffff on #000000")}
"""Of the cursor, by whether the ground is light."""

_HERE_WITHOUT_COLOURS = Style(bold=True, reverse=True, underline=True)
_BOLD, _DIM, _PLAIN = Style(bold=True), Style(dim=True), Style()


class CompareView(ScrollView, can_focus=True):
    """Shows the answers of a `CompareState`, whose cursor it moves."""

    HELP = "The answers of both runs: n goes to the next flip, arrows move, enter opens the answer under the cursor."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "flip(1)", "Next flip", tooltip="Next atom that became right or wrong", id="pairs.next_flip"),
        Binding("N", "flip(-1)", "Previous flip", id="pairs.previous_flip"),
        Binding("enter", "open", "Open", tooltip="Open the answer of the run under the cursor", id="pairs.open"),
        Binding("t", "task", "Task", tooltip="Next task", id="pairs.task"),
        Binding("right_square_bracket", "pair(1)", "Next answer", id="pairs.next_answer"),
        Binding("left_square_bracket", "pair(-1)", "Answer", tooltip="Previous answer", id="pairs.previous_answer"),
        Binding("left,h", "atom(-1)", "Previous atom", id="pairs.left"),
        Binding("right,l", "atom(1)", "Next atom", id="pairs.right"),
        Binding("up,k", "rows(-1)", "Row up", id="pairs.up"),
        Binding("down,j", "rows(1)", "Row down", id="pairs.down"),
        Binding("pageup", "page(-1)", "Page up", id="pairs.page_up"),
        Binding("pagedown", "page(1)", "Page down", id="pairs.page_down"),
        Binding("home", "end(-1)", "First answer", id="pairs.first"),
        Binding("end,G", "end(1)", "Last answer", id="pairs.last"),
    ]

    class Moved(Message):
        """The cursor stands elsewhere."""

    class Opened(Message):
        """The answer under the cursor was asked for."""

    def __init__(self, look: Look, *, id: str) -> None:
        """Start without runs."""
        super().__init__(id=id)
        self.look = look
        self._state: CompareState | None = None
        self._confidences: dict[tuple[int, int], Sequence[float]] = {}
        self._styles: dict[tuple[str, int | None], tuple[str, Style]] = {}

    def show(self, state: CompareState | None, look: Look) -> None:
        """Show two runs, or the same anew: with another signal, look or width."""
        self._state, self.look = state, look
        self._confidences, self._styles = {}, {}
        if state is not None:
            state.lay_out(max(1, self.scrollable_content_region.width))
        height = 0 if state is None else len(state.layout.rows)
        self.virtual_size = Size(self.scrollable_content_region.width, height)
        self._follow()
        self.refresh()

    def on_resize(self) -> None:
        """Break the answers for another width."""
        self.show(self._state, self.look)

    def _follow(self) -> None:
        """Bring the cursor into view, with the heading of its pair where both fit."""
        state = self._state
        if state is None or state.spot is None:
            return
        row = state.layout.row_of(state.spot)
        column = state.layout.column_of(state.spot)
        top = row
        while top > 0 and row - top < 3 and state.layout.rows[top].kind != "heading":
            top -= 1
        bottom = min(row + 2, len(state.layout.rows) - 1) if state.layout.rows[row].kind == "A" else row
        height = min(bottom - top + 1, max(1, self.scrollable_content_region.height))
        self.scroll_to_region(Region(0, bottom - height + 1, 1, height), animate=False, immediate=True)
        if self.has_focus:
            # Braille displays and magnifiers follow the hardware cursor.
            y = self.region.y + row - self.scroll_offset.y
            self.app.cursor_position = type(self.app.cursor_position)(self.region.x + column, y)

    # --- drawing ------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Draw one row of the view."""
        width, row, state = self.size.width, y + self.scroll_offset.y, self._state
        if state is None or state.pair is None or row >= len(state.layout.rows):
            return Strip.blank(width, self.rich_style)
        found = state.layout.rows[row]
        if found.kind == "heading":
            segments = [self._heading(state, found)]
        elif found.kind == "flips":
            segments = [Segment(f"   {self._flips(state, found)}", _BOLD)]
        else:
            segments = self._atoms(state, found, SIDES.index(found.kind))
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def _heading(self, state: CompareState, row: PairRow) -> Segment:
        assert state.pair is not None
        pair = state.pair.answers[row.pair]
        here = state.spot is not None and state.spot.pair == row.pair
        words = compare_lines.heading(pair, self.scrollable_content_region.width)
        style = _BOLD if here else _PLAIN if pair.is_changed else _DIM
        if here and not pair.is_changed:
            style += _HERE_WITHOUT_COLOURS
        return Segment(f">{words[1:]}" if here else words, style)

    def _flips(self, state: CompareState, row: PairRow) -> str:
        assert state.pair is not None
        pair = state.pair.answers[row.pair]
        marks = [GAINED if pair.gained[atom] else LOST if pair.lost[atom] else " " for atom in row.atoms]
        return _grouped(marks)

    def _atoms(self, state: CompareState, row: PairRow, side: int) -> list[Segment]:
        answer = state.answer_at(Spot(row.pair, side, 0))
        assert answer is not None
        values = self._values(state, row.pair, side)
        here = state.spot if state.spot is not None and state.spot.pair == row.pair else None
        own = here is not None and here.side == side
        segments = [Segment(f" {SIDES[side]} ", _BOLD if own else _PLAIN)]
        for place, atom in enumerate(row.atoms):
            if place and place % GROUP == 0:
                segments.append(Segment(" ", _PLAIN))
            code = int(answer.statuses[atom]) if atom < answer.statuses.size else NOTHING
            glyph, style = self._cell(code, values[atom] if atom < len(values) else math.nan, state.function)
            if here is not None and here.atom == atom:
                style = self._cursor_style(own, style)
            segments.append(Segment(glyph, style))
        return segments

    def _cursor_style(self, own: bool, style: Style) -> Style:
        """Mark the atom of the cursor, and underline the one it is compared with."""
        if not own:
            return style + Style(underline=True, bold=True)
        return _HERE[self.look.light] if self.look.mode is DrawingMode.COLOUR else _HERE_WITHOUT_COLOURS

    def _values(self, state: CompareState, pair: int, side: int) -> Sequence[float]:
        key = (pair, side)
        if key not in self._confidences:
            self._confidences[key] = state.confidences(pair, side)
        return self._confidences[key]

    def _cell(self, code: int, value: float, function: str) -> tuple[str, Style]:
        if code == NOTHING:
            return " ", _PLAIN
        scale = shade_scale(function)
        step = None if math.isnan(value) else self.look.step(scale.place(value))
        key = (UNIT_STATUSES[code], step)
        if key not in self._styles:
            glyph, style = draw_cell(self.look, *key)
            self._styles[key] = glyph, Style.parse(style)
        return self._styles[key]

    # --- the cursor ---------------------------------------------------------------------------------------------

    def go_to(self, spot: Spot | None) -> None:
        """Put the cursor on an atom and bring it into view; None is ignored."""
        if spot is None or self._state is None:
            return
        self._state.spot = spot
        self.show_cursor()

    def show_cursor(self) -> None:
        """Bring the cursor into view where the state has moved it."""
        self._follow()
        self.refresh()
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Go to the atom that was clicked; open its answer where the cursor stood on it."""
        state = self._state
        if state is None:
            return
        side = 0 if state.spot is None else state.spot.side
        spot = state.layout.spot_at(event.y + self.scroll_offset.y, event.x, side)
        if spot is not None and spot == state.spot:
            self.post_message(self.Opened())
        self.go_to(spot)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what needs an answer while there is none."""
        needs = {"flip", "open", "task", "pair", "atom", "rows", "page", "end"}
        return None if action in needs and (self._state is None or self._state.spot is None) else True

    def action_flip(self, step: int) -> None:
        """Go to the next or previous atom that became right or wrong."""
        state = self._state
        if state is None:
            return
        found = state.layout.next_flip(state.spot, step)
        if found is None:
            self.post_message(self.NoFlip(state.layout.flips, step))
        self.go_to(found)

    class NoFlip(Message):
        """There is no further flip.

        Attributes:
            flips: how many there are.
            step: 1 where the next was asked for, -1 where the previous.
        """

        def __init__(self, flips: int, step: int) -> None:
            super().__init__()
            self.flips = flips
            self.step = step

    def action_open(self) -> None:
        """Open the answer under the cursor."""
        self.post_message(self.Opened())

    def action_task(self) -> None:
        """Go to the next task."""
        if self._state is not None:
            self._state.next_task()
            self.show_cursor()

    def action_pair(self, step: int) -> None:
        """Go to the answer before or after."""
        if self._state is not None and self._state.spot is not None:
            self.go_to(self._state.layout.next_pair(self._state.spot, step))

    def action_atom(self, step: int) -> None:
        """Go to the atom before or after."""
        if self._state is not None and self._state.spot is not None:
            self.go_to(self._state.layout.beside(self._state.spot, step))

    def action_rows(self, step: int) -> None:
        """Go to the row of atoms above or below."""
        if self._state is not None and self._state.spot is not None:
            self.go_to(self._state.layout.vertical(self._state.spot, step))

    def action_page(self, step: int) -> None:
        """Go a page up or down."""
        spot = None if self._state is None else self._state.spot
        if self._state is None or spot is None:
            return
        layout = self._state.layout
        aim = layout.row_of(spot) + step * max(1, self.scrollable_content_region.height - 1)
        row = min(max(0, aim), len(layout.rows) - 1)
        found = layout.spot_at(row, layout.column_of(spot), spot.side)
        self.go_to(found)

    def action_end(self, side: int) -> None:
        """Go to the first or the last answer."""
        if self._state is not None and self._state.pair is not None and self._state.spot is not None:
            last = len(self._state.pair.answers) - 1
            self.go_to(self._state.layout.first_of(last if side > 0 else 0, self._state.spot.side))


def _grouped(marks: Sequence[str]) -> str:
    """Return marks with a blank after every group, as `column_in` places them."""
    cells = [" "] * (column_in(len(marks) - 1) + 1 if marks else 0)
    for place, mark in enumerate(marks):
        cells[column_in(place)] = mark
    return "".join(cells)
