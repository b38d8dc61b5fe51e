"""The tables of a usual report: each answers one question; narrow terminals leave out their extra columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from salt_tui.measure.rows import USUAL_MAP, ReportRow, TaskRow
from salt_tui.measure.run_report import FullReport
from salt_tui.measure.task_scores import RAW
from salt_tui.reports.cells import (
    bar,
    fitted_per_fold_note,
    inside_answers_note,
    interval_notes,
    map_name,
    mean_cell,
    undefined_note,
    undefined_text,
)
from salt_tui.reports.choice_tables import choice_table
from salt_tui.reports.text_tables import BEST, PARTIAL, TextTable, interval_text, number, value_text, with_interval
from scoring.analyses_position import Curve, TaskCurve
from scoring.conclusions import Conclusion
from scoring.confidence import HEADLINE_FUNCTION

MEAN = "mean of tasks"

_CALIBRATED = ("accuracy", "ece", "auroc", "auroc_micro")
_FUNCTION_RAW = {"auroc": "AUROC ↑", "auroc_micro": "micro ↑", "prr": "PRR ↑", "auprc": "AUPRC ↑", "aurc": "AURC ↓"}
_FUNCTION_MAPPED = {"ece": "ECE′↓", "brier": "Brier′↓", "nll": "NLL′↓", "euro_auc": "EURO′↑"}
_MAP = {
    "brier": "Brier ↓",
    "ece": "ECE ↓",
    "nll": "NLL ↓",
    "auroc": "AUROC ↑",
    "euro_auc": "EURO ↑",
    "smooth_ece": "smooth ↓",
    "mce": "MCE ↓",
    "ace": "ACE ↓",
    "brier_reliability": "rel. ↓",
    "brier_resolution": "res. ↑",
}


def question_tables(report: FullReport) -> list[TextTable]:
    """Return one table per question."""
    return [
        how_right(report),
        how_calibrated(report),
        which_function(report),
        which_map(report),
        which_unit(report),
        *([] if report.choices is None else [choice_table(report.choices)]),
        along_the_answer(report),
        after_right_atoms(report),
    ]


def how_right(report: FullReport) -> TextTable:
    """Return precision, recall and redundancy per task."""
    summary, rates = report.summary, report.rates
    rows = [
        (
            task.task,
            f"{task.answers}/{task.planned}",
            f"{task.atoms}",
            *(with_interval(task.values[rate], rates.interval(rate, task.task)) for rate in ("precision", "recall")),
            value_text(task.values["redundancy"]),
        )
        for task in summary.tasks
    ]
    rows.append(
        (
            MEAN,
            "",
            "",
            *(
                mean_cell(summary.mean[rate], rates.interval(rate, None), interval=True)
                for rate in ("precision", "recall")
            ),
            mean_cell(summary.mean["redundancy"]),
        )
    )
    heads = ("task", "answers", "atoms", f"{'precision ↑':<18}", f"{'recall ↑':<18}", "redun.↓")
    shown = [summary.mean[rate] for rate in ("precision", "recall", "redundancy")]
    notes = [
        "precision: right of the atoms written; recall: of those asked for; redun.: written beyond the end",
        undefined_text(shown, len(summary.tasks)),
        *interval_notes(rates.interval("precision", task.task) for task in summary.tasks),
    ]
    return TextTable("How right is it?", heads, tuple(rows), notes=_said(notes), extra=("redun.↓", "answers"))


def how_calibrated(report: FullReport) -> TextTable:
    """Return calibration and ranking of the headline confidence per task."""
    whole = report.row("atom", HEADLINE_FUNCTION, RAW)
    title = "Does it know? How calibrated, how well ranked"
    heads = ("task", "n", "right", "says", f"{'ECE ↓':<18}", f"{'AUROC ↑':<18}", "micro ↑")
    if whole is None:
        return TextTable(title, heads, ())
    says = report.says
    rows = [_calibrated_task(task, row, number(says.get(task))) for task, row in whole.tasks.items() if row.n]
    average = sum(says.values()) / len(says) if says else None
    partial = PARTIAL if says and len(says) < len(whole.tasks) else ""
    rows.append(
        (
            MEAN,
            str(whole.n),
            mean_cell(whole.values["accuracy"]),
            f"{partial}{number(average)}",
            *(mean_cell(whole.values[name], whole.intervals.get(name), interval=True) for name in ("ece", "auroc")),
            mean_cell(whole.values["auroc_micro"]),
        )
    )
    notes = [
        f"atoms by raw {HEADLINE_FUNCTION}; says: its mean, beside the share that is right",
        "AUROC: how often a right atom has more confidence than a wrong one, .5 is chance; micro: inside answers",
        *_bias_note(whole),
        *inside_answers_note(whole),
        undefined_note([whole], _CALIBRATED),
        *interval_notes(
            [whole.intervals.get("auroc"), *(task.intervals.get("auroc") for task in whole.tasks.values())]
        ),
    ]
    return TextTable(title, heads, tuple(rows), notes=_said(notes), extra=("micro ↑", "says"))


def _calibrated_task(label: str, row: TaskRow, says: str) -> tuple[str, ...]:
    return (
        label,
        str(row.n),
        value_text(row.values["accuracy"]),
        says,
        *(with_interval(row.values[metric], row.intervals.get(metric)) for metric in ("ece", "auroc")),
        value_text(row.values["auroc_micro"]),
    )


def _bias_note(row: ReportRow) -> list[str]:
    interval = row.intervals.get("ece")
    if interval is None or interval.bias is None:
        return []
    return [f"few answers alone make the mean ECE about {number(interval.bias)} larger than it is"]


def which_function(report: FullReport) -> TextTable:
    """Return every confidence function over atoms; those that cannot be told apart from the best are marked."""
    found = None if report.conclusions is None else report.conclusions.functions
    raw = [row for row in report.rows if row.granularity == "atom" and row.calibrator == RAW]
    rows = []
    for row in raw:
        mapped = report.row("atom", row.function, USUAL_MAP)
        cells = [
            _compared(found, row.function),
            mean_cell(row.values["auroc"], row.intervals.get("auroc"), interval=True),
        ]
        cells.extend(mean_cell(row.values[metric]) for metric in list(_FUNCTION_RAW)[1:])
        cells.append(mean_cell(row.values["ece"]))
        cells.extend("" if mapped is None else mean_cell(mapped.values[metric]) for metric in _FUNCTION_MAPPED)
        rows.append((row.function, *cells))
    heads = (
        "function",
        "compared",
        f"{'AUROC ↑':<18}",
        *list(_FUNCTION_RAW.values())[1:],
        "ECE ↓",
        *_FUNCTION_MAPPED.values(),
    )
    notes = [
        f"n {raw[0].n if raw else 0} atoms, means over tasks; ′ after {USUAL_MAP}, fitted on other answers",
        _compared_note(found, "AUROC"),
        fitted_per_fold_note(raw),
        undefined_note(raw, (*_FUNCTION_RAW, "ece")),
        *interval_notes(row.intervals.get("auroc") for row in raw),
    ]
    extra = ("AUPRC ↑", "AURC ↓", "NLL′↓", "EURO′↑", "ECE ↓", "PRR ↑", "micro ↑", "ECE′↓", "Brier′↓")
    return TextTable("Which confidence function?", heads, tuple(rows), notes=_said(notes), extra=extra)


def which_map(report: FullReport) -> TextTable:
    """Return every map of the headline function over atoms; those no worse than the best are marked."""
    found = None if report.conclusions is None else report.conclusions.maps
    chosen = [row for row in report.rows if row.granularity == "atom" and row.function == HEADLINE_FUNCTION]
    rows = tuple(
        (
            map_name(row),
            _compared(found, row.calibrator),
            mean_cell(row.values["brier"], row.intervals.get("brier"), interval=True),
            *(mean_cell(row.values[metric]) for metric in list(_MAP)[1:]),
        )
        for row in chosen
    )
    heads = ("map", "compared", f"{'Brier ↓':<18}", *list(_MAP.values())[1:])
    notes = [
        f"n {chosen[0].n if chosen else 0} atoms by {HEADLINE_FUNCTION}, means over tasks; fitted on other answers",
        _compared_note(found, "Brier"),
        undefined_note(chosen, _MAP),
        *interval_notes(row.intervals.get("brier") for row in chosen),
    ]
    extra = ("rel. ↓", "res. ↑", "ACE ↓", "MCE ↓", "smooth ↓", "EURO ↑")
    return TextTable("Which calibration map?", heads, rows, notes=_said(notes), extra=extra)


def _compared(found: Conclusion | None, name: str) -> str:
    """Return the statistic that was compared, marked where it cannot be told apart from the best."""
    value = None if found is None else found.means.get(name)
    return number(None) if value is None else f"{BEST if found and name in found.best else ''}{value_text(value)}"


def _compared_note(found: Conclusion | None, title: str) -> str:
    """Return over which tasks alternatives were compared, and why not over all."""
    if found is None:
        return ""
    if found.reason is not None:
        return f"nothing compared: {found.reason}"
    tasks = len(found.tasks) + len(found.tasks_left_out)
    reasons = "; ".join(dict.fromkeys(found.tasks_left_out.values()))
    left_out = f"; left out: {reasons}" if reasons else ""
    marked = f"; {len(found.best)} of {len(found.means)} marked"
    return f"compared: {title} over {len(found.tasks)} of {tasks} tasks{left_out}{marked}{_alike(found)}"


def _alike(found: Conclusion) -> str:
    """Return which alternatives cannot differ in what is compared; each of them is marked and counted."""
    groups = ", ".join(" = ".join(group) for group in found.same)
    return f"; always equal: {groups}" if groups else ""


def which_unit(report: FullReport) -> TextTable:
    """Return every granularity, judged by the function that is best for it on other answers."""
    found = None if report.conclusions is None else report.conclusions.units
    chosen = [row for row in report.rows if row.function == HEADLINE_FUNCTION and row.calibrator == RAW]
    rows = []
    for row in chosen:
        judged = None if found is None else found.units.get(row.granularity)
        mark = BEST if found and found.verdict and row.granularity in found.verdict.best else ""
        compared = number(None) if judged is None else f"{mark}{with_interval(judged.auroc, judged.interval)}"
        function = next(iter(judged.chosen), "") if judged is not None else ""
        cells = (mean_cell(row.values["accuracy"]), compared, function)
        rows.append((row.granularity, str(row.n), *cells, *(mean_cell(row.values[name]) for name in ("ece", "auroc"))))
    heads = ("unit", "n", "right", f"{'compared':<18}", "by", "ECE ↓", "AUROC ↑")
    notes = [
        "compared: AUROC on the same answers, each unit by the function that is best for it on other answers",
        "" if found is None or found.fixed is None else f"too few answers to choose: {found.fixed} for every unit",
        f"ECE, AUROC: raw {HEADLINE_FUNCTION}, means over tasks; a line or answer is right when all of it is",
        undefined_note(chosen, ("accuracy", "ece", "auroc")),
    ]
    extra = ("AUROC ↑", "ECE ↓", "by")
    return TextTable("Atoms, lines or whole answers?", heads, tuple(rows), notes=_said(notes), extra=extra)


def along_the_answer(report: FullReport) -> TextTable:
    """Return correctness and calibration by relative position; a mean without all tasks is marked."""
    right, error, beyond = report.course.correctness, report.course.calibration, report.course.redundancy
    rows = tuple(
        (
            part,
            str(_units(right.tasks.values(), place)),
            _tasks_in(right, place),
            _curve_cell(right, place),
            bar(right.mean[place]),
            _curve_cell(error, place),
            number(beyond.mean[place]),
        )
        for place, part in enumerate(_parts(right))
    )
    heads = ("part", "n", "tasks", f"{'right ↑':<18}", f"{'0':<19}1", "ECE ↓", "redun.")
    notes = (
        "tenths of the answer as written; right: of the atoms with a right counterpart; means over the tasks in each",
    )
    return TextTable("Does it get worse along the answer?", heads, rows, notes=notes, extra=("redun.", "ECE ↓"))


def after_right_atoms(report: FullReport) -> TextTable:
    """Return correctness by the share of right atoms before."""
    curve = report.course.history
    rows = tuple(
        (
            part,
            str(_units(curve.tasks.values(), place)),
            _tasks_in(curve, place),
            _curve_cell(curve, place),
            bar(curve.mean[place]),
        )
        for place, part in enumerate(_parts(curve))
    )
    heads = ("right before", "n", "tasks", f"{'right ↑':<18}", f"{'0':<19}1")
    notes = ("atoms by the share of right atoms before them in the answer; means over the tasks in each",)
    return TextTable("Do earlier errors go with later ones?", heads, rows, notes=notes)


def _parts(curve: Curve) -> list[str]:
    ends = zip(curve.edges, curve.edges[1:], strict=False)
    return [f"{number(low, 1)}–{number(high, 1)}" for low, high in ends]


def _tasks_in(curve: Curve, place: int) -> str:
    return f"{len(curve.tasks) - curve.tasks_without[place]}/{len(curve.tasks)}" if curve.tasks else ""


def _curve_cell(curve: Curve, place: int) -> str:
    """Return the mean of a part, marked where a task has no atom in it, with its interval where it has one."""
    value = curve.mean[place] if curve.mean else None
    mark = PARTIAL if value is not None and curve.tasks_without[place] else ""
    interval = f" {interval_text(curve.intervals[place]):<12}" if curve.intervals and curve.intervals[place] else ""
    return f"{mark}{number(value)}{interval}"


def _units(curves: Iterable[TaskCurve], place: int) -> int:
    return sum(curve.units[place] for curve in curves)


def _said(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, notes)))
