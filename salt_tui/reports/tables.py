"""The tables of ``salt-tui report``: each answers one question, at 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isinf

from salt_tui.measure.rows import USUAL_MAP, ReportRow, TaskRow
from salt_tui.measure.run_report import DIGEST_METRICS, RATES, RunDigest, RunReport, TaskReport
from salt_tui.measure.task_scores import RAW
from salt_tui.reports.text_tables import BEST, WINNER, TextTable, interval_text, number, value_text, with_interval
from salt_tui.visible_text import visible
from scoring.analyses_position import TaskCurve
from scoring.confidence import HEADLINE_FUNCTION
from scoring.correctness import TaskMean
from scoring.intervals import Interval
from scoring.metrics import METRICS, Metric

RATE_HEADS = {
    "precision": "prec.",
    "recall": "recall",
    "redundancy": "redun.",
    "ece": "ECE",
    "auroc_macro": "AUROC",
    "auroc_micro": "micro",
}
MEAN = "mean of tasks"
PARTIAL = "*"
"""Marks a mean that leaves out tasks."""

BAR = 20
"""Cells of a bar from 0 to 1."""

_CALIBRATED = ("accuracy", "ece", "auroc", "auroc_micro")

_HEADS_OF_SHOWN = {"ece": f"{'ECE ↓':<16}", "brier": "Brier↓", "auroc": f"{'AUROC ↑':<16}", "auroc_micro": "micro↑"}
_SHOWN = tuple(_HEADS_OF_SHOWN)


def title_of(report: RunReport) -> str:
    """Return the line that names a run."""
    run = report.run
    return f"run {run.run} · {visible(run.model.name)} · {visible(run.model.description)} · {run.state}"


def summary_table(report: RunReport) -> TextTable:
    """Return all rates of every task."""
    rows = [(*_counts(task), *(value_text(task.values[rate]) for rate in RATES)) for task in report.tasks]
    rows.append((MEAN, "", "", "", *(_mean_text(report.mean[rate]) for rate in RATES)))
    return TextTable("", ("task", "answers", "atoms", "right", *RATE_HEADS.values()), tuple(rows))


def summary_notes(report: RunReport) -> list[str]:
    """Return what was left out, why values are missing, and how to read the rates."""
    notes = left_out_notes(report)
    for task in report.tasks:
        notes.extend(
            f"{task.task}: no {', '.join(RATE_HEADS[rate] for rate in rates)}: {reason}"
            for reason, rates in _by_reason(task).items()
        )
    if any(_is_partial(mean) for mean in report.mean.values()):
        notes.append(f"{PARTIAL} mean of the other tasks")
    notes.append(
        f"ECE and AUROC: of atoms by raw {HEADLINE_FUNCTION}. Lower ECE and redundancy are better, higher precision,"
        " recall and AUROC (0.5 is chance; micro: inside answers)."
    )
    notes.extend(f"warning: {visible(warning)}" for warning in report.run.record.warnings)
    return notes


def left_out_notes(report: RunReport, *, brief: bool = False) -> list[str]:
    """Return what became of the answers of every task; briefly: only where not all are complete."""
    notes = []
    for task in report.tasks:
        if brief and dict(task.statuses) == {"complete": task.planned}:
            continue
        statuses = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in task.statuses.items())
        left_out = f"; {task.left_out} left out of every rate" if task.left_out else ""
        notes.append(f"{task.task}: {statuses or 'no answer yet'}{left_out}")
    return notes


def digest_tables(digest: RunDigest) -> list[TextTable]:
    """Return one table per question."""
    return [
        how_right(digest),
        how_calibrated(digest),
        which_function(digest),
        which_map(digest),
        which_unit(digest),
        along_the_answer(digest),
        after_right_atoms(digest),
    ]


def how_right(digest: RunDigest) -> TextTable:
    """Return precision, recall and redundancy per task."""
    report = digest.report

    def interval(rate: str, task: str | None) -> Interval | None:
        if task is None:
            return digest.rates.intervals.get(rate)
        found = digest.rates.tasks.get(task)
        return None if found is None else found.intervals.get(rate)

    rows = [
        (
            task.task,
            f"{task.answers}/{task.planned}",
            str(task.atoms),
            *(with_interval(task.values[rate], interval(rate, task.task)) for rate in ("precision", "recall")),
            value_text(task.values["redundancy"]),
        )
        for task in report.tasks
    ]
    shown = [report.mean[rate] for rate in ("precision", "recall", "redundancy")]
    rows.append(
        (
            MEAN,
            "",
            "",
            *(_mean_text(report.mean[rate], interval(rate, None), interval=True) for rate in ("precision", "recall")),
            _mean_text(report.mean["redundancy"]),
        )
    )
    heads = ("task", "answers", "atoms", f"{'precision':<16}", f"{'recall':<16}", "redun.")
    notes = ("precision ↑ of the atoms written, recall ↑ of those asked for, redundancy ↓ beyond the end",)
    undefined = filter(None, [undefined_text(shown, len(report.tasks))])
    return TextTable("How right is it?", heads, tuple(rows), notes=(*notes, *undefined))


def how_calibrated(digest: RunDigest) -> TextTable:
    """Return calibration and ranking of the headline confidence per task."""
    whole = find(digest.rows, "atom", HEADLINE_FUNCTION, RAW)
    says = digest.says
    rows = [_calibrated_task(task, row, number(says.get(task))) for task, row in whole.tasks.items() if row.n]
    average = sum(says.values()) / len(says) if says else None
    partial = PARTIAL if says and len(says) < len(whole.tasks) else ""
    rows.append(_calibrated(MEAN, whole, f"{partial}{number(average)}"))
    heads = ("task", "n", "right", "says", f"{'ECE':<16}", f"{'AUROC':<16}", "micro")
    notes = (
        f"atoms by raw {HEADLINE_FUNCTION}: its mean under “says”, beside the share that is right",
        "ECE ↓ 0 is calibrated; AUROC ↑ right above wrong, .5 is chance; micro ↑ inside answers",
        "[95 %] by drawing whole answers again, which adds noise: a small ECE can lie below its interval",
        *inside_answers_note(whole),
        undefined_text([whole.values[metric] for metric in _CALIBRATED], len(whole.tasks)),
    )
    title = "Does it know? How calibrated, how well ranked"
    return TextTable(title, heads, tuple(rows), notes=tuple(filter(None, notes)))


def _calibrated_task(label: str, row: TaskRow, says: str) -> tuple[str, ...]:
    return (
        label,
        str(row.n),
        value_text(row.values["accuracy"]),
        says,
        *(with_interval(row.values[metric], row.intervals.get(metric)) for metric in ("ece", "auroc")),
        value_text(row.values["auroc_micro"]),
    )


def _calibrated(label: str, row: ReportRow, says: str) -> tuple[str, ...]:
    return (
        label,
        str(row.n),
        _mean_text(row.values["accuracy"]),
        says,
        *(_mean_text(row.values[metric], row.intervals.get(metric), interval=True) for metric in ("ece", "auroc")),
        _mean_text(row.values["auroc_micro"]),
    )


def which_function(digest: RunDigest) -> TextTable:
    """Return every confidence function over atoms."""
    raw = [row for row in digest.rows if row.granularity == "atom" and row.calibrator == RAW]
    rows = []
    for row in raw:
        mapped = find(digest.rows, "atom", row.function, USUAL_MAP)
        rows.append(
            (
                row.function,
                _marked(row, "auroc", "function", interval=True),
                _marked(row, "auroc_micro", "function"),
                _marked(row, "prr", "function"),
                _marked(row, "ece", "function"),
                _marked(mapped, "ece", "function"),
                _marked(mapped, "brier", "function"),
                _marked(mapped, "euro_auc", "function"),
            )
        )
    heads = ("function", f"{'AUROC ↑':<17}", "micro ↑", "PRR ↑", "ECE ↓", "ECE′↓", "Brier′↓", "EURO′↑")
    notes = (
        f"n {raw[0].n if raw else 0} atoms, means over tasks; ′ after {USUAL_MAP}, fitted on other answers",
        *_best_note(raw, "function"),
        undefined_in_rows(raw),
    )
    return TextTable("Which confidence function?", heads, tuple(rows), notes=tuple(filter(None, notes)))


def which_map(digest: RunDigest) -> TextTable:
    """Return every map of the headline function over atoms."""
    chosen = [row for row in digest.rows if row.granularity == "atom" and row.function == HEADLINE_FUNCTION]
    rows = tuple(
        (
            "raw" if row.calibrator == RAW else row.calibrator,
            _marked(row, "ece", "map", interval=True),
            _marked(row, "brier", "map"),
            _marked(row, "nll", "map"),
            _marked(row, "auroc", "map"),
            _marked(row, "euro_auc", "map"),
        )
        for row in chosen
    )
    heads = ("map", f"{'ECE ↓':<17}", "Brier ↓", "NLL ↓", "AUROC ↑", "EURO ↑")
    notes = (
        f"n {chosen[0].n} atoms by {HEADLINE_FUNCTION}, means over tasks; maps fitted on other answers",
        *_best_note(chosen, "map"),
        undefined_in_rows(chosen),
    )
    return TextTable("Which calibration map?", heads, rows, notes=tuple(filter(None, notes)))


def which_unit(digest: RunDigest) -> TextTable:
    """Return the headline function at every granularity."""
    chosen = [row for row in digest.rows if row.function == HEADLINE_FUNCTION and row.calibrator == RAW]
    rows = tuple(
        (
            row.granularity,
            str(row.n),
            _mean_text(row.values["accuracy"]),
            *(_mean_text(row.values[metric], row.intervals.get(metric), interval=True) for metric in ("ece", "auroc")),
            _mean_text(row.values["auroc_micro"]),
            _mean_text(row.values["prr"]),
        )
        for row in chosen
    )
    heads = ("unit", "n", "right", f"{'ECE ↓':<16}", f"{'AUROC ↑':<16}", "micro ↑", "PRR ↑")
    notes = (f"raw {HEADLINE_FUNCTION}, means over tasks; a line or answer is right when all of it is",)
    return TextTable(
        "Atoms, lines or whole answers?", heads, rows, notes=(*notes, *filter(None, [undefined_in_rows(chosen)]))
    )


def along_the_answer(digest: RunDigest) -> TextTable:
    """Return correctness and calibration by relative position."""
    right, error = digest.course.correctness, digest.course.calibration
    errors = error.mean or (None,) * len(right.mean)
    rows = tuple(
        (
            f"{number(low, 1)}–{number(high, 1)}",
            str(_units(right.tasks.values(), place)),
            number(right.mean[place]),
            bar(right.mean[place]),
            number(errors[place]),
        )
        for place, (low, high) in enumerate(zip(right.edges, right.edges[1:], strict=False))
    )
    heads = ("part", "n", "right ↑", f"{'0':<{BAR - 1}}1", "ECE ↓")
    notes = ("tenths of the answer as written, means over tasks",)
    return TextTable("Does it get worse along the answer?", heads, rows, notes=notes)


def after_right_atoms(digest: RunDigest) -> TextTable:
    """Return correctness by the share of right atoms before."""
    curve = digest.course.history
    rows = tuple(
        (
            f"{number(low, 1)}–{number(high, 1)}",
            str(_units(curve.tasks.values(), place)),
            number(curve.mean[place]),
            bar(curve.mean[place]),
        )
        for place, (low, high) in enumerate(zip(curve.edges, curve.edges[1:], strict=False))
    )
    heads = ("right before", "n", "right ↑", f"{'0':<{BAR - 1}}1")
    notes = ("atoms by the share of right atoms before them in the answer, means over tasks",)
    return TextTable("Do earlier errors go with later ones?", heads, rows, notes=notes)


def rows_tables(rows: Sequence[ReportRow], by: str | None) -> list[TextTable]:
    """Return chosen rows: one table per map, of functions; of a single function the maps; or of a slice the parts."""
    if by is not None:
        head, label = by, lambda row: visible(row.part or "", 22)
    elif len({row.function for row in rows}) == 1:
        head, label = "map", _map
    else:
        head, label = "function", lambda row: row.function
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        names = [] if head == "function" else [row.function]
        names.extend([] if head == "map" else [_map(row)])
        groups.setdefault(" · ".join([f"{row.granularity}s", *names]), []).append(row)
    return [_rows_table(title, group, head, label) for title, group in groups.items()]


def _rows_table(title: str, rows: Sequence[ReportRow], head: str, label: Callable[[ReportRow], str]) -> TextTable:
    # Of slices not Brier: names of tasks and large counts would not fit 80 columns beside it.
    shown = ("ece", "auroc", "auroc_micro") if head not in {"function", "map"} else _SHOWN
    cells = tuple(
        (
            label(row),
            str(row.n),
            _mean_text(row.values["accuracy"]),
            *(_marked(row, metric, head, interval=metric in {"ece", "auroc"}) for metric in shown),
        )
        for row in rows
    )
    heads = (head, "n", "right", *(_HEADS_OF_SHOWN[metric] for metric in shown))
    notes = list(dict.fromkeys(filter(None, [undefined_in_rows(rows), left_out_text(rows)])))
    if head in {"function", "map"}:
        notes.extend(_best_note(rows, head))
    return TextTable(title, heads, cells, notes=tuple(notes))


def row_table(row: ReportRow) -> TextTable:
    """Return every metric of a single row, one per line."""
    rows = tuple(
        (
            METRICS[name].title,
            value_text(mean.mean),
            interval_text(row.intervals.get(name)),
            direction(METRICS[name]),
            range_text(METRICS[name]),
            reason_text(mean.mean.reason, mean.left_out),
        )
        for name, mean in row.values.items()
    )
    title = f"{row.granularity}s · {row.function} · {_map(row)} · n {row.n} in {row.answers} answers"
    notes = tuple(filter(None, [left_out_text([row]), *inside_answers_note(row), *row.notes]))
    return TextTable(title, ("metric", "value", "95 %", "", "range", ""), rows, left=6, notes=notes)


def direction(metric: Metric) -> str:
    """Return an arrow to the better side, nothing for a metric that is neither good nor bad."""
    return {True: "↑", False: "↓", None: ""}[metric.higher_is_better]


def range_text(metric: Metric) -> str:
    """Return ``0..1``."""
    return f"{metric.minimum:g}..{'∞' if isinf(metric.maximum) else f'{metric.maximum:g}'}"


def find(rows: Sequence[ReportRow], unit: str, function: str, name: str) -> ReportRow:
    """Return the row of a granularity, function and map."""
    return next(row for row in rows if (row.granularity, row.function, row.calibrator) == (unit, function, name))


def bar(share: float | None) -> str:
    """Return a bar of up to `BAR` cells; a share of 0 has none."""
    return "" if share is None else f"{'█' * round(share * BAR):<{BAR}}"


def undefined_in_rows(rows: Sequence[ReportRow]) -> str:
    """Return why values of these rows are missing."""
    means = [row.values[name] for row in rows for name in DIGEST_METRICS if name in row.values]
    return undefined_text(means, max((len(row.tasks) for row in rows), default=0))


def undefined_text(means: Iterable[TaskMean], tasks: int) -> str:
    """Return why means over so many tasks miss values, each reason once, with the most tasks that one leaves out."""
    reasons: dict[str, int] = {}
    for mean in means:
        left_out = list(mean.left_out.values())
        for reason in left_out:
            reasons[reason] = max(reasons.get(reason, 0), left_out.count(reason))
    parts = [f"{reason} (up to {count} of {tasks} tasks)" for reason, count in reasons.items()]
    return f"– undefined, {PARTIAL} mean of the other tasks: {'; '.join(parts)}" if parts else ""


def left_out_text(rows: Sequence[ReportRow]) -> str:
    """Return how many units are not in n, and why; of several rows, from which to which number."""
    reasons = dict.fromkeys(reason for row in rows for reason in row.units_left_out)
    counts = {reason: [row.units_left_out.get(reason, 0) for row in rows] for reason in reasons}
    parts = [
        f"{reason} {min(found)}" if min(found) == max(found) else f"{reason} {min(found)} to {max(found)}"
        for reason, found in counts.items()
    ]
    return f"left out of n: {', '.join(parts)}" if parts else ""


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


def _counts(task: TaskReport) -> tuple[str, ...]:
    return (task.task, f"{task.answers}/{task.planned}", str(task.atoms), str(task.correct))


def _marked(row: ReportRow, metric: str, what: str, *, interval: bool = False) -> str:
    """Return a value and before it whether its function or map wins; of parts of a slice none does."""
    winning, best = {
        "function": (row.winning_function, row.best_function),
        "map": (row.winning_map, row.best_map),
    }.get(what, ((), ()))
    mean = row.values[metric]
    text = with_interval(mean.mean, row.intervals.get(metric)) if interval else value_text(mean.mean)
    mark = BEST if metric in best else WINNER if metric in winning else PARTIAL if _is_partial(mean) else " "
    return f"{mark}{text}"


def _mean_text(mean: TaskMean, bounds: Interval | None = None, *, interval: bool = False) -> str:
    """Return a mean, with room for its interval or without, and before it whether it leaves out a task."""
    text = with_interval(mean.mean, bounds) if interval else value_text(mean.mean)
    return f"{PARTIAL if _is_partial(mean) else ''}{text}"


def _is_partial(mean: TaskMean) -> bool:
    return mean.mean.value is not None and bool(mean.left_out)


def _best_note(rows: Sequence[ReportRow], what: str) -> list[str]:
    tasks = max((len(row.tasks) for row in rows), default=0)
    if tasks < 5:
        return [f"no {BEST}: the paired test over tasks needs 5, there are {tasks}"] if len(rows) > 1 else []
    if any(row.best_map if what == "map" else row.best_function for row in rows):
        return [
            f"{BEST} {WINNER} better than some {what} and worse than none, by one-sided paired Wilcoxon tests over"
            f" {tasks} tasks, p < .05, uncorrected; {BEST} of these the best median over the tasks (the column shows"
            " means)"
        ]
    return [f"no {BEST}: no {what} is better by the paired Wilcoxon test over {tasks} tasks"]


def _by_reason(task: TaskReport) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for rate, value in task.values.items():
        if value.reason is not None:
            reasons.setdefault(value.reason, []).append(rate)
    return reasons


def _map(row: ReportRow) -> str:
    return "raw" if row.calibrator == RAW else row.calibrator


def _units(curves: Iterable[TaskCurve], place: int) -> int:
    return sum(curve.units[place] for curve in curves)
