"""A run in a thread of its own, with a mailbox that screens empty at their own pace."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from salt_tui.runner.events import RunEnded, RunEvent, RunStarted
from salt_tui.runner.jobs import Emit
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.store.records import Work


class BackgroundRun:
    """Prepares and computes a run in a daemon thread, or in that of a keeper.

    Every event is appended to `mailbox`, from which one consumer pops from the left; appending and popping a deque
    need no lock.  Whatever happens, the last event is a `RunEnded`; when it is no longer `alive`, the store is closed,
    and the child has ended unless the keeper keeps it.

    Attributes:
        mailbox: events that nobody has taken.
        failure: the exception that ended the run, None while there is none.
        work: the run or study that is computed, None before it is known.
        state: in which it ended, None before.

    Args:
        prepare: makes the run ready, e.g. a call of `salt_tui.runner.preparation.prepare_run`.
        describe: turns an exception into one line for the user.
        keeper: in whose thread to work; None takes a thread that ends with the run.
    """

    def __init__(
        self,
        prepare: Callable[[Emit], ReadyWork],
        describe: Callable[[BaseException], str],
        keeper: EngineKeeper | None = None,
    ) -> None:
        self.mailbox: deque[RunEvent] = deque()
        self.failure: BaseException | None = None
        self.work: Work | None = None
        self.state: str | None = None
        self._prepare = prepare
        self._describe = describe
        self._stop = threading.Event()
        self._loop: Loop | None = None
        self._keeper = keeper
        self._begun = False
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin; events arrive from now on."""
        self._begun = True
        if self._keeper is not None:
            self._keeper.do(self._work, self.stop)
        else:
            threading.Thread(target=self._work, name="run", daemon=True).start()

    def stop(self) -> None:
        """Ask the run to stop in order; it stays resumable.

        While a new run is still being prepared nothing has been stored, and it breaks off with the next event, at the
        latest before it is stored.  Once it is stored, `RunStarted` with its number comes before its end.
        """
        self._stop.set()
        self.go_on()

    def cancel_answer(self, generation: int) -> None:
        """Stop one answer; it ends as ``cancelled`` and the run goes on."""
        if self._loop is not None:
            self._loop.cancel(generation)

    def pause(self) -> bool:
        """Suspend the child and return whether there was one.

        The loop of the run goes on beside it: what has arrived is stored and the lease is kept alive.
        """
        if self._loop is None or self._stop.is_set():
            return False
        self._loop.suspend()
        return True

    def go_on(self) -> None:
        """Let a suspended child go on; without effect on a running one."""
        if self._loop is not None:
            self._loop.wake()

    @property
    def alive(self) -> bool:
        """Whether the work has begun and not ended."""
        return self._begun and not self._ended.is_set()

    def join(self, timeout: float) -> bool:
        """Wait for the end; return whether it came."""
        return self._ended.wait(timeout)

    def _work(self) -> None:
        run = 0
        try:
            ready = self._prepare(self._emit_while_preparing)
            run, self.work = ready.work.run, ready.work
            try:
                self._loop = Loop(ready, self._append, self._stop)
                self._loop.run()
            finally:
                ready.close()
        except _StoppedError:
            self._append(RunEnded(run, "interrupted", None))
        except BaseException as error:
            self.failure = error
            self._append(RunEnded(run, "failed", self._describe(error)))
        finally:
            self._ended.set()

    def _append(self, event: RunEvent) -> None:
        if isinstance(event, RunEnded):
            self.state = event.state
        self.mailbox.append(event)

    def _emit_while_preparing(self, event: RunEvent) -> None:
        # A run that is stored is ended by its loop, so that its number is known and its state is written.
        if self._stop.is_set() and not isinstance(event, RunStarted):
            raise _StoppedError
        self.mailbox.append(event)


class _StoppedError(Exception):
    """The user stopped the run before it was ready."""
