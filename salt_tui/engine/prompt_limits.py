"""Limits around the making of a prompt: a template is a program from a stranger's file, and so is a vocabulary.

Three limits, one inside the other.  `python_limits` raises an exception in a template that runs too long or takes too
much memory.  A single call into C (a huge power, a tokenizer that is quadratic in a long text) cannot be interrupted
by an exception: `last_resort` lets the system end the process after so much processor time, and the parent says why.
All of them count this process's own time, so a busy machine ends nothing early.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

MOST_SECONDS = 2.0
"""Processor time of one template; those of the common models take milliseconds."""

LAST_SECONDS = 4.0
"""Processor time after which the system ends the process; 100,000 tokens take 0.5 s to tokenise."""

MOST_BYTES = 512 << 20
"""Memory of one template, on top of what the process has."""

MOST_CHARACTERS = 4_000_000
"""Of one prompt, a million tokens: longer ones are not tokenised."""

END_SIGNAL = signal.SIGPROF
"""Ends the process in `last_resort`."""


@contextmanager
def python_limits() -> Iterator[None]:
    """Raise `TimeoutError` or `MemoryError` inside, in the main thread, when a template goes too far."""

    def give_up(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"one prompt takes more than {MOST_SECONDS:g} s to write")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        with _memory_limit(), last_resort():
            yield
    except MemoryError:
        raise MemoryError(f"one prompt takes more than {MOST_BYTES >> 20} MiB to write") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def last_resort() -> Iterator[None]:
    """End this process when the inside takes more than `LAST_SECONDS` of processor time."""
    signal.setitimer(signal.ITIMER_PROF, LAST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


@contextmanager
def _memory_limit() -> Iterator[None]:
    """Let the process grow by `MOST_BYTES` only; without effect where the system does not tell its size."""
    try:
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = size + MOST_BYTES
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
