"""``salt-tui metrics``: every metric of a table that came from elsewhere, its bins and its curves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from salt_tui.commands.failures import DONE, say
from salt_tui.commands.line_width import terminal_width
from salt_tui.csv_rows import write_csv
from salt_tui.inputs.score_tables import CORRECT, ScoreTable, read_rewards, read_scores
from salt_tui.measure.score_table import (
    TableMeasures,
    euro_curve,
    measure_table,
    risk_curve,
    table_densities,
    table_label_noise,
)
from salt_tui.number_text import signed
from salt_tui.reports.cells import bar, direction, interval_notes, range_text
from salt_tui.reports.json_report import ends
from salt_tui.reports.text_tables import TextTable, interval_text, number, value_text
from salt_tui.reports.wrapping import wrapped
from salt_tui.usage_error import UsageError
from scoring.calibration_error import BINS, Bins
from scoring.decision_utility import Utility
from scoring.metrics import METRICS, metrics_record
from scoring.value import json_number

MOST_BINS = 1000
MOST_DRAWS = 100_000


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table is read and measured; names of columns are None where the usual ones are meant."""

    confidence: str | None = None
    correct: str = CORRECT
    group: str | None = None
    weight: str | None = None
    probability: bool = True
    lower_is_confident: bool = False
    rewards: str | None = None
    bins: int = BINS
    draws: int = 0


def print_metrics(file: Path, options: TableOptions, *, curve: str | None, json_output: bool) -> int:
    """Print the metrics of a CSV file, as one JSON object or as a table, or one of its curves as CSV.

    With rewards, what deciding by confidence earns under them, and both ends of the metrics that need a yardstick.

    Raises:
        UsageError: options out of range or that do not go together, or a file that cannot be read.
    """
    _check(options, curve)
    table = read_scores(
        file,
        score=options.confidence,
        correct=options.correct,
        group=options.group,
        weight=options.weight,
        probability=options.probability,
    )
    if not table.score.size and not table.skipped:
        raise UsageError(f"{file}: holds no rows")
    measures = measure_table(
        table,
        probability=options.probability,
        lower_is_confident=options.lower_is_confident,
        rewards=None if options.rewards is None else read_rewards(options.rewards),
        bins=options.bins,
        draws=options.draws,
    )
    if measures.skipped and not json_output:
        say(f"skipped: {', '.join(f'{count} rows, {reason}' for reason, count in measures.skipped.items())}")
    if curve is not None:
        write_csv(sys.stdout, CURVES[curve].rows(table, measures, options))
    elif json_output:
        print(json.dumps(measures_data(table, measures, options), ensure_ascii=False, allow_nan=False))
    else:
        _print_tables(measures, options)
    return DONE


def _check(options: TableOptions, curve: str | None) -> None:
    if options.rewards is not None and not options.probability:
        raise UsageError("--rewards needs probabilities: leave --not-probability out, or calibrate first")
    if not 1 <= options.bins <= MOST_BINS:
        raise UsageError(f"--bins {options.bins}: a number from 1 to {MOST_BINS}")
    if not 0 <= options.draws <= MOST_DRAWS:
        raise UsageError(f"--draws {options.draws}: a number from 0 (no intervals) to {MOST_DRAWS:,}")
    if curve is not None and curve not in CURVES:
        raise UsageError(f"--curve {curve}: there are {', '.join(CURVES)}")
    if curve is not None and CURVES[curve].needs_probability and not options.probability:
        raise UsageError(f"--curve {curve} needs probabilities: leave --not-probability out, or calibrate first")


