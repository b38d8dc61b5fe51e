"""An engine that stays open between short pieces of work, and the thread that its child lives by.

Loading a model and evaluating a prompt take seconds; an edit of an answer that is open already takes a fraction of one.
A child process dies with the thread that started it, so one thread starts it and does all work with it.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

from salt_tui.engine.engine import Engine
from salt_tui.engine.errors import EngineError
from salt_tui.engine.events import EngineDied
from salt_tui.engine.resident_memory import engine_memory
from salt_tui.runner.events import Notice
from salt_tui.runner.jobs import Emit
from salt_tui.runner.model_identity import ModelIdentity

LEFT_SECONDS = 120.0
"""So long after everybody has left the engine is given up: people look at another screen and come back."""

CLOSING_SECONDS = 10.0
"""The longest that somebody who needs the memory waits for it: a child ends within two."""


class KeptModel(Protocol):
    """A loaded model that is worth keeping."""

    @property
    def engine(self) -> Engine:
        """With the model loaded."""
        ...

    @property
    def identity(self) -> ModelIdentity:
        """Of the model's files."""
        ...


class EngineKeeper:
    """Keeps at most one loaded model, and does work with it one piece after the other in a thread of its own.

    Attributes:
        held: bytes of main memory that the child had after the last piece of work; None while no model is kept or
            where the system does not tell.
    """

    def __init__(self, left_seconds: float = LEFT_SECONDS) -> None:
        """Keep nothing; the thread begins with the first piece of work.

        Args:
            left_seconds: how long after `leave` the model is kept.
        """
        self.held: int | None = None
        self._left_seconds = left_seconds
        self._left: float | None = None
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._stop_work: Callable[[], None] | None = None
        self._empty = threading.Event()
        self._empty.set()
        self._kept: KeptModel | None = None

    # --- from any thread ----------------------------------------------------------------------------------------

    def do(self, work: Callable[[], None], stop: Callable[[], None]) -> None:
        """Do a piece of work in the keeper's thread, after those that were handed in before.

        Args:
            work: may call `fitting`, `keep` and `drop`; must not raise.
            stop: breaks it off, called by `release`.
        """

        def task() -> None:
            self._stop_work = stop
            try:
                work()
            finally:
                self._stop_work = None
                self.held = None if self._kept is None else engine_memory(self._kept.engine)
                if self._kept is None:
                    self._empty.set()

        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="kept-engine", daemon=True)
                self._thread.start()
            self._empty.clear()  # a model may be loaded from now on
            self._tasks.put(task)

    def leave(self) -> None:
        """Give the model up after a while, and not before its work is done, unless somebody comes back."""
        self._left = time.monotonic()
        self._tasks.put(_nothing)  # the thread looks how long it may wait

    def stay(self) -> None:
        """Keep the model: somebody came back."""
        self._left = None

    def release(self, wait: float = 0.0) -> bool:
        """Break off what is at work and give the model up; return whether its memory is free.

        Args:
            wait: seconds to wait for it.
        """
        with self._lock:
            if self._thread is None:
                return True
            if (stop := self._stop_work) is not None:
                stop()
            self._tasks.put(self.drop)
        return self._empty.wait(wait)

    @property
    def is_free(self) -> bool:
        """Whether no model is kept and none is at work."""
        return self._empty.is_set()

    def make_room(self) -> None:
        """Release, and wait until the memory is free: in the thread of whoever is about to load a model."""
        self.release(CLOSING_SECONDS)

    # --- in the keeper's thread ---------------------------------------------------------------------------------

    def fitting(self, fits: Callable[[KeptModel], bool], emit: Emit, beat: Callable[[], None]) -> KeptModel | None:
        """Return the kept model, alive and from files that are unchanged; give up one that does not fit.

        Args:
            fits: whether a kept model can be used.
            emit: is told when the child had died and is started again.
            beat: called every second while files that changed are hashed.
        """
        kept = self._kept
        if kept is None:
            return None
        try:
            if fits(kept):
                if _has_died(kept.engine):
                    emit(Notice("the engine died while nothing was computed; it is started again"))
                    kept.engine.restart()
                # As weights that another file holds by now would be.
                if kept.identity.is_unchanged(beat):
                    return kept
        except EngineError:
            pass  # it is loaded anew, which says what is wrong
        self.drop()
        return None

    def keep(self, model: KeptModel) -> None:
        """Keep a model from now on, in place of the one before."""
        if self._kept is not model:
            self.drop()
            self._kept = model

    def drop(self) -> None:
        """Give the kept model up."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.engine.close()
        self.held = None
        if self._stop_work is None:
            self._empty.set()

    def _live(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                task = self._tasks.get(timeout=self._patience())
                if task is not None:
                    task()
            left = self._left
            if left is not None and self._kept is not None and time.monotonic() - left >= self._left_seconds:
                self.drop()

    def _patience(self) -> float | None:
        left = self._left
        if left is None or self._kept is None:
            return None
        return max(0.0, left + self._left_seconds - time.monotonic())


def _has_died(engine: Engine) -> bool:
    """Say whether the child is gone; what it still said of work that was broken off is forgotten."""
    try:
        while events := engine.events(0.0):
            if any(isinstance(event, EngineDied) for event in events):
                return True
    except EngineError:
        return True
    return False


def _nothing() -> None:
    """Let the thread look at the clock."""
