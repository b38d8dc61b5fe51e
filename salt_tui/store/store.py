"""Opening the one writer: every change to the file is a method of `Store`, and every method is one transaction."""

from __future__ import annotations

from pathlib import Path

from salt_tui.paths import expanded
from salt_tui.store import opening
from salt_tui.store.branch_writer import BranchWriter
from salt_tui.store.errors import StoreError, StoreFailure
from salt_tui.store.finished_runs import FinishedRunWriter
from salt_tui.store.generation_writer import GenerationWriter
from salt_tui.store.placing import standing
from salt_tui.store.signal_writer import SignalWriter

__all__ = ["Store", "StoreError", "StoreFailure", "check_place", "open_store"]


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


def check_place(path: Path | str) -> None:
    """See that `open_store` finds a database that can be written, or a place for one; makes no file.

    What is refused after it, such as an answer from elsewhere or a model, then leaves no empty database behind.

    Raises:
        StoreError: as `open_store`.
    """
    path = expanded(path, StoreError)
    opening.need_usable(path)
    if standing(path) == "file":
        open_store(path).close()
