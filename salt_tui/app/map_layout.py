"""The answers of a run laid out in rows, without any drawing: which unit stands in which row and column.

Every answer is a group of rows, broken as `row_flow` says; short ones stand beside each other, as `tile_bands` says.
Answers are kept in the order in which they were begun.  Only answers that changed, and those below them, are laid
out again; in a running evaluation these are the last few.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from salt_tui.app.answer_cells import KINDS, STATUS_CODES, AnswerCells, UnitCells
from salt_tui.app.answer_words import tail, without_units
from salt_tui.app.map_rows import MapRow, Place, RowPart
from salt_tui.app.maze_drawing import Maze
from salt_tui.app.row_flow import RUN, SHORT, Flow
from salt_tui.app.shade_scale import shade_scale
from salt_tui.app.tile_bands import BETWEEN, TALLER, Band, Form, Tile, cells_of, first_form
from salt_tui.palette import GROUP
from scoring.confidence import HEADLINE_FUNCTION

_CACHED_BANDS = 256
_RUN_OF_MISSING = bytes([STATUS_CODES["missing"]] * RUN)


class MapLayout:
    """The answers of a run, laid out in rows.

    Attributes:
        answers: in the order of their generations.
        version: rises with every change of a unit.
    """

    def __init__(self) -> None:
        """Start without answers."""
        self.answers: list[AnswerCells] = []
        self.version = 0
        self._generations: list[int] = []
        self._kind = KINDS[0]
        self._function = HEADLINE_FUNCTION
        self._width = 80
        self._filter: Callable[[AnswerCells], bool] | None = None
        self._forms: dict[tuple[str, str], Form] = {}
        self._bands: list[Band] = []
        self._band_starts: list[int] = []
        self._band_of: list[int] = []  # of every answer that is laid out; that of the one before where it is hidden
        self._rows: dict[int, list[MapRow]] = {}  # by band

    # --- what is shown ------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The granularity, one of `KINDS`."""
        return self._kind

    @kind.setter
    def kind(self, kind: str) -> None:
        self._kind = kind
        self._lay_out_from(0)

    @property
    def function(self) -> str:
        """The confidence function or signal behind the shades."""
        return self._function

    @function.setter
    def function(self, function: str) -> None:
        self._function = function

    @property
    def width(self) -> int:
        """Cells of a row."""
        return self._width

    @width.setter
    def width(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lay_out_from(0)

    @property
    def filtered(self) -> bool:
        """Whether some answers may be hidden."""
        return self._filter is not None

    def show_only(self, wanted: Callable[[AnswerCells], bool] | None) -> None:
        """Hide the answers that are not wanted; None shows all."""
        self._filter = wanted
        self._lay_out_from(0)

    def is_shown(self, number: int) -> bool:
        """Return whether an answer has a row."""
        answer = self.answers[number]
        return answer.status != "waiting" and (self._filter is None or self._filter(answer))

    def form(self, task: str) -> Form:
        """Return how the answers of a task are drawn."""
        return self._forms.get((task, self._kind)) or first_form(task, self._kind)

    # --- answers ------------------------------------------------------------------------------------------------

    def add(self, answer: AnswerCells) -> None:
        """Put an answer at its place; one with the same generation is replaced."""
        number = bisect_left(self._generations, answer.generation)
        if number < len(self.answers) and self._generations[number] == answer.generation:
            self.answers[number] = answer
        else:
            self._generations.insert(number, answer.generation)
            self.answers.insert(number, answer)
        for kind in KINDS:
            before = self._forms.get((answer.task, kind)) or first_form(answer.task, kind)
            form = self._forms[answer.task, kind] = before.with_answer(answer, kind)
            if form != before and kind == self._kind:
                tasks = (other for other in range(number) if self.answers[other].task == answer.task)
                number = next(tasks, number)
        self._lay_out_from(number)
        self.version += 1

    def number_of(self, generation: int) -> int | None:
        """Return the number of an answer in the map, None when it is not there."""
        number = bisect_left(self._generations, generation)
        return number if number < len(self.answers) and self._generations[number] == generation else None

    def changed(self, generation: int) -> None:
        """Take notice that the units or the status of an answer changed."""
        number = self.number_of(generation)
        if number is not None:
            self._lay_out_from(number)
            self.version += 1

    def cells(self, answer: int) -> UnitCells:
        """Return the units of an answer at the present granularity."""
        return self.answers[answer].units[self._kind]

    def steps(self, answer: int, units: Sequence[int], count: int) -> list[int | None]:
        """Return which of ``count`` steps of confidence units of a row have, from 0; None without a confidence."""
        place = shade_scale(self._function).place
        first = units[0] if units else 0
        values = self.cells(answer).column(range(first, units[-1] + 1 if units else 0), self._function)
        return [
            None if math.isnan(value := values[unit - first]) else min(int(place(value) * count), count - 1)
            for unit in units
        ]

    def place_on_scale(self, answer: int, unit: int) -> float | None:
        """Return the confidence of a unit on the scale of the present function, 0..1."""
        value = self.cells(answer).value(unit, self._function)
        return None if value is None else shade_scale(self._function).place(value)

    # --- rows ---------------------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """Rows of the whole map."""
        self._lay_out()
        return self._bands[-1].y + self._bands[-1].height if self._bands else 0

    def row(self, y: int) -> MapRow | None:
        """Return a row, None below the last."""
        if not 0 <= y < self.height:
            return None
        number = bisect_right(self._band_starts, y) - 1
        return self._rows_of(number)[y - self._band_starts[number]]

    def rows_of_answer(self, number: int) -> range:
        """Return the rows of the band of an answer, without its heading."""
        self._lay_out()
        place = self._band_of[number] if self.is_shown(number) else -1
        if place < 0:
            return range(0)
        band = self._bands[place]
        return range(band.top, band.y + band.height)

    def position(self, place: Place) -> tuple[int, int]:
        """Return row and cell of a unit; where its answer has none, of its label, and 0, 0 where it is hidden."""
        rows = self.rows_of_answer(place.answer)
        if not rows:
            return 0, 0
        unit = self.shown_unit(place)
        found = (rows.start, 0)
        for y in rows:
            row = self.row(y)
            for part in row.parts if row is not None else ():
                if part.answer == place.answer:
                    cell = part.cell_of(unit)
                    if cell is not None:
                        return y, cell
                    if part.first:
                        found = y, part.units_x
        return found

    def shown_unit(self, place: Place) -> int:
        """Return the unit that stands for a unit on the map: the first of a run of missing ones."""
        flow = self.flow_of(place.answer)
        return place.unit if flow is None else flow.shown(place.unit)

    # --- layout -------------------------------------------------------------------------------------------------

    def _lay_out_from(self, number: int) -> None:
        """Forget the band of an answer and all below it."""
        if number >= len(self._band_of):
            return
        first = max(0, self._band_of[number])
        del self._bands[first:]
        del self._band_starts[first:]
        del self._band_of[bisect_left(self._band_of, first) :]
        if first == 0:
            self._band_of.clear()
            self._rows.clear()
        for cached in [cached for cached in self._rows if cached >= first]:
            del self._rows[cached]

    def _lay_out(self) -> None:
        number = len(self._band_of)
        if number == len(self.answers):
            return
        # The last band may have room for what is new.
        if self._bands:
            self._lay_out_from(self._bands[-1].tiles[0].answer)
            number = len(self._band_of)
        y = self._bands[-1].y + self._bands[-1].height if self._bands else 0
        task = self.answers[self._bands[-1].tiles[-1].answer].task if self._bands else None
        tiles: list[Tile] = []
        heading: str | None = None

        def end_band() -> None:
            nonlocal y, heading
            if tiles:
                band = Band(y, heading, tuple(tiles))
                self._bands.append(band)
                self._band_starts.append(y)
                y += band.height
                tiles.clear()
                heading = None

        for answer_number in range(number, len(self.answers)):
            if self.is_shown(answer_number):
                answer = self.answers[answer_number]
                form = self.form(answer.task)
                if answer.task != task:
                    end_band()
                    heading, task = answer.task, answer.task
                columns = form.columns(self._width)
                tile = self._tile(answer_number, form, len(tiles), columns)
                if tile.x == 0 and tiles:
                    end_band()
                tiles.append(tile)
                if len(tiles) == columns or tile.content > form.content:
                    self._band_of.append(len(self._bands))
                    end_band()
                    continue
            self._band_of.append(len(self._bands))
        end_band()
        # Hidden answers behind the last band belong to it.
        for answer_number in range(len(self._band_of) - 1, -1, -1):
            if self._band_of[answer_number] < len(self._bands):
                break
            self._band_of[answer_number] = len(self._bands) - 1

    def _tile(self, number: int, form: Form, column: int, columns: int) -> Tile:
        """Place an answer as the tile of a column, or across the map where it has no room in one."""
        whole = max(GROUP, self._width - form.label)
        if columns > 1:
            height = self._tile_height(number, form, form.content)
            if height <= form.rows + TALLER:
                pitch = form.label + form.content + BETWEEN
                return Tile(number, (column % columns) * pitch, form.content, height)
        return Tile(number, 0, whole, self._tile_height(number, form, whole))

    def _tile_height(self, number: int, form: Form, content: int) -> int:
        maze = self._maze(number)
        return self._unit_rows(number, form, content) + (0 if maze is None else maze.height)

    def _maze(self, number: int) -> Maze | None:
        """Return the maze that is drawn below the units of an answer."""
        return self.answers[number].maze if self._kind == "atom" else None

    def _unit_rows(self, number: int, form: Form, content: int) -> int:
        """Return the rows of the units and words of an answer."""
        answer, cells = self.answers[number], self.cells(number)
        count = len(cells)
        words = tail(answer)
        if not count:
            return 1
        room = content - (1 + len(words) if words else 0)
        if answer.ended and _RUN_OF_MISSING not in cells.statuses:
            # Without a look at single lines, as most answers of a large run are short.
            shares = len(cells.lengths) == 1 or max(cells.lengths) <= SHORT
            if not form.grid and shares and cells_of(count) + len(cells.lengths) <= room:
                return 1
            if form.grid and max(cells.lengths) <= min(GROUP, room):
                return len(cells.lengths)
        flow = self._flow(number, form, content)
        return len(flow.starts) + (bool(words) and flow.last_width + 1 + len(words) > content)

    def _flow(self, number: int, form: Form, content: int) -> Flow:
        merged = form.merged and max(self.cells(number).lengths, default=1) == 1 and not form.grid
        growing = not self.answers[number].ended
        return self.cells(number).flow(content, grid=form.grid, merged=merged, growing=growing)

    def flow_of(self, number: int) -> Flow | None:
        """Return how an answer is broken on the map; None without units."""
        self._lay_out()
        place = self._band_of[number]
        if not len(self.cells(number)) or place < 0 or not self.is_shown(number):
            return None
        tile = next(tile for tile in self._bands[place].tiles if tile.answer == number)
        return self._flow(number, self.form(self.answers[number].task), tile.content)

    def forget_words(self, number: int) -> None:
        """Make the rows of an answer anew whose words changed, but none of its units."""
        if number < len(self._band_of):
            self._rows.pop(self._band_of[number], None)

    def _rows_of(self, band: int) -> list[MapRow]:
        rows = self._rows.get(band)
        if rows is None:
            if len(self._rows) >= _CACHED_BANDS:
                self._rows.clear()
            rows = self._rows[band] = self._make_rows(self._bands[band])
        return rows

    def _make_rows(self, band: Band) -> list[MapRow]:
        parts: list[list[RowPart]] = [[] for _ in range(band.top, band.y + band.height)]
        for tile in band.tiles:
            for y, part in enumerate(self._parts(tile)):
                parts[y].append(part)
        rows = [MapRow(None, row) for row in parts]
        return [MapRow(band.heading, ()), *rows] if band.heading is not None else rows

    def _parts(self, tile: Tile) -> list[RowPart]:
        """Return the rows of a tile: units and words, and below them its maze."""
        maze, answer = self._maze(tile.answer), self.answers[tile.answer]
        parts = self._unit_parts(tile)
        if maze is not None:
            units_x = tile.x + self.form(answer.task).label
            parts += [
                RowPart(tile.answer, tile.x, units_x, None, "", False, places) for places in maze.places(answer.moves)
            ]
        return parts

    def _unit_parts(self, tile: Tile) -> list[RowPart]:
        answer = self.answers[tile.answer]
        form = self.form(answer.task)
        units_x = tile.x + form.label
        words = tail(answer)
        if not len(self.cells(tile.answer)):
            return [RowPart(tile.answer, tile.x, units_x, None, without_units(answer, self._kind, tile.content), True)]
        flow = self._flow(tile.answer, form, tile.content)
        rows, fits = flow.rows(), flow.last_width + 1 + len(words) <= tile.content
        parts = [
            RowPart(tile.answer, tile.x, units_x, row, words if fits and y == len(rows) - 1 else "", y == 0)
            for y, row in enumerate(rows)
        ]
        return parts if fits or not words else [*parts, RowPart(tile.answer, tile.x, units_x, None, words, False)]
