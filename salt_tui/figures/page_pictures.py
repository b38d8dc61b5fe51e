"""The figures of a page: every kind of a run, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence

from salt_tui.figures.errors import FigureError
from salt_tui.figures.measured import Measured
from salt_tui.figures.registry import FIGURES
from salt_tui.figures.rendering import render_inline, require_matplotlib
from salt_tui.reports.html_page import Picture


def pictures(
    measured: Measured, kinds: Sequence[str], prefix: str = "f"
) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    """Return figures of a run or study, and a note on each that cannot be drawn.

    Args:
        measured: what they are of.
        kinds: names of `FIGURES`.
        prefix: of the ids inside them; unique in the page.
    """
    try:
        require_matplotlib()
    except FigureError as error:
        return (), (f"No figures: {error}.",)
    drawn, notes = [], []
    for kind in kinds:
        try:
            drawing = FIGURES[kind].draw(measured)
        except FigureError as error:
            notes.append(f"{kind}: {error}.")
            continue
        drawn.append(Picture(drawing.title, drawing.notes, render_inline(drawing, f"{prefix}-{kind}")))
    return tuple(drawn), tuple(notes)


def kinds_of(subject: str) -> tuple[str, ...]:
    """Return the names of the figures of a subject."""
    return tuple(name for name, kind in FIGURES.items() if kind.subject == subject)
