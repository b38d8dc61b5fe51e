"""A report in a few sentences: one answer to each of its questions."""

from __future__ import annotations

from collections.abc import Callable

from salt_tui.measure.findings import atoms_against_lines
from salt_tui.measure.rows import FEWEST_CELLS, ReportRow
from salt_tui.measure.run_report import RunDigest
from salt_tui.measure.task_scores import RAW
from salt_tui.reports.tables import find
from salt_tui.reports.text_tables import interval_text, number
from scoring.analyses_comparison import SIGNIFICANCE_LEVEL
from scoring.analyses_position import Curve
from scoring.confidence import HEADLINE_FUNCTION
from scoring.metrics import METRICS

EVEN = 0.005
"""A smaller difference between mean confidence and share of right atoms is no direction."""


def sentences(digest: RunDigest) -> list[str]:
    """Return the answers, in the order of the tables; a question that the run cannot answer says why."""
    if not any(task.atoms for task in digest.report.tasks):
        return ["Nothing to measure yet: no atom was generated in an answer that counts."]
    return [_right(digest), _calibrated(digest), _function(digest), _map(digest), _unit(digest), *_course(digest)]


def _right(digest: RunDigest) -> str:
    report = digest.report
    precision, recall = (report.mean[rate].mean for rate in ("precision", "recall"))
    interval = interval_text(digest.rates.intervals.get("precision"))
    # A task in which nothing was written has a recall and no precision.
    counts = (str(len(report.tasks) - len(report.mean[rate].left_out)) for rate in ("precision", "recall"))
    return (
        f"Right: {number(precision.value)} {interval} of the atoms it writes,"
        f" {number(recall.value)} of those asked for (mean of {' and '.join(dict.fromkeys(counts))} tasks)."
    )


def _calibrated(digest: RunDigest) -> str:
    row = find(digest.rows, "atom", HEADLINE_FUNCTION, RAW)
    right, error = row.values["accuracy"].mean.value, row.values["ece"].mean.value
    if right is None or error is None or not digest.says:
        return f"Calibrated: undefined, {row.values['ece'].mean.reason}."
    says = sum(digest.says.values()) / len(digest.says)
    if abs(says - right) < EVEN:
        direction = "on average neither too sure nor too unsure"
    else:
        direction = "too sure" if says > right else "not sure enough"
    interval = interval_text(row.intervals.get("ece"))
    return (
        f"Calibrated: {HEADLINE_FUNCTION} says {number(says)} where {number(right)} is right, {direction};"
        f" ECE {number(error)}{' ' if interval else ''}{interval}."
    )


def _function(digest: RunDigest) -> str:
    rows = [row for row in digest.rows if row.granularity == "atom" and row.calibrator == RAW]
    return f"Function: {_best(rows, 'auroc', 'function', lambda row: row.function)}"


def _map(digest: RunDigest) -> str:
    rows = [row for row in digest.rows if row.granularity == "atom" and row.function == HEADLINE_FUNCTION]
    raw = next(row for row in rows if row.calibrator == RAW)
    text = _best(rows, "ece", "map", lambda row: "none (raw)" if row.calibrator == RAW else row.calibrator)
    return f"Map: {text} Raw: {number(raw.values['ece'].mean.value)}."


def _best(rows: list[ReportRow], metric: str, what: str, name: Callable[[ReportRow], str]) -> str:
    higher = METRICS[metric].higher_is_better
    title = METRICS[metric].title
    winners = [row for row in rows if metric in (row.best_function if what == "function" else row.best_map)]
    if winners:
        value = number(winners[0].values[metric].mean.value)
        count = sum(metric in (row.winning_function if what == "function" else row.winning_map) for row in rows)
        rank = f"best median of {count} that win " if count > 1 else ""
        return f"{name(winners[0])} wins in {title}, {value} ({rank}paired tests over tasks, p < .05)."
    known = [(mean.value, name(row)) for row in rows if (mean := row.values[metric].mean).value is not None]
    if not known:
        return f"none has a {title}: {rows[0].values[metric].mean.reason}."
    best, first = (max if higher else min)(known, key=lambda pair: pair[0] or 0.0)
    tasks = len(rows[0].tasks)
    why = f"{tasks} tasks are too few for the paired test" if tasks < FEWEST_CELLS else "no paired test supports it"
    return f"{first} has the best mean {title}, {number(best)}, but {why}."


def _unit(digest: RunDigest) -> str:
    compared = atoms_against_lines(digest.rows, "auroc")
    if compared is None or compared.overall.first.value is None:
        return "Unit: no task has an AUROC of atoms and of lines."
    means = compared.overall
    better = [
        unit
        for unit, p in (("atoms", means.p_first_better), ("lines", means.p_second_better))
        if p.value is not None and p.value < SIGNIFICANCE_LEVEL
    ]
    verdict = f"{better[0]} are better, p < .05" if better else "no paired test supports a difference"
    return (
        f"Unit: AUROC {number(means.first.value)} of atoms, {number(means.second.value)} of lines"
        f" ({means.pairs} tasks; {verdict})."
    )


def _course(digest: RunDigest) -> list[str]:
    course = digest.course
    lines = []
    right = _ends(course.correctness)
    if right is not None:
        error = _ends(course.calibration)
        errors = f"; ECE {number(error[0])} and {number(error[1])}" if error is not None else ""
        lines.append(
            f"Along the answer: right {number(right[0])} at its beginning, {number(right[1])} at its end{errors}."
        )
    history = _ends(course.history)
    if history is not None:
        lines.append(
            f"After mostly wrong atoms {number(history[0])} are right, after mostly right ones {number(history[1])}."
        )
    return lines


def _ends(curve: Curve) -> tuple[float, float] | None:
    """Return the first and the last defined value of a curve with at least two."""
    known = [value for value in curve.mean if value is not None]
    return (known[0], known[-1]) if len(known) > 1 else None
