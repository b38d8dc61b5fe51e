"""Two runs beside each other: sentences, tables and data; nothing is computed here."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from salt_tui.csv_rows import write_csv
from salt_tui.measure.header import RunHeader
from salt_tui.measure.two_runs import ComparedRuns
from salt_tui.number_text import signed
from salt_tui.reports.cells import interval_notes
from salt_tui.reports.html_page import Section
from salt_tui.reports.json_report import ends, header_data
from salt_tui.reports.text_tables import TextTable, interval_text, latex, markdown, number, value_text
from salt_tui.reports.wrapping import wrapped
from salt_tui.visible_text import visible
from scoring.metrics import METRICS
from scoring.paired_runs import PairedDifference, PairedMetric
from scoring.signed_rank import SignedRankTest

MOST_LISTED = 20
"""Problems with other verdicts that text lists; JSON lists all."""

NAMES = {"precision": "precision", "recall": "recall", "brier": "brier", "auroc": "auroc_macro", "ece": "ece"}
"""By name of the metric its name in JSON."""

_TITLES = {"precision": "Precision ↑", "recall": "Recall ↑"}
_MEAN = "mean of tasks"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared.

    Attributes:
        pairs: of runs, at least one.
        cells: the tests over pairs and tasks, by metric.
    """

    pairs: Sequence[ComparedRuns]
    cells: Mapping[str, SignedRankTest]


