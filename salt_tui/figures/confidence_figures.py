"""What a confidence is worth: reliability (ACUTE figure 3), risk and coverage, EURO (figure 1), densities (SALT 44)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from salt_tui.figures.drawing import FAINT, INK, RIGHT, SMALL, WRONG, Drawing, name_axes, series, unit_axes
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.measure.confidence_view import USUAL_RISK, ConfidenceView
from salt_tui.measure.rows import USUAL_MAP
from salt_tui.measure.task_scores import RAW
from salt_tui.number_text import number, percent
from salt_tui.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels beside each other."""

_MARKS = 12
"""Marks along a curve of any number of points."""

Views = Mapping[str | None, ConfidenceView]


def draw_reliability(measured: Measured) -> Drawing:
    """Return a reliability diagram of all tasks together and one of each, with counts and gaps."""
    views = _with_probabilities(measured.views)

    def fill(figure: Figure) -> None:
        rows = -(-len(views) // COLUMNS)
        columns = min(len(views), COLUMNS)
        table: Any = figure.subplots(2 * rows, columns, squeeze=False, sharex=True, height_ratios=[4, 1] * rows)
        for place in range(rows * columns):
            row, column = divmod(place, columns)
            above, below = table[2 * row, column], table[2 * row + 1, column]
            if place >= len(views):
                above.set_axis_off()
                below.set_axis_off()
                continue
            _diagram(above, below, list(views.values())[place], large=len(views) == 1)
            if column == 0:
                above.set_ylabel("share right")
                below.set_ylabel("n")
            if place + columns >= len(views):
                below.set_xlabel("confidence")
                below.tick_params(labelbottom=True)

    notes = (
        *_head(measured, views),
        "Bars: share of right ones in each fifteenth of the confidence that holds any; dot: mean confidence there."
        " Hatched: the gap; /// says too much, \\\\\\ too little. Below: how many. All tasks: bars pool their units,"
        " right and ECE are means over tasks, each task equal.",
    )
    height = 3.6 if len(views) == 1 else 2.2 * -(-len(views) // COLUMNS)
    return Drawing("Is it right as often as it says?", notes, height, fill)


def _diagram(above: Axes, below: Axes, view: ConfidenceView, *, large: bool) -> None:
    bins = view.bins
    above.plot([0, 1], [0, 1], color=FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
    unit_axes(above, title=_title(view))
    if bins is None:
        return
    width = bins.upper - bins.lower
    middle = bins.lower + width / 2
    above.bar(middle, bins.accuracy, width=width * 0.94, color="#a8c8ee", edgecolor=RIGHT, linewidth=0.5)
    for over, colour, hatch in ((True, WRONG, "//////"), (False, RIGHT, "\\\\\\\\\\\\")):
        gaps = bins.gaps > 0 if over else bins.gaps < 0
        if gaps.any():
            low = np.minimum(bins.accuracy, bins.confidence)[gaps]
            above.bar(
                middle[gaps], np.abs(bins.gaps[gaps]), bottom=low, width=width[gaps] * 0.94, fill=False,
                edgecolor=colour, hatch=hatch, linewidth=0.4,
            )  # fmt: skip
    above.plot(bins.confidence, bins.confidence, marker="o", markersize=2, color=INK, linestyle="none")
    below.bar(middle, bins.counts, width=width * 0.94, color="#b9b9b9", edgecolor="#555555", linewidth=0.4)
    below.set_ylim(0, bins.counts.max() * (1.5 if large else 1.05))
    below.set_yticks([int(bins.counts.max())])
    if large:
        for x, count in zip(middle.tolist(), bins.counts.tolist(), strict=True):
            below.annotate(
                f"{int(count):,}", (x, count), (0, 2), textcoords="offset points", ha="center", fontsize=SMALL
            )
        for place, x in enumerate(middle.tolist()):
            above.annotate(
                number(float(bins.accuracy[place]), 2), (x, 0.01), ha="center", va="bottom", fontsize=SMALL,
            )  # fmt: skip


def draw_risk_coverage(measured: Measured) -> Drawing:
    """Return the error among the surest units by their share, with yardsticks."""
    views = measured.views

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (task, view) in enumerate((task, view) for task, view in views.items() if task is not None):
            if view.risk is not None:
                label = visible(task or "", 30) if len(views) > 1 else "surest first"
                axes.plot(view.risk.coverage, view.risk.error, label=label, **_thin(place, view.risk.n))
        first = next(iter(views.values()))
        if first.risk is not None:
            _whole_risk(axes, first, thick=len(views) > 1)
        unit_axes(axes, x="coverage: share of units trusted, the surest first", y="share of wrong ones among them")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    notes = (
        *_head(measured, views),
        f"Thick: all tasks together. Oracle: every right one before every wrong one. Random: a confidence that knows"
        f" nothing. Diamond: the most that can be covered with at most {percent(USUAL_RISK)} wrong, in sets of ten or"
        " more. It describes these answers and promises nothing about others (`salt-tui policy` does).",
    )
    return Drawing("How wrong are the ones it is sure of?", notes, 3.5, fill)


def _whole_risk(axes: Axes, view: ConfidenceView, *, thick: bool) -> None:
    risk = view.risk
    assert risk is not None
    if thick:
        axes.plot(risk.coverage, risk.error, color=INK, linewidth=2.0, label="all tasks together", zorder=5)
    axes.plot(risk.coverage, risk.oracle, color=INK, linewidth=1.0, linestyle=(0, (5, 2)), label="oracle")
    axes.axhline(risk.random, color=FAINT, linewidth=1.0, linestyle=(0, (1, 2)), label=f"random, {number(risk.random)}")
    found = risk.within(USUAL_RISK)
    if found is not None and found.error is not None:
        axes.plot([found.coverage], [found.error], marker="D", color=INK, markersize=5, linestyle="none", zorder=6)
        words = f"{percent(found.coverage)} covered, {percent(found.error)} wrong (n {found.n:,})"
        axes.annotate(words, (found.coverage, found.error), (6, -9), textcoords="offset points", fontsize=SMALL)


def draw_euro(measured: Measured) -> Drawing:
    """Return EURO by the utility of rightly abstaining, with yardsticks."""
    views = _with_probabilities(measured.views)

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (task, view) in enumerate((task, view) for task, view in views.items() if task is not None):
            if view.euro is not None:
                label = visible(task, 30) if len(views) > 1 else "this confidence"
                axes.plot(view.euro.utility, _gaps(view.euro.value), label=label, **_thin(place, len(view.euro.value)))
        euro = next(iter(views.values())).euro
        if euro is not None:
            if len(views) > 1:
                axes.plot(
                    euro.utility, _gaps(euro.value), color=INK, linewidth=2.0, label="all tasks together", zorder=5
                )
            axes.plot(euro.utility, _gaps(euro.oracle), color=INK, linestyle=(0, (5, 2)), linewidth=1.0, label="oracle")
            axes.plot(
                euro.utility,
                _gaps(euro.base_rate),
                color=FAINT,
                linestyle=(0, (1, 2)),
                linewidth=1.2,
                label="base rate",
            )
        unit_axes(axes, x="utility u of rightly abstaining: low risk → high risk", y="EURO: 1 is the perfect decider")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    notes = (
        *_head(measured, views),
        "A unit is trusted if its confidence is above u; EURO is what that earns as a share of what the perfect decider"
        " earns. Base rate: the share of right ones as everyone's confidence; a confidence below it is worth less than"
        " none.",
    )
    return Drawing("What is deciding by it worth?", notes, 3.5, fill)


def draw_densities(measured: Measured) -> Drawing:
    """Return where right and wrong units stand along the confidence."""
    views = _with_probabilities(measured.views)

    def fill(figure: Figure) -> None:
        columns = min(len(views), COLUMNS)
        rows = -(-len(views) // columns)
        table: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
        every = [axes for row in table for axes in row]
        for place, axes in enumerate(every):
            if place >= len(views):
                axes.set_axis_off()
                continue
            _densities(axes, list(views.values())[place])
            if place % columns == 0:
                axes.set_ylabel("density")
            if place + columns >= len(views):
                axes.set_xlabel("confidence")
                axes.tick_params(labelbottom=True)
        every[0].legend(loc="upper left")

    notes = (
        *_head(measured, views),
        "Densities of mean 1 over forty equal bins. Overlap: area under the lower of both; 1 where the confidence"
        " separates nothing.",
    )
    height = 3.2 if len(views) == 1 else 1.75 * -(-len(views) // COLUMNS)
    return Drawing("Do right and wrong ones differ in confidence?", notes, height, fill)


def _densities(axes: Axes, view: ConfidenceView) -> None:
    found = view.densities
    name_axes(axes, title=_title(view, overlap=True))
    axes.set_xlim(-0.02, 1.02)
    if found is None:
        return
    for values, colour, style, label in (
        (found.right, RIGHT, "-", "right"),
        (found.wrong, WRONG, (0, (3, 1)), "wrong"),
    ):
        if values is not None:
            axes.stairs(values, found.edges, color=colour, linestyle=style, linewidth=1.1, label=label)
    if found.wrong is not None:
        axes.stairs(found.wrong, found.edges, fill=True, color=WRONG, alpha=0.12, hatch="////", edgecolor=WRONG)


def _with_probabilities(views: Views) -> Views:
    first = next(iter(views.values()))
    if first.no_probability is not None:
        hint = f"; --map {USUAL_MAP} makes it one" if first.choice.calibrator == RAW else ""
        raise FigureError(f"nothing to draw: {first.no_probability}{hint}")
    return views


def _head(measured: Measured, views: Views) -> tuple[str, ...]:
    """Return of what a figure is, its sentence, and what is not in it."""
    first = next(iter(views.values()))
    chosen = first.choice
    how = "raw" if chosen.calibrator == RAW else f"after {chosen.calibrator}, fitted on other answers"
    left_out = "; ".join(f"{task}: {reason}" for task, reason in first.tasks_left_out.items())
    return (
        *measured.words,
        f"{first.n:,} {first.unit_word} of {first.answers:,} answers by {chosen.function}, {how}. {first.sentence}",
        *((f"left out: {left_out}",) if left_out else ()),
        *first.notes,
    )


def _title(view: ConfidenceView, *, overlap: bool = False) -> str:
    name = "all tasks" if view.choice.task is None else visible(view.choice.task, 24)
    if overlap:
        found = view.densities
        share = None if found is None else found.overlap.value
        return f"{name}\nn {view.n:,}, overlap {number(share)}"
    right, error = (number(view.values[metric].mean.value) for metric in ("accuracy", "ece"))
    return f"{name}\nn {view.n:,}, right {right}, ECE {error}"


def _thin(place: int, points: int) -> dict[str, Any]:
    """Return the style of a task's curve; marks stand at other places along each, so that none hides another."""
    style = series(place)
    step = max(1, points // _MARKS)
    return style | {"linewidth": 0.8, "markersize": 3, "markevery": (place * step // 8, step)}


def _gaps(values: tuple[float | None, ...]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
