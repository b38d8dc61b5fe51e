"""A run that another program computes, followed by reading: once a second what is new in the file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from salt_tui.app.maze_drawing import TASK as MAZE
from salt_tui.runner.events import RunEnded
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitKind
from salt_tui.store.unit_stream import AnswerUnits, answer_units

LOOK_SECONDS = 1.0
"""A program that computes writes at least so often."""

Piece = AnswerUnits | RunEnded | str
"""An answer as it stands now, the end of the run, or why nothing can be read at the moment."""

_UNITS: UnitKind = "atom"


class FollowedRun:
    """Looks in a thread what has been stored of a run since the last look, until the run has ended.

    Attributes:
        mailbox: what is new, for one consumer.

    Args:
        database: the file.
        run: its number.
        finished: generations that are known to be finished; they do not change any more.
        describe: turns an exception into one line for the user.
        every: seconds between two looks.
    """

    def __init__(
        self,
        database: Path,
        run: int,
        finished: Iterable[int],
        describe: Callable[[BaseException], str],
        every: float = LOOK_SECONDS,
    ) -> None:
        self.mailbox: deque[Piece] = deque()
        self._database = database
        self._run = run
        self._finished = set(finished)
        self._describe = describe
        self._every = every
        self._seen: dict[int, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="followed run", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def _work(self) -> None:
        told = None
        while not self._stop.is_set():
            try:
                with open_queries(self._database) as queries:
                    self._follow(queries)
                return
            except Exception as error:
                # A lock or a file that is being replaced is over at a later look; what stays is said once.
                line = self._describe(error)
                if line != told:
                    self.mailbox.append(line)
                told = line
                self._stop.wait(self._every)

    def _follow(self, queries: Queries) -> None:
        version: int | None = None
        while not self._stop.is_set():
            # The state is looked at before the answers: what was stored until the end is read then.
            stored = queries.run_record(self._run)
            changed = queries.version()
            if changed != version:
                version = changed
                self._read_new()
            if stored.state != "running":
                self._read_new()
                self.mailbox.append(RunEnded(self._run, stored.state, stored.message))
                return
            self._stop.wait(self._every)

    def _read_new(self) -> None:
        for answer in answer_units(self._database, self._run, spelled={MAZE}, without=self._finished):
            if self._stop.is_set():
                return
            size = answer.tokens, len(answer.units[_UNITS].statuses)
            if answer.status is not None:
                self._finished.add(answer.generation)
            elif self._seen.get(answer.generation) == size:
                continue
            self._seen[answer.generation] = size
            self.mailbox.append(answer)
