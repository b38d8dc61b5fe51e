"""One answer as a map shows it, compact: 77 bytes for an atom, so that a million of them fit."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from salt_tui.app.maze_drawing import Maze
from salt_tui.app.row_flow import Flow
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.labels import UNIT_STATUSES

KINDS: tuple[str, ...] = ("atom", "line")
"""The granularities that a map can show."""

FUNCTIONS: tuple[str, ...] = tuple(CONFIDENCE_FUNCTIONS)
COLUMNS = {name: column for column, name in enumerate(FUNCTIONS)}
_NONE: NDArray[np.float64] = np.empty(0)
STATUS_CODES: dict[str, int] = {status: code for code, status in enumerate(UNIT_STATUSES)}


class UnitCells:
    """The units of one kind of one answer, in order of index.

    Attributes:
        statuses: one code of `STATUS_CODES` per unit.
        lines: the 0-based line that each unit stands on.
        lengths: units of each line that is shown, in order; all together where the units are the lines.
        values: `FUNCTIONS` per unit, NaN for undefined; doubles, so that no two tie that the report tells apart.
        signals: by name, the scores that studies or others gave to the units, as far as they were read; NaN for
            undefined.
        texts: what was said and what is right, while the answer is being written; None when only the store knows.

    Args:
        kind: one of `KINDS`.
    """

    __slots__ = ("_flow", "_flow_of", "_one_line", "lengths", "lines", "signals", "statuses", "texts", "values")

    def __init__(self, kind: str) -> None:
        """Start without units."""
        self.statuses = bytearray()
        self.lines = array("H")
        self.lengths = array("I")
        self.values = array("d")
        self.signals: dict[str, NDArray[np.float64]] = {}
        self.texts: list[tuple[str | None, str | None]] | None = None
        self._one_line = kind == "line"
        self._flow: Flow | None = None
        self._flow_of: tuple[int, int, bool, bool, bool] | None = None

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self.statuses)

    def add(self, status: str, line: int, values: Sequence[float | None]) -> None:
        """Append one unit with the values of `FUNCTIONS`, None for undefined."""
        line = min(line, 65_535)
        if self.lengths and (self._one_line or self.lines[-1] == line):
            self.lengths[-1] += 1
        else:
            self.lengths.append(1)
        self.statuses.append(STATUS_CODES[status])
        self.lines.append(line)
        self.values.extend([math.nan if value is None else value for value in values])

    def fill(self, statuses: NDArray[np.uint8], lines: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Take the units of a finished answer at once, as `add` would one after the other.

        Args:
            statuses: codes of `STATUS_CODES`, shape ``(n,)``.
            lines: 0-based, shape ``(n,)``.
            values: of `FUNCTIONS`, NaN for undefined, shape ``(n, 9)``.
        """
        lines = np.minimum(lines, 65_535).astype(np.uint16)
        starts = [] if self._one_line else (np.flatnonzero(lines[1:] != lines[:-1]) + 1).tolist()
        ends = [*starts, len(lines)] if len(lines) else []
        self.statuses = bytearray(statuses.tobytes())
        self.lines = array("H", lines.tobytes())
        self.lengths = array("I", (end - start for start, end in zip([0, *starts], ends, strict=False)))
        self.values = array("d", values.astype(np.float64).tobytes())

    def take(self, other: UnitCells, count: int) -> None:
        """Hold the first units of another."""
        self.statuses = other.statuses[:count]
        self.lines = other.lines[:count]
        self.values = other.values[: count * len(FUNCTIONS)]
        self.signals = {name: values[:count] for name, values in other.signals.items()}
        self.lengths = array("I")
        for number, line in enumerate(self.lines):
            if number and (self._one_line or self.lines[number - 1] == line):
                self.lengths[-1] += 1
            else:
                self.lengths.append(1)
        self._flow = None

    def flow(self, width: int, *, grid: bool, merged: bool, growing: bool) -> Flow:
        """Return the units broken into rows of ``width`` cells.

        Kept for the last width and number of units: laying out 1,000,000 atoms anew must not hold a key up.
        """
        asked = (width, len(self.statuses), grid, merged, growing)
        if self._flow is None or self._flow_of != asked:
            self._flow = Flow(self.lengths, self.statuses, width, grid=grid, merged=merged, growing=growing)
            self._flow_of = asked
        return self._flow

    @property
    def asked(self) -> int:
        """Units of the reference, as far as they are labelled: all but redundant ones."""
        return len(self.statuses) - self.statuses.count(STATUS_CODES["redundant"])

    def asked_lines(self) -> list[int]:
        """Return how many units of the reference stand on each line that has one, in order of lines."""
        kept = np.frombuffer(self.statuses, dtype=np.uint8) != STATUS_CODES["redundant"]
        counts = np.bincount(np.frombuffer(self.lines, dtype=np.uint16)[kept])
        return [int(count) for count in counts if count]

    @property
    def correct(self) -> int:
        """Units that are right."""
        return self.statuses.count(STATUS_CODES["correct"])

    @property
    def generated(self) -> int:
        """Units that the model said."""
        return len(self.statuses) - self.statuses.count(STATUS_CODES["missing"])

    def status(self, index: int) -> str:
        """Return the status of a unit."""
        return UNIT_STATUSES[self.statuses[index]]

    def value(self, index: int, function: str) -> float | None:
        """Return the value of a unit by a function or signal, None where it is undefined."""
        value = float(self.column(range(index, index + 1), function)[0])
        return None if math.isnan(value) else value

    def column(self, units: range, function: str) -> Sequence[float] | NDArray[np.float64]:
        """Return the values of neighbouring units by a function or signal, NaN where undefined."""
        width, column = len(FUNCTIONS), COLUMNS.get(function)
        if column is not None:
            return self.values[units.start * width + column : units.stop * width : width]
        known = self.signals.get(function, _NONE)[units.start : units.stop]
        missing = len(units) - known.size
        return np.concatenate([known, np.full(missing, np.nan)]) if missing else known

    def copied(self, function: str) -> NDArray[np.float64]:
        """Return a copy of all values by a function or signal, NaN where undefined."""
        return np.array(self.column(range(len(self)), function), dtype=np.float64)

    def clear(self) -> None:
        """Forget all units."""
        self.statuses.clear()
        self.lines = array("H")
        self.lengths = array("I")
        self.values = array("d")
        self.signals = {}
        self._flow = None
        if self.texts is not None:
            self.texts = []


