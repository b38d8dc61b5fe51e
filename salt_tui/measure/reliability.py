"""Stated confidence beside observed correctness, and how surprising one wrong atom is: of a stored run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from salt_tui.measure.task_scores import raw_scores, task_units
from salt_tui.store.queries import open_queries
from salt_tui.store.results import WrongAtom
from scoring.calibration_error import Bins, equal_width_bins
from scoring.confidence import HEADLINE_FUNCTION
from scoring.scored_units import ScoredUnits


@dataclass(frozen=True, slots=True)
class Reliability:
    """A run's atoms by raw `HEADLINE_FUNCTION`, all tasks together.

    Attributes:
        bins: equal-width bins that hold atoms; missing and abstained atoms are in none.
        surest_wrong: the wrong or redundant atom with the highest confidence; None when there is none.
        surer_than: share of its task's atoms with strictly less confidence, in [0, 1]; None without such an atom.
    """

    bins: Bins
    surest_wrong: WrongAtom | None
    surer_than: float | None


def measure_reliability(database: Path, run: int, bins: int) -> Reliability:
    """Read the atoms of a run and measure them; see `Reliability`.

    Raises:
        StoreError: no such file or run.
        ValueError: for fewer than one bin.
    """
    with open_queries(database) as queries, queries.snapshot():
        columns = queries.unit_columns(run, "atom", (HEADLINE_FUNCTION,))
        surest = next(iter(queries.confidently_wrong(run, 1)), None)
    by_task = {task: raw_scores(columns, task_units(columns, task), HEADLINE_FUNCTION) for task in columns.task_names}
    scores = [scored.ranking for scored in by_task.values()]
    correct = [scored.correct for scored in by_task.values()]
    units = ScoredUnits.from_columns(np.concatenate([[], *scores]), np.concatenate([np.zeros(0, bool), *correct]))
    surer_than = None
    if surest is not None:
        surer_than = float((by_task[surest.task].ranking < surest.max_probability).mean())
    return Reliability(equal_width_bins(units, bins), surest, surer_than)
