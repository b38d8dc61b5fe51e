"""Windows that write files: they ask for a name and stay open, with what was typed, until the file is there."""

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


class FileWindow(ModalScreen[str | None]):
    """Asks for a file and stays open, with what was typed, until it is there; closes with one line or with None.

    A subclass says which files a name stands for and writes them.

    Args:
        title: what is asked.
        suggested: the name in the line.
        hint: what endings there are.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", id="export.leave")]

    def __init__(self, title: str, suggested: str, hint: str) -> None:
        super().__init__(classes="window")
        self._title = title
        self._suggested = suggested
        self._hint = hint
        self._may_replace = ""  # what stood in the line when it was said that a file is there

    def targets(self, typed: str) -> Sequence[Path]:
        """Return the files that a name stands for; raises as `named_file`, and ValueError for one that cannot be."""
        return (named_file(typed),)

    def write_files(self, targets: Sequence[Path], *, overwrite: bool) -> str:
        """Write the files, in a thread, and return the line that says so."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Ask for the file."""
        with Vertical(classes="window-box"):
            yield Static(visible(self._title), markup=False, classes="window-title")
            yield Input(self._suggested, compact=True, id="line")
            yield Static(id="problem", markup=False, classes="wrong")
            yield Static(f"{visible(self._hint)}   enter accepts, escape leaves", markup=False, classes="window-keys")

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
            targets = self.targets(typed)
            standing = [target for target in targets if target.is_file()]
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
    def write(self, targets: Sequence[Path], *, overwrite: bool) -> None:
        """Write the files beside the screen."""
        with failures_told(self.app, self._say):
            self.app.call_from_thread(self._close, self.write_files(targets, overwrite=overwrite))

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


class ExportWindow(FileWindow):
    """Exports runs.

    Args:
        database: the file that holds the runs.
        runs: their numbers; several are written to as many files, with the number of each in its name.
    """

    def __init__(self, database: Path, runs: Sequence[int]) -> None:
        one = len(runs) == 1
        hint = "csv: atoms; jsonl: answers; db: a database"
        super().__init__(
            f"Export run {runs[0]} to" if one else f"Export {len(runs)} runs to",
            f"run-{runs[0]}.csv" if one else "run.csv",
            hint if one else f"{hint}; the files are named run-{runs[0]}.csv and so on",
        )
        self._database = database
        self._runs = tuple(runs)

    def targets(self, typed: str) -> Sequence[Path]:
        """Return a file for every run."""
        return tuple(targets_of(typed, self._runs).values())

    def write_files(self, targets: Sequence[Path], *, overwrite: bool) -> str:
        """Export the runs."""
        from salt_tui.exports.export import export_work
        from salt_tui.store.records import Work

        for run, target in zip(self._runs, targets, strict=True):
            export_work(self._database, Work(run), target, overwrite=overwrite)
        names = ", ".join(target.name for target in targets)
        what = f"run {self._runs[0]} is" if len(self._runs) == 1 else f"{len(self._runs)} runs are"
        return f"{what} in {names} in {targets[0].parent}"


def named_file(typed: str) -> Path:
    """Return the file that was typed.

    Raises:
        RuntimeError: the home folder is not known.
        ValueError: a character that no file name can hold.
    """
    named = Path(typed).expanduser().absolute()
    os.fsencode(named)
    return named


def targets_of(typed: str, runs: Sequence[int]) -> dict[int, Path]:
    """Return the file of every run: the one that was typed, or, for several, one with the run's number in its name.

    Raises:
        RuntimeError: the home folder is not known.
        ValueError: a character that no file name can hold.
    """
    named = named_file(typed)
    if len(runs) == 1:
        return {runs[0]: named}
    return {run: named.with_name(f"{named.stem}-{run}{named.suffix}") for run in runs}