@dataclass(slots=True)
class AnswerCells:
    """One answer.

    Attributes:
        generation: its number in the store.
        position: of the problem in its task, 0-based.
        status: ``waiting``, ``prompt``, ``streaming`` or an answer status.
        prompt_done, prompt_total: tokens, while the prompt is evaluated.
        units: by kind.
        reference_lines: atoms on each line of the reference; empty where that is not known beforehand.
        maze: the problem, where it is a maze that is drawn; None otherwise.
        moves: of a maze, the text of each atom, None for one that was not said.
    """

    generation: int
    task: str
    position: int
    status: str = "waiting"
    prompt_done: int = 0
    prompt_total: int = 0
    tokens: int = 0
    units: dict[str, UnitCells] = field(default_factory=lambda: {kind: UnitCells(kind) for kind in KINDS})

    reference_lines: tuple[int, ...] = ()
    maze: Maze | None = None
    moves: list[str | None] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing is added to it any more."""
        return self.status not in {"waiting", "prompt", "streaming"}

    def asked_lines(self, kind: str) -> Sequence[int]:
        """Return how many units are asked for on each line: by the reference, else by the labels."""
        if kind == "line":
            return [len(self.reference_lines) or self.units[kind].asked]
        if self.reference_lines:
            return self.reference_lines
        return self.units[kind].asked_lines() if self.ended else ()

    def keep_texts(self) -> None:
        """Keep what is said from now on; for an answer that is being written."""
        for cells in self.units.values():
            cells.texts = []

    def drop_texts(self) -> None:
        """Leave the texts to the store."""
        for cells in self.units.values():
            cells.texts = None

    def clear(self) -> None:
        """Forget all units: they were withdrawn, or the answer is tried again."""
        for cells in self.units.values():
            cells.clear()
        self.moves.clear()
