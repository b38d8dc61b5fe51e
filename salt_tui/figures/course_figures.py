"""How atoms change along an answer: by position (SALT figures 2, 29), by what was right before (figures 3, 22)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from salt_tui.figures.drawing import FAINT, SMALL, Drawing, error_ends, name_axes, series, unit_axes
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured, dependence_notes
from salt_tui.number_text import number
from salt_tui.visible_text import visible
from scoring.analyses_position import Curve
from scoring.confidence import HEADLINE_FUNCTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_position(measured: Measured) -> Drawing:
    """Return correctness, density of right atoms, and ECE by relative position."""
    course = measured.course
    _some(course.correctness, "no atom that has a right counterpart")

    def fill(figure: Figure) -> None:
        grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 1.0))
        axes = figure.add_subplot(grid[0, :])
        _curve(axes, course.correctness, measured.tasks, whole=measured.options.task is None)
        unit_axes(axes, x="relative position in the answer", y="share of right atoms")
        _legend(axes)
        left, right = (figure.add_subplot(grid[1, column]) for column in (0, 1))
        _curve(left, course.density, measured.tasks, whole=measured.options.task is None, values=False)
        name_axes(left, x="relative position", y="density of right atoms")
        left.set_xlim(-0.02, 1.02)
        left.set_ylim(bottom=0)
        _curve(right, course.calibration, measured.tasks, whole=measured.options.task is None, values=False)
        unit_axes(right, x="relative position", y=f"ECE of raw {HEADLINE_FUNCTION}")

    notes = (
        *measured.words,
        f"Tenths of the answer as written; {_counts(course.correctness, measured.tasks)}. Right: of the atoms with a"
        " right counterpart; redundant ones apart. Thick line: mean over the tasks that have atoms there, each task"
        " equal; bars: its 95 % interval by drawing whole answers. Density: of mean 1, low where right atoms are rare.",
        *dependence_notes(measured.tasks),
    )
    return Drawing("Does it get worse along the answer?", notes, 4.6, fill)


def draw_prior(measured: Measured) -> Drawing:
    """Return correctness by the share of right atoms before."""
    history = measured.course.history
    _some(history, "no atom with another one before it")

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.6, linestyle=(0, (1, 2)))
        _curve(axes, history, measured.tasks, whole=measured.options.task is None)
        unit_axes(axes, x="share of right atoms before it in the answer", y="share of right atoms")
        _legend(axes)

    notes = (
        *measured.words,
        f"{_counts(history, measured.tasks)}; redundant atoms and first atoms apart. Thick line: mean over the tasks"
        " that have atoms there, each task equal; bars: its 95 % interval by drawing whole answers, none with"
        " too few of them. A rising line is an association; interventions (`salt-tui replay`) tell the effect.",
        *dependence_notes(measured.tasks),
    )
    return Drawing("Do earlier errors go with later ones?", notes, 3.6, fill)


def _some(curve: Curve, reason: str) -> None:
    if all(value is None for value in curve.mean):
        raise FigureError(f"nothing to draw: {reason}")


def _curve(axes: Axes, curve: Curve, tasks: tuple[str, ...], *, whole: bool, values: bool = True) -> None:
    """Draw the curve of every task, and over them the mean with its intervals."""
    middles = [(low + high) / 2 for low, high in zip(curve.edges, curve.edges[1:], strict=False)]
    for place, task in enumerate(tasks):
        if task not in curve.tasks:
            continue
        points = [
            (middle, value) for middle, value in zip(middles, curve.tasks[task].value, strict=True) if value is not None
        ]
        style = series(place)
        if whole:
            style |= {"linewidth": 0.7, "alpha": 0.75, "markersize": 2.8}
        axes.plot([x for x, _ in points], [y for _, y in points], label=visible(task, 30), **style)
        if values and not whole:
            _say(axes, points)
    if not whole:
        return
    known = [place for place, value in enumerate(curve.mean) if value is not None]
    points = [(middles[place], value) for place in known if (value := curve.mean[place]) is not None]
    if not points:
        return
    xs, ys = [x for x, _ in points], [y for _, y in points]
    axes.plot(xs, ys, color="black", linewidth=2.0, marker="o", markersize=4.5, label="mean of tasks", zorder=5)
    if curve.intervals:
        ends = [curve.intervals[place] for place in known]
        axes.errorbar(
            xs, ys, yerr=error_ends(ys, [one.low for one in ends], [one.high for one in ends]),
            fmt="none", ecolor="black", elinewidth=1.0, capsize=2.5, zorder=5,
        )  # fmt: skip
    if values:
        _say(axes, points)


def _say(axes: Axes, points: list[tuple[float, float]]) -> None:
    """Write the digits of the report above the points."""
    for x, y in points:
        axes.annotate(
            number(y), (x, y), (0, 7), textcoords="offset points", ha="center", fontsize=SMALL, zorder=6,
            bbox={"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.7},
        )  # fmt: skip


def _counts(curve: Curve, tasks: tuple[str, ...]) -> str:
    units = sum(sum(curve.tasks[task].units) for task in tasks if task in curve.tasks)
    return f"{units:,} atoms"


def _legend(axes: Axes) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
