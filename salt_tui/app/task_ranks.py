"""How sure a unit is among those of its task, by every confidence function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from salt_tui.app.answer_cells import STATUS_CODES
from salt_tui.app.atom_map import AtomMap
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.labels import CONFIDENCE_STATUSES

_COUNTED = np.array([status in CONFIDENCE_STATUSES for status in STATUS_CODES])


class TaskRanks:
    """Ranks among the atoms of a map that count; the values of a task are sorted once for every version of the map."""

    def __init__(self, atom_map: AtomMap) -> None:
        self._map = atom_map
        self._sorted: dict[tuple[str, str], tuple[int, NDArray[np.float64]]] = {}

    def rank(self, task: str, function: str, value: float) -> tuple[int, int]:
        """Return the place of a value among the atoms of a task, 1 for the surest, and of how many atoms.

        A value that no atom has, as one of an edited branch, is counted beside them: place n + 1 is of n + 1.
        """
        ordered = self._of(task, function)
        oriented = value if CONFIDENCE_FUNCTIONS[function].higher_is_confident else -value
        above, reached = (int(np.searchsorted(ordered, oriented, side=side)) for side in ("right", "left"))
        return 1 + ordered.size - above, ordered.size + (above == reached)

    def _of(self, task: str, function: str) -> NDArray[np.float64]:
        version, ordered = self._sorted.get((task, function), (-1, np.empty(0)))
        if version != self._map.version:
            parts = [np.empty(0)]
            for answer in self._map.answers:
                cells = answer.units["atom"]
                if answer.task == task and len(cells):
                    parts.append(cells.copied(function)[_COUNTED[np.frombuffer(cells.statuses, dtype=np.uint8)]])
            known = np.concatenate(parts)
            entry = CONFIDENCE_FUNCTIONS[function]
            ordered = np.sort(entry.oriented(known[~np.isnan(known)]))
            self._sorted[task, function] = self._map.version, ordered
        return ordered
