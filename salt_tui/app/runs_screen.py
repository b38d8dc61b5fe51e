"""Runs: what is stored, newest first; filter, open, resume, export, delete."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Input, Static
from textual.worker import get_current_worker

from salt_tui.app import runs_state
from salt_tui.app.desk import Desk
from salt_tui.app.dialogs import LineOfInput, Question
from salt_tui.app.framed_screen import FramedScreen
from salt_tui.app.messages import CompareRuns, ExportRuns, OpenRun, OpenStudies, ResumeRun, RunsDeleted
from salt_tui.app.terminal import DESIGN_HEIGHT
from salt_tui.app.text_rows import fit
from salt_tui.app.watched_runs import WatchedRuns
from salt_tui.app.worker_failures import failures_told
from salt_tui.measure.two_runs import RunName
from salt_tui.store.records import RESUMABLE
from salt_tui.store.results import RunListing
from salt_tui.visible_text import visible

LOOK_EVERY_SECONDS = 1.0
MEASURE_AGAIN_SECONDS = 10.0
"""Between two measurements of a run that goes on."""

DETAIL_ROWS = 2
"""As in the stylesheet; one where the terminal is lower than the design."""


class RunTable(DataTable[Text]):
    """The table; home and end go to the first and the last run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="runs.open"),
        Binding("home", "scroll_top", "First run", id="runs.first"),
        Binding("end,G", "scroll_bottom", "Last run", id="runs.last"),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out opening a run where there is none."""
        return True if action != "select_cursor" or self.row_count else None


class RunsScreen(FramedScreen):
    """The list."""

    NAME = "runs"
    WIDGETS = (RunTable,)
    AUTO_FOCUS = "#runs"
    HELP = "Stored runs, newest first: enter opens one, slash filters, d deletes after asking."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="runs.filter"),
        Binding("r", "resume", "Resume", id="runs.resume"),
        Binding("e", "export", "Export", id="runs.export"),
        Binding("d", "delete", "Delete", id="runs.delete"),
        Binding("space", "mark", "Mark", tooltip="Mark the run, for deleting, exporting and comparing", id="runs.mark"),
        Binding("s", "sort", "Sort", tooltip="Sort by another column", id="runs.sort"),
        Binding("n", "note", "Note", tooltip="Write a note", id="runs.note"),
        Binding("c", "compare", "Compare", tooltip="Compare two marked runs, or this with another", id="runs.compare"),
        Binding("S", "studies", "Studies", tooltip="Further work on the run: see it, start it", id="runs.studies"),
        Binding("escape", "leave_filter", "Leave", tooltip="Leave the filter", id="runs.leave_filter"),
        # Reached where the key's own action can do nothing now.
        Binding("r", "say_why_not('resume')", "Why nothing is resumed", id="why.runs_not_resumed"),
        Binding("X", "say_why_not('stop')", "Why nothing is stopped", id="why.runs_not_stopped"),
    ]
    FOOTER = (
        "runs.open", "runs.leave_filter", "runs.resume", "runs.mark", "runs.compare", "runs.studies", "runs.filter",
        "runs.sort", "runs.export", "runs.delete", "runs.note",
    )  # fmt: skip

    def __init__(self, desk: Desk) -> None:
        """Start with an empty list."""
        super().__init__(desk)
        self._runs: list[RunListing] = []
        self._shown: list[RunListing] = []
        self._widths: dict[str, int] = {}
        self._read = False
        self._marked: set[int] = set()
        self._order = runs_state.ORDERS[0]
        self._numbers: dict[int, tuple[int, float, runs_state.RunNumbers]] = {}  # by run: its atoms, when, numbers
        self._watched = WatchedRuns(desk.database)
        self._looks = False

    def compose_body(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(" reading …", id="runs-title", markup=False)
        yield Input(placeholder="filter: words of model, task, level or state", compact=True, id="filter")
        yield RunTable(id="runs", cursor_type="row", zebra_stripes=False, cell_padding=0)
        yield Static(id="run-details", markup=False)

    def on_mount(self) -> None:
        """Begin in the table, and to look for what other programs write."""
        self.table.focus()
        self.set_interval(LOOK_EVERY_SECONDS, self._look)

    def on_unmount(self) -> None:
        """Give the file back."""
        self._watched.close()

    def _look(self) -> None:
        if self.is_active and self._read and not self._looks:
            self._looks = True
            self.look()

    @work(thread=True, group="look", exit_on_error=False)
    def look(self) -> None:
        """Read the list beside the screen where it may be another."""
        try:
            with failures_told(self.app, self._take_failure):
                runs = self._watched.look()
                if runs is not None:
                    self.app.call_from_thread(self._take, runs)
        finally:
            self._looks = False

    def on_resize(self) -> None:
        """Lay the columns out for the width."""
        widths = runs_state.column_widths(self.size.width)
        if widths != self._widths:
            self._widths = widths
            self._fill()
        else:
            self._show_details()

    def on_screen_resume(self) -> None:
        """Read when the screen is shown, each time: a run may have begun or ended."""
        super().on_screen_resume()
        self.read_runs()

    @property
    def table(self) -> RunTable:
        """The table."""
        return self.query_one("#runs", RunTable)

    @work(thread=True, exclusive=True, group="runs", exit_on_error=False)
    def read_runs(self) -> None:
        """Read the list beside the screen; a million atoms take a second to count."""
        with failures_told(self.app, self._take_failure):
            runs = self._watched.read()
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take, runs)

    def _take_failure(self, line: str) -> None:
        short = line.replace(str(self.desk.database), self.desk.database.name)
        self.query_one("#runs-title", Static).update(f" {visible(short)}")

    def _take(self, runs: list[RunListing]) -> None:
        self._runs = runs
        self._read = True
        self._marked &= {run.run for run in runs}
        self._fill()
        self.measure_runs(self._shown)

    @work(thread=True, exclusive=True, group="numbers", exit_on_error=False)
    def measure_runs(self, runs: Sequence[RunListing]) -> None:
        """Measure the runs beside the screen, the first of the list first."""
        with failures_told(self.app, self.say_error):
            for run in runs:
                if get_current_worker().is_cancelled:
                    return
                if self._must_measure(run):
                    numbers = runs_state.measure_run(self.desk.database, run.run)
                    self.app.call_from_thread(self._take_numbers, run, numbers)

    def _must_measure(self, run: RunListing) -> bool:
        """Whether the numbers of a run are not there or old; those of one that goes on may be some seconds old."""
        atoms, measured_at, _ = self._numbers.get(run.run, (-1, 0.0, None))
        rest = MEASURE_AGAIN_SECONDS if run.state == "running" and atoms >= 0 else 0.0
        return atoms != run.atoms and time.monotonic() >= measured_at + rest

    def _take_numbers(self, run: RunListing, numbers: runs_state.RunNumbers) -> None:
        self._numbers[run.run] = run.atoms, time.monotonic(), numbers
        if self._order in {"asked", "AUROC"}:
            self._fill()
        elif run in self._shown:
            row = runs_state.run_cells(run, numbers=numbers)
            for name in ("asked", "AUROC"):
                if name in self._widths:
                    self.table.update_cell(str(run.run), name, Text(row[name]))

    def _numbers_of(self, run: RunListing) -> runs_state.RunNumbers | None:
        known = self._numbers.get(run.run)
        return known[2] if known is not None and (known[0] == run.atoms or run.state == "running") else None

    def _fill(self) -> None:
        chosen, before = self.chosen, self.table.cursor_row
        words = self.query_one("#filter", Input).value
        known = {run.run: found for run in self._runs if (found := self._numbers_of(run)) is not None}
        self._shown = runs_state.ordered(runs_state.matching(self._runs, words), known, self._order)
        table = self.table
        table.clear(columns=True)
        for name, cells in self._widths.items():
            table.add_column(name, width=cells + 1, key=name)
        for run in self._shown:
            row = runs_state.run_cells(run, numbers=known.get(run.run), marked=run.run in self._marked)
            table.add_row(*(Text(fit(row[name], cells)) for name, cells in self._widths.items()), key=str(run.run))
        numbers = [run.run for run in self._shown]
        if chosen is not None and chosen.run in numbers:
            table.move_cursor(row=numbers.index(chosen.run), animate=False)
        elif numbers:
            # The neighbour of a run that is gone, not the first of the list: the next key would be meant for that.
            table.move_cursor(row=min(before, len(numbers) - 1), animate=False)
        self._show_details()
        if not self._read:
            return
        if not self._runs:
            title = " no runs yet: 1 sets one up"
        else:
            title = (
                f" {len(self._shown)} of {len(self._runs)} runs"
                if words
                else f" {len(self._runs)} run{'' if len(self._runs) == 1 else 's'}"
            )
        if self._order != runs_state.ORDERS[0]:
            title += f", by {self._order}"
        if self._marked:
            title += f", {len(self._marked)} marked"
        self.query_one("#runs-title", Static).update(title)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column whose head was clicked."""
        name = str(event.column_key.value)
        self._order = name if name in runs_state.ORDERS else runs_state.ORDERS[0]
        self._fill()

    def on_data_table_row_highlighted(self) -> None:
        """Say what the cells of the run have no room for."""
        self._show_details()

    def _show_details(self) -> None:
        chosen = self.chosen
        rows = DETAIL_ROWS if self.size.height >= DESIGN_HEIGHT else 1
        words = "" if chosen is None else runs_state.details(chosen, self.size.width - 2, rows)
        self.query_one("#run-details", Static).update(words)
        self.refresh_bindings()

    @property
    def chosen(self) -> RunListing | None:
        """The run under the cursor."""
        row = self.table.cursor_row
        return self._shown[row] if 0 <= row < len(self._shown) else None

    @property
    def run_of_interest(self) -> int | None:
        """The run under the cursor."""
        return None if self.chosen is None else self.chosen.run

    def on_input_changed(self) -> None:
        """Filter while typing."""
        self._fill()

    def on_input_submitted(self) -> None:
        """Go back to the table."""
        self.table.focus()

    def on_data_table_row_selected(self) -> None:
        """Open the run (enter or a click on its row)."""
        if self.chosen is not None:
            self.post_message(OpenRun(self.chosen.run))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey out what cannot be done with the run under the cursor."""
        if not self.is_mounted:
            return True
        if action in {"compare", "export", "delete", "mark", "note", "studies"}:
            return True if self.chosen is not None else None
        if action == "resume":
            return True if self.chosen is not None and self.chosen.state in RESUMABLE else None
        if action == "leave_filter":
            return self.query_one("#filter").has_focus or bool(self.query_one("#filter", Input).value)
        return True

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
            self.post_message(ResumeRun(self.chosen.run))

    def action_export(self) -> None:
        """Export the run under the cursor."""
        if self.chosen is not None:
            self.post_message(ExportRuns(tuple(run.run for run in self._meant())))

    def action_studies(self) -> None:
        """Show the studies of the run under the cursor."""
        if self.chosen is not None:
            self.post_message(OpenStudies(self.chosen.run))

    def _meant(self) -> list[RunListing]:
        """Return the marked runs, in the order of the list; the one under the cursor where none is marked."""
        marked = [run for run in self._shown if run.run in self._marked]
        return marked or ([] if self.chosen is None else [self.chosen])

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take its mark away, and go to the next."""
        if self.chosen is not None:
            self._marked ^= {self.chosen.run}
            self._fill()
            self.table.action_cursor_down()

    def action_sort(self) -> None:
        """Sort by the next of what the list can be sorted by."""
        orders = runs_state.ORDERS
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._fill()

    def action_note(self) -> None:
        """Ask for the note of the run under the cursor."""
        run = self.chosen
        if run is None:
            return

        def answered(note: str | None) -> None:
            if note is not None:
                self.write_note(run.run, note)

        self.app.push_screen(
            LineOfInput(f"Note of run {run.run}", run.note or "", "an empty line is no note"), answered
        )

    @work(thread=True, group="note", exit_on_error=False)
    def write_note(self, run: int, note: str) -> None:
        """Store a note beside the screen."""
        with failures_told(self.app, self.say_error):
            runs_state.set_note(self.desk.database, run, note)
        self.app.call_from_thread(self.read_runs)

    def action_compare(self) -> None:
        """Compare the two marked runs, the older one first; ask for the other where there are not two."""
        marked = sorted(self._marked)
        if len(marked) > 2:
            self.say(f"two runs are compared and {len(marked)} are marked: space takes a mark away")
        elif len(marked) == 2:
            self._compare(*(runs_state.own_run(run, self.desk.database) for run in marked))
        elif marked or self.chosen is not None:
            first = marked[0] if marked else self.chosen.run if self.chosen is not None else 0
            other = self.chosen.run if self.chosen is not None and self.chosen.run != first else None

            def answered(text: str | None) -> None:
                if text is not None:
                    self.find_second(first, text)

            hint = "a number, latest, or FILE.db:N for a run of another file"
            self.app.push_screen(
                LineOfInput(f"Compare run {first} with run", "" if other is None else str(other), hint), answered
            )

    @work(thread=True, exclusive=True, group="find", exit_on_error=False)
    def find_second(self, first: int, text: str) -> None:
        """Find a run that was typed, beside the screen, and compare it with another."""
        with failures_told(self.app, self.say_error):
            second = runs_state.named_run(text, self.desk.database)
            self.app.call_from_thread(self._compare, runs_state.own_run(first, self.desk.database), second)

    def _compare(self, first: RunName, second: RunName) -> None:
        self.post_message(CompareRuns(first, second))

    def action_say_why_not(self, what: str) -> None:
        """Say why the run under the cursor is not resumed or not stopped."""
        chosen = self.chosen
        if chosen is None:
            self.say("no run is chosen")
        elif what == "stop" and self._is_computed_here(chosen.run):
            self.say(f"2 shows run {chosen.run}, X stops it there")
        else:
            self.say(runs_state.why_not(what, chosen.run, chosen.state))

    def _is_computed_here(self, run: int) -> bool:
        computed = self.desk.runs.computed if self.desk.computing else None
        return computed is not None and computed.run == run

    def action_delete(self) -> None:
        """Delete the marked runs, or the one under the cursor, after asking."""
        runs = self._meant()
        for run in runs:
            if self._is_computed_here(run.run):
                self.say(f"run {run.run} is being computed here: stop it first (2, then X)", "warning")
                return
            if run.state == "running":
                self.say(f"run {run.run} is being computed by another process: stop it there", "warning")
                return
        if not runs:
            return
        numbers = tuple(run.run for run in runs)
        what = f"run {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} runs"

        def delete(answer: bool | None) -> None:
            if answer:
                self._leave(numbers)
                self.delete_runs(numbers)

        self.app.push_screen(Question(f"Delete {what}?", runs_state.consequence(runs)), delete)

    def _leave(self, runs: tuple[int, ...]) -> None:
        """Go to the nearest run that stays: the list may be read while only some of them are gone."""
        staying = [place for place, run in enumerate(self._shown) if run.run not in runs]
        if staying:
            here = self.table.cursor_row
            self.table.move_cursor(row=next((place for place in staying if place >= here), staying[-1]), animate=False)

    @work(thread=True, group="delete", exit_on_error=False)
    def delete_runs(self, runs: tuple[int, ...]) -> None:
        """Delete beside the screen."""
        with failures_told(self.app, self.say_error):
            runs_state.delete(self.desk.database, runs)
            self.post_message(RunsDeleted(runs))
        self.app.call_from_thread(self.read_runs)
