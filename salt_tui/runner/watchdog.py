"""Alive is not progressing: notices that nothing has come from the engine for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from salt_tui.runner.events import NoProgress
from salt_tui.runner.jobs import Emit

FIRST_WORD_SECONDS = 10.0
"""So long without progress is said.  Prompts report after every micro-batch, answers after every token."""

LEAST_PATIENCE_SECONDS = 600.0
PATIENCE_FACTOR = 10.0
"""The engine is given up after this many times the longest silence that ended by itself, at least after ten minutes.
A micro-batch of 512 prompt tokens takes a large model on a slow CPU minutes."""


class Watchdog:
    """Measures silence.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._longest = 0.0
        self._next_word = FIRST_WORD_SECONDS

    def progressed(self) -> None:
        """Something came."""
        self._longest = max(self._longest, self.silence())
        self.begin()

    def begin(self) -> None:
        """Measure from now on: nothing was waited for so far."""
        self._last = self._clock()
        self._next_word = FIRST_WORD_SECONDS

    def silence(self) -> float:
        """Return the seconds since something came."""
        return self._clock() - self._last

    def has_something_to_say(self) -> bool:
        """Say whether the silence should be mentioned: after `FIRST_WORD_SECONDS` and each time it has doubled."""
        silence = self.silence()
        if silence < self._next_word:
            return False
        while self._next_word <= silence:
            self._next_word *= 2
        return True

    def gives_up(self) -> bool:
        """Say whether the silence is so long that waiting on is of no use."""
        return self.silence() >= max(LEAST_PATIENCE_SECONDS, PATIENCE_FACTOR * self._longest)


NOT_WAITING_SECONDS = 3.0
"""An engine calls at least once a second while somebody waits for its answer; a longer pause was spent elsewhere."""


class AnswerWatch:
    """What `Engine.call_while_waiting` calls while a model is loaded and opened: beats, and mentions silence.

    Args:
        emit: takes `NoProgress`.
        waiting_for: in words.
        beat: called each time; keeps a lease alive.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        emit: Emit,
        waiting_for: str,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._emit = emit
        self._waiting_for = waiting_for
        self._beat = beat
        self._clock = clock
        self._watchdog = Watchdog(clock)
        self._called = clock()

    def progressed(self) -> None:
        """Loading went on."""
        self._watchdog.progressed()

    def __call__(self) -> None:
        """Take the call of an engine that somebody waits for."""
        now = self._clock()
        if now - self._called > NOT_WAITING_SECONDS:
            self._watchdog.begin()
        self._called = now
        self._beat()
        if self._watchdog.has_something_to_say():
            self._emit(NoProgress(self._waiting_for, self._watchdog.silence()))
