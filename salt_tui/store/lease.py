"""Who is working on a run: a process on a host that shows signs of life, so that no two write to one run.

The file says it to other processes.  Within a process the leases in its hands say it: one that could not be given
back, because the disk was full, holds nobody up here.
"""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from salt_tui.store.opened_file import Identity

STALE_AFTER = timedelta(seconds=30)
"""Age of a heartbeat from another host at which its process counts as dead."""

_in_hand: dict[tuple[Identity | None, int], Lease] = {}
"""Leases that a store of this process works under, by database and run."""
_in_hand_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Lease:
    """One process's hold on a run.

    Attributes:
        pid: of the process, on ``host``.
        host: its network name.
        process_start: when the process began, in clock ticks since boot where the system says so (Linux), else None;
            it tells a process from a later one with the same number, which containers reuse all the time.
        heartbeat: UTC time of its last sign of life.
    """

    pid: int
    host: str
    process_start: str | None
    heartbeat: datetime


def own_lease() -> Lease:
    """Return the lease of this process, as of now."""
    pid = os.getpid()
    return Lease(pid, socket.gethostname(), process_start(pid), datetime.now(UTC))


def take_in_hand(lease: Lease, database: Identity | None, run: int) -> None:
    """Let every thread of this process know that a run is being worked on."""
    with _in_hand_lock:
        _in_hand[database, run] = lease


def put_down(lease: Lease, database: Identity | None, run: int) -> None:
    """Take `take_in_hand` back; without effect where another lease on the run is in hand."""
    with _in_hand_lock:
        if _in_hand.get((database, run)) is lease:
            del _in_hand[database, run]


def is_live(lease: Lease, now: datetime, database: Identity | None, run: int) -> bool:
    """Say whether the holder may still be working.

    A lease of this process is live while one is in hand.  On this host the process table decides, however old the
    heartbeat: a stopped process is still there.  On another host only the heartbeat can tell: older than
    `STALE_AFTER` is dead.
    """
    if lease.host != socket.gethostname():
        return now - lease.heartbeat <= STALE_AFTER
    if is_ours(lease):
        with _in_hand_lock:
            return (database, run) in _in_hand
    if not _process_exists(lease.pid):
        return False
    return lease.process_start is None or lease.process_start == process_start(lease.pid)


def is_ours(lease: Lease) -> bool:
    """Say whether a lease was taken by this very process."""
    pid = os.getpid()
    return (lease.host, lease.pid, lease.process_start) == (socket.gethostname(), pid, process_start(pid))


def process_start(pid: int) -> str | None:
    """Return the start time of a process from ``/proc``, None where there is no such file."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Field 22; the command's name in field 2 may hold spaces and brackets, so count from the last bracket.
    return status.rpartition(")")[2].split()[19]


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
