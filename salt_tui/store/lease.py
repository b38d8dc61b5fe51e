"""Who is working on a run or study: a process on a host that shows signs of life.

Other processes read the lease in the file.  Within one process a table in memory decides instead: a lease that could
not be given back, because the disk was full, then blocks only other processes.  A lease keeps others from starting.
The fencing number, which `salt_tui.store.writer.Writer` checks in every transaction, keeps two from writing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from salt_tui.store.opened_file import Identity
from salt_tui.store.records import Work
from salt_tui.store.stored_values import Place

STALE_AFTER = timedelta(seconds=30)
"""Age of a heartbeat at which a process that cannot be looked up counts as dead.  So does one whose heartbeat lies as
far in the future: a clock was wrong, and nothing else would ever end the lease."""

LEASE_COLUMNS = "lease_pid, lease_host, lease_namespace, lease_process_start, lease_heartbeat"
WITHOUT_LEASE = ", ".join(f"{column} = NULL" for column in LEASE_COLUMNS.split(", "))

_in_hand: dict[tuple[Identity | None, Work], Lease] = {}
"""Leases that a store of this process works under, by database and work."""
_in_hand_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Lease:
    """One process's hold on a run or study.

    Attributes:
        pid: of the process, in its namespace.
        host: network name of its machine.
        namespace: where the number holds: boot of the machine and PID namespace, which a container has of its own;
            None where the system does not say (it does on Linux).
        process_start: when the process began, in clock ticks since boot where the system says so (Linux), else None;
            it tells a process from a later one with the same number, which containers reuse all the time.
        heartbeat: UTC time of its last sign of life.
    """

    pid: int
    host: str
    namespace: str | None
    process_start: str | None
    heartbeat: datetime


def stored_lease(row: Sequence[Any], place: Place) -> Lease | None:
    """Return the lease in a row of `LEASE_COLUMNS`, None where nobody holds one.

    Raises:
        StoreError: the heartbeat is no time.
    """
    if row[0] is None:
        return None
    return Lease(row[0], row[1], row[2], row[3], place.time("lease_heartbeat", row[4]))


def own_lease() -> Lease:
    """Return the lease of this process, as of now."""
    pid = os.getpid()
    return Lease(pid, socket.gethostname(), _namespace(), process_start(pid), datetime.now(UTC))


def take_in_hand(lease: Lease, database: Identity | None, work: Work) -> None:
    """Let every thread of this process know that a run or study is being worked on."""
    with _in_hand_lock:
        _in_hand[database, work] = lease


def put_down(lease: Lease, database: Identity | None, work: Work) -> None:
    """Take `take_in_hand` back; without effect where another lease on it is in hand."""
    with _in_hand_lock:
        if _in_hand.get((database, work)) is lease:
            del _in_hand[database, work]


def is_live(lease: Lease, now: datetime, database: Identity | None, work: Work) -> bool:
    """Say whether the holder may still be working.

    A lease of this process is live while one is in hand.  In the same namespace the process table decides, however
    old the heartbeat: a stopped process is still there.  Elsewhere only the heartbeat can tell, see `STALE_AFTER`.
    """
    if is_ours(lease):
        with _in_hand_lock:
            return (database, work) in _in_hand
    if (lease.host, lease.namespace) != (socket.gethostname(), _namespace()):
        return abs(now - lease.heartbeat) <= STALE_AFTER
    if not _process_exists(lease.pid):
        return False
    return lease.process_start is None or lease.process_start == process_start(lease.pid)


def is_ours(lease: Lease) -> bool:
    """Say whether a lease was taken by this very process."""
    own = own_lease()
    return replace(lease, heartbeat=own.heartbeat) == own


@cache
def _namespace() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def process_start(pid: int) -> str | None:
    """Return the start time of a process from ``/proc``, None where there is no such file."""
    status = _process_status(pid)
    return None if status is None else status[19]


def _process_status(pid: int) -> list[str] | None:
    """Return the fields of a process from ``/proc`` from its state on, None where there is no such file."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command's name in field 2 may hold spaces and brackets, so count from the last bracket.
    return status.rpartition(")")[2].split()


def _process_exists(pid: int) -> bool:
    try:
        with contextlib.suppress(PermissionError):  # another user's process: it is there, and its state can be read
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that was killed keeps its number until its parent has asked for its end; it works on nothing any more.
    status = _process_status(pid)
    return status is None or status[0] not in {"Z", "X"}
