"""The list of stored runs, read again when another program, or this one, has written to the file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import RunListing

REST = 4.0
"""Times the duration of a reading that pass before the next: a million atoms take a second to count."""


class WatchedRuns:
    """Reads the list where it may be another.

    Args:
        database: the file; it need not exist.
        clock: monotonic seconds; injected by tests.
    """

    def __init__(self, database: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._queries: Queries | None = None
        self._file: tuple[int, int] | None = None
        self._version: int | None = None
        self._runs: list[RunListing] = []
        self._not_before = 0.0
        self._lock = threading.Lock()

    def look(self) -> list[RunListing] | None:
        """Return the list where it is another than at the last look, else None.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._lock:
            if self._clock() < self._not_before:
                return None
            queries = self._open()
            if queries is not None and queries.version() == self._version and not self._has_stopped(queries):
                return None
            before = self._runs
            return None if self._read(queries) == before else self._runs

    def read(self) -> list[RunListing]:
        """Return the list as it is now.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._lock:
            return self._read(self._open())

    def _read(self, queries: Queries | None) -> list[RunListing]:
        if queries is None:
            self._runs = []
            return self._runs
        begun = self._clock()
        # Before the list: what is written while it is read is found at the next look.
        self._version = queries.version()
        self._runs = queries.list_runs()
        ended = self._clock()
        self._not_before = ended + REST * (ended - begun)
        return self._runs

    def _has_stopped(self, queries: Queries) -> bool:
        """Whether the program of a run is gone; one that was killed writes nothing."""
        try:
            return any(run.state == "running" != queries.run_record(run.run).state for run in self._runs)
        except StoreError:  # a run was deleted
            return True

    def _open(self) -> Queries | None:
        """Return a connection to the file that is at the path now, None where there is none."""
        try:
            found = self._database.stat()
        except OSError:
            self._give_back()
            return None
        file = found.st_dev, found.st_ino
        if self._queries is None or file != self._file:
            self._give_back()
            self._queries, self._file = open_queries(self._database), file
        return self._queries

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._give_back()

    def _give_back(self) -> None:
        if self._queries is not None:
            self._queries.close()
        self._queries = self._version = None
