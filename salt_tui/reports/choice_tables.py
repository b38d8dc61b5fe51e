"""The table of multiple-choice problems: all options, not the chosen one alone."""

from __future__ import annotations

from salt_tui.measure.choices import BRIER, RAW, SCALED, ChoiceReport, TaskChoices
from salt_tui.reports.cells import mean_cell
from salt_tui.reports.text_tables import TextTable, number, value_text, with_interval
from scoring.choices import CHOICE_METRICS

_HEADS = {"multiclass_brier": "Brier", "classwise_ece": "cw. ECE", "multiclass_nll": "NLL"}


def choice_table(report: ChoiceReport) -> TextTable:
    """Return the metrics of all letters per task, raw and after temperature scaling."""
    rows = [_row(task, found) for task, found in report.tasks.items()]
    if len(rows) > 1:
        n = sum(found.n for found in report.tasks.values())
        cells = [
            mean_cell(
                report.means[kind][name], report.intervals.get(kind) if name == BRIER else None, interval=name == BRIER
            )
            for kind in (RAW, SCALED)
            for name in _HEADS
        ]
        rows.append(("mean of tasks", str(n), "", *cells, ""))
    heads = (
        "task", "n", "letters",
        *(f"{title} ↓".ljust(18) if name == BRIER else f"{title} ↓" for name, title in _HEADS.items()),
        *(f"{title}′↓".ljust(18) if name == BRIER else f"{title}′↓" for name, title in _HEADS.items()),
        "T",
    )  # fmt: skip
    left_out = {
        f"{task}: {count} of {found.n + sum(found.left_out.values())} answers left out: {reason}"
        for task, found in report.tasks.items()
        for reason, count in found.left_out.items()
    }
    notes = [
        "all letters of each problem, p renormalised over them; Brier: Σ (p − y)² over the letters, 0 to 2;"
        " cw. ECE: class-wise, mean over letters",
        "′ after temperature scaling: log-probabilities divided by a T that was fitted on other answers; T: on all",
        *sorted(left_out),
        *dict.fromkeys(f"{task}: {note}" for task, found in report.tasks.items() for note in found.notes),
        *_undefined(report),
    ]
    extra = ("NLL′↓", "NLL ↓", "letters", "cw. ECE′↓", "T")
    return TextTable(
        "Multiple choice: how good are all probabilities?", heads, tuple(rows), notes=tuple(notes), extra=extra
    )


def _row(task: str, found: TaskChoices) -> tuple[str, ...]:
    cells = [
        with_interval(found.values[kind][name], found.intervals.get(kind))
        if name == BRIER
        else value_text(found.values[kind][name])
        for kind in (RAW, SCALED)
        for name in _HEADS
    ]
    return (task, str(found.n), str(found.letters), *cells, number(found.temperature, 2))


def _undefined(report: ChoiceReport) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for task, found in report.tasks.items():
        for kind in (RAW, SCALED):
            reason = found.values[kind][BRIER].reason
            if reason is not None:
                mark = "" if kind == RAW else "′"
                reasons.setdefault(reason, []).append(f"{task}{mark}")
    assert set(_HEADS) == set(CHOICE_METRICS)
    return [f"undefined: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
