"""Signs of life of the process that owns a run or study."""

from __future__ import annotations

import time

from salt_tui.store.records import Work
from salt_tui.store.store import Store

HEARTBEAT_SECONDS = 5.0


class Heartbeat:
    """Keeps the lease on a claimed run or study alive, however often it is asked to.

    Args:
        store: holds the lease.
        work: the claimed run or study.
    """

    def __init__(self, store: Store, work: Work) -> None:
        self._store = store
        self._work = work
        self._last = time.monotonic()

    def beat(self) -> None:
        """Show a sign of life when `HEARTBEAT_SECONDS` have passed since the last; raises as `Store.heartbeat`."""
        now = time.monotonic()
        if now - self._last >= HEARTBEAT_SECONDS:
            self._last = now
            self._store.heartbeat(self._work)
