"""A window that fetches a model from the hub: asks first, shows how far it is, can be stopped and gone on with."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import ProgressBar, Static
from textual.worker import Worker, get_current_worker

from salt_tui.app.worker_failures import failures_told
from salt_tui.visible_text import visible

_SHOWN_EVERY = 0.1
"""Seconds between two looks of the bar."""

_DOING = {"fetch": "fetching", "check": "checking"}


class _StoppedError(Exception):
    """Somebody closed the window."""


class FetchWindow(ModalScreen[bool]):
    """Closes with whether the model is there now.

    Args:
        name: of the model in ``models.toml``.
        title: for people.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "fetch", "Fetch", id="fetch.yes"),
        Binding("n,escape", "leave", "Leave", id="fetch.leave"),
    ]

    def __init__(self, name: str, title: str) -> None:
        super().__init__(classes="window")
        self._model = name
        self._title = title
        self._worker: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        """Ask."""
        with Vertical(classes="window-box"):
            yield Static(f"Fetch {visible(self._title)} from the model hub?", markup=False, classes="window-title")
            yield Static("It is checked by its SHA-256. What came is kept when you stop.", markup=False, id="doing")
            yield ProgressBar(show_eta=True, id="fetched")
            yield Static("y fetch   escape leaves", markup=False, classes="window-keys")

    def on_mount(self) -> None:
        """Show no bar before there is something to fetch."""
        self.query_one("#fetched").display = False

    def action_fetch(self) -> None:
        """Begin, or begin again after a failure."""
        if self._worker is None:
            self._say("asking the hub …")
            self._worker = self.fetch_beside()

    def action_leave(self) -> None:
        """Stop what is fetched and close."""
        if self._worker is not None:
            self._worker.cancel()
        self.dismiss(False)

    @work(thread=True, exit_on_error=False)
    def fetch_beside(self) -> None:
        """Fetch in a thread."""
        from salt_tui.engine.model_download import DownloadProgress, fetch, find_on_hub
        from salt_tui.engine.models import load_registry

        worker = get_current_worker()
        shown = 0.0

        def report(progress: DownloadProgress) -> None:
            nonlocal shown
            if worker.is_cancelled:
                raise _StoppedError
            if progress.done < progress.total and time.monotonic() - shown < _SHOWN_EVERY:
                return
            shown = time.monotonic()
            self.app.call_from_thread(self._show, _DOING[progress.stage], progress.file, progress.done, progress.total)

        with failures_told(self.app, self._failed):
            fetch(find_on_hub(self._model, load_registry()), report)
            if not worker.is_cancelled:
                self.app.call_from_thread(self.dismiss, True)

    def _show(self, doing: str, file: str, done: int, total: int) -> None:
        if self.is_attached:
            self._say(f"{doing} {file}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")
            bar = self.query_one("#fetched", ProgressBar)
            bar.display = True
            bar.update(total=total, progress=done)

    def _failed(self, line: str) -> None:
        self._worker = None
        if self.is_attached:
            self._say(f"! {line}")

    def _say(self, line: str) -> None:
        self.query_one("#doing", Static).update(visible(line))
