"""Writes what Reliability shows to a file: its numbers as csv, or a figure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from salt_tui.app.reliability_pictures import Kind
from salt_tui.app.reliability_state import ReliabilityState
from salt_tui.commands.text_files import write_text_file
from salt_tui.measure.parts import PARTS
from salt_tui.measure.run_views import RunViews
from salt_tui.reports import view_csv
from salt_tui.store.records import UnitKind
from salt_tui.usage_error import UsageError

CSV = ".csv"

FIGURE_OF: dict[Kind, str] = {
    Kind.DIAGRAM: "reliability",
    Kind.RISK: "risk-coverage",
    Kind.EURO: "euro",
    Kind.DENSITIES: "densities",
    Kind.POSITION: "position",
    Kind.HISTORY: "prior",
}
"""The figures that show what the screen draws."""


def suggested_name(views: RunViews, kind: Kind) -> str:
    """Return a name for the file."""
    return f"run-{views.run}-{FIGURE_OF.get(kind, 'reliability')}{CSV}"


def figure_name(state: ReliabilityState) -> str | None:
    """Return the figure that shows the same; None where there is none: of a slice, of parts of atoms, or not built."""
    from salt_tui.figures.registry import FIGURES

    name = FIGURE_OF.get(state.kind)
    return name if name in FIGURES and state.slice is None and state.unit not in PARTS else None


def write_view(views: RunViews, state: ReliabilityState, target: Path) -> None:
    """Write a file; one that stands there is replaced.

    Raises:
        UsageError: another ending, or the file cannot be written.
        StoreError: the run cannot be read any more.
    """
    if target.suffix.lower() == CSV:
        write_text_file(target, _csv(views, state))
        return
    from salt_tui.figures.rendering import ENDINGS

    name = figure_name(state)
    if target.suffix.lower().removeprefix(".") not in ENDINGS:
        raise UsageError(f"{target.name}: a name ends in {CSV}, or for a figure in .{', .'.join(ENDINGS)}")
    if name is None:
        raise UsageError(f"{target.name}: of this view there are the numbers only: a name that ends in {CSV}")
    from salt_tui.figures.measured import FigureOptions
    from salt_tui.figures.registry import save_figure

    options = FigureOptions(cast(UnitKind, state.unit), state.function, state.calibrator, state.task)
    save_figure(name, views.database, str(views.run), target, options)


def _csv(views: RunViews, state: ReliabilityState) -> str:
    kind = state.kind
    if kind is Kind.POSITION:
        names = ("correctness", "redundancy", "density", "calibration")
        return view_csv.csv_text(view_csv.course_rows(views.course(), state.task, names))
    if kind is Kind.HISTORY:
        return view_csv.csv_text(view_csv.course_rows(views.course(), state.task, ("history",)))
    if kind is Kind.PARTS:
        return view_csv.csv_text(view_csv.bins_rows(views.side_by_side(state.choice, sys.maxsize)))
    view = views.view(state.choice)
    rows = {
        Kind.DIAGRAM: lambda: view_csv.bins_rows([(state.task or "all", view)]),
        Kind.RISK: lambda: view_csv.risk_rows(view),
        Kind.EURO: lambda: view_csv.euro_rows(view),
        Kind.DENSITIES: lambda: view_csv.density_rows(view),
    }
    return view_csv.csv_text(rows[kind]())
