"""A stored run read piece by piece in a thread of its own, so that a screen shows its beginning at once."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from salt_tui.engine.device_words import device_in_words
from salt_tui.runner.events import RunEnded, RunStarted, TaskProgress
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.stored_values import Place
from salt_tui.store.unit_stream import AnswerUnits, answer_units

BACKLOG = 200
"""Answers read ahead of the screen; the reader waits when so many have not been taken."""


@dataclass(frozen=True, slots=True)
class ReadingEnded:
    """Everything was read, or reading failed with this message."""

    message: str | None


StoredPiece = RunStarted | AnswerUnits | RunEnded | ReadingEnded


class StoredRunReader:
    """Reads the answers of a run into a mailbox, in the order of their generations.

    Args:
        database: the file.
        run: its number.
        describe: turns an exception into one line for the user.
        finished_only: leave out answers that are not finished, for a run that goes on.
        spelled: tasks whose texts are read too.
    """

    def __init__(
        self,
        database: Path,
        run: int,
        describe: Callable[[BaseException], str],
        *,
        finished_only: bool = False,
        spelled: Set[str] = frozenset(),
    ) -> None:
        self.mailbox: deque[StoredPiece] = deque()
        self._database = database
        self._run = run
        self._describe = describe
        self._finished_only = finished_only
        self._spelled = spelled
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="stored run", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stop.set()

    def _work(self) -> None:
        try:
            with open_queries(self._database) as queries:
                if not self._finished_only:
                    self.mailbox.append(describe_stored(queries, self._run))
                answers = answer_units(
                    self._database, self._run, finished_only=self._finished_only, spelled=self._spelled
                )
                for answer in answers:
                    while len(self.mailbox) >= BACKLOG and not self._stop.wait(0.02):
                        pass
                    if self._stop.is_set():
                        return
                    self.mailbox.append(answer)
                if not self._finished_only:
                    stored = queries.run_record(self._run)
                    self.mailbox.append(RunEnded(self._run, stored.state, stored.message))
            self.mailbox.append(ReadingEnded(None))
        except BaseException as error:
            self.mailbox.append(ReadingEnded(self._describe(error)))


def describe_stored(queries: Queries, run: int) -> RunStarted:
    """Return the beginning of a stored run as its loop reported it, with the progress it has now."""
    stored = queries.run_record(run)
    place = Place(queries.path, f"run {run}")
    width, difficulty = place.read("plan", stored.record.plan, _width_and_difficulty)
    return RunStarted(
        run=run,
        model=f"{stored.model.name} · {stored.model.description}",
        device=place.read("environment", stored.record.environment, _device),
        width=width,
        difficulty=difficulty,
        exact=stored.record.exact,
        tasks=tuple(TaskProgress(counts.task, counts.done, counts.answers) for counts in queries.task_counts(run)),
        warnings=stored.record.warnings,
        statistics=stored.record.statistics,
    )


def _width_and_difficulty(text: str) -> tuple[int, str]:
    plan = json.loads(text)
    return int(plan["width"]), str(plan["tasks"][0]["difficulty"])


def _device(text: str) -> str:
    environment = json.loads(text)
    return device_in_words(environment["devices"], environment["gpu_layers"], environment["threads"])
