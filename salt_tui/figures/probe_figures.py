"""What probes on activations found: layers, numbers of answers, dimensions and maps (ACUTE figures 5 to 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from salt_tui.figures.drawing import FAINT, INK, RIGHT, SMALL, WRONG, Drawing, name_axes, series
from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.measure.probes import ProbeReport
from salt_tui.number_text import number
from salt_tui.reports.probe_report import UNITS, sentences
from scoring.probe_features import VARIANCE_SHARES
from scoring.probes import BASELINES
from scoring.value import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TICKS = 12
"""Layers that are named at an axis."""

_SHOWN = {"euro_auc": ("area under EURO", "→ better"), "smooth_ece": ("smooth ECE", "← better")}


def draw_probe_layers(measured: Measured) -> Drawing:
    """Return how well each layer alone does, beside the probability of the tokens."""
    report = measured.probes
    plain = report.estimators.get("none")

    def fill(figure: Figure) -> None:
        panels: Any = figure.subplots(1, 2)
        for axes, (metric, (title, better)) in zip(panels, _SHOWN.items(), strict=True):
            layers, values = _defined(report.by_layer, metric)
            axes.plot(layers, values, color=RIGHT, marker="o", label="forest on one layer")
            if report.best_layer in layers:
                place = layers.index(report.best_layer)
                best, beside = values[place], values[place + 1 :][:1]
                # Not over the line that leaves the mark.
                below = bool(beside) and beside[0] > best
                axes.plot([report.best_layer], [best], marker="D", markersize=6, color=WRONG, linestyle="none")
                axes.annotate(
                    f"layer {report.best_layer}: {number(best)}", (report.best_layer, best), (5, -9 if below else 5),
                    textcoords="offset points", fontsize=SMALL,
                )  # fmt: skip
            if plain is not None and plain.metrics[metric].value is not None:
                value = plain.metrics[metric].value
                axes.axhline(
                    value,
                    color=INK,
                    linestyle=(0, (4, 2)),
                    linewidth=0.9,
                    label=f"token probability, raw: {number(value)}",
                )
            _layer_ticks(axes, layers)
            axes.margins(y=0.12)
            name_axes(axes, x="layer", y=title, title=_arrow(better))
            axes.legend(loc="best")

    notes = (
        *_head(measured, report),
        f"Out of fold, 100 trees. Diamond: the layer with the largest area under EURO ({report.best_layer}). The best"
        " of many layers looks better than it is; the tables of `salt-tui probe` choose it inside the folds.",
    )
    return Drawing("Which layer knows?", notes, 2.6, fill)


def draw_sample_complexity(measured: Measured) -> Drawing:
    """Return how well a probe does that was trained on so many units."""
    report = measured.probes
    if not any(size.means["euro_auc"].value is not None for size in report.sizes):
        reasons = "; ".join(dict.fromkeys(size.means["euro_auc"].reason or "" for size in report.sizes))
        raise FigureError(f"nothing to draw: {reasons or 'too few answers'}")

    def fill(figure: Figure) -> None:
        panels: Any = figure.subplots(1, 2)
        for axes, (metric, (title, better)) in zip(panels, _SHOWN.items(), strict=True):
            known = [size for size in report.sizes if size.means[metric].value is not None]
            sizes = [size.units for size in known]
            means = [size.means[metric].value or 0.0 for size in known]
            spreads = [size.deviations[metric].value or 0.0 for size in known]
            axes.errorbar(sizes, means, yerr=spreads, color=RIGHT, marker="o", capsize=2.5, elinewidth=0.9)
            for size, mean in zip(sizes, means, strict=True):
                axes.annotate(number(mean), (size, mean), (4, 5), textcoords="offset points", fontsize=6.5)
            plain = report.estimators.get("none")
            if plain is not None and plain.metrics[metric].value is not None:
                axes.axhline(plain.metrics[metric].value, color=INK, linestyle=(0, (4, 2)), linewidth=0.9)
            axes.set_xlim(left=0)
            name_axes(axes, x=f"{UNITS[report.subject.kind]} to train on", y=title, title=_arrow(better))

    missing = [size.units for size in report.sizes if size.means["euro_auc"].value is None]
    left_out = (
        f" Left out, with fewer {UNITS[report.subject.kind]} than that: {', '.join(map(str, missing))}."
        if missing
        else ""
    )
    notes = (
        *_head(measured, report),
        f"Layer {report.best_layer}, 100 trees; mean and spread (one standard deviation) of 20 draws. Dashed: raw"
        f" probability of the tokens.{left_out}",
    )
    return Drawing("How many answers does a probe need?", notes, 2.6, fill)


def draw_intrinsic_dimension(measured: Measured) -> Drawing:
    """Return how many components hold a share of each layer's variance."""
    report = measured.probes
    if not any(count is not None for one in report.dimensions for count in one.components):
        raise FigureError("nothing to draw: too few vectors for components")

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        for place, share in enumerate(VARIANCE_SHARES):
            known = [(one.layer, one.components[place]) for one in report.dimensions]
            points = [(layer, count) for layer, count in known if count is not None]
            style = series(place) | {"linewidth": 0.9}
            axes.plot(*zip(*points, strict=True), label=f"{100 * share:.0f} %", **style)
        axes.set_ylim(bottom=0)
        _layer_ticks(axes, [one.layer for one in report.dimensions])
        name_axes(axes, x="layer", y="components")
        axes.legend(title="of the variance", loc="center left", bbox_to_anchor=(1.0, 0.5))

    most = "; ".join(
        f"{one.units:,} vectors of {one.width} numbers: at most {min(one.units - 1, one.width)} components"
        for one in report.dimensions[:1]
    )
    return Drawing("How many directions does a layer use?", (*_head(measured, report), most), 2.8, fill)


