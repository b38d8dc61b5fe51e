"""``salt-tui run`` and ``salt-tui resume``: compute with a display, end with the report."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Self

from rich.console import Console

from salt_tui.commands.failures import DONE, FAILED, INTERRUPTED, say
from salt_tui.commands.report import print_summary
from salt_tui.display.plain_display import PlainDisplay
from salt_tui.display.rich_display import RichDisplay
from salt_tui.paths import database_path
from salt_tui.runner.events import RunEvent
from salt_tui.runner.experiment import Experiment, ReadyRun
from salt_tui.runner.opened_model import close_run
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.report import report_run
from salt_tui.runner.report_json import run_data
from salt_tui.runner.request import RunRequest
from salt_tui.runner.resumption import prepare_resume
from salt_tui.store.queries import open_queries

Emit = Callable[[RunEvent], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NoDisplay:
    """Shows nothing."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to end."""

    def __call__(self, event: RunEvent) -> None:
        """Drop the event."""


def run_new(request: RunRequest, database: Path | None, display: str | None, *, json_output: bool) -> int:
    """Make a run and compute it."""
    path = database or database_path()
    return _compute(lambda emit: prepare_run(request, path, emit), path, display, json_output=json_output)


def run_again(
    name: str,
    database: Path | None,
    display: str | None,
    *,
    json_output: bool,
    allow_environment_change: bool,
    threads: int | None,
) -> int:
    """Go on with a stored run; a finished one is reported and left as it is."""
    path = database or database_path()
    with open_queries(path) as queries:
        stored = queries.run_record(queries.find_run(name))
    if stored.state == "finished":
        say(f"run {stored.run} is finished, nothing to do")
        _print_result(path, stored.run, json_output=json_output)
        return DONE
    return _compute(
        lambda emit: prepare_resume(
            stored, path, emit, allow_environment_change=allow_environment_change, threads=threads
        ),
        path,
        display,
        json_output=json_output,
    )


def _compute(prepare: Callable[[Emit], ReadyRun], database: Path, display: str | None, *, json_output: bool) -> int:
    with StopSignals() as signals, _display(display) as show:
        ready = prepare(show)
        signals.computing = True
        try:
            state = Experiment(ready, show, signals.stop).run()
        finally:
            close_run(ready)
    if state != "finished":
        say(f"run {ready.run} {state}; go on with: salt-tui resume {ready.run}{_database_option(database)}")
    _print_result(database, ready.run, json_output=json_output)
    return {"finished": DONE, "interrupted": INTERRUPTED}.get(state, FAILED)


def _print_result(database: Path, run: int, *, json_output: bool) -> None:
    report = report_run(database, str(run))
    if json_output:
        print(json.dumps(run_data(report), ensure_ascii=False, allow_nan=False))
    else:
        print_summary(report)


def _database_option(database: Path) -> str:
    return "" if database == database_path() else f" --db {database}"


def _display(wanted: str | None) -> RichDisplay | PlainDisplay | NoDisplay:
    terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", ""}
    chosen = wanted or ("rich" if terminal else "plain")
    if chosen == "rich":
        return RichDisplay(Console(stderr=True, markup=False, highlight=False, emoji=False))
    return PlainDisplay(sys.stderr) if chosen == "plain" else NoDisplay()


class StopSignals:
    """Lets the first Ctrl+C, SIGTERM or SIGHUP end a computing run in order, and a second one break off.

    While the model still loads nothing has been stored, so the first breaks off at once.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.computing = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.computing or self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()
