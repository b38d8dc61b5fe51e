"""The confidence views of one run: its units are read once, maps fitted once, and every view is kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar, cast

import numpy as np

from salt_tui.measure.conclusions import conclude_functions, conclude_maps
from salt_tui.measure.confidence_view import ConfidenceView, ViewChoice, confidence_view, map_scores, view_values
from salt_tui.measure.course import CourseOfAnswers, course_of_answers, mean_confidences
from salt_tui.measure.findings import Finding, function_finding, map_finding
from salt_tui.measure.parts import PARTS, read_parts
from salt_tui.measure.policies import Found, find_policy, units_for_policy
from salt_tui.measure.rates import measure_rates
from salt_tui.measure.rows import GRANULARITIES, MAPS, WHOLE, Part, RowChoice, measure_rows
from salt_tui.measure.run_report import functions_of, stated_and_right
from salt_tui.measure.slices import slice_names, slice_parts
from salt_tui.measure.task_scores import RAW, TaskScores
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitKind
from salt_tui.store.results import UnitColumns
from salt_tui.store.schema import UNIT_STATUSES
from scoring.confidence import CONFIDENCE_FUNCTIONS, HEADLINE_FUNCTION
from scoring.correctness import TaskMean
from scoring.intervals import DRAWS, Interval
from scoring.policy import Promise

UNITS: tuple[str, ...] = (*GRANULARITIES, *PARTS)
"""What can be looked at."""

PROMISE = Promise(alpha=0.05, delta=0.1)
"""What ``salt-tui policy RUN --risk .05 --confidence .9`` promises."""

MOST_LISTED = 200
"""Units of a bin that are listed."""

MOST_SIDE_BY_SIDE = 24
"""Tasks or parts that are shown side by side; a column may have hundreds."""

MOST_SCORES, MOST_VIEWED = 6_000_000, 3_000_000
"""Units in the scores and in the views that are kept, in all: 33 and 50 bytes each, so 350 MB at most."""


@dataclass(frozen=True, slots=True)
class SignalNumbers:
    """What one confidence function or signal is worth on the chosen units, as far as it is measured.

    Attributes:
        function: its name.
        raw: numbers of the scores as they are, by the names of `confidence_view.METRICS`; None while not measured.
        mapped: the same after the map; None while not measured.
        interval: of raw AUROC; None while not measured.
    """

    function: str
    raw: Mapping[str, TaskMean] | None
    mapped: Mapping[str, TaskMean] | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Concluded:
    """What the report concludes about a run's atoms.

    Attributes:
        functions: which confidence function ranks best; its ``best`` cannot be told apart.
        maps: whether recalibrating helps, and by which map.
    """

    functions: Finding
    maps: Finding


@dataclass(frozen=True, slots=True)
class ListedUnit:
    """One unit of a bin.

    Attributes:
        generation, task, position: of its answer; positions count from 0.
        atom: index of the atom to look at: itself, the first of its line, or the first of the answer.
        index: of the unit in its answer.
        status: its verdict.
        confidence: as its function gives it, or after the map.
        text, reference: what was said and what is right, untrusted; None where there is none.
    """

    generation: int
    task: str
    position: int
    atom: int
    index: int
    status: str
    confidence: float
    text: str | None
    reference: str | None


_Measured = tuple[str, str, str, str | None, str | None, str | None]
"""Unit, function, map, task, column and part of numbers."""


def _measured(choice: ViewChoice, function: str, calibrator: str) -> _Measured:
    return choice.unit, function, calibrator, choice.task, choice.slice, choice.part


Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")


class _Recent(Generic[Key, Kept]):
    """Keeps what was used last, up to a number of units in all; always the last one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[Key, tuple[Kept, int]] = OrderedDict()
        self._units = 0

    def get(self, key: Key) -> Kept | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Key, value: Kept, units: int) -> None:
        with self._lock:
            self._units += units - (self._kept[key][1] if key in self._kept else 0)
            self._kept[key] = value, units
            self._kept.move_to_end(key)
            while self._units > self._most and len(self._kept) > 1:
                self._units -= self._kept.popitem(last=False)[1][1]


