"""What changing earlier atoms does (SALT figures 4 and 25), and what the length before an atom does (26 and 27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from salt_tui.figures.drawing import FAINT, RIGHT, SERIES, WRONG, Drawing, empty_axes, name_axes, series
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.measure.interventions import InterventionFindings, TaskFindings
from salt_tui.number_text import number
from salt_tui.reports.intervention_tables import (
    OUTCOME_NAMES,
    TREATMENT_NAMES,
    interventions_notes,
    p_text,
)
from salt_tui.reports.text_tables import interval_text
from salt_tui.visible_text import visible
from scoring.interventions import FEWEST_PROBLEMS
from scoring.interventions_contrasts import TREATMENTS, Contrast, Curve
from scoring.interventions_length import LengthResponse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = 1.75
"""Inches of a row of panels."""


def draw_interventions(measured: Measured) -> Drawing:
    """Return the curves of both treatments, on Y and on P(gold), for each task."""
    findings = measured.findings
    tasks = _chosen(measured, findings)
    shown = [
        task for task in tasks if any(one.curve.dose for found in task.outcomes.values() for one in found.contrasts)
    ]
    if not shown:
        raise FigureError(f"nothing to draw: {_why(tasks, [one.reason for one in _contrasts(tasks)])}")

    def fill(figure: Figure) -> None:
        every: Any = figure.subplots(2 * len(shown), 2, sharey="row", squeeze=False)
        for place, task in enumerate(shown):
            table = every[2 * place : 2 * place + 2]
            for row, (outcome, found) in enumerate(task.outcomes.items()):
                for column, treatment in enumerate(TREATMENTS):
                    own = [one for one in found.contrasts if one.treatment == treatment]
                    _effects(table[row, column], own)
                    name_axes(
                        table[row, column],
                        x=f"change of the share right, {TREATMENT_NAMES[treatment]}" if row else "",
                        y=f"change of {OUTCOME_NAMES[outcome]}" if column == 0 else "",
                        title=f"{visible(task.task, 40)}, {TREATMENT_NAMES[treatment]}" if row == 0 else "",
                    )
                _room_above(*table[row])
                for axes in table[row]:
                    if axes.get_legend_handles_labels()[0]:
                        axes.legend(loc="upper left", handlelength=2.2)

    notes = (
        *_head(measured, findings, tasks),
        "Solid: the treatment alone, band: its 95 % interval over problems; dashed: with the other treatment held"
        f" fixed. {TREATMENT_NAMES['global'].capitalize()}: all atoms before the target; {TREATMENT_NAMES['local']}:"
        " the ten before it. Left of 0 atoms were made wrong, right of 0 made right. Beyond ±1 bands are cut.",
    )
    return Drawing("What do earlier atoms do to the next one?", notes, 2 * _PANEL * len(shown) + 0.2, fill)


def _effects(axes: Axes, contrasts: Sequence[Contrast]) -> None:
    axes.axhline(0.0, color=FAINT, linewidth=0.6)
    axes.axvline(0.0, color=FAINT, linewidth=0.6)
    drawn = [contrast for contrast in contrasts if contrast.curve.dose]
    if not drawn:
        empty_axes(axes, *(contrast.reason for contrast in contrasts))
        return
    for contrast in drawn:
        slope = contrast.slope
        value = f"{number(slope.value.value, 2)} {interval_text(slope.interval, 2)}".rstrip()
        words = f"slope {value}, p {p_text(contrast.p_clustered)}"
        colour, style = (WRONG, (0, (4, 1.5))) if contrast.adjusted else (RIGHT, "-")
        label = f"other fixed: {words}" if contrast.adjusted else words
        _line(axes, contrast.curve, colour, style, label, band=not contrast.adjusted)


def draw_length(measured: Measured) -> Drawing:
    """Return the outcome by the number of atoms before the target, and the same at fixed correctness."""
    findings = measured.findings
    tasks = _chosen(measured, findings)
    shown = [task for task in tasks if any(one.curve.dose for found in task.outcomes.values() for one in found.lengths)]
    if not shown:
        raise FigureError(f"nothing to draw: {_why(tasks, [one.reason for one in _lengths(tasks)])}")

    def fill(figure: Figure) -> None:
        every: Any = figure.subplots(2 * len(shown), 2, squeeze=False)
        for place, task in enumerate(shown):
            table = every[2 * place : 2 * place + 2]
            for row, (outcome, found) in enumerate(task.outcomes.items()):
                _responses(table[row, 0], found.lengths)
                _fixed(table[row, 1], found.lengths[0])
                what = OUTCOME_NAMES[outcome] if outcome == "probability" else "share with Y = 1"
                below = "atoms before it" if row else ""
                name_axes(table[row, 0], x=below, y=what, title="" if row else f"{visible(task.task, 40)}, by length")
                name_axes(
                    table[row, 1], x=below, title="" if row else "with the text before it held right to this share"
                )

    notes = (
        *_head(measured, findings, tasks),
        "Length was not varied: an association, not an effect. Controlled: at equal correctness before it; band: 95 %"
        " interval. κ: from there on the slope is under a tenth of its peak; ξ: 95 % of the change has accrued. *"
        " and dotted: no text before a target was so right, extrapolated.",
    )
    return Drawing("Does it get worse with length alone?", notes, 2 * _PANEL * len(shown) + 0.2, fill)


def _responses(axes: Axes, lengths: Sequence[LengthResponse]) -> None:
    drawn = [length for length in lengths if length.curve.dose]
    if not drawn:
        empty_axes(axes, *(length.reason for length in lengths))
        return
    for length in drawn:
        name = "controlled" if length.controlled else "uncontrolled"
        words = f"κ {_atoms(length.knee)}, ξ {_atoms(length.saturation)}"
        colour, style = (RIGHT, "-") if length.controlled else (WRONG, (0, (4, 1.5)))
        _line(axes, length.curve, colour, style, f"{name}: {words}", band=length.controlled)
        if length.controlled and length.saturation.value.value is not None:
            axes.axvline(length.saturation.value.value, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
    _room_above(axes)
    axes.legend(loc="upper left")


def _fixed(axes: Axes, controlled: LengthResponse) -> None:
    for place, level in enumerate(controlled.fixed):
        style = series(place) | {"linewidth": 0.9, "markersize": 3, "markevery": (4 * place, 20)}
        style["linestyle"] = SERIES[place % len(SERIES)][2] if level.observed else ":"
        seen = "" if level.observed else " *"
        axes.plot(controlled.curve.dose, level.value, label=f"{level.level:.0%}{seen}".replace("%", " %"), **style)
    if controlled.fixed:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        empty_axes(axes, controlled.reason)


def _line(axes: Axes, curve: Curve, colour: str, style: Any, label: str, *, band: bool) -> None:
    axes.plot(curve.dose, curve.value, color=colour, linestyle=style, label=label)
    if band and curve.low:
        axes.fill_between(curve.dose, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(curve.dose, curve.low, color=colour, linewidth=0.5, linestyle=(0, (1, 1)))
        axes.plot(curve.dose, curve.high, color=colour, linewidth=0.5, linestyle=(0, (1, 1)))


def _room_above(axes: Axes, *others: Axes) -> None:
    """Cut bands beyond ±1, which no change of a share reaches, and leave room for words above the curves.

    Axes that share their scale are changed together.
    """
    low, high = (pick(one.get_ylim()[end] for one in (axes, *others)) for end, pick in ((0, min), (1, max)))
    low, high = max(low, -1.05), min(high, 1.05)
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
    axes.set_yticks(ticks)
    axes.set_ylim(low, high + 0.32 * (high - low))


def _chosen(measured: Measured, findings: InterventionFindings) -> list[TaskFindings]:
    wanted = measured.options.task
    tasks = [task for task in findings.tasks if wanted in (None, task.task)]
    if not tasks:
        known = ", ".join(task.task for task in findings.tasks) or "no task"
        raise FigureError(f"nothing to draw: {', '.join(findings.studies)} has {known}")
    return tasks


def _head(measured: Measured, findings: InterventionFindings, tasks: Sequence[TaskFindings]) -> tuple[str, ...]:
    counts = "; ".join(
        f"{task.task}: {task.replays:,} replays of {task.targets:,} targets in {task.problems:,} problems"
        for task in tasks
    )
    caveats = [f"{task.task}: {task.caveat}" for task in tasks if task.caveat]
    few = [task.task for task in tasks if task.problems < FEWEST_PROBLEMS]
    no_interval = [f"no interval from fewer than {FEWEST_PROBLEMS} problems: {', '.join(few)}"] if few else []
    # The last note explains the columns of the tables, which a figure has not.
    checks = interventions_notes(replace(findings, tasks=tuple(tasks)))[:-1]
    studies = f"study {', '.join(findings.studies).replace('study ', '')}"
    return (*measured.study_words, f"{studies}: {counts}.", *caveats, *no_interval, *checks)


def _contrasts(tasks: Sequence[TaskFindings]) -> list[Contrast]:
    return [one for task in tasks for found in task.outcomes.values() for one in found.contrasts]


def _lengths(tasks: Sequence[TaskFindings]) -> list[LengthResponse]:
    return [one for task in tasks for found in task.outcomes.values() for one in found.lengths]


def _why(tasks: Sequence[TaskFindings], reasons: Sequence[str | None]) -> str:
    replays = sum(task.replays for task in tasks)
    return f"{'; '.join(dict.fromkeys(filter(None, reasons))) or 'no curve'} ({replays} replays)"


def _atoms(estimate: Any) -> str:
    if estimate.value.value is None:
        return number(None)
    interval = estimate.interval
    ends = "" if interval.low is None else f" [{interval.low:.0f} {interval.high:.0f}]"
    return f"{estimate.value.value:.0f}{ends}"
