"""The window that exports runs: it asks for a file and stays open, with what was typed, until the file is there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from salt_tui.app.dialogs import keep_printable
from salt_tui.app.worker_failures import failures_told
from salt_tui.visible_text import visible


class ExportWindow(ModalScreen[str | None]):
    """Closes with one line that says where the runs are, or with None.

    Args:
        database: the file that holds the runs.
        runs: their numbers; several are written to as many files, with the number of each in its name.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", id="export.leave")]

    def __init__(self, database: Path, runs: Sequence[int]) -> None:
        super().__init__(classes="window")
        self._database = database
        self._runs = tuple(runs)
        self._may_replace = ""  # what stood in the line when it was said that a file is there

    def compose(self) -> ComposeResult:
        """Ask for the file."""
        one = len(self._runs) == 1
        what = f"run {self._runs[0]}" if one else f"{len(self._runs)} runs"
        with Vertical(classes="window-box"):
            yield Static(f"Export {what} to", markup=False, classes="window-title")
            yield Input(f"run-{self._runs[0]}.csv" if one else "run.csv", compact=True, id="line")
            yield Static(id="problem", markup=False, classes="wrong")
            hint = "csv: atoms; jsonl: answers; db: a database"
            if not one:
                hint += f"; the files are named run-{self._runs[0]}.csv and so on"
            yield Static(f"{hint}   enter accepts, escape leaves", markup=False, classes="window-keys")

    def on_mount(self) -> None:
        """Take no row for a problem while there is none."""
        self._say("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Forget what was said about another name."""
        keep_printable(event)
        self._say("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write the files, or say what is in the way."""
        typed = event.value.strip()
        if not typed:
            self._say("a file name is needed")
            return
        try:
            targets = targets_of(typed, self._runs)
            standing = [target for target in targets.values() if target.is_file()]
        except (OSError, RuntimeError) as error:
            self._say(f"{typed}: {error}")
            return
        except ValueError:
            self._say(f"no file can be called {typed}")
            return
        if standing and self._may_replace != typed:
            self._may_replace = typed
            self._say(f"{standing[0].name} exists: enter again replaces it")
            return
        self._say("writing …")
        self.write(targets, overwrite=bool(standing))

    @work(thread=True, exclusive=True, group="export", exit_on_error=False)
    def write(self, targets: dict[int, Path], *, overwrite: bool) -> None:
        """Write the files beside the screen."""
        from salt_tui.exports.export import export_run

        with failures_told(self.app, self._say):
            for run, target in targets.items():
                export_run(self._database, run, target, overwrite=overwrite)
            names = ", ".join(target.name for target in targets.values())
            what = f"run {self._runs[0]} is" if len(self._runs) == 1 else f"{len(self._runs)} runs are"
            folder = next(iter(targets.values())).parent
            self.app.call_from_thread(self._close, f"{what} in {names} in {folder}")

    def _close(self, line: str) -> None:
        if self.is_current:
            self.dismiss(line)

    def _say(self, words: str) -> None:
        problem = self.query_one("#problem", Static)
        problem.update(visible(words))
        problem.display = bool(words)

    def action_leave(self) -> None:
        """Close without a file."""
        self.dismiss(None)


def targets_of(typed: str, runs: Sequence[int]) -> dict[int, Path]:
    """Return the file of every run: the one that was typed, or, for several, one with the run's number in its name.

    Raises:
        RuntimeError: the home folder is not known.
        ValueError: a character that no file name can hold.
    """
    named = Path(typed).expanduser().absolute()
    os.fsencode(named)
    if len(runs) == 1:
        return {runs[0]: named}
    return {run: named.with_name(f"{named.stem}-{run}{named.suffix}") for run in runs}
