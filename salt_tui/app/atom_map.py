"""The map of a run without any drawing: how a cursor moves on it, and where its surest errors are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from salt_tui.app.answer_cells import STATUS_CODES, AnswerCells
from salt_tui.app.map_layout import MapLayout
from salt_tui.app.map_rows import Place
from salt_tui.measure.surest_wrong import surest_wrong
from scoring.signals import confidence_entry

_RIGHT = STATUS_CODES["correct"]


class AtomMap(MapLayout):
    """The answers of a run in rows, with the places that a cursor can go to.

    Attributes:
        task: whose errors `surest_wrong` lists; None for those of all tasks.
    """

    def __init__(self) -> None:
        """Start without answers."""
        super().__init__()
        self.task: str | None = None
        self._surest: tuple[tuple[int, str, str, str | None, int], list[Place]] | None = None

    def show_only(self, wanted: Callable[[AnswerCells], bool] | None) -> None:
        """Hide the answers that are not wanted; None shows all."""
        self._surest = None
        super().show_only(wanted)

    # --- the cursor ---------------------------------------------------------------------------------------------

    def last(self) -> Place | None:
        """Return the newest unit; without any, the newest answer that has a row."""
        shown = [number for number in range(len(self.answers) - 1, -1, -1) if self.is_shown(number)]
        for number in shown:
            if count := len(self.cells(number)):
                place = Place(number, count - 1)
                return Place(number, self.shown_unit(place))
        return next((Place(number, 0) for number in shown), None)

    def first(self) -> Place | None:
        """Return the first unit; without any, the first answer that has a row."""
        shown = [number for number in range(len(self.answers)) if self.is_shown(number)]
        units = (Place(number, 0) for number in shown if len(self.cells(number)))
        return next(units, None) or next((Place(number, 0) for number in shown), None)

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
        """Return the unit before (-1) or after (1), over the ends of answers; None at the ends of the map.

        A run of missing units is one step.
        """
        flow = self.flow_of(place.answer)
        run = None if flow is None else flow.run_of(place.unit)
        unit = place.unit + step if run is None else run[1] if step > 0 else run[0] - 1
        if 0 <= unit < len(self.cells(place.answer)):
            return Place(place.answer, unit if flow is None else flow.shown(unit))
        number = place.answer + step
        while 0 <= number < len(self.answers):
            count = len(self.cells(number))
            if count and self.is_shown(number):
                other = Place(number, 0 if step > 0 else count - 1)
                return Place(number, self.shown_unit(other))
            number += step
        return None

    def answer_beside(self, place: Place, step: int, *, of_other_task: bool = False) -> Place | None:
        """Return the first unit of the next (1) or previous (-1) answer, or of the first one of another task."""
        task = self.answers[place.answer].task
        number = place.answer + step
        while 0 <= number < len(self.answers):
            if self.is_shown(number) and not (of_other_task and self.answers[number].task == task):
                break
            number += step
        else:
            return None
        if of_other_task:
            task = self.answers[number].task
            numbers = range(len(self.answers))
            number = next(other for other in numbers if self.answers[other].task == task and self.is_shown(other))
        return Place(number, 0)

    def vertical(self, place: Place, rows: int) -> Place | None:
        """Return the unit nearest below (rows > 0) or above, in the same cell or the last before it.

        An answer without units is a place too.
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
                part = row.part_at(cell)
                if part.maze:
                    continue  # its units stand above it
                found = Place(part.answer, part.nearest(cell))
                left -= 1
        return found

    def next_not_right(self, place: Place | None, step: int) -> Place | None:
        """Return the next (1) or previous (-1) unit that is not correct; None when there is none on that side.

        A run of missing units is one.
        """
        answer, unit = (0, 0) if place is None else (place.answer, place.unit + step)
        if place is not None and (flow := self.flow_of(place.answer)) and (run := flow.run_of(place.unit)):
            unit = run[1] if step > 0 else run[0] - 1
        while 0 <= answer < len(self.answers):
            statuses = self.cells(answer).statuses if self.is_shown(answer) else b""
            while 0 <= unit < len(statuses):
                if statuses[unit] != _RIGHT:
                    return Place(answer, self.shown_unit(Place(answer, unit)))
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
            numbers = [
                number
                for number, answer in enumerate(self.answers)
                if self.task in {None, answer.task} and self.is_shown(number)
            ]
            self._surest = asked, self._find_surest_wrong(numbers, count)
        return self._surest[1]

    def _find_surest_wrong(self, numbers: Sequence[int], count: int) -> list[Place]:
        """Join the column of the present function and look through it; the other columns are not read."""
        cells = [self.answers[number].units[self._kind] for number in numbers]
        starts = np.cumsum([0, *(len(units) for units in cells)])
        surety = np.empty(int(starts[-1]), dtype=np.float64)
        for start, units in zip(starts.tolist(), cells, strict=False):
            surety[start : start + len(units)] = units.column(range(len(units)), self._function)
        if not confidence_entry(self._function).higher_is_confident:
            np.negative(surety, out=surety)
        statuses = np.frombuffer(b"".join(units.statuses for units in cells), dtype=np.uint8)
        places = surest_wrong(statuses, surety, count)
        answers = np.searchsorted(starts, places, side="right") - 1
        found = zip(answers.tolist(), (places - starts[answers]).tolist(), strict=True)
        return [Place(numbers[answer], unit) for answer, unit in found]
