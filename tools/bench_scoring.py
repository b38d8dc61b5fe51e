"""Time scoring beside a straightforward version of the same thing, in one run: `python -m tools.bench_scoring`.

`--quick` measures a tenth of the units.  The straightforward versions are scikit-learn, or plain Python where it has
nothing; where they would take minutes they run on a part, and the table says on which.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scoring.alignment import align
from scoring.bootstrap import bootstrap_intervals
from scoring.calibrators import calibrator
from scoring.conclusions import DRAWS, Alternatives, conclude
from scoring.cross_fitting import cross_fit
from scoring.metrics import evaluate_units
from scoring.scored_units import ScoredUnits

SEED = 20260424
UNITS_PER_GENERATION = 20
BOOTSTRAP_METRICS = ("ece", "brier", "auroc")

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """Units as stored: confidences, outcomes, and the generation of each."""

    confidence: Column
    correct: NDArray[np.bool_]
    generation: NDArray[np.int64]

    @classmethod
    def of(cls, units: int, generator: np.random.Generator) -> Table:
        """Draw units whose confidence is too high, as models are."""
        confidence = generator.random(units)
        generation = np.arange(units) // UNITS_PER_GENERATION
        return cls(confidence, generator.random(units) < confidence**1.5, generation)

    def head(self, units: int) -> Table:
        """The first units."""
        return Table(self.confidence[:units], self.correct[:units], self.generation[:units])


@dataclass(frozen=True, slots=True)
class Timing:
    """One line of the table; ``share`` is the part that the straightforward version ran on."""

    what: str
    ours: float
    plain: float | None
    share: float
    target: float | None

    def __str__(self) -> str:
        """The line, with the straightforward time extrapolated to the whole."""
        limit = "" if self.target is None else f"{self.target:g} s"
        if self.plain is None:
            return f"{self.what:<58}{self.ours:>9.3f} s  {limit:>7}"
        whole = self.plain / self.share
        note = "" if self.share == 1.0 else f"  (measured on {self.share:.1%})"
        return f"{self.what:<58}{self.ours:>9.3f} s  {limit:>7}{whole:>11.2f} s{whole / self.ours:>8.0f}×{note}"


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain_metrics(table: Table) -> None:
    """What scikit-learn has of the same metrics: AUROC, average precision, Brier, NLL; ECE and micro AUROC by hand."""
    from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

    roc_auc_score(table.correct, table.confidence)
    average_precision_score(table.correct, table.confidence)
    brier_score_loss(table.correct, table.confidence)
    log_loss(table.correct, table.confidence)
    plain_ece(table)
    for start in range(0, table.correct.size, UNITS_PER_GENERATION):
        confidence, correct = (
            table.confidence[start:][:UNITS_PER_GENERATION],
            table.correct[start:][:UNITS_PER_GENERATION],
        )
        if 0 < correct.sum() < correct.size:
            (confidence[correct][:, None] > confidence[~correct][None, :]).mean()


def plain_ece(table: Table) -> float:
    """ECE by masks, one bin after the other."""
    error = 0.0
    for number in range(15):
        held = (table.confidence > number / 15) & (table.confidence <= (number + 1) / 15)
        if held.any():
            error += abs(table.confidence[held].sum() - table.correct[held].sum()) / table.correct.size
    return error


def plain_bootstrap(table: Table, draws: int, generator: np.random.Generator) -> None:
    """Draw generations, put the rows together, and measure each draw from the start."""
    from sklearn.metrics import brier_score_loss, roc_auc_score

    groups = np.split(np.arange(table.correct.size), table.correct.size // UNITS_PER_GENERATION)
    for _ in range(draws):
        rows = np.concatenate([groups[i] for i in generator.integers(0, len(groups), len(groups))])
        drawn = Table(table.confidence[rows], table.correct[rows], table.generation[rows])
        plain_ece(drawn)
        brier_score_loss(drawn.correct, drawn.confidence)
        roc_auc_score(drawn.correct, drawn.confidence)


def plain_alignment(generated: Sequence[str], reference: Sequence[str]) -> int:
    """Needleman–Wunsch cell by cell."""
    above = [0] * (len(reference) + 1)
    for unit in generated:
        row = [0]
        for column, wanted in enumerate(reference, start=1):
            row.append(max(above[column - 1] + (unit == wanted), above[column], row[-1]))
        above = row
    return above[-1]


def plain_cross_fit(table: Table, method: str) -> None:
    """Grouped five-fold cross-fitting with scikit-learn."""
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    for training, test in GroupKFold(5).split(table.confidence, table.correct, table.generation):
        scores, labels = table.confidence[training], table.correct[training]
        if method == "isotonic":
            IsotonicRegression(out_of_bounds="clip").fit(scores, labels).predict(table.confidence[test])
        else:
            model = LogisticRegression(C=1e9).fit(scores[:, None], labels)
            model.predict_proba(table.confidence[test][:, None])


def candidates(tasks: int, answers: int, functions: int, generator: np.random.Generator) -> list[Alternatives]:
    """Tasks of answers of twenty units, with functions that know a little."""
    made = []
    for number in range(tasks):
        table = Table.of(answers * UNITS_PER_GENERATION, generator)
        scores = {
            f"function {place}": table.confidence + generator.normal(0.0, 0.3, table.confidence.size)
            for place in range(functions)
        }
        made.append(Alternatives(str(number), table.correct, table.generation, scores))
    return made


def plain_conclusion(tasks: Sequence[Alternatives], draws: int, generator: np.random.Generator) -> None:
    """Draw answers, put the rows together, and rank each function of each draw from the start."""
    from sklearn.metrics import roc_auc_score

    for task in tasks:
        groups = np.split(np.arange(task.correct.size), task.correct.size // UNITS_PER_GENERATION)
        for _ in range(draws):
            rows = np.concatenate([groups[i] for i in generator.integers(0, len(groups), len(groups) - 1)])
            for scores in task.scores.values():
                roc_auc_score(task.correct[rows], scores[rows])


def measure(scale: float) -> list[Timing]:
    """Every line, at ``scale`` of the full size."""
    generator = np.random.default_rng(SEED)
    large = Table.of(int(1_000_000 * scale), generator)
    middle = large.head(int(100_000 * scale))
    draws, units = int(1000 * scale), int(2000 * scale)
    seconds(lambda: plain_metrics(large.head(200)))  # imports are not what is measured
    seconds(lambda: plain_cross_fit(large.head(200), "isotonic"))
    full = 1.0
    timings = [
        Timing(
            f"all metrics, {large.correct.size:,} atoms",
            seconds(
                lambda: evaluate_units(
                    ScoredUnits.from_columns(large.confidence, large.correct, large.generation), probability=True
                )
            ),
            seconds(lambda: plain_metrics(large.head(large.correct.size // 50))),
            1 / 50,
            2.0 * scale,
        )
    ]
    timings.append(
        Timing(
            f"{draws} bootstrap draws of {len(BOOTSTRAP_METRICS)} metrics, {middle.correct.size:,} atoms",
            seconds(
                lambda: bootstrap_intervals(
                    middle.confidence,
                    middle.correct,
                    middle.generation,
                    generator,
                    names=BOOTSTRAP_METRICS,
                    draws=draws,
                )
            ),
            seconds(lambda: plain_bootstrap(middle, 5, generator)),
            5 / draws,
            10.0 * scale,
        )
    )
    words = [str(number) for number in generator.integers(0, 50, units)]
    others = [str(number) for number in generator.integers(0, 50, units)]
    timings.append(
        Timing(
            f"alignment of {units} with {units} units",
            seconds(lambda: align(words, others)),
            seconds(lambda: plain_alignment(words, others)),
            full,
            0.2,
        )
    )
    tasks = candidates(8, 20, 9, generator)
    timings.append(
        Timing(
            "which of 9 functions, 8 tasks of 20 answers",
            seconds(lambda: conclude(tasks, "auroc", generator)),
            seconds(lambda: plain_conclusion(tasks, 5, generator)),
            5 / DRAWS,
            0.2,
        )
    )
    for name in ("isotonic", "platt"):
        timings.append(
            Timing(
                f"{name}, five folds, {middle.correct.size:,} atoms",
                seconds(
                    lambda name=name: cross_fit(calibrator(name), middle.confidence, middle.correct, middle.generation)
                ),
                seconds(partial(plain_cross_fit, middle, name)),
                full,
                None,
            )
        )
    return timings


def main(arguments: list[str]) -> int:
    """Print the table; 2 for unknown arguments or without scikit-learn."""
    if arguments not in ([], ["--quick"]):
        print("usage: python -m tools.bench_scoring [--quick]", file=sys.stderr)
        return 2
    try:
        import sklearn  # noqa: F401
    except ImportError:
        print("scikit-learn is needed for the comparison: pip install scikit-learn", file=sys.stderr)
        return 2
    print(f"{'':<58}{'ours':>11}  {'limit':>7}{'plain':>13}")
    for timing in measure(0.1 if arguments else 1.0):
        print(timing)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
