"""A view of Reliability as rows of CSV: every number that is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from salt_tui.csv_rows import write_csv
from salt_tui.measure.confidence_view import ConfidenceView
from salt_tui.measure.course import CourseOfAnswers
from scoring.analyses_position import Curve

Row = Sequence[object]


def csv_text(rows: Iterator[Row]) -> str:
    """Return rows as a text; undefined numbers are empty cells."""
    file = io.StringIO()
    write_csv(file, ([cell if cell is None or isinstance(cell, str) else repr(cell) for cell in row] for row in rows))
    return file.getvalue()


def bins_rows(views: Sequence[tuple[str, ConfidenceView]]) -> Iterator[Row]:
    """Yield the bins of views: those of all units, of every task, or of every slice, by name."""
    yield ("units", "lower", "upper", "n", "confidence", "right", "gap")
    for name, view in views:
        if view.bins is not None:
            bins = view.bins
            columns = (bins.lower, bins.upper, bins.counts.astype(int), bins.confidence, bins.accuracy, bins.gaps)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                yield (name, *row)


def risk_rows(view: ConfidenceView) -> Iterator[Row]:
    """Yield risk and coverage by threshold, the surest first; the threshold in the function's own numbers."""
    yield ("threshold", "coverage", "error", "oracle", "random")
    if view.risk is not None:
        risk = view.risk
        columns = (risk.threshold, risk.coverage, risk.error, risk.oracle)
        for threshold, *others in zip(*(column.tolist() for column in columns), strict=True):
            yield (view.shown(threshold), *others, risk.random)


def euro_rows(view: ConfidenceView) -> Iterator[Row]:
    """Yield EURO by the utility of rightly abstaining."""
    yield ("utility", "euro", "base_rate", "oracle")
    if view.euro is not None:
        yield from zip(view.euro.utility, view.euro.value, view.euro.base_rate, view.euro.oracle, strict=True)


def density_rows(view: ConfidenceView) -> Iterator[Row]:
    """Yield the densities of right and wrong units over confidence."""
    yield ("lower", "upper", "right", "wrong")
    if view.densities is not None:
        found = view.densities
        bins = len(found.edges) - 1
        right, wrong = found.right or (None,) * bins, found.wrong or (None,) * bins
        yield from zip(found.edges[:-1], found.edges[1:], right, wrong, strict=True)


def course_rows(course: CourseOfAnswers, task: str | None, names: Sequence[str]) -> Iterator[Row]:
    """Yield curves along an answer.

    Args:
        course: of the run.
        task: whose curves; None for the means over tasks, each task equal.
        names: of the curves, attributes of `CourseOfAnswers`.
    """
    yield ("curve", "lower", "upper", "value", "low", "high", "units")
    for name in names:
        curve: Curve = getattr(course, name)
        bins = len(curve.edges) - 1
        of_task = None if task is None else curve.tasks.get(task)
        values = curve.mean if task is None else (None,) * bins if of_task is None else of_task.value
        tasks = curve.tasks.values() if of_task is None else (of_task,)
        for place in range(bins):
            interval = curve.intervals[place] if task is None and curve.intervals else None
            ends = (None, None) if interval is None else (interval.low, interval.high)
            units = sum(found.units[place] for found in tasks)
            yield (name, curve.edges[place], curve.edges[place + 1], values[place], *ends, units)
