"""The map of atoms, drawn line by line (Textual's Line API).

Measured at 4,000 atoms and 120×40: a row 0.2 ms, the whole widget 5 ms, a DataTable 288 ms for one new atom.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from salt_tui.app.answer_words import score
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.map_rows import MapRow, Place, RowPart
from salt_tui.app.maze_drawing import MazePlace
from salt_tui.app.messages import Say
from salt_tui.app.problem_picture import draw_place
from salt_tui.app.row_flow import CURSOR_ROW, GOES_ON, LINE_END
from salt_tui.app.tile_bands import NUMBER
from salt_tui.palette import DrawingMode, Look, draw_cell
from salt_tui.visible_text import visible

_GAPS = {" ": Segment(" "), LINE_END: Segment(LINE_END, Style(dim=True))}
_BRACKETS = {False: "bold #000000 on #ffffff", True: "bold #ffffff on #000000"}
"""Of the cursor, by whether the ground is light."""

_TINTS = {False: Style(bgcolor="#30343c"), True: Style(bgcolor="#e4e4e8")}
"""Of the row and the column of the cursor, where no unit stands."""

_NONE = Style()


class AtomHeatmap(ScrollView, can_focus=True):
    """Shows an `AtomMap`, follows its end until the user moves, and has a cursor.

    Attributes:
        map: what is shown.
        look: how cells are drawn.
        cursor_moved: is called when the cursor stands on another unit, or on none, and when following begins or ends; a
            message would come a frame later.
        following: whether the newest row stays in view.
    """

    HELP = (
        "The map of answers: arrows move, w next error, c the surest errors, end follows the newest.  "
        "Answers and atoms are counted from 1."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Previous atom", id="map.left"),
        Binding("right,l", "move(1)", "Next atom", id="map.right"),
        Binding("up,k", "rows(-1)", "Row up", id="map.up"),
        Binding("down,j", "rows(1)", "Row down", id="map.down"),
        Binding("pageup", "page(-1)", "Page up", id="map.page_up"),
        Binding("pagedown", "page(1)", "Page down", id="map.page_down"),
        Binding("home", "first", "First atom", id="map.first"),
        Binding("right_square_bracket", "answer(1)", "Next answer", id="map.next_answer"),
        Binding("left_square_bracket", "answer(-1)", "Answer", tooltip="Previous answer", id="map.previous_answer"),
        Binding("right_curly_bracket", "task(1)", "Next task", id="map.next_task"),
        Binding("left_curly_bracket", "task(-1)", "Previous task", id="map.previous_task"),
        Binding("end,G", "follow", "Follow the newest", id="map.follow"),
        Binding("w", "wrong(1)", "Next wrong", tooltip="Next atom that is not right", id="map.next_wrong"),
        Binding("W", "wrong(-1)", "Previous atom that is not right", id="map.previous_wrong"),
        Binding("c", "surest_wrong(1)", "Surest wrong", tooltip="Surest errors", id="map.surest_wrong"),
        Binding("C", "surest_wrong(-1)", "Back up the surest errors", id="map.surest_wrong_back"),
        Binding("enter", "open", "Open", tooltip="Open the answer", id="map.open"),
    ]

    class Opened(Message):
        """The answer of a place was asked for."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    following: reactive[bool] = reactive(True)

    def __init__(self, atom_map: AtomMap, look: Look, *, id: str | None = None) -> None:
        """Show a map."""
        super().__init__(id=id)
        self.map = atom_map
        self._look = look
        self.cursor_moved: Callable[[], None] = lambda: None
        self._cursor: tuple[int, int] | None = None  # generation and unit; numbers of answers change on resume
        # Unit, granularity, function; rank from 0, and of how many.
        self._surest: tuple[tuple[int, int], tuple[str, str, str | None], int, int] | None = None
        self._of_line: tuple[int, int, int] | None = None  # generation, line unit, atom from which it was reached
        self._scrolls_itself = False
        self._segments: dict[tuple[str, int | None], Segment] = {}
        self._behind = Style.null()

    # --- what others ask and say --------------------------------------------------------------------------------

    @property
    def look(self) -> Look:
        """How cells are drawn."""
        return self._look

    @look.setter
    def look(self, look: Look) -> None:
        self._look = look
        self._segments.clear()
        self.refresh()

    @property
    def has_units(self) -> bool:
        """Whether there is a unit."""
        return any(len(answer.units[self.map.kind]) for answer in self.map.answers)

    @property
    def has_begun(self) -> bool:
        """Whether there is an answer of which anything can be seen."""
        return any(answer.tokens or answer.status not in {"waiting", "open"} for answer in self.map.answers)

    @property
    def cursor(self) -> Place | None:
        """The unit under the cursor."""
        if self._cursor is None:
            return None
        generation, unit = self._cursor
        number = self.map.number_of(generation)
        if number is None:
            return None
        count = len(self.map.cells(number))
        if not count:
            return None if self.map.answers[number].status == "waiting" else Place(number, 0)
        return Place(number, min(unit, count - 1))

    def show_map(self, atom_map: AtomMap, *, follow: bool) -> None:
        """Show another map, from its end or from its beginning."""
        self.map = atom_map
        self._cursor = None
        self._surest = None
        self._of_line = None
        self.following = follow
        self.show_everything()
        if not follow:
            self.scroll_to(y=0, animate=False)

    def show_changes(self, generations: set[int]) -> None:
        """Draw what is in view of answers that changed; rows that moved are drawn too."""
        moved = self.map.height != self.virtual_size.height
        if moved:
            self._fit()
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        for generation in generations:
            number = self.map.number_of(generation)
            if number is not None:
                self.map.forget_words(number)
            rows = range(0) if number is None else self.map.rows_of_answer(number)
            if rows.start < bottom and (moved or rows.stop > top):
                if moved:
                    self.refresh()
                    break
                self.refresh_lines(rows.start, len(rows))
        self._follow_units()

    def show_everything(self) -> None:
        """Lay out anew and draw all that is in view; for another function, granularity or size."""
        self._fit()
        self.refresh()
        self._follow_units()

    def _follow_units(self) -> None:
        if self.following:
            last = self.map.last()
            if last is not None:
                self._set_cursor(last)
            self._scrolls_itself = True
            self.scroll_to(y=max(0, self.map.height - self.size.height), animate=False, immediate=True)
            self._scrolls_itself = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following when the user scrolls away, by wheel, by key, or on the scrollbar."""
        super().watch_scroll_y(old_value, new_value)
        if self.following and not self._scrolls_itself and new_value < min(old_value, self.max_scroll_y):
            self.following = False

    def watch_following(self) -> None:
        """Update what is said beside the map."""
        self.cursor_moved()

    def show_kind(self, kind: str) -> None:
        """Show another granularity and stay at the place: on the line of the atom, or on the atom left before."""
        cursor, left = self.cursor, self._of_line
        found = None if cursor is None else self.map.counterpart(cursor, kind)
        generation = None if cursor is None else self.map.answers[cursor.answer].generation
        if cursor is not None and found is not None and generation is not None:
            if kind == "line":
                self._of_line = (generation, found.unit, cursor.unit)
            elif left is not None and left[:2] == (generation, cursor.unit):
                found = Place(found.answer, left[2])
        self.map.kind = kind
        self.show_everything()
        if not self.following and found is not None:
            self._set_cursor(found)
            self._keep_in_view()

    # --- layout and drawing -------------------------------------------------------------------------------------

    def _fit(self) -> None:
        self.map.width = max(1, self.scrollable_content_region.width)
        size = Size(max(1, self.scrollable_content_region.width), self.map.height)
        view = self.container_size.height
        if self.show_vertical_scrollbar and size.height > view and size.width == self.virtual_size.width:
            # Assigned, a size lays out and draws the whole screen, which a row more does not change.
            self.set_reactive(ScrollView.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
            self.scroll_y = self.validate_scroll_y(self.scroll_y)
        else:
            self.virtual_size = size

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for another width and keep the cursor in view."""
        self.show_everything()
        if not self.following:
            self._keep_in_view()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows of the view; what is behind them is the same for all and takes as long to find as half a row."""
        self._behind = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one row of the view."""
        return self.draw_row(y).apply_style(self._behind)

    def draw_row(self, y: int) -> Strip:
        """Return one row of the view on whatever is behind it."""
        width = self.size.width
        row = self.map.row(y + self.scroll_offset.y)
        if row is None:
            return Strip.blank(width)
        if row.heading is not None:
            return Strip([Segment(f"── {visible(row.heading)} ".ljust(width, "─"), Style(bold=True))]).crop(0, width)
        at = self._cursor_position()
        segments: list[Segment] = []
        used = 0
        for part in row.parts:
            if part.x > used:
                segments.append(Segment(" " * (part.x - used)))
                used = part.x
            for segment in self._part_segments(part):
                segments.append(segment)
                used += segment.cell_length
        strip = Strip(segments).adjust_cell_length(width)
        if at is None:
            return strip
        return self._with_cursor(strip, row, at) if at[0] == y + self.scroll_offset.y else self._in_column(strip, at[1])

    def _cursor_position(self) -> tuple[int, int] | None:
        cursor = self.cursor
        return None if cursor is None else self.map.position(cursor)

    def _part_segments(self, part: RowPart) -> list[Segment]:
        """Draw the label, the units and the words of an answer in one row."""
        answer = self.map.answers[part.answer]
        form = self.map.form(answer.task)
        cursor = self.cursor
        here = cursor is not None and cursor.answer == part.answer
        label = f"{answer.position + 1:>{NUMBER}} {score(answer, self.map.kind):>{form.score}}" if part.first else ""
        goes_on = GOES_ON if part.row is not None and part.row.goes_on else " "
        mark = CURSOR_ROW if here and part.first else " "
        segments = [Segment(f"{label:<{form.label - 2}}{goes_on}{mark}", Style(bold=True) if here else None)]
        if part.row is not None:
            segments += self._unit_segments(part)
        segments += [self._place_segment(part.answer, place) for place in part.maze]
        if part.words:
            segments.append(Segment(f" {part.words}" if part.row is not None else part.words, Style(italic=True)))
        return segments

    def _place_segment(self, answer: int, place: MazePlace) -> Segment:
        """Draw a place of a maze; the one of the cursor's atom is marked."""
        if place.atom is None or place.atom >= len(self.map.cells(answer)):
            text, style = draw_place(self._look, place, None, None)
            return Segment(text, Style.parse(style))
        status, step = self.map.cells(answer).status(place.atom), self.map.steps(answer, [place.atom], self._look.steps)
        here = self.cursor == Place(answer, place.atom)
        text, style = draw_place(self._look, place, status, step[0], here=here)
        return Segment(text, Style.parse(style))

    def _unit_segments(self, part: RowPart) -> list[Segment]:
        row, answer = part.row, self.map.answers[part.answer]
        if row is None:
            return []
        cells = self.map.cells(part.answer)
        segments: list[Segment] = []
        steps = self.map.steps(part.answer, row.units, self._look.steps)
        for unit, gap, text, step in zip(row.units, row.gaps, row.texts, steps, strict=True):
            if gap:
                segments.append(_GAPS[gap])
            segment = self._segment(cells.status(unit), step)
            if text is not None:
                segment = Segment(text, segment.style)
            if segments and segments[-1].style is segment.style:
                # Everything that Textual does with a row it does per segment.
                segments[-1] = Segment(segments[-1].text + segment.text, segment.style)
            else:
                segments.append(segment)
        if answer.status == "streaming" and row.units and row.units[-1] == len(cells) - 1:
            if self.cursor == Place(part.answer, row.units[-1]):
                segments.append(Segment(" "))  # the bracket of the cursor
            segments.append(self._segment("streaming", None))
        return segments

    def _with_cursor(self, strip: Strip, row: MapRow, at: tuple[int, int]) -> Strip:
        """Put the cell of the cursor in brackets and tint the blanks of its row."""
        left, x = max(0, at[1] - 1), at[1]
        part = next((part for part in row.parts if self.cursor and part.answer == self.cursor.answer), None)
        wide = 1
        if part is not None and part.row is not None and self.cursor is not None:
            shown = part.unit_at(x)
            wide = max(1, sum(unit == shown for unit in part.row.units))
        elif part is not None:
            wide = max(1, len(part.words))
        cells = self._tinted(strip)
        before, here, after = cells.crop(0, left), cells.crop(x, x + wide), cells.crop(x + wide + 1)
        style = self._bracket_style
        strong = here.apply_style(Style(bold=True, underline=self._look.mode is not DrawingMode.COLOUR))
        joined = Strip.join([before, Strip([Segment("[", style)]), strong, Strip([Segment("]", style)]), after])
        return joined.crop(0, strip.cell_length)

    @property
    def _bracket_style(self) -> Style:
        if self._look.mode is DrawingMode.COLOUR:
            return Style.parse(_BRACKETS[self._look.light])
        return Style(bold=True, reverse=True)

    def _tinted(self, strip: Strip) -> Strip:
        """Tint what has no colour of its own, where there are colours to do it."""
        if self._look.mode is not DrawingMode.COLOUR:
            return strip
        tint = _TINTS[self._look.light]
        return Strip(
            [
                segment
                if segment.style and segment.style.bgcolor
                else Segment(segment.text, (segment.style or _NONE) + tint)
                for segment in strip
            ],
            strip.cell_length,
        )

    def _in_column(self, strip: Strip, x: int) -> Strip:
        """Tint the column of the cursor in another row."""
        if self._look.mode is not DrawingMode.COLOUR:
            return strip
        return Strip.join([strip.crop(0, x), self._tinted(strip.crop(x, x + 1)), strip.crop(x + 1)])

    def _segment(self, status: str, step: int | None) -> Segment:
        segment = self._segments.get((status, step))
        if segment is None:
            glyph, style = draw_cell(self._look, status, step)
            segment = self._segments[status, step] = Segment(glyph, Style.parse(style))
        return segment

    # --- the cursor ---------------------------------------------------------------------------------------------

    def go_to(self, place: Place | None) -> None:
        """Put the cursor on a unit, bring it into view and stop following; None is ignored."""
        if place is None:
            return
        self.following = False
        self._set_cursor(place)
        self._keep_in_view()

    def _set_cursor(self, place: Place) -> None:
        before = self.cursor
        self._surest = None
        self._cursor = (self.map.answers[place.answer].generation, place.unit)
        if before == place:
            return
        if self._look.mode is DrawingMode.COLOUR:
            self.refresh()  # the column is tinted in all rows
        else:
            for changed in (before, place):
                if changed is not None:
                    self.refresh_lines(self.map.position(changed)[0])
        self.cursor_moved()

    def _keep_in_view(self) -> None:
        cursor = self.cursor
        if cursor is None:
            return
        row, cell = self.map.position(cursor)
        self.scroll_to_region(Region(0, row, 1, 1), animate=False, immediate=True)
        x = self.region.x + cell
        # Braille displays and magnifiers follow the hardware cursor.
        self.app.cursor_position = type(self.app.cursor_position)(x, self.region.y + row - self.scroll_offset.y)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what needs an answer while there is none."""
        if action in {"wrong", "surest_wrong"}:
            return True if self.has_units else None
        needs = action in {"move", "rows", "page", "first", "follow", "answer", "task", "open"}
        return None if needs and not self.has_begun else True

    def action_move(self, step: int) -> None:
        """Go to the unit beside the cursor."""
        cursor = self.cursor
        self.go_to(self.map.beside(cursor, step) if cursor else self.map.first())

    def action_rows(self, rows: int) -> None:
        """Go up or down."""
        cursor = self.cursor
        self.go_to(self.map.vertical(cursor, rows) if cursor else self.map.first())

    def action_page(self, direction: int) -> None:
        """Go up or down by what is in view."""
        self.action_rows(direction * max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Go to the first unit."""
        self.go_to(self.map.first())

    def action_answer(self, step: int) -> None:
        """Go to the first atom of the next or previous answer."""
        cursor = self.cursor
        self.go_to(self.map.answer_beside(cursor, step) if cursor else self.map.first())

    def action_task(self, step: int) -> None:
        """Go to the first answer of the next or previous task."""
        cursor = self.cursor
        self.go_to(self.map.answer_beside(cursor, step, of_other_task=True) if cursor else self.map.first())

    def action_follow(self) -> None:
        """Follow the newest unit from now on."""
        self.following = True
        self._follow_units()

    def action_open(self) -> None:
        """Open the answer under the cursor; where nothing is chosen yet, the first one."""
        if self.cursor is None:
            self.go_to(self.map.first())
        if self.cursor is not None:
            self.post_message(self.Opened(self.cursor))

    def action_wrong(self, step: int) -> None:
        """Go to the next or previous unit that is not correct; the first one where nobody has chosen a unit."""
        found = self.map.next_not_right(None if self.following and step > 0 else self.cursor, step)
        if found is None:
            self.post_message(Say(f"no other {self.map.kind} on that side that is not right"))
        self.go_to(found)

    def action_surest_wrong(self, step: int) -> None:
        """Walk down, or back up, the wrong and redundant units that the model was surest of."""
        places = self.map.surest_wrong()
        if not places:
            where = f" in {visible(self.map.task, 24)}" if self.map.task else ""
            self.post_message(Say(f"no wrong or redundant {self.map.kind} with a confidence{where}"))
            return
        cursor = self.cursor
        walking = self.surest_rank is not None and cursor in places
        rank = (places.index(cursor) + step) % len(places) if walking and cursor is not None else 0
        self.go_to(places[rank])
        if self._cursor is not None:
            self._surest = (self._cursor, self._ranking, rank, len(places))
            self.cursor_moved()

    @property
    def surest_rank(self) -> tuple[int, int] | None:
        """Place of the cursor among the surest errors when it was put there, 1 for the surest, and of how many.

        None when the cursor was not put there so, or another granularity, function or task is chosen by now.
        """
        if self._surest is None or self._surest[:2] != (self._cursor, self._ranking):
            return None
        return self._surest[2] + 1, self._surest[3]

    @property
    def _ranking(self) -> tuple[str, str, str | None]:
        """What the surest errors are listed by."""
        return self.map.kind, self.map.function, self.map.task

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on what was clicked; a second click opens its answer."""
        row = self.map.row(event.y + self.scroll_offset.y)
        if row is None or row.heading is not None:
            return
        part = row.part_at(event.x)
        unit = part.unit_at(event.x) if part.row is not None or part.maze else 0
        if unit is None:
            return
        if event.chain > 1:
            self.action_open()
        else:
            self.go_to(Place(part.answer, unit))
