"""Read-only questions to the file, on a connection of its own that can neither create nor change anything."""

from __future__ import annotations

from pathlib import Path

from salt_tui.paths import expanded
from salt_tui.store import opening
from salt_tui.store.branch_queries import BranchQueries
from salt_tui.store.check_queries import CheckQueries
from salt_tui.store.errors import StoreError
from salt_tui.store.generation_queries import GenerationQueries
from salt_tui.store.signal_queries import SignalQueries
from salt_tui.store.unit_queries import UnitQueries
from salt_tui.store.work_queries import WorkQueries


class Queries(WorkQueries, GenerationQueries, UnitQueries, SignalQueries, BranchQueries, CheckQueries):
    """The file, open for reading: runs and studies, generations, units as arrays, branches, what is said of answers."""


def open_queries(path: Path | str, busy_timeout: float = opening.BUSY_TIMEOUT) -> Queries:
    """Open a database for reading.

    Raises:
        StoreError: one line: no file, a database of something else or no database, another schema, a damaged file.
    """
    path = expanded(path, StoreError)
    return Queries(path, opening.connect_reader(path, busy_timeout))
