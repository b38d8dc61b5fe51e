"""Opens the app from the command line; Textual is imported only after the terminal was found fit.

The runner, which a run to begin comes from, is not imported for an app that opens on Setup: 60 ms.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from salt_tui.app.terminal import drawing_mode, is_terminal, refusal
from salt_tui.commands.failures import USAGE, report_failure, say
from salt_tui.paths import database_path, expanded

if TYPE_CHECKING:
    from salt_tui.runner.request import RunRequest


def open_at_once(database: Path | None) -> int:
    """Open the app without the command line's parser and return its exit code, whatever happens."""
    try:
        return open_app(database)
    except BaseException as error:
        return report_failure(error)


def open_app(database: Path | None, request: RunRequest | None = None, resume: str | None = None) -> int:
    """Open the app and return its exit code.

    Args:
        database: the file, None for the default.
        request: a run to begin at once, None to open on Setup.
        resume: number of a run to go on with at once, or ``latest``.

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
    path = expanded(database or database_path())
    run = None
    if resume is not None:
        from salt_tui.store.queries import open_queries

        with open_queries(path) as queries:
            run = queries.find_run(resume)
    app = SaltApp(path, request, drawing_mode(), resume=run)
    code = app.run()
    if app.crash is not None:
        return report_failure(app.crash)
    if app.interrupted_run is not None:
        from salt_tui.commands.computing import resume_command

        say(f"run {app.interrupted_run} interrupted; go on with: {resume_command(str(app.interrupted_run), path)}")
    return code or 0