def write_table(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield sentences and tables as text."""
    for pair in comparison.pairs:
        for line in head_lines(pair):
            yield from wrapped(line, width)
        yield ""
        for sentence in sentences(pair):
            yield from wrapped(sentence, width)
        for table in tables(pair):
            yield ""
            yield from table.as_text(width)
            for note in table.notes:
                yield from wrapped(note, width)
        yield ""
    for line in [*_cell_lines(comparison.cells), _LEGEND]:
        yield from wrapped(line, width)


def write_markdown(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield sentences and tables as Markdown."""
    for pair in comparison.pairs:
        first, *others = head_lines(pair)
        yield f"## {markdown(first)}"
        for line in others:
            yield from ("", markdown(line))
        yield ""
        yield from (f"- {markdown(sentence)}" for sentence in sentences(pair))
        for table in tables(pair):
            yield ""
            yield from table.as_markdown()
        yield ""
    yield from (f"- {markdown(line)}" for line in [*_cell_lines(comparison.cells), _LEGEND])


def write_latex(comparison: Comparison, width: int) -> Iterator[str]:
    r"""Yield the tables for LaTeX, sentences as comments; needs ``\usepackage{booktabs}``."""
    yield r"% needs \usepackage{booktabs}"
    for pair in comparison.pairs:
        yield from (f"% {latex(line)}" for line in [*head_lines(pair), *sentences(pair)])
        for table in tables(pair):
            yield ""
            yield from table.as_latex()


def comparison_sections(comparison: Comparison) -> list[Section]:
    """Return a part of a page for each pair, and last one on all of them."""
    parts = []
    for pair in comparison.pairs:
        first, *others = head_lines(pair)
        found = tuple(("", sentence) for sentence in sentences(pair))
        parts.append(Section(first, tuple(others), found, tuple(tables(pair))))
    return [*parts, Section("Reading the tables", tuple(_cell_lines(comparison.cells)), notes=(_LEGEND,))]


def write_json(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield one line, a JSON object; several pairs under ``pairs``."""
    pairs = [pair_data(pair) for pair in comparison.pairs]
    data: dict[str, Any] = pairs[0] if len(pairs) == 1 else {"pairs": pairs}
    if len(pairs) > 1:
        data["wilcoxon"] = {NAMES[metric]: _cell_data(test) for metric, test in comparison.cells.items()}
    yield json.dumps(data, ensure_ascii=False, allow_nan=False)


def write_rows(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield one line of CSV per pair, task and metric."""
    rows: list[list[Any]] = []
    heads = ["a", "b", "differs", "task", "metric", "a_value", "b_value", "difference", "low", "high", "p"]
    heads += ["detectable", "problems_needed", "problems", "clear"]
    for pair in comparison.pairs:
        names = [pair.first.run, pair.second.run, " ".join(pair.differs)]
        for metric in pair.metrics.values():
            for task, found in [*metric.tasks.items(), ("", metric.mean)]:
                low, high = ends(found.interval) or (None, None)
                p = metric.p_value.value if not task else None
                values = [found.first.value, found.second.value, found.difference.value, low, high, p]
                needed = [found.detectable.value, found.problems_needed.value, found.problems, int(found.clear)]
                rows.append([*names, task or _MEAN, NAMES[metric.name], *values, *needed])
    text = io.StringIO(newline="")
    write_csv(text, [heads, *rows])
    yield text.getvalue().removesuffix("\n")


COMPARISON_FORMATS: dict[str, Callable[[Comparison, int], Iterable[str]]] = {
    "table": write_table,
    "json": write_json,
    "csv": write_rows,
    "md": write_markdown,
    "latex": write_latex,
}
"""By the name on the command line; ``html``, which has figures, is `commands.page`."""

_LEGEND = (
    "B − A: of the problems that both answered; [ ] 95 % interval over problems; p: by swapping the runs of problems;"
    " needed: problems a task that would show the difference seen in four of five comparisons, if it is the true one;"
    " clear: yes, by more than chance, corrected for the number of tasks, maybe, only by itself; small: too small to"
    " matter."
)


def sentences(pair: ComparedRuns) -> list[str]:
    """Return what changed in plain sentences, each with its interval."""
    lines = [_changes(pair.metrics["precision"], "of the atoms it writes are right")]
    for name, what in (("brier", "Brier score"), ("auroc", "AUROC")):
        if pair.metrics[name].mean.difference.value is not None:
            lines.append(_changes(pair.metrics[name], what))
    gained = sum(problem.gained for problem in pair.changed)
    lost = sum(problem.lost for problem in pair.changed)
    whole = [sum(problem.whole == way for problem in pair.changed) for way in ("gained", "lost")]
    lines.append(
        f"Of {pair.shared} shared problems {whole[0]} became wholly right and {whole[1]} wholly wrong;"
        f" {gained} atoms became right and {lost} wrong."
    )
    return lines


def _changes(metric: PairedMetric, what: str) -> str:
    mean = metric.mean
    if mean.difference.value is None:
        return f"{METRICS[metric.name].title if metric.name in METRICS else metric.name}: {mean.difference.reason}."
    subject = f"{number(mean.first.value)} → {number(mean.second.value)} {what}"
    change = f"B − A {signed(mean.difference.value)} {interval_text(mean.interval)}".rstrip()
    p = f", p {_p(metric.p_value.value)}" if metric.p_value.value is not None else f" ({metric.p_value.reason})"
    if mean.too_small:
        verdict = "too small to matter"
    elif mean.clear:
        verdict = "a difference"
    elif (
        mean.interval.low is not None
        and mean.interval.high is not None
        and not (mean.interval.low <= 0.0 <= mean.interval.high)
    ):
        verdict = "no clear difference: interval and test do not agree"
    else:
        needed = mean.problems_needed.value
        verdict = "no clear difference" + (f"; about {needed:,.0f} problems a task would tell" if needed else "")
    return f"{subject}: {change}{p}: {verdict}."


def tables(pair: ComparedRuns) -> list[TextTable]:
    """Return a table per metric, and the problems whose verdicts changed."""
    found = [_metric_table(metric) for metric in pair.metrics.values()]
    if pair.changed:
        found.append(_changed_table(pair))
    return found


def _metric_table(metric: PairedMetric) -> TextTable:
    rows = [_row(task, found, "") for task, found in metric.tasks.items()]
    rows.append(_row(_MEAN, metric.mean, _p(metric.p_value.value)))
    entry = METRICS.get(metric.name)
    arrow = "↑" if metric.name == "auroc" else "↓"
    title = _TITLES.get(metric.name) or f"{entry.title if entry else metric.name} {arrow}"
    heads = ("task", "problems", "A", "B", f"{'B − A':<19}", "clear", "p", "detectable", "needed")
    relative = metric.relative_change.value
    notes = [
        "" if relative is None else f"relative change of the mean {signed(relative)}, positive where B is better",
        "" if metric.p_value.reason is None else f"no p: {metric.p_value.reason}",
        *interval_notes(found.interval for found in metric.tasks.values()),
    ]
    return TextTable(title, heads, tuple(rows), notes=tuple(filter(None, notes)), extra=("detectable", "needed"))


def _row(label: str, found: PairedDifference, p: str) -> tuple[str, ...]:
    needed = found.problems_needed.value
    change = f"{signed(found.difference.value)} {interval_text(found.interval):<13}"
    detectable = number(found.detectable.value)
    shown = "" if needed is None else f"{needed:,.0f}"
    values = (value_text(found.first), value_text(found.second), change)
    return (label, str(found.problems), *values, _clear(found), p, detectable, shown)


def _clear(found: PairedDifference) -> str:
    if found.difference.value is None:
        return ""
    if found.too_small:
        return "small"
    low, high = found.interval.low, found.interval.high
    if found.clear or low is None or high is None:
        return "yes" if found.clear else ""
    return "maybe" if low > 0.0 or high < 0.0 else "no"


def _changed_table(pair: ComparedRuns) -> TextTable:
    ordered = sorted(pair.changed, key=lambda problem: -(problem.gained + problem.lost))[:MOST_LISTED]
    rows = tuple(
        (
            problem.task,
            str(problem.first + 1),
            str(problem.second + 1),
            f"+{problem.gained}",
            f"−{problem.lost}",
            problem.whole or "",
        )
        for problem in ordered
    )
    more = len(pair.changed) - len(rows)
    notes = (f"and {more} more; JSON lists all",) if more else ()
    heads = ("task", "A", "B", "became right", "became wrong", "whole answer")
    return TextTable("Problems whose verdicts changed, by their number in each run", heads, rows, notes=notes)


def head_lines(pair: ComparedRuns) -> list[str]:
    """Return what both runs are, what differs between them, and what is compared."""
    differs = ", ".join((*pair.differs, *pair.environment_differs)) or "nothing"
    return [
        f"A {_words(pair.first)}",
        f"B {_words(pair.second)}",
        f"differs in: {differs}",
        f"{pair.shared} problems answered by both{_only_one(pair)}; Brier, AUROC and ECE of atoms by {pair.function}",
    ]


def _only_one(pair: ComparedRuns) -> str:
    if not pair.only_first and not pair.only_second:
        return ""
    return f"; only A {pair.only_first}, only B {pair.only_second} left out"


def _words(header: RunHeader) -> str:
    return " · ".join(map(visible, header.words))


def _cell_lines(cells: Mapping[str, SignedRankTest]) -> list[str]:
    return [
        f"{NAMES[metric]} over {test.cells} cells of pairs and tasks: one-sided Wilcoxon, uncorrected,"
        f" B better p {_p(test.p_better.value)} and worse p {_p(test.p_worse.value)};"
        f" by Holm's correction {_p(test.corrected_better.value)} and {_p(test.corrected_worse.value)}"
        for metric, test in cells.items()
        if test.p_better.value is not None
    ]


def pair_data(pair: ComparedRuns) -> dict[str, Any]:
    """Return two runs as JSON-able data."""
    tasks: dict[str, dict[str, Any]] = {task: {} for task in pair.tasks}
    for metric in pair.metrics.values():
        for task, found in metric.tasks.items():
            tasks[task][NAMES[metric.name]] = _difference_data(found, None, None)
    return {
        "a": header_data(pair.first),
        "b": header_data(pair.second),
        "differs": list(pair.differs),
        "environment_differs": list(pair.environment_differs),
        "shared": pair.shared,
        "only_a": pair.only_first,
        "only_b": pair.only_second,
        "function": pair.function,
        "flips": {
            "atoms": {way: sum(getattr(problem, way) for problem in pair.changed) for way in ("gained", "lost")},
            "problems": {way: sum(problem.whole == way for problem in pair.changed) for way in ("gained", "lost")},
        },
        "changed": [
            {
                "task": problem.task,
                "a": problem.first,
                "b": problem.second,
                "gained": problem.gained,
                "lost": problem.lost,
                "whole": problem.whole,
            }
            for problem in pair.changed
        ],
        "tasks": tasks,
        "mean": {
            NAMES[name]: _difference_data(metric.mean, metric, metric.tasks_in_mean)
            for name, metric in pair.metrics.items()
        },
    }


def _difference_data(
    found: PairedDifference, metric: PairedMetric | None, tasks: Sequence[str] | None
) -> dict[str, Any]:
    values = {
        "a": found.first,
        "b": found.second,
        "difference": found.difference,
        "detectable": found.detectable,
        "problems_needed": found.problems_needed,
    }
    if metric is not None:
        values |= {"relative": metric.relative_change, "p": metric.p_value}
    data: dict[str, Any] = {name: value.value for name, value in values.items()}
    data |= {"relative": data.get("relative"), "p": data.get("p")}
    data["interval"] = ends(found.interval)
    data["problems"] = found.problems
    data["too_small"] = found.too_small
    data["clear"] = found.clear
    if tasks is not None:
        data["tasks"] = list(tasks)
    reasons = {name: value.reason for name, value in values.items() if value.reason is not None}
    if found.interval.reason is not None:
        reasons["interval"] = found.interval.reason
    data["reasons"] = reasons
    return data


def _cell_data(test: SignedRankTest) -> dict[str, Any]:
    return {
        "cells": test.cells,
        "p_better": test.p_better.value,
        "p_worse": test.p_worse.value,
        "p_better_holm": test.corrected_better.value,
        "p_worse_holm": test.corrected_worse.value,
        "reason": test.p_better.reason,
    }


def _p(value: float | None) -> str:
    return "" if value is None else "<.001" if value < 0.001 else number(value)
