"""The window that writes a comparison to a file: as a table in the formats of ``compare``, or as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salt_tui.app.export_window import FileWindow
from salt_tui.app.runs_state import is_same_file
from salt_tui.commands.page import comparison_page
from salt_tui.commands.report import PAGE
from salt_tui.commands.text_files import write_text_file
from salt_tui.figures.measured import FigureOptions
from salt_tui.figures.registry import FIGURES, save_figure
from salt_tui.figures.rendering import ENDINGS
from salt_tui.measure.two_runs import ComparedRuns, RunName, cell_tests
from salt_tui.reports.comparison import COMPARISON_FORMATS, Comparison
from salt_tui.reports.text_tables import WIDEST
from salt_tui.usage_error import UsageError

FORMAT_OF = {".csv": "csv", ".json": "json", ".md": "md", ".txt": "table", ".tex": "latex", ".html": "html"}
"""Formats of ``compare`` by the ending of the file."""

FIGURE = "compare"


class CompareExport(FileWindow):
    """Writes two compared runs.

    Args:
        compared: what was measured.
        names: the runs.
        database: the file that the app shows.
    """

    def __init__(self, compared: ComparedRuns, names: tuple[RunName, RunName], database: Path) -> None:
        numbers = "-".join(str(header.run) for header in (compared.first, compared.second))
        figure = f"; {', '.join(ENDINGS)}: a figure" if FIGURE in FIGURES else ""
        super().__init__("Export the comparison to", f"compare-{numbers}.csv", f"csv, json, md, txt, tex, html{figure}")
        self._compared = compared
        self._names = names
        self._database = database

    def write_files(self, targets: Sequence[Path], *, overwrite: bool) -> str:
        """Write the file in the format that its ending names."""
        (target,) = targets
        ending = target.suffix.lower()
        if FIGURE in FIGURES and ending.removeprefix(".") in ENDINGS:
            runs = [name.run if is_same_file(name.database, self._database) else str(name) for name in self._names]
            save_figure(FIGURE, self._database, runs, target, FigureOptions(function=self._compared.function))
            return f"the figure is in {target}"
        if ending not in FORMAT_OF:
            raise UsageError(f"{target.name}: a comparison's file ends in {', '.join(FORMAT_OF)}")
        comparison = Comparison([self._compared], cell_tests([self._compared]))
        if FORMAT_OF[ending] == PAGE:
            text = f"{comparison_page(comparison, [str(name) for name in self._names], self._database)}\n"
        else:
            lines = COMPARISON_FORMATS[FORMAT_OF[ending]](comparison, WIDEST)
            text = "".join(f"{line}\n" for line in lines)
        write_text_file(target, text)
        return f"the comparison is in {target}"
