"""The cells and notes that the tables of a report share: numbers with their marks, and why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isinf

from salt_tui.measure.rows import ReportRow
from salt_tui.measure.task_scores import RAW
from salt_tui.reports.text_tables import PARTIAL, value_text, with_interval
from scoring.correctness import TaskMean
from scoring.intervals import Interval
from scoring.metrics import Metric
from scoring.signals import is_fitted_anew

BAR = 20
"""Cells of a bar from 0 to 1."""

SMALL_SHARE = 0.05
"""Resamples without a value are named when they are more than this share."""


def mean_cell(mean: TaskMean, bounds: Interval | None = None, *, interval: bool = False) -> str:
    """Return a mean, with room for its interval or without, and before it whether it leaves out a task."""
    text = with_interval(mean.mean, bounds) if interval else value_text(mean.mean)
    return f"{PARTIAL if is_partial(mean) else ''}{text}"


def is_partial(mean: TaskMean) -> bool:
    """Return whether a mean leaves out tasks."""
    return mean.mean.value is not None and bool(mean.left_out)


def bar(share: float | None) -> str:
    """Return a bar of up to `BAR` cells; a share of 0 has none."""
    return "" if share is None else f"{'█' * round(share * BAR):<{BAR}}"


def direction(metric: Metric) -> str:
    """Return an arrow to the better side, nothing for a metric that is neither good nor bad."""
    return {True: "↑", False: "↓", None: ""}[metric.higher_is_better]


def range_text(metric: Metric) -> str:
    """Return ``0..1``."""
    return f"{metric.minimum:g}..{'∞' if isinf(metric.maximum) else f'{metric.maximum:g}'}"


def map_name(row: ReportRow) -> str:
    """Return the name of a row's map as readers know it."""
    return "raw" if row.calibrator == RAW else row.calibrator


def undefined_note(rows: Sequence[ReportRow], metrics: Iterable[str]) -> str:
    """Return why shown values of these rows are missing."""
    means = [row.values[name] for row in rows for name in metrics if name in row.values]
    return undefined_text(means, max((len(row.tasks) for row in rows), default=0))


def undefined_text(means: Iterable[TaskMean], tasks: int) -> str:
    """Return why means over so many tasks miss values, each reason once, with the most tasks that one leaves out."""
    reasons: dict[str, int] = {}
    for mean in means:
        left_out = list(mean.left_out.values())
        for reason in left_out:
            reasons[reason] = max(reasons.get(reason, 0), left_out.count(reason))
    parts = [f"{reason} (up to {count} of {tasks} tasks)" for reason, count in reasons.items()]
    return f"undefined: {'; '.join(parts)}" if parts else ""


def interval_notes(intervals: Iterable[Interval | None]) -> list[str]:
    """Return why there is no interval, each reason once, and the largest share of resamples without a value.

    A reason that a mean gives for some of its tasks is not said again for those tasks.
    """
    known = [interval for interval in intervals if interval is not None]
    reasons = dict.fromkeys(interval.reason for interval in known if interval.reason is not None)
    said = [reason for reason in reasons if not any(other.endswith(f": {reason}") for other in reasons)]
    notes = [f"no interval: {'; '.join(said)}"] if said else []
    shares = [
        interval.left_out / (interval.left_out + interval.draws)
        for interval in known
        if interval.low is not None and interval.left_out
    ]
    if max(shares, default=0.0) > SMALL_SHARE:
        notes.append(f"intervals leave out up to {max(shares):.0%} of resamples, in which there is no value")
    return notes


def left_out_text(rows: Sequence[ReportRow]) -> str:
    """Return how many units are not in n, and why; of several rows, from which to which number."""
    reasons = dict.fromkeys(reason for row in rows for reason in row.units_left_out)
    counts = {reason: [row.units_left_out.get(reason, 0) for row in rows] for reason in reasons}
    parts = [
        f"{reason} {min(found)}" if min(found) == max(found) else f"{reason} {min(found)} to {max(found)}"
        for reason, found in counts.items()
    ]
    return f"left out of n: {', '.join(parts)}" if parts else ""


def fitted_per_fold_note(rows: Sequence[ReportRow]) -> str:
    """Say why combined scores are never named best by a report, and why their AUROC is not that of their study."""
    names = dict.fromkeys(row.function for row in rows if row.calibrator == RAW and is_fitted_anew(row.function))
    if not names:
        return ""
    return (
        f"{' and '.join(names)}: fitted per fold, so never named best here; AUROC is over all folds together and not"
        " comparable, `study combine` compares over pairs inside folds"
    )


def inside_answers_note(row: ReportRow) -> list[str]:
    """Return how many answers micro AUROC could use."""
    used = sum(task.inside.generations for task in row.tasks.values())
    left_out = sum(task.inside.left_out for task in row.tasks.values())
    return [f"micro: {used} of {used + left_out} answers hold right and wrong {row.granularity}s"] if left_out else []


def reason_text(reason: str | None, left_out: Mapping[str, str]) -> str:
    """Return why a mean is undefined or what it leaves out."""
    if not left_out:
        return reason or ""
    reasons = "; ".join(dict.fromkeys(left_out.values()))
    return reasons if reason else f"without {', '.join(left_out)}: {reasons}"