def draw_probe_maps(measured: Measured) -> Drawing:
    """Return area under EURO and smooth ECE of every estimator, raw and after each calibration map."""
    report = measured.probes
    names = [name for name in report.estimators if "+" not in name]
    maps = list(dict.fromkeys(name.partition("+")[2] for name in report.estimators if "+" in name))

    def fill(figure: Figure) -> None:
        panels: Any = figure.subplots(1, 2, sharey=True)
        for axes, (metric, (title, better)) in zip(panels, _SHOWN.items(), strict=True):
            for row, name in enumerate(names):
                for place, one in enumerate(["", *maps]):
                    found = report.estimators.get(f"{name}+{one}" if one else name)
                    if found is None or found.metrics[metric].value is None:
                        continue
                    colour, marker, _ = (INK, "o", "") if not one else _mark(place - 1)
                    axes.plot(
                        [found.metrics[metric].value], [row], marker=marker, color=colour, linestyle="none",
                        markersize=6 if not one else 4, markerfacecolor="none" if not one else colour,
                        label=(one or "raw") if row == _first(report, one, names) else None,
                    )  # fmt: skip
            name_axes(axes, x=f"{title} ({better})")
            axes.grid(axis="y", color=FAINT, linewidth=0.3)
        panels[0].set_yticks(
            range(len(names)), [f"{'● ' if name in report.conclusion.best else ''}{name}" for name in names]
        )
        panels[0].invert_yaxis()
        panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    after = [one.metrics["euro_auc"] for name, one in report.estimators.items() if "+" in name]
    without = [value.reason or "" for value in after if value.value is None]
    left_out = f" {len(without)} of {len(after)} have no value after a map: {'; '.join(dict.fromkeys(without))}."
    notes = (
        *_head(measured, report),
        f"Circles: without a map. {', '.join(BASELINES)} read the probability of the tokens alone, the others"
        " activations. ●: not to be told apart from the best by Brier score; smooth ECE and EURO name no best."
        f"{left_out if without else ''}",
    )
    return Drawing("Do maps help after a probe?", notes, 0.7 + 0.22 * len(names), fill)


def _first(report: ProbeReport, one: str, names: Sequence[str]) -> int:
    """Return the first row that has a map, which gives it its place in the legend."""
    return next((row for row, name in enumerate(names) if (f"{name}+{one}" if one else name) in report.estimators), 0)


def _mark(place: int) -> tuple[str, str, str]:
    style = series(place)
    return style["color"], style["marker"], style["linestyle"]


def _head(measured: Measured, report: ProbeReport) -> tuple[str, ...]:
    return (*measured.study_words, *sentences(report))


def _layer_ticks(axes: Axes, layers: Sequence[int]) -> None:
    """Mark layers, which are whole numbers, and not all of many."""
    axes.set_xticks(layers[:: -(-len(layers) // MOST_TICKS) or 1])


def _arrow(better: str) -> str:
    return "↑ better" if better.startswith("→") else "↓ better"


def _defined(by_layer: Mapping[int, Mapping[str, Value]], metric: str) -> tuple[list[int], list[float]]:
    known = [(layer, value) for layer, metrics in by_layer.items() if (value := metrics[metric].value) is not None]
    return [layer for layer, _ in known], [value for _, value in known]
