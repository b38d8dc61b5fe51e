"""Runs: what is stored, newest first; filter, open, resume, export, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from salt_tui.app import runs_state
from salt_tui.app.dialogs import Question
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import open_queries
from salt_tui.store.results import RunListing

if TYPE_CHECKING:
    from salt_tui.app.application import SaltApp


class RunsScreen(Screen[None]):
    """The list."""

    HELP = "Stored runs, newest first: enter opens one, slash filters, d deletes after asking."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="runs.open", priority=False),
        Binding("slash", "filter", "Filter", id="runs.filter"),
        Binding("r", "resume", "Resume", id="runs.resume"),
        Binding("e", "export", "Export", id="runs.export"),
        Binding("d", "delete", "Delete", id="runs.delete"),
        Binding("escape", "leave_filter", "Leave the filter", show=False, id="runs.leave_filter"),
    ]

    def __init__(self) -> None:
        """Start with an empty list."""
        super().__init__()
        self._runs: list[RunListing] = []
        self._shown: list[RunListing] = []

    @property
    def salt(self) -> SaltApp:
        """The app."""
        return cast("SaltApp", self.app)

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(" reading …", id="runs-title", markup=False)
        yield Input(placeholder="filter: words of model, task, level or state", compact=True, id="filter")
        yield DataTable(id="runs", cursor_type="row", zebra_stripes=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Fill the table."""
        table = self.table
        for column in runs_state.COLUMNS:
            table.add_column(column)
        table.focus()
        self.read_runs()

    def on_screen_resume(self) -> None:
        """Read again: a run may have begun or ended."""
        if self.is_mounted:
            self.read_runs()

    @property
    def table(self) -> DataTable[Text]:
        """The table."""
        return cast("DataTable[Text]", self.query_one("#runs", DataTable))

    @work(thread=True, exclusive=True, group="runs", exit_on_error=False)
    def read_runs(self) -> None:
        """Read the list beside the screen; a million atoms take a second to count."""
        problem: str | None = None
        runs: list[RunListing] = []
        try:
            if self.salt.database.exists():
                with open_queries(self.salt.database) as queries:
                    runs = queries.list_runs()
        except StoreError as error:
            problem = str(error)
        self.app.call_from_thread(self._take, runs, problem)

    def _take(self, runs: list[RunListing], problem: str | None) -> None:
        self._runs = runs
        if problem is not None:
            self.salt.say(problem, severity="error")
        self._fill()

    def _fill(self) -> None:
        chosen = self.chosen
        words = self.query_one("#filter", Input).value
        self._shown = runs_state.matching(self._runs, words)
        table = self.table
        table.clear()
        for run in self._shown:
            table.add_row(*(Text(cell) for cell in runs_state.run_cells(run)), key=str(run.run))
        numbers = [run.run for run in self._shown]
        if chosen is not None and chosen.run in numbers:
            table.move_cursor(row=numbers.index(chosen.run), animate=False)
        if not self._runs:
            title = " no runs yet: 1 sets one up"
        else:
            title = (
                f" {len(self._shown)} of {len(self._runs)} runs"
                if words
                else f" {len(self._runs)} run{'' if len(self._runs) == 1 else 's'}"
            )
        self.query_one("#runs-title", Static).update(title)

    @property
    def chosen(self) -> RunListing | None:
        """The run under the cursor."""
        row = self.table.cursor_row
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def on_input_changed(self) -> None:
        """Filter while typing."""
        self._fill()

    def on_input_submitted(self) -> None:
        """Go back to the table."""
        self.table.focus()

    def on_data_table_row_selected(self) -> None:
        """Open the run (enter or a click on its row)."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run under the cursor."""
        if self.chosen is not None:
            self.salt.open_run(self.chosen.run)

    def action_filter(self) -> None:
        """Go to the filter."""
        self.query_one("#filter").focus()

    def action_leave_filter(self) -> None:
        """Empty the filter and go back to the table."""
        self.query_one("#filter", Input).value = ""
        self.table.focus()

    def action_resume(self) -> None:
        """Resume the run under the cursor."""
        if self.chosen is not None:
            self.salt.resume_run(self.chosen.run)

    def action_export(self) -> None:
        """Export the run under the cursor."""
        if self.chosen is not None:
            self.salt.export(self.chosen.run)

    def action_delete(self) -> None:
        """Delete the run under the cursor after asking."""
        run = self.chosen
        if run is None:
            return

        def delete(answer: bool | None) -> None:
            if answer:
                self.delete_run(run.run)

        self.app.push_screen(Question(f"Delete run {run.run}?", runs_state.consequence(run)), delete)

    @work(thread=True, group="delete", exit_on_error=False)
    def delete_run(self, run: int) -> None:
        """Delete beside the screen."""
        try:
            runs_state.delete(self.salt.database, run)
        except StoreError as error:
            self.app.call_from_thread(self.salt.say, str(error), severity="error")
        else:
            self.app.call_from_thread(self.salt.forget_run, run)
        self.app.call_from_thread(self.read_runs)
