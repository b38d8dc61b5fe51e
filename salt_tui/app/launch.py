"""Opens the app from the command line; Textual is imported only after the terminal was found fit."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

from salt_tui.app.desk import Desk
from salt_tui.app.terminal import is_terminal, refusal, terminal_look
from salt_tui.commands.failures import USAGE, report_failure, say
from salt_tui.paths import database_path, expanded


def open_at_once(database: Path | None) -> int:
    """Open the app on Setup without the command line's parser, and return its exit code, whatever happens."""
    try:
        return open_app(database)
    except BaseException as error:
        return report_failure(error)


def open_on_stored_run(database: Path | None, name: str) -> int:
    """Open the app on a stored run, go on with it, and return the exit code.

    Args:
        database: the file, None for the default.
        name: number of the run, or ``latest``.

    Raises:
        StoreError: there is no such run.
    """
    from salt_tui.store.queries import open_queries

    path = expanded(database or database_path())
    with open_queries(path) as queries:
        run = queries.find_run(name)
    return open_app(path, lambda desk: desk.runs.resume(run))


def open_app(database: Path | None, first: Callable[[Desk], str | None] | None = None) -> int:
    """Open the app and return its exit code.

    Args:
        database: the file, None for the default.
        first: opens a run at once and returns a line to say, if any; None opens Setup.

    Returns:
        0 after quitting, 1 after a bug, 2 where there is no terminal, 130 when Ctrl+C interrupted a run, 128 plus
        the number of another signal.
    """
    reason = refusal(os.environ, terminal=is_terminal())
    if reason is not None:
        say(reason)
        return USAGE
    # Until the first paint nearly everything that is made stays: collecting takes 80 of 550 ms.
    gc.disable()
    from salt_tui.app.application import SaltApp

    # A thread that reads the store or measures gives way to a key after one millisecond instead of five.
    sys.setswitchinterval(0.001)
    app = SaltApp(expanded(database or database_path()), terminal_look(os.environ), first)
    code = app.run()
    if app.crash is not None:
        return report_failure(app.crash)
    for work in app.desk.runs.interrupted if app.desk.loaded else ():
        from salt_tui.commands.computing import resume_command

        say(f"{work.title} interrupted; go on with: {resume_command(str(work), app.desk.database)}")
    return code or 0