Rows = Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve that can be printed as CSV.

    Attributes:
        rows: the header and the points.
        needs_probability: whether scores must be probabilities.
    """

    rows: Callable[[ScoreTable, TableMeasures, TableOptions], Rows]
    needs_probability: bool


def _risk_rows(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> Rows:
    curve = risk_curve(measures)
    sign = -1.0 if options.lower_is_confident else 1.0
    thresholds = (sign * curve.threshold).tolist()
    return [
        ["threshold", "coverage", "risk"],
        *zip(thresholds, curve.coverage.tolist(), curve.risk.tolist(), strict=True),
    ]


def _euro_rows(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> Rows:
    return [["utility", "euro"], *euro_curve(measures)]


def _bin_rows(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> Rows:
    assert measures.bins is not None  # the curve needs probabilities
    names = ["lower", "upper", "n", "confidence", "accuracy", "gap"]
    return [names, *([row[name] for name in names] for row in bins_data(measures.bins))]


def _bin_count_rows(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> Rows:
    return [["bins", "ece"], *((bins, error.value) for bins, error in measures.errors.items())]


def _density_rows(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> Rows:
    found = table_densities(table, lower_is_confident=options.lower_is_confident)
    nothing = [None] * (len(found.edges) - 1)
    columns = zip(found.edges, found.edges[1:], found.right or nothing, found.wrong or nothing, strict=False)
    return [["lower", "upper", "right", "wrong"], *columns]


def _noise_rows(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> Rows:
    found = table_label_noise(table, lower_is_confident=options.lower_is_confident)
    names = ["wrong_labels", "expected_shift", "largest_shift", "auroc", "deviation"]
    rows = [
        [
            level.share,
            *(
                value.value
                for value in (level.expected_shift, level.largest_shift, level.simulated, level.simulated_deviation)
            ),
        ]
        for level in found.levels
    ]
    return [names, [0.0, 0.0, 0.0, found.auroc.value, 0.0], *rows]


CURVES: dict[str, Curve] = {
    "risk-coverage": Curve(_risk_rows, needs_probability=False),
    "euro": Curve(_euro_rows, needs_probability=True),
    "bins": Curve(_bin_rows, needs_probability=True),
    "bin-counts": Curve(_bin_count_rows, needs_probability=True),
    "densities": Curve(_density_rows, needs_probability=True),
    "label-noise": Curve(_noise_rows, needs_probability=False),
}
"""By the name on the command line."""


def measures_data(table: ScoreTable, measures: TableMeasures, options: TableOptions) -> dict[str, Any]:
    """Return the JSON object of ``metrics``."""
    record: dict[str, Any] = dict(metrics_record(measures.rows, measures.values))
    record["skipped"] = dict(measures.skipped)
    record["intervals"] = {name: ends(interval) for name, interval in measures.intervals.items()}
    record["interval_reasons"] = {
        name: interval.reason for name, interval in measures.intervals.items() if interval.reason is not None
    }
    record["bins"] = None if measures.bins is None else bins_data(measures.bins)
    record["bins_requested"] = options.bins
    record["ece_by_bins"] = {str(bins): error.value for bins, error in measures.errors.items()}
    if table.weights is not None:
        record["weight"] = float(table.weights.sum())
    if measures.utility is not None:
        record["utility"] = _utility_data(measures.utility)
        record["yardsticks"] = {
            name: {"oracle": json_number(end.oracle.value), "base_rate": json_number(end.base_rate.value)}
            for name, end in measures.yardsticks.items()
        }
    return record


def bins_data(bins: Bins) -> list[dict[str, float]]:
    """Return the bins that hold units."""
    columns = (bins.lower, bins.upper, bins.counts, bins.confidence, bins.accuracy, bins.gaps)
    names = ("lower", "upper", "n", "confidence", "accuracy", "gap")
    return [dict(zip(names, row, strict=True)) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _print_tables(measures: TableMeasures, options: TableOptions) -> None:
    rows = tuple(
        (
            METRICS[name].title,
            value_text(value),
            interval_text(measures.intervals.get(name)),
            direction(METRICS[name]),
            range_text(METRICS[name]),
            value.reason or "",
        )
        for name, value in measures.values.items()
    )
    heads = ("metric", "value", "95 %" if measures.intervals else "", "", "range", "")
    tables = [
        TextTable(f"n {measures.rows}", heads, rows, left=6, notes=tuple(interval_notes(measures.intervals.values())))
    ]
    if measures.bins is not None:
        tables.append(_bin_table(measures.bins, options.bins))
    if measures.utility is not None:
        tables.append(_yardstick_table(measures))
    width = terminal_width()
    for place, table in enumerate(tables):
        if place:
            print()
        for line in table.as_text(width):
            print(line)
        for note in table.notes:
            for piece in wrapped(note, width):
                print(piece)
    if measures.utility is not None:
        for line in _utility_lines(measures.utility, measures.rows):
            print(line)


def _bin_table(bins: Bins, requested: int) -> TextTable:
    rows = tuple(
        (
            f"{number(row['lower'], 2)}–{number(row['upper'], 2)}",
            f"{row['n']:g}",
            number(row["confidence"]),
            number(row["accuracy"]),
            bar(row["accuracy"]),
            signed(row["gap"]),
        )
        for row in bins_data(bins)
    )
    title = f"{len(rows)} of {requested} equal-width bins hold units"
    heads = ("bin", "n", "says", "right", f"{'0':<19}1", "overconfident by")
    return TextTable(title, heads, rows)


def _yardstick_table(measures: TableMeasures) -> TextTable:
    rows = tuple((name, value_text(end.oracle), value_text(end.base_rate)) for name, end in measures.yardsticks.items())
    notes = ("yardsticks: a perfect confidence, and the share of right units as everyone's",)
    return TextTable("", ("metric", "perfect", "base rate"), rows, notes=notes)


def _utility_data(utility: Utility) -> dict[str, float | int | None]:
    return {
        "threshold": utility.threshold,
        "mean": utility.mean.value,
        "oracle": utility.oracle.value,
        "trusted": utility.trusted,
        "trusted_right": utility.trusted_right,
        "euro": utility.euro.value,
    }


def _utility_lines(utility: Utility, n: int) -> list[str]:
    trusted = f"{utility.trusted:g} of {n} units, {utility.trusted_right:g} right"
    return [
        f"rewards: trust above {utility.threshold:.3f}: {trusted}",
        f"  reward per unit {value_text(utility.mean)}, of a perfect decider {value_text(utility.oracle)},"
        f" EURO {value_text(utility.euro)} ↑",
    ]
