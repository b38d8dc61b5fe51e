"""Two runs on the problems that both answered: the difference of each metric per task, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from salt_tui.figures.drawing import FAINT, INK, SMALL, WRONG, Drawing, error_ends, name_axes
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.number_text import number, signed
from salt_tui.reports.comparison import head_lines, sentences
from salt_tui.reports.text_tables import interval_text
from salt_tui.visible_text import visible
from scoring.metrics import METRICS
from scoring.paired_runs import PairedDifference, PairedMetric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UP = {"precision", "recall", "auroc"}
_COLUMNS = 2
_MARGIN = 0.7


def draw_compare(measured: Measured) -> Drawing:
    """Return a panel per metric, a row per task and the mean of tasks."""
    pair = measured.compared
    metrics = [
        metric
        for metric in pair.metrics.values()
        if any(found.difference.value is not None for found in (metric.mean, *metric.tasks.values()))
    ]
    if not metrics:
        raise FigureError(f"nothing to draw: {next(iter(pair.metrics.values())).mean.difference.reason}")

    def fill(figure: Figure) -> None:
        rows = -(-len(metrics) // _COLUMNS)
        table = figure.subplots(rows, _COLUMNS, squeeze=False, sharey=True)
        every = [axes for row in table for axes in row]
        for axes in every[len(metrics) :]:
            axes.set_axis_off()
        for axes, metric in zip(every, metrics, strict=False):
            _panel(axes, metric)
        names = [*(visible(task, 24) for task in pair.tasks), "mean of tasks"]
        for row in table:
            row[0].set_yticks(range(len(names)), names)
        # Half a row and a little: no marker is cut, and no axis strikes through the words of the last row.
        every[0].set_ylim(len(names) - 1 + _MARGIN, -_MARGIN)

    notes = (
        *head_lines(pair),
        *sentences(pair),
        "Dots: B − A; bars: 95 % interval over problems; filled where it does not hold 0. Means: each task equal.",
    )
    height = (0.55 + 0.17 * (len(pair.tasks) + 1)) * -(-len(metrics) // _COLUMNS)
    return Drawing("What changed between two runs?", notes, height, fill)


def _panel(axes: Axes, metric: PairedMetric) -> None:
    rows = [*metric.tasks.values(), metric.mean]
    for place, found in enumerate(rows):
        _row(axes, place, found, mean=place == len(rows) - 1)
    axes.axvline(0.0, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.axhline(len(rows) - 1.5, color=FAINT, linewidth=0.5)
    low, high = axes.get_xlim()
    low, high = min(low, -0.02), max(high, 0.02)
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    for place, found in enumerate(rows):
        words = f"{signed(found.difference.value)} {interval_text(found.interval)}".rstrip()
        if found.difference.value is None:
            words = f"undefined, n {found.problems}"
        across = axes.get_yaxis_transform()
        axes.annotate(words, (0.99, place), xycoords=across, fontsize=SMALL, va="center", ha="right")
    axes.set_xticks(ticks[:: -(-len(ticks) // 4)] if ticks else [], minor=False)
    axes.set_xlim(low, high + 0.9 * (high - low))
    entry = METRICS.get(metric.name)
    better = "B better →" if metric.name in _UP else "← B better"
    name_axes(axes, title=f"{entry.title if entry else metric.name}: {_both(metric.mean)}", x=f"B − A ({better})")


def _both(mean: PairedDifference) -> str:
    return f"{number(mean.first.value)} → {number(mean.second.value)}"


def _row(axes: Axes, place: int, found: PairedDifference, *, mean: bool) -> None:
    value, low, high = found.difference.value, found.interval.low, found.interval.high
    if value is None:
        return
    if low is not None and high is not None:
        axes.errorbar(
            [value],
            [place],
            xerr=error_ends([value], [low], [high]),
            fmt="none",
            ecolor=INK,
            elinewidth=0.8,
            capsize=1.8,
        )
    clear = low is not None and high is not None and (low > 0.0 or high < 0.0)
    axes.plot(
        [value], [place], marker="D" if mean else "o", markersize=5 if mean else 4, color=WRONG, linestyle="none",
        markerfacecolor=WRONG if clear else "white",
    )  # fmt: skip
