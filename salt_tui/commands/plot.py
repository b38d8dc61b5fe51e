"""``salt-tui plot``: a figure of a stored run or study as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.commands.progress_line import show_progress
from salt_tui.figures.measured import FigureOptions
from salt_tui.figures.registry import FIGURES, find_figure, save_figure
from salt_tui.paths import database_path
from salt_tui.reports.text_tables import TextTable
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible


def plot_figure(
    kind: str, runs: Sequence[str], database: Path | None, target: Path | None, options: FigureOptions
) -> int:
    """Draw one figure.

    Args:
        kind: a name of `FIGURES`.
        runs: what it is of; without any, the newest run.
        database: the file; None for the usual one.
        target: the file to write; its ending says the format.
        options: what the figure is about.

    Raises:
        UsageError: no file to write is named.
        FigureError: the figure cannot be drawn or written.
    """
    find_figure(kind)
    if target is None:
        raise UsageError(f"plot {kind} needs -o FILE.png, .svg or .pdf")
    save_figure(kind, database or database_path(), tuple(runs) or ("latest",), target, options, progress=show_progress)
    show_progress("")
    say(f"{visible(str(target))}: {FIGURES[kind].title}")
    return DONE


def list_figures() -> int:
    """Print the kinds of figures."""
    rows = tuple((kind.name, kind.subject, kind.title, kind.paper) for kind in FIGURES.values())
    for line in TextTable("", ("kind", "of", "shows", "follows"), rows, left=4).as_text():
        print(line)
    return DONE
