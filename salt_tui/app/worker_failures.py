"""What a thread beside the screen could not do, as one line on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from textual.app import App
from textual.worker import get_current_worker


@contextmanager
def failures_told(app: App[Any], tell: Callable[[str], object]) -> Iterator[None]:
    """Give one line about any exception to ``tell``, called in the thread of the app; of a cancelled worker nothing.

    Textual drops the exception of a worker with ``exit_on_error=False``.
    """
    try:
        yield
    except Exception as error:
        if get_current_worker().is_cancelled:
            return
        from salt_tui.commands.failures import describe_failure

        app.call_from_thread(tell, describe_failure(error)[0])
