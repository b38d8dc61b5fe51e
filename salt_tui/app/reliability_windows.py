"""The windows of Reliability: which column to slice by, which units are in a bin, and where to export to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from salt_tui.app.dialogs import BOX_WIDTH
from salt_tui.app.export_window import FileWindow
from salt_tui.app.option_cursor import VisibleCursorList
from salt_tui.app.reliability_lines import listed_row
from salt_tui.measure.confidence_view import ConfidenceView
from salt_tui.measure.run_views import ListedUnit
from salt_tui.visible_text import visible

_BESIDES_TEXT = 6
"""Cells of a box's border, padding and scrollbar."""


class ListWindow(ModalScreen[int | None]):
    """Shows rows of which one can be chosen; closes with its place, or with None.

    Args:
        title: above the rows.
        hint: below them.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Leave", id="list.leave")]

    def __init__(self, title: str, hint: str) -> None:
        super().__init__(classes="window")
        self._title = title
        self._hint = hint

    def rows(self, width: int) -> Sequence[str]:
        """Return the rows for a width."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Show the rows."""
        with Vertical(classes="window-box tall"):
            yield Static(visible(self._title), markup=False, classes="window-title")
            yield VisibleCursorList(id="listed", markup=False, compact=True)
            yield Static(f"{visible(self._hint)}   escape leaves", markup=False, classes="window-keys")

    def on_resize(self, event: events.Resize) -> None:
        """Cut the rows for this width."""
        listed = self.query_one("#listed", OptionList)
        before = listed.highlighted
        listed.clear_options()
        width = max(1, min(BOX_WIDTH, self.size.width) - _BESIDES_TEXT)
        listed.add_options([Option(Text(row)) for row in self.rows(width)])
        if listed.option_count:
            listed.highlighted = min(before or 0, listed.option_count - 1)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the row."""
        self.dismiss(event.option_index)

    def action_leave(self) -> None:
        """Close without one."""
        self.dismiss(None)


class SliceWindow(ListWindow):
    """Asks which column the units are sliced by; the first row is none.

    Args:
        columns: their names, untrusted.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__("Slice by", "enter chooses")
        self._columns = tuple(columns)

    def rows(self, width: int) -> Sequence[str]:
        """Return the names."""
        return ["all units", *(visible(name, width) for name in self._columns)]


class BinWindow(ListWindow):
    """Lists the units of a bin.

    Args:
        view: that the bin is of.
        place: of the bin.
        listed: its units, or the first of them.
    """

    def __init__(self, view: ConfidenceView, place: int, listed: Sequence[ListedUnit]) -> None:
        count = 0 if view.bins is None else int(view.bins.counts[place])
        first = f", the first {len(listed)}" if len(listed) < count else ""
        ends = "" if view.bins is None else f" {view.bins.lower[place]:.2f}–{view.bins.upper[place]:.2f}"
        super().__init__(f"{count:,} {view.unit_word} of the bin{ends}{first}", "wrong ones first   enter opens one")
        self._view = view
        self._listed = tuple(listed)

    def rows(self, width: int) -> Sequence[str]:
        """Return a row for every unit."""
        return [listed_row(unit, self._view.shown(unit.confidence), width) for unit in self._listed]


class ViewFileWindow(FileWindow):
    """Writes what is shown to a file: numbers as csv, or a figure.

    Args:
        suggested: name of the file.
        figures: whether a figure can be written.
        write_view: writes a file in a thread; raises what `failures_told` can tell.
    """

    def __init__(self, suggested: str, figures: bool, write_view: Callable[[Path, bool], None]) -> None:
        hint = "csv: the numbers; png, svg, pdf: a figure" if figures else "csv: the numbers"
        super().__init__("Export this view to", suggested, hint)
        self._write_view = write_view

    def write_files(self, targets: Sequence[Path], *, overwrite: bool) -> str:
        """Write the file."""
        (target,) = targets
        self._write_view(target, overwrite)
        return f"the view is in {target.name} in {target.parent}"
