"""The list of tasks with a mark before each; Textual's own list tells marked from unmarked by hue alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from salt_tui.app.option_cursor import VisibleCursorList
from salt_tui.app.setup_offer import OfferedTask


class TaskList(VisibleCursorList):
    """Shows names with a description; space or enter marks one."""

    HELP = "The tasks: space marks one, a marks all, e shows an example."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Mark", id="tasks.mark"),
    ]

    class MarksChanged(Message):
        """Another set of tasks is marked."""

    def __init__(self, *, id: str) -> None:
        """Start empty."""
        super().__init__(id=id, compact=True, markup=False)
        self._rows: list[OfferedTask] = []
        self._marked: set[str] = set()

    @property
    def rows(self) -> tuple[OfferedTask, ...]:
        """All tasks, in order."""
        return tuple(self._rows)

    @property
    def names(self) -> list[str]:
        """All names, in order."""
        return [row.name for row in self._rows]

    @property
    def marked(self) -> tuple[str, ...]:
        """The marked names, in the order of the list."""
        return tuple(name for name in self.names if name in self._marked)

    @property
    def highlighted_name(self) -> str | None:
        """The name under the cursor."""
        return None if self.highlighted is None else self.names[self.highlighted]

    def fill(self, rows: Sequence[OfferedTask], marked: Sequence[str]) -> None:
        """Show tasks; marks of names that are not there are dropped.

        The cursor goes to a task that is new in the list, or stays on its own.
        """
        before = self.names
        new = [row.name for row in rows if before and row.name not in before]
        here = new[0] if new else self.highlighted_name
        self._rows = list(rows)
        self._marked = set(marked) & set(self.names)
        self.clear_options()
        self.add_options(Option(self._line(row), row.name) for row in rows)
        self.highlighted = self.names.index(here) if here in self.names else 0

    def mark(self, names: Sequence[str]) -> None:
        """Mark exactly these."""
        self._marked = set(names)
        for number, row in enumerate(self._rows):
            self.replace_option_prompt_at_index(number, self._line(row))
        self.post_message(self.MarksChanged())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Mark or unmark a task."""
        event.stop()
        name = self.names[event.option_index]
        self.mark([other for other in self.names if (other in self._marked) != (other == name)])

    def _line(self, row: OfferedTask) -> Content:
        return Content(f"[{'x' if row.name in self._marked else ' '}] {row.shown:<22} {row.words}")
