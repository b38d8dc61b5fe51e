"""The tables and data of ``report --analyses``: what whole answers, finer units and other labels show."""

from __future__ import annotations

from typing import Any

from salt_tui.measure.analyses import RunAnalyses
from salt_tui.measure.findings import KINDS
from salt_tui.reports.cells import bar, mean_cell, undefined_note
from salt_tui.reports.question_tables import MEAN
from salt_tui.reports.text_tables import TextTable, number, value_text
from scoring.analyses_answers import ByTask
from scoring.confidence import HEADLINE_FUNCTION
from scoring.value import Value

_DENSITY_ROWS = 10
"""Rows of the table of densities; JSON has all bins."""


def analysis_tables(analyses: RunAnalyses) -> list[TextTable]:
    """Return one table per analysis."""
    return [
        _answers_table(analyses),
        _parts_table(analyses),
        _densities_table(analyses),
        _noise_table(analyses),
        _bins_table(analyses),
    ]


def _answers_table(analyses: RunAnalyses) -> TextTable:
    columns = (
        analyses.precision_recall.by_task,
        analyses.redundancy,
        analyses.alignment.strict,
        analyses.alignment.aligned,
        analyses.alignment.change,
    )
    rows = [(task, *(value_text(column.tasks[task]) for column in columns)) for task in analyses.redundancy.tasks]
    rows.append((MEAN, *(mean_cell(column.mean) for column in columns)))
    heads = ("task", "r(prec., recall)", "redun.↓", "precision", "aligned", "aligned −")
    notes = [
        "r: Pearson's between precision and recall of answers; aligned: by Needleman-Wunsch instead of by index, so"
        " that one atom left out does not make all later ones wrong",
    ]
    return TextTable("What do whole answers show?", heads, tuple(rows), notes=tuple(notes), extra=("precision",))


def _parts_table(analyses: RunAnalyses) -> TextTable:
    rows = tuple(
        (
            KINDS.get(row.granularity, f"{row.granularity}s"),
            str(row.n),
            mean_cell(row.values["accuracy"]),
            *(mean_cell(row.values[name], row.intervals.get(name), interval=True) for name in ("ece", "auroc")),
        )
        for row in analyses.parts
    )
    left_out = analyses.parts_left_out
    notes = [
        "parts of atoms by the probability of their token; a part is right when the reference atom holds the same bytes"
        " at the same place",
        undefined_note(analyses.parts, ("accuracy", "ece", "auroc")),
        f"{left_out} atoms without tokens or with folded spaces left out" if left_out else "",
    ]
    heads = ("unit", "n", "right", f"{'ECE ↓':<18}", f"{'AUROC ↑':<18}")
    return TextTable("And tokens or characters?", heads, rows, notes=tuple(filter(None, notes)))


def _densities_table(analyses: RunAnalyses) -> TextTable:
    found = analyses.densities
    size = (len(found.edges) - 1) // _DENSITY_ROWS
    rows = []
    for place in range(_DENSITY_ROWS):
        cells = slice(place * size, (place + 1) * size)
        shares = [None if column is None else sum(column[cells]) / size for column in (found.right, found.wrong)]
        low, high = found.edges[place * size], found.edges[(place + 1) * size]
        heights = [bar(None if share is None else min(share / _DENSITY_ROWS, 1.0)) for share in shares]
        right, wrong = map(number, shares)
        rows.append((f"{number(low, 1)}–{number(high, 1)}", right, heights[0], wrong, heights[1]))
    notes = (
        f"densities of raw {HEADLINE_FUNCTION} over all tasks, {found.right_units} right and {found.wrong_units} wrong"
        f" atoms; they overlap by {value_text(found.overlap)}, 1 where confidence separates nothing",
    )
    heads = (HEADLINE_FUNCTION, "right", "", "wrong", " ")
    return TextTable("Does confidence separate right from wrong?", heads, tuple(rows), notes=notes, extra=(" ", ""))


def _noise_table(analyses: RunAnalyses) -> TextTable:
    found = analyses.label_noise
    rows: list[tuple[str, ...]] = [("0 %", value_text(found.auroc), "", "", "")]
    for level in found.levels:
        cells = (level.simulated, level.simulated_deviation, level.expected_shift, level.largest_shift)
        rows.append((f"{level.share:.0%}".replace("%", " %"), *map(value_text, cells)))
    heads = ("wrong labels", "AUROC", "± between draws", "expected shift", "largest shift")
    notes = ("atoms of all tasks; what a judge that errs so often would have measured instead",)
    return TextTable("What would wrong labels have hidden?", heads, tuple(rows), notes=notes)


def _bins_table(analyses: RunAnalyses) -> TextTable:
    rows = tuple((str(bins), value_text(error)) for bins, error in analyses.errors.items())
    notes = ("atoms of all tasks together; the usual number is 15",)
    return TextTable("How much does ECE depend on its bins?", ("bins", "ECE ↓"), rows, notes=notes)


def analyses_data(analyses: RunAnalyses) -> dict[str, Any]:
    """Return the analyses as JSON-able data; rows over tokens and characters are added by the caller."""
    noise, densities = analyses.label_noise, analyses.densities
    return {
        "precision_recall": {
            **_by_task(analyses.precision_recall.by_task),
            "answers_left_out": analyses.precision_recall.left_out,
        },
        "redundancy": _by_task(analyses.redundancy),
        "alignment": {
            "strict": _by_task(analyses.alignment.strict),
            "aligned": _by_task(analyses.alignment.aligned),
            "change": _by_task(analyses.alignment.change),
        },
        "densities": {
            "edges": list(densities.edges),
            "right": None if densities.right is None else list(densities.right),
            "wrong": None if densities.wrong is None else list(densities.wrong),
            "right_units": densities.right_units,
            "wrong_units": densities.wrong_units,
            "overlap": _value(densities.overlap),
        },
        "label_noise": {
            "auroc": _value(noise.auroc),
            "right_share": _value(noise.right_share),
            "levels": [
                {
                    "share": level.share,
                    "auroc": level.simulated.value,
                    "deviation": level.simulated_deviation.value,
                    "expected_shift": level.expected_shift.value,
                    "largest_shift": level.largest_shift.value,
                }
                for level in noise.levels
            ],
        },
        "ece_by_bins": {str(bins): error.value for bins, error in analyses.errors.items()},
        "parts_left_out": analyses.parts_left_out,
    }


def _by_task(found: ByTask) -> dict[str, Any]:
    return {
        "tasks": {task: value.value for task, value in found.tasks.items()},
        "mean": found.mean.mean.value,
        "reasons": dict(found.mean.left_out),
    }


def _value(value: Value) -> float | None:
    return value.value