class RunViews:
    """Reads and measures one run, as far as it has come when it is read.  Safe to be used by several threads.

    Args:
        database: the file.
        run: its number.
    """

    def __init__(self, database: Path, run: int) -> None:
        self.database = database
        self.run = run
        self.slice_names: tuple[str, ...] = ()
        self.signals_read = False
        self.stamp: tuple[object, ...] = ()
        self._columns: dict[str, UnitColumns] = {}
        self._scores: _Recent[tuple[str, str, str], dict[str, TaskScores]] = _Recent(MOST_SCORES)
        self._views: _Recent[ViewChoice, ConfidenceView] = _Recent(MOST_VIEWED)
        self._parts: dict[tuple[str, str], tuple[Part, ...]] = {}
        self._values: dict[_Measured, Mapping[str, TaskMean]] = {}
        self._intervals: dict[tuple[str, str, str | None, str | None], Mapping[str | None, Interval]] = {}
        self._course: CourseOfAnswers | None = None
        self._concluded: Concluded | None = None
        self._policies: dict[str, Found] = {}

    # --- reading ------------------------------------------------------------------------------------------------

    def read(self, unit: str) -> UnitColumns:
        """Read the units of one granularity with what every unit has, if they were not read before.

        Raises:
            StoreError: no such file or run.
        """
        if unit not in self._columns:
            with open_queries(self.database) as queries, queries.snapshot():
                if unit in PARTS:
                    self._columns.update(read_parts(queries, self.run).columns)
                else:
                    self._columns[unit] = queries.unit_columns(self.run, cast(UnitKind, unit))
                if not self.slice_names:
                    self.slice_names = slice_names(queries, self.run)
                    self.stamp = _stamp(queries, self.run)
        return self._columns[unit]

    def read_signals(self) -> None:
        """Read what else says how sure the units are; those of stored tokens take longest."""
        for unit in GRANULARITIES:
            columns = self.read(unit)
            with open_queries(self.database) as queries, queries.snapshot():
                names = functions_of(queries, self.run, unit)
                found = queries.unit_columns(self.run, unit, names)
            # A run that goes on may have more answers by now; what was measured is of those that were read first.
            if found.generation.size == columns.generation.size:
                self._columns[unit] = found
        self.signals_read = True

    def is_current(self) -> bool:
        """Return whether the run has no other answers and signals than when it was read.

        Raises:
            StoreError: no such file or run any more.
        """
        with open_queries(self.database) as queries, queries.snapshot():
            return _stamp(queries, self.run) == self.stamp

    def functions(self, unit: str) -> tuple[str, ...]:
        """Return the confidence functions and signals of the units that were read."""
        return tuple(self._columns[unit].confidences) if unit in self._columns else tuple(CONFIDENCE_FUNCTIONS)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks with an answer that counts."""
        return self._columns["atom"].task_names if "atom" in self._columns else ()

    def parts(self, unit: str, column: str) -> tuple[Part, ...]:
        """Return the slices of the units by a column.

        Raises:
            StoreError: no such file or run.
            UsageError: these units have no such column.
        """
        known = self._parts.get((unit, column))
        if known is None:
            with open_queries(self.database) as queries, queries.snapshot():
                known = slice_parts(queries, self.run, self.read(unit), column)
            self._parts[unit, column] = known
        return known

    # --- measuring ----------------------------------------------------------------------------------------------

    def known_view(self, choice: ViewChoice) -> ConfidenceView | None:
        """Return a view that was measured before and is still kept; None where it is not."""
        return self._views.get(choice)

    def view(self, choice: ViewChoice) -> ConfidenceView:
        """Measure a view, or return it as it was measured before.

        Raises:
            StoreError, UsageError: as `read` and `parts`.
            ValueError: as `confidence_view`.
        """
        known = self._views.get(choice)
        if known is None:
            columns = self.read(choice.unit)
            scores = self.scores(choice.unit, choice.function, choice.calibrator)
            known = confidence_view(columns, choice, self._part(choice), scores)
            self._views.put(choice, known, known.n)
        return known

    def side_by_side(self, choice: ViewChoice, most: int = MOST_SIDE_BY_SIDE) -> tuple[tuple[str, ConfidenceView], ...]:
        """Return the views of the parts of the slice, or of the tasks where nothing is sliced, with their names.

        Args:
            choice: the units.
            most: of them are measured, the first ones.
        """
        if choice.slice is not None:
            labels = [str(part.label) for part in self.parts(choice.unit, choice.slice)[:most]]
            return tuple((label, self.view(replace(choice, part=label))) for label in labels)
        tasks = self.read(choice.unit).task_names[:most]
        return tuple((task, self.view(replace(choice, task=task))) for task in tasks)

    def known_side_by_side(self, choice: ViewChoice) -> tuple[tuple[str, ConfidenceView], ...] | None:
        """Return these views where all of them were measured before and are still kept; None where they are not."""
        if choice.slice is not None:
            parts = self._parts.get((choice.unit, choice.slice), ())
            choices = {str(part.label): replace(choice, part=str(part.label)) for part in parts[:MOST_SIDE_BY_SIDE]}
        else:
            names = self._columns[choice.unit].task_names if choice.unit in self._columns else ()
            choices = {task: replace(choice, task=task) for task in names[:MOST_SIDE_BY_SIDE]}
        known = {name: self.known_view(one) for name, one in choices.items()}
        found = tuple((name, view) for name, view in known.items() if view is not None)
        return found if found and len(found) == len(known) else None

    def count_side_by_side(self, choice: ViewChoice) -> int:
        """Return how many there are."""
        if choice.slice is not None:
            return len(self.parts(choice.unit, choice.slice))
        return len(self.read(choice.unit).task_names)

    def scores(self, unit: str, function: str, calibrator: str) -> dict[str, TaskScores]:
        """Return the scores of a function after a map, by task."""
        key = unit, function, calibrator
        known = self._scores.get(key)
        if known is None:
            raw = None if calibrator == RAW else self.scores(unit, function, RAW)
            columns = self.read(unit)
            known = map_scores(columns, function, calibrator, raw)
            self._scores.put(key, known, columns.status.size)
        return known

    def _part(self, choice: ViewChoice) -> Part:
        if choice.slice is None:
            return WHOLE
        return next(part for part in self.parts(choice.unit, choice.slice) if part.label == choice.part)

    def known_numbers(self, choice: ViewChoice, function: str, after: str) -> SignalNumbers:
        """Return what is known of a signal on the chosen units; nothing is measured.

        Args:
            choice: the units.
            function: the signal.
            after: the map for the numbers after calibration.
        """
        raw, mapped = (self._values.get(_measured(choice, function, one)) for one in (RAW, after))
        intervals = self._intervals.get((choice.unit, function, choice.slice, choice.part), {})
        return SignalNumbers(function, raw, mapped, intervals.get(choice.task))

    def measure_numbers(self, choice: ViewChoice, function: str, calibrator: str) -> None:
        """Measure one signal on the chosen units after a map, if it was not measured before; no interval."""
        key = _measured(choice, function, calibrator)
        if key not in self._values:
            scores = self.scores(choice.unit, function, calibrator)
            self._values[key] = view_values(scores, choice.task, self._part(choice))

    def measure_interval(self, choice: ViewChoice, function: str) -> None:
        """Measure the intervals of raw AUROC, those of the report, of the chosen part for all tasks and for each."""
        key = choice.unit, function, choice.slice, choice.part
        if key in self._intervals:
            return
        wanted = RowChoice({function: (RAW,)}, ("auroc",), DRAWS, ("auroc",))
        (row,) = measure_rows(self.read(choice.unit), wanted, (self._part(choice),))
        found: dict[str | None, Interval] = {None: row.intervals["auroc"]} if "auroc" in row.intervals else {}
        for task, cell in row.tasks.items():
            if "auroc" in cell.intervals:
                found[task] = cell.intervals["auroc"]
        self._intervals[key] = found

    def course(self) -> CourseOfAnswers:
        """Return how atoms change along an answer."""
        if self._course is None:
            self._course = course_of_answers(self.read("atom"))
        return self._course

    def known_course(self) -> CourseOfAnswers | None:
        """Return how atoms change along an answer where that was measured before."""
        return self._course

    def concluded(self) -> Concluded | None:
        """Return what the report concludes, None while that is not known."""
        return self._concluded

    def conclude(self, step: Callable[[], object]) -> Concluded:
        """Conclude as the head of the report does, once all signals were read.

        Args:
            step: called before each piece of work of some tenths of a second; stops it by raising.
        """
        if self._concluded is None:
            atoms = self.read("atom")
            functions = conclude_functions(atoms, tuple(atoms.confidences), DRAWS, step)
            maps = conclude_maps(atoms, HEADLINE_FUNCTION, MAPS, DRAWS, step)
            said, right = stated_and_right(measure_rates(atoms), mean_confidences(atoms))
            self._concluded = Concluded(function_finding(functions), map_finding(maps, said, right))
        return self._concluded

    def policy(self, unit: str) -> Found:
        """Return the policy that keeps `PROMISE` about units of one granularity, or why nothing can be promised."""
        if unit not in self._policies:
            self._policies[unit] = find_policy(units_for_policy(self.read(unit)), (PROMISE,))
        return self._policies[unit]

    def known_policy(self, unit: str) -> Found | None:
        """Return the policy about units of one granularity if it was looked for already."""
        return self._policies.get(unit)

    # --- the units behind a bin ---------------------------------------------------------------------------------

    def listed(self, view: ConfidenceView, place: int) -> tuple[ListedUnit, ...]:
        """Return the first `MOST_LISTED` units of a bin: those that are not right, surest first, then the others.

        Args:
            view: of this run.
            place: of the bin.

        Raises:
            StoreError: the file cannot be read any more.
        """
        columns, unit = self.read(view.choice.unit), view.choice.unit
        rows = view.bin_rows(place)
        right = columns.status[rows] == UNIT_STATUSES.index("correct")
        rows = rows[np.argsort(right, kind="stable")][:MOST_LISTED]
        stated = dict(zip(view.rows.tolist(), view.confidence.tolist(), strict=True))
        found = []
        with open_queries(self.database) as queries, queries.snapshot():
            for row in rows.tolist():
                generation, index = int(columns.generation[row]), int(columns.index[row])
                record = None if unit in PARTS else queries.unit(generation, cast(UnitKind, unit), index)
                found.append(
                    ListedUnit(
                        generation=generation,
                        task=columns.task_names[columns.task[row]],
                        position=int(columns.position[row]),
                        atom=self._first_atom(unit, generation, index),
                        index=index,
                        status=UNIT_STATUSES[columns.status[row]],
                        confidence=stated[row],
                        text=None if record is None else record.text,
                        reference=None if record is None else record.reference,
                    )
                )
        return tuple(found)

    def _first_atom(self, unit: str, generation: int, index: int) -> int:
        if unit == "atom":
            return index
        atoms = self.read("atom")
        inside = atoms.generation == generation
        if unit == "line":
            inside &= atoms.line == index
        places = atoms.index[inside]
        return int(places.min()) if places.size else 0


def _stamp(queries: Queries, run: int) -> tuple[object, ...]:
    """Return what changes when answers are finished or computed again, or signals come and go."""
    answers = tuple((answer.generation, answer.revision, answer.answer_status) for answer in queries.answers(run))
    return (*answers, *((signal.shown, signal.kinds) for signal in queries.signal_names(run)))


def ordered_by_auroc(numbers: Sequence[SignalNumbers]) -> list[SignalNumbers]:
    """Return the signals, the one with the highest AUROC first, those without one or not measured yet last."""

    def key(found: SignalNumbers) -> float:
        value = None if found.raw is None else found.raw["auroc"].mean.value
        return np.inf if value is None else -value

    return sorted(numbers, key=key)
