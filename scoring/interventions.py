"""What a prefix intervention gave, as columns: designs, pairing with the baseline (SALT section 5.1, appendix B.2).

A row is one replay of one target: the answer's beginning, changed or not, and what the model then wrote at position
p*.  A triple is one (model, problem, p*); its unchanged replay is the baseline of its other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scoring.intervals import Interval
from scoring.scored_units import FloatArray
from scoring.value import UNDEFINED_IN_EVERY_DRAW

LOCAL_WINDOW = 10
"""Atoms before the target that the local treatment is about (SALT appendix B.2.1)."""

SEED = 20260424
"""Of the subsample behind curves and of every bootstrap (SALT appendix B.2.6)."""

GRID_POINTS = 60
"""Points of a curve, from the 1st to the 99th percentile of the treatment (SALT appendix B.2.6)."""

ROWS_PER_MODEL = 2000
"""Rows of a model that a curve averages over at most (SALT appendix B.2.6)."""

FEWEST_PROBLEMS = 10
"""Below it there are no intervals and no clustered test: a resample of fewer problems says too little (ours)."""

NO_ROWS = "no rows"
NO_BASELINE = "a target has no unchanged replay"
ONE_DOSE = "one dose"
NOTHING_CHANGED = "no outcome differs from its baseline"
FEWER_ROWS_THAN_TERMS = "fewer rows than terms"
NO_CORRECTION = "no correction"
NO_CORRUPTION = "no corruption"
NO_TARGET_WITH_BOTH = "no target was both corrected and corrupted"
TOO_FEW_PROBLEMS = f"fewer than {FEWEST_PROBLEMS} problems"

Outcome: TypeAlias = Literal["outcome", "probability"]
"""``outcome``: Y, 1 if the regenerated atom equals gold, else 0; ``probability``: P(gold) of the same position."""

OUTCOMES: tuple[Outcome, ...] = ("outcome", "probability")


@dataclass(frozen=True, slots=True)
class InterventionRow:
    """One replay of one target.

    Attributes:
        model: name of the model.
        problem: content hash of the problem.
        target: p*, counted from 1.
        baseline: whether the prefix is the unchanged one.
        treatment_global: change of the fraction of right atoms over 1..p*−1, in [−1, 1]; 0 for a baseline.
        treatment_local: the same over the last ten.
        correct_before: fraction of right atoms over 1..p*−1 of the unchanged prefix, in [0, 1].
        correct_before_local: the same over the last ten.
        outcome: Y, 0 or 1.
        probability: P(gold), in [0, 1]; None where the engine cannot give it.
    """

    model: str
    problem: str
    target: int
    baseline: bool
    treatment_global: float
    treatment_local: float
    correct_before: float
    correct_before_local: float
    outcome: int
    probability: float | None


@dataclass(frozen=True, slots=True)
class InterventionTable:
    """Rows of one outcome as columns, each of shape ``(n,)``.

    Attributes:
        models: names of the models, in order of first appearance.
        problems: content hashes, alike.
        model: index into `models`.
        problem: index into `problems`.
        triple: number of the (model, problem, p*).
        target: p*, counted from 1.
        baseline: whether the prefix is the unchanged one.
        treatments: `global` and `local`, by name.
        correct_before: by the same names, of the unchanged prefix.
        outcome: Y or P(gold), in [0, 1].
        paired: outcome minus that of the triple's baseline, in [−1, 1]; 0 for the baseline itself (eq. 4).
    """

    models: tuple[str, ...]
    problems: tuple[str, ...]
    model: NDArray[np.int64]
    problem: NDArray[np.int64]
    triple: NDArray[np.int64]
    target: NDArray[np.int64]
    baseline: NDArray[np.bool_]
    treatments: Mapping[str, FloatArray]
    correct_before: Mapping[str, FloatArray]
    outcome: FloatArray
    paired: FloatArray

    @classmethod
    def from_rows(cls, rows: Sequence[InterventionRow], outcome: Outcome) -> InterventionTable:
        """Pair every row with the baseline of its triple.

        Rows without the outcome (P(gold) where an engine cannot give it) are left out first.

        Raises:
            ValueError: if a triple has not exactly one baseline, or a number is out of range.
        """
        kept = [row for row in rows if outcome == "outcome" or row.probability is not None]
        values = np.array([row.outcome if outcome == "outcome" else row.probability for row in kept], dtype=np.float64)
        treatments = {
            "global": np.array([row.treatment_global for row in kept], dtype=np.float64),
            "local": np.array([row.treatment_local for row in kept], dtype=np.float64),
        }
        before = {
            "global": np.array([row.correct_before for row in kept], dtype=np.float64),
            "local": np.array([row.correct_before_local for row in kept], dtype=np.float64),
        }
        _require_range("outcome", values, 0.0)
        for name in treatments:
            _require_range(f"treatment {name}", treatments[name], -1.0)
            _require_range(f"correct before, {name}", before[name], 0.0)
        models, model = _codes([row.model for row in kept])
        problems, problem = _codes([row.problem for row in kept])
        _, triple = _codes([(row.model, row.problem, row.target) for row in kept])
        baseline = np.array([row.baseline for row in kept], dtype=bool)
        count = int(triple.max()) + 1 if kept else 0
        if (np.bincount(triple[baseline], minlength=count) != 1).any():
            raise ValueError(f"every target has exactly one baseline: {NO_BASELINE}, or it has several")
        base = np.zeros(count)
        base[triple[baseline]] = values[baseline]
        return cls(
            models=models,
            problems=problems,
            model=model,
            problem=problem,
            triple=triple,
            target=np.array([row.target for row in kept], dtype=np.int64),
            baseline=baseline,
            treatments=treatments,
            correct_before=before,
            outcome=values,
            paired=values - base[triple],
        )

    @property
    def size(self) -> int:
        """Number of rows, baselines included."""
        return int(self.model.size)

    @property
    def targets(self) -> int:
        """Number of triples."""
        return int(self.baseline.sum())

    def selected(self, rows: NDArray[np.bool_]) -> InterventionTable:
        """Return the table of these rows; models and problems that are left without rows disappear."""
        models, model = _codes(self.model[rows].tolist())
        problems, problem = _codes(self.problem[rows].tolist())
        _, triple = _codes(self.triple[rows].tolist())
        return InterventionTable(
            models=tuple(self.models[code] for code in models),
            problems=tuple(self.problems[code] for code in problems),
            model=model,
            problem=problem,
            triple=triple,
            target=self.target[rows],
            baseline=self.baseline[rows],
            treatments={name: column[rows] for name, column in self.treatments.items()},
            correct_before={name: column[rows] for name, column in self.correct_before.items()},
            outcome=self.outcome[rows],
            paired=self.paired[rows],
        )

    def with_both_directions(self, treatment: str) -> InterventionTable:
        """Return the rows of the triples that this treatment raised in one row and lowered in another."""
        dose = self.treatments[treatment]
        raised = np.zeros(self.size, dtype=bool)
        lowered = np.zeros(self.size, dtype=bool)
        raised[self.triple[dose > 0.0]] = True
        lowered[self.triple[dose < 0.0]] = True
        return self.selected((raised & lowered)[self.triple])


def curve_grid(treatment: FloatArray) -> FloatArray:
    """Return the points a curve is drawn at: 60, evenly from the 1st to the 99th percentile (linear quantiles)."""
    low, high = np.quantile(treatment, [0.01, 0.99])
    return np.linspace(low, high, GRID_POINTS)


def drawn_problems(table: InterventionTable, draws: int) -> NDArray[np.int64]:
    """Return how often each problem is in each resample of problems, shape ``(draws, problems)``, always the same."""
    generator = np.random.default_rng(SEED)
    count = len(table.problems)
    return np.array(
        [np.bincount(generator.integers(0, count, size=count), minlength=count) for _ in range(draws)], dtype=np.int64
    )


def percentile_interval(resamples: FloatArray) -> Interval:
    """Return the 95 % percentile interval of resamples; those that are NaN, undefined, are left out and counted.

    Args:
        resamples: shape ``(draws,)``.
    """
    defined = resamples[~np.isnan(resamples)]
    if not defined.size:
        return Interval(None, None, left_out=int(resamples.size), reason=UNDEFINED_IN_EVERY_DRAW)
    low, high = np.quantile(defined, [0.025, 0.975])
    return Interval(float(low), float(high), draws=int(defined.size), left_out=int(resamples.size - defined.size))


def _codes(values: Sequence[object]) -> tuple[tuple, NDArray[np.int64]]:  # type: ignore[type-arg]
    """Number the distinct values in order of first appearance."""
    numbers: dict[object, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return tuple(numbers), np.array(codes, dtype=np.int64)


def _require_range(name: str, values: FloatArray, low: float) -> None:
    wrong = ~((values >= low - 1e-9) & (values <= 1.0 + 1e-9))
    if wrong.any():
        raise ValueError(f"{name} lies in [{low:g}, 1], not {float(values[wrong][0])}")
