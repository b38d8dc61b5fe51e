"""Computes a run or study with a display, ends in order on signals, and says how to go on."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self, TypeAlias

from rich.console import Console

from salt_tui.commands.failures import DONE, FAILED, INTERRUPTED, describe_failure, shortened
from salt_tui.display.plain_display import PlainDisplay
from salt_tui.display.rich_display import RichDisplay
from salt_tui.paths import database_path
from salt_tui.runner.events import RunEnded, RunEvent, RunStarted
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.store.records import Work
from salt_tui.visible_text import visible

Display: TypeAlias = AbstractContextManager[Emit]
"""Shows the events of a run from when it is entered until it is left."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

CLEANING_SECONDS = 3.0
"""Ending the model process and the database takes two seconds at most."""


class NoDisplay:
    """Shows nothing."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to end."""

    def __call__(self, event: RunEvent) -> None:
        """Drop the event."""


@dataclass(frozen=True, slots=True)
class ComputedRun:
    """What became of a run or study.

    Attributes:
        run: number of the run; None when the computation broke off, which has been said.
        name: of what was computed, ``17`` or ``17.2``; None when it broke off.
        code: exit code.
    """

    run: int | None
    name: str | None
    code: int


def compute(
    prepare: Callable[[Emit], ReadyWork], database: Path, display: Display, *, resumed: Work | None = None
) -> ComputedRun:
    """Prepare a run or study and compute it until it ends or is stopped by a signal.

    Args:
        prepare: makes it ready; it is told where its events go.
        database: the file, to name it.
        display: is entered and left.
        resumed: what exists before.

    Raises:
        Exception: whatever stopped it before it had a number.
    """
    watch = _RunWatch()
    try:
        with StopSignals() as signals, display as show:

            def emit(event: RunEvent) -> None:
                watch(event)
                # What is stored ends in order, from the moment on at which it has a number.
                signals.computing = signals.computing or isinstance(event, RunStarted)
                show(event)

            ready = prepare(emit)
            try:
                Loop(ready, emit, signals.stop).run()
            finally:
                ready.close()
    except BaseException as error:
        reason, code = describe_failure(error)
        work = watch.work or (resumed if code == INTERRUPTED else None)
        if work is None:
            raise
        if watch.ended is None or code != INTERRUPTED:
            _say_unfinished(work, database, "interrupted" if code == INTERRUPTED else f"failed: {reason}")
            return ComputedRun(None, None, code)
    ended = watch.ended
    assert ended is not None  # a run that did not raise has said how it ended
    if ended.state != "finished":
        message = f": {ended.message}" if ended.message else ""
        _say_unfinished(_work_of(ended), database, f"{ended.state}{message}")
    return ComputedRun(
        ended.run, str(_work_of(ended)), {"finished": DONE, "interrupted": INTERRUPTED}.get(ended.state, FAILED)
    )


class _RunWatch:
    """Remembers what is computed and how it ended."""

    def __init__(self) -> None:
        self.work: Work | None = None
        self.ended: RunEnded | None = None

    def __call__(self, event: RunEvent) -> None:
        """Take one event."""
        if isinstance(event, RunStarted):
            self.work = _work_of(event)
        elif isinstance(event, RunEnded):
            self.ended = event


def _work_of(event: RunStarted | RunEnded) -> Work:
    return Work(event.run, number=event.study)


def _say_unfinished(work: Work, database: Path, how: str) -> None:
    # The command is whole, however long the reason is.
    command = visible(resume_command(str(work), database))
    title = f"run {work}" if work.number is None else f"study {work}"
    print(f"salt-tui: {shortened(f'{title} {how}')}; go on with: {command}", file=sys.stderr)


def resume_command(name: str, database: Path) -> str:
    """Return the command that goes on with a run or study, for a shell."""
    return command_for(database, "resume", name)


def command_for(database: Path, *words: str) -> str:
    """Return a command about a database, for a shell; the usual database is not named."""
    option = [] if database == database_path() else ["--db", str(database)]
    return shlex.join(["salt-tui", *words, *option])


def display_named(wanted: str | None) -> Display:
    """Return the display ``rich``, ``plain`` or ``none``; None chooses by stderr."""
    terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", ""}
    chosen = wanted or ("rich" if terminal else "plain")
    if chosen == "rich":
        return RichDisplay(Console(stderr=True, markup=False, highlight=False, emoji=False))
    return PlainDisplay(sys.stderr) if chosen == "plain" else NoDisplay()


class StopSignals:
    """Lets the first Ctrl+C, SIGTERM or SIGHUP end a computing run in order, and a second one break off.

    While the model still loads nothing has been stored, so the first breaks off at once; while that is cleaned up,
    more of them change nothing.

    A signal that is ignored stays so: `nohup` and a script's `&` ask for it by that.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.computing = False
        self._before: dict[int, Any] = {}
        self._broken_off = -CLEANING_SECONDS

    def __enter__(self) -> Self:
        """Take the signals over."""
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # None: not Python's, so it could not be given back
                self._before[number] = before
                signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.computing and not self.stop.is_set():
            self.stop.set()
        elif time.monotonic() - self._broken_off >= CLEANING_SECONDS:
            self._broken_off = time.monotonic()
            raise KeyboardInterrupt
