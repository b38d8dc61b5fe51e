"""Which confidence function: every one by AUROC, ECE and Brier, with intervals and the set that is best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from salt_tui.figures.drawing import FAINT, INK, RIGHT, SMALL, Drawing, error_ends, name_axes
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.measure.rows import USUAL_MAP, ReportRow
from salt_tui.measure.task_scores import RAW
from salt_tui.reports.text_tables import BEST, PARTIAL, interval_text, number
from salt_tui.visible_text import visible
from scoring.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = (("auroc", RAW), ("ece", USUAL_MAP), ("brier", USUAL_MAP))


def draw_functions(measured: Measured) -> Drawing:
    """Return one row per confidence function, best AUROC first."""
    report = measured.report
    raw = [row for row in report.rows if row.granularity == "atom" and row.calibrator == RAW]
    ranked = sorted(
        raw, key=lambda row: (row.values["auroc"].mean.value is None, -(row.values["auroc"].mean.value or 0))
    )
    if not any(row.n for row in ranked):
        raise FigureError("nothing to draw: no atom has a confidence and a verdict")
    if all(row.values["auroc"].mean.value is None and row.values["brier"].mean.value is None for row in ranked):
        reasons = "; ".join(dict.fromkeys(row.values["auroc"].mean.reason or "" for row in ranked))
        raise FigureError(f"nothing to draw: {reasons}")
    found = None if report.conclusions is None else report.conclusions.functions
    best = () if found is None else found.best

    def fill(figure: Figure) -> None:
        axes = figure.subplots(1, len(_PANELS), sharey=True)
        for panel, (metric, calibrator) in zip(axes, _PANELS, strict=True):
            rows = [row if calibrator == RAW else report.row("atom", row.function, calibrator) for row in ranked]
            _panel(panel, rows, metric, filled=[row.function in best for row in ranked])
            if calibrator != RAW:
                _crosses(panel, ranked, metric)
            _words(panel, rows, metric)
            arrow = "→ better" if METRICS[metric].higher_is_better else "← better"
            after = "" if calibrator == RAW else f" after {calibrator}"
            name_axes(panel, title=f"{METRICS[metric].title}{after}", x=arrow)
        axes[0].axvline(0.5, color=FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
        axes[0].set_yticks(
            range(len(ranked)),
            [f"{BEST if row.function in best else ' '} {visible(row.function, 28)}" for row in ranked],
        )
        axes[0].invert_yaxis()

    said = "no function is marked: intervals were left out" if found is None else (
        f"nothing is marked: {found.reason}"
        if found.reason is not None
        else f"{BEST} and filled: cannot be told apart from the best by AUROC; ECE and Brier name no best"
    )  # fmt: skip
    finding = report.finding("function")
    notes = (
        *measured.words,
        *((finding.sentence,) if finding is not None else ()),
        f"n {ranked[0].n:,} atoms, means over tasks ({PARTIAL}: of the tasks that have a value); bars: 95 % interval by"
        f" drawing whole answers; {said}. Small crosses: raw scores, where they are probabilities; after {USUAL_MAP}:"
        " fitted on other answers.",
    )
    return Drawing("Which confidence function?", notes, 0.75 + 0.2 * len(ranked), fill)


def _panel(axes: Axes, rows: list[ReportRow | None], metric: str, filled: list[bool]) -> None:
    """Draw the values of a metric with their intervals."""
    for place, row in enumerate(rows):
        value = None if row is None else row.values[metric].mean.value
        if row is None or value is None:
            continue
        interval = row.intervals.get(metric)
        if interval is not None and interval.low is not None:
            ends = error_ends([value], [interval.low], [interval.high])
            axes.errorbar([value], [place], xerr=ends, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.8)
        inside = RIGHT if filled[place] else "white"
        axes.plot([value], [place], marker="o", markersize=4.5, color=RIGHT, linestyle="none", markerfacecolor=inside)


def _crosses(axes: Axes, rows: list[ReportRow], metric: str) -> None:
    """Mark the values of raw scores where these are probabilities."""
    for place, row in enumerate(rows):
        value = row.values[metric].mean.value
        if value is not None:
            axes.plot([value], [place], marker="x", markersize=3, color=FAINT, linestyle="none")


def _words(axes: Axes, rows: list[ReportRow | None], metric: str) -> None:
    """Write the digits of the report beside what is drawn, in room of their own."""
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    for place, row in enumerate(rows):
        mean = None if row is None else row.values[metric]
        if row is None or mean is None or mean.mean.value is None:
            words = "undefined"
        else:
            mark = PARTIAL if mean.left_out else ""
            words = f"{mark}{number(mean.mean.value)} {interval_text(row.intervals.get(metric))}".rstrip()
        across = axes.get_yaxis_transform()
        axes.annotate(words, (0.99, place), xycoords=across, fontsize=SMALL, va="center", ha="right")
    axes.set_xticks(ticks[:: -(-len(ticks) // 4)] if ticks else [])
    axes.set_xlim(low, high + 0.95 * (high - low))
