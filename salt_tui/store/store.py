"""Opening the one writer: every change to the file is a method of `Store`, and every method is one transaction."""

from __future__ import annotations

from pathlib import Path

from salt_tui.paths import expanded
from salt_tui.store import opening
from salt_tui.store.branch_writer import BranchWriter
from salt_tui.store.errors import StoreError, StoreFailure
from salt_tui.store.finished_runs import FinishedRunWriter
from salt_tui.store.generation_writer import GenerationWriter
from salt_tui.store.signal_writer import SignalWriter

__all__ = ["Store", "StoreError", "StoreFailure", "open_store"]


class Store(FinishedRunWriter, GenerationWriter, SignalWriter, BranchWriter):
    """The file, open for writing: runs and studies, their generations, and what is said about answers."""


def open_store(path: Path | str, busy_timeout: float = opening.BUSY_TIMEOUT) -> Store:
    """Open a database for writing; make it, and its folder, when it is not there.

    Args:
        path: of the file.
        busy_timeout: seconds to wait for another program's write lock; `writer.CLAIMED_BUSY_TIMEOUT` while a run or
            study is claimed.

    Raises:
        StoreError: one line: a folder that cannot be written, a database of something else or no database (both left
            as they are), another schema, a damaged file, a full disk, a lock held longer than the timeout.
    """
    path = expanded(path, StoreError)
    return Store(path, opening.connect_writer(path, busy_timeout), busy_timeout)
