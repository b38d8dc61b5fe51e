"""What a kind of figure gives: words, a size, and how the axes are filled; and the marks that all figures share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.5
"""Inches: the width of the text on a page with usual margins, so that letters keep their size in a paper."""

SMALL = 6.5
"""Points of the smallest letters."""

RIGHT, WRONG = "#1f5fa8", "#c4560a"
"""The hues of `palette.HUES` for right and not right, dark enough for thin lines on paper."""

INK, FAINT = "#000000", "#8a8a8a"

SERIES: tuple[tuple[str, str, str], ...] = (
    ("#1f5fa8", "o", "-"),
    ("#c4560a", "s", "--"),
    ("#3a7d44", "^", "-."),
    ("#8c2d86", "D", ":"),
    ("#4d4d4d", "v", "-"),
    ("#b8860b", "P", "--"),
    ("#0f7f8f", "X", "-."),
    ("#a02c2c", "*", ":"),
)
"""Colour, marker and line style of each series in turn: markers and styles tell them apart without colour."""

HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure before it is drawn.

    Attributes:
        title: one line; what is shown.
        notes: lines below the axes: of what, how many, what was left out, how to read it.
        height: inches of the part with the axes.
        fill: draws into an empty figure.
    """

    title: str
    notes: tuple[str, ...]
    height: float
    fill: Callable[[Figure], None]


def series(number: int) -> dict[str, Any]:
    """Return colour, marker and line style of a series; beyond the last they begin again with smaller marks."""
    colour, marker, style = SERIES[number % len(SERIES)]
    return {"color": colour, "marker": marker, "linestyle": style, "markersize": 4 if number < len(SERIES) else 2.5}


def grid_of(figure: Figure, count: int, columns: int, **shared: Any) -> list[Axes]:
    """Return so many axes in rows of ``columns``, in reading order; places that are not needed stay empty."""
    rows = -(-count // columns)
    table = figure.subplots(rows, columns, squeeze=False, **shared)
    every: list[Axes] = [axes for row in table for axes in row]
    for axes in every[count:]:
        axes.set_axis_off()
    # Where axes are shared, those above an empty place have no labels of their own.
    for place, axes in enumerate(every[:count]):
        if place + columns >= count:
            axes.tick_params(labelbottom=True)
    return every[:count]


def unit_axes(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Make both axes shares from 0 to 1."""
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    name_axes(axes, x=x, y=y, title=title)


def name_axes(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Write what the axes are and what is drawn there."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, loc="left")


def empty_axes(axes: Axes, *reasons: str | None) -> None:
    """Say in axes that hold nothing why, each reason once."""
    words = "\n".join(textwrap.fill(reason, 40) for reason in dict.fromkeys(filter(None, reasons)))
    axes.text(0.5, 0.5, words or "nothing", transform=axes.transAxes, ha="center", va="center", fontsize=SMALL)
    # Not without ticks: axes that share them would lose theirs.
    axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)


def error_ends(
    values: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
) -> list[list[float]]:
    """Return how far intervals reach below and above their values, as matplotlib wants them; 0 where there is none."""
    below = [0.0 if low is None else max(value - low, 0.0) for value, low in zip(values, lows, strict=True)]
    above = [0.0 if high is None else max(high - value, 0.0) for value, high in zip(values, highs, strict=True)]
    return [below, above]
