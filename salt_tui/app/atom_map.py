"""The map of a run without any drawing: which unit stands in which row and column, and how a cursor moves on it.

Every answer is a group of rows, broken as `row_flow` says, and a change of task puts a heading above.
Answers are kept in the order in which they were begun.  Only answers that changed, and those below them, are laid
out again; in a running evaluation these are the last few.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from salt_tui.app.answer_cells import COLUMNS, FUNCTIONS, KINDS, STATUS_CODES, AnswerCells, UnitCells
from salt_tui.app.row_flow import gaps
from salt_tui.app.shade_scale import SHADE_SCALES
from salt_tui.measure.surest_wrong import surest_wrong
from salt_tui.palette import GROUP
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION

_CACHED_ANSWERS = 256
_RIGHT = STATUS_CODES["correct"]


@dataclass(frozen=True, slots=True)
class Place:
    """A unit: number of the answer in the map, index of the unit in the answer.

    In an answer without units, index 0 stands for the answer itself.
    """

    answer: int
    unit: int


@dataclass(frozen=True, slots=True)
class MapRow:
    """One row of the map.

    Attributes:
        answer: number of the answer.
        heading: name of the task that begins here, None for a row of units.
        units: indices of its units.
        gaps: what stands before each unit.
        offsets: the cell of each unit in the row.
        first, last: whether it is the first or last row of the answer.
        goes_on: whether its first unit is on the line of the row above.
    """

    answer: int
    heading: str | None
    units: range
    gaps: tuple[str, ...]
    offsets: tuple[int, ...]
    first: bool
    last: bool
    goes_on: bool


class AtomMap:
    """The answers of a run, laid out in rows.

    Attributes:
        answers: in the order of their generations.
        task: whose errors `surest_wrong` lists; None for those of all tasks.
        version: rises with every change of a unit.
    """

    def __init__(self) -> None:
        """Start without answers."""
        self.answers: list[AnswerCells] = []
        self.version = 0
        self.task: str | None = None
        self._generations: list[int] = []
        self._kind = KINDS[0]
        self._function = HEADLINE_FUNCTION
        self._width = GROUP
        self._starts: list[int] = []
        self._headed: list[bool] = []
        self._height = 0
        self._laid_out = 0  # answers whose start is known
        self._surest: tuple[tuple[int, str, str, str | None, int], list[Place]] | None = None
        self._rows: dict[int, list[MapRow]] = {}

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
        """The confidence function behind the shades."""
        return self._function

    @function.setter
    def function(self, function: str) -> None:
        self._function = function

    @property
    def width(self) -> int:
        """Cells of a row, `GROUP` or more."""
        return self._width

    @width.setter
    def width(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lay_out_from(0)

    # --- answers ------------------------------------------------------------------------------------------------

    def add(self, answer: AnswerCells) -> None:
        """Put an answer at its place; one with the same generation is replaced."""
        number = bisect_left(self._generations, answer.generation)
        if number < len(self.answers) and self._generations[number] == answer.generation:
            self.answers[number] = answer
        else:
            self._generations.insert(number, answer.generation)
            self.answers.insert(number, answer)
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

    def steps(self, answer: int, units: range, count: int) -> list[int | None]:
        """Return which of ``count`` steps of confidence neighbouring units have, from 0; None without a confidence."""
        place = SHADE_SCALES[self._function].place
        return [
            None if math.isnan(value) else min(int(place(value) * count), count - 1)
            for value in self.cells(answer).column(units, COLUMNS[self._function])
        ]

    def place_on_scale(self, answer: int, unit: int) -> float | None:
        """Return the confidence of a unit on the scale of the present function, 0..1."""
        value = self.cells(answer).value(unit, COLUMNS[self._function])
        return None if value is None else SHADE_SCALES[self._function].place(value)

    # --- rows ---------------------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """Rows of the whole map."""
        self._lay_out()
        return self._height

    def row(self, y: int) -> MapRow | None:
        """Return a row, None below the last."""
        self._lay_out()
        if not 0 <= y < self._height:
            return None
        number = bisect_right(self._starts, y) - 1
        return self._rows_of(number)[y - self._starts[number]]

    def rows_of_answer(self, number: int) -> range:
        """Return the rows that an answer takes."""
        self._lay_out()
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self._height
        return range(self._starts[number], end)

    def position(self, place: Place) -> tuple[int, int]:
        """Return row of the map and cell in the row of a unit; the answer's own row where it has none."""
        rows = self.rows_of_answer(place.answer)
        for y, row in zip(rows, self._rows_of(place.answer), strict=True):
            if place.unit in row.units:
                return y, row.offsets[place.unit - row.units.start]
        return max(rows.start, rows.stop - 1), 0

    # --- the cursor ---------------------------------------------------------------------------------------------

    def last(self) -> Place | None:
        """Return the newest unit; without any, the newest answer that has a row."""
        for number in range(len(self.answers) - 1, -1, -1):
            if count := len(self.cells(number)):
                return Place(number, count - 1)
        shown = (number for number in range(len(self.answers) - 1, -1, -1) if self.answers[number].status != "waiting")
        return next((Place(number, 0) for number in shown), None)

    def first(self) -> Place | None:
        """Return the first unit; without any, the first answer that has a row."""
        numbers = range(len(self.answers))
        units = (Place(number, 0) for number in numbers if len(self.cells(number)))
        shown = (Place(number, 0) for number in numbers if self.answers[number].status != "waiting")
        return next(units, None) or next(shown, None)

    def counterpart(self, place: Place, kind: str) -> Place | None:
        """Return the first unit of another granularity on the line of a unit, None where there is none."""
        cells = self.cells(place.answer)
        if not place.unit < len(cells):
            return None
        try:
            return Place(place.answer, self.answers[place.answer].units[kind].lines.index(cells.lines[place.unit]))
        except ValueError:
            return None

    def beside(self, place: Place, step: int) -> Place | None:
        """Return the unit before (-1) or after (1), over the ends of answers; None at the ends of the map."""
        unit = place.unit + step
        if 0 <= unit < len(self.cells(place.answer)):
            return Place(place.answer, unit)
        number = place.answer + step
        while 0 <= number < len(self.answers):
            if count := len(self.cells(number)):
                return Place(number, 0 if step > 0 else count - 1)
            number += step
        return None

    def vertical(self, place: Place, rows: int) -> Place | None:
        """Return the unit nearest below (rows > 0) or above, in the same cell or the last before it.

        An answer without units is a place too, so that it can be cancelled.
        """
        y, cell = self.position(place)
        direction = 1 if rows > 0 else -1
        found: Place | None = None
        left = abs(rows)
        while left:
            y += direction
            row = self.row(y)
            if row is None:
                return found
            if row.heading is None:
                found = Place(row.answer, row.units[max(0, bisect_right(row.offsets, cell) - 1)] if row.units else 0)
                left -= 1
        return found

    def next_not_right(self, place: Place | None, step: int) -> Place | None:
        """Return the next (1) or previous (-1) unit that is not correct; None when there is none on that side."""
        answer, unit = (place.answer, place.unit + step) if place else (0, 0)
        while 0 <= answer < len(self.answers):
            statuses = self.cells(answer).statuses
            while 0 <= unit < len(statuses):
                if statuses[unit] != _RIGHT:
                    return Place(answer, unit)
                unit += step
            answer += step
            if 0 <= answer < len(self.answers):
                unit = 0 if step > 0 else len(self.cells(answer).statuses) - 1
        return None

    def surest_wrong(self, count: int = 200) -> list[Place]:
        """Return the wrong and redundant units that the present function is surest of, surest first, then in order.

        Looks through all units once per version of the map, granularity, function and task; walking down costs nothing.
        """
        asked = (self.version, self._kind, self._function, self.task, count)
        if self._surest is None or self._surest[0] != asked:
            numbers = [n for n, answer in enumerate(self.answers) if self.task in {None, answer.task}]
            self._surest = asked, self._find_surest_wrong(numbers, count)
        return self._surest[1]

    def _find_surest_wrong(self, numbers: Sequence[int], count: int) -> list[Place]:
        """Join the column of the present function and look through it; the other columns are not read."""
        cells = [self.answers[number].units[self._kind] for number in numbers]
        starts = np.cumsum([0, *(len(units) for units in cells)])
        surety = np.empty(int(starts[-1]), dtype=np.float64)
        column = COLUMNS[self._function]
        for start, units in zip(starts.tolist(), cells, strict=False):
            surety[start : start + len(units)] = np.frombuffer(units.values)[column :: len(FUNCTIONS)]
        if not CONFIDENCE_FUNCTIONS[self._function].higher_is_confident:
            np.negative(surety, out=surety)
        statuses = np.frombuffer(b"".join(units.statuses for units in cells), dtype=np.uint8)
        places = surest_wrong(statuses, surety, count)
        answers = np.searchsorted(starts, places, side="right") - 1
        found = zip(answers.tolist(), (places - starts[answers]).tolist(), strict=True)
        return [Place(numbers[answer], unit) for answer, unit in found]

    # --- layout -------------------------------------------------------------------------------------------------

    def _lay_out_from(self, number: int) -> None:
        if number < self._laid_out:
            self._laid_out = number
        if number == 0:
            self._rows.clear()
        else:
            for cached in [cached for cached in self._rows if cached >= number]:
                del self._rows[cached]

    def _lay_out(self) -> None:
        if self._laid_out == len(self.answers) == len(self._starts):
            return
        first = self._laid_out
        del self._starts[first:]
        del self._headed[first:]
        above: str | None = None
        y = 0
        if first:
            y = self._starts[first - 1] + self._height_of(first - 1, self._headed[first - 1])
            shown = (self.answers[number] for number in range(first - 1, -1, -1))
            above = next((answer.task for answer in shown if answer.status != "waiting"), None)
        for number in range(first, len(self.answers)):
            answer = self.answers[number]
            headed = answer.status != "waiting" and answer.task != above
            self._starts.append(y)
            self._headed.append(headed)
            y += self._height_of(number, headed)
            if answer.status != "waiting":
                above = answer.task
        self._height = y
        self._laid_out = len(self.answers)

    def _height_of(self, number: int, headed: bool) -> int:
        if self.answers[number].status == "waiting":
            return 0
        return headed + (len(self.cells(number).row_starts(self._width)) or 1)

    def _rows_of(self, number: int) -> list[MapRow]:
        rows = self._rows.get(number)
        if rows is None:
            if len(self._rows) >= _CACHED_ANSWERS:
                self._rows.clear()
            rows = self._rows[number] = self._make_rows(number)
        return rows

    def _make_rows(self, number: int) -> list[MapRow]:
        cells = self.cells(number)
        starts = cells.row_starts(self._width)
        before = gaps(cells.lengths, starts)
        firsts = set(accumulate(cells.lengths, initial=0))
        rows = []
        for start, stop in pairwise([*starts, len(cells)]):
            of_row = tuple(before[start:stop])
            offsets = tuple(end - 1 for end in accumulate(len(gap) + 1 for gap in of_row))
            first, last, goes_on = start == 0, stop == len(cells), start not in firsts
            rows.append(MapRow(number, None, range(start, stop), of_row, offsets, first, last, goes_on))
        if not rows:
            rows.append(MapRow(number, None, range(0), (), (), True, True, False))
        if self._headed[number]:
            rows.insert(0, MapRow(number, self.answers[number].task, range(0), (), (), False, False, False))
        return rows
