"""Signals of a stored run read beside the screen: which there are, and the values of those that are looked at.

On the map more is surer, or a registry says otherwise.  A signal from elsewhere whose lower values are surer is no
entry of a registry: the map has its negative, with a minus before its name.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from salt_tui.app.answer_cells import KINDS
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import SignalKind, SignalRecord

NEGATIVE = "−"
"""Before the name of a signal: its negative."""

_MAP_KINDS: tuple[SignalKind, ...] = ("atom", "line")
"""As `KINDS`."""


@dataclass(frozen=True, slots=True)
class SignalNames:
    """Which signals a run has of units that a map can show.

    Attributes:
        names: as they are called beside each other.
        fixed: those of them whose values never change: they are functions of the stored tokens.
    """

    names: tuple[str, ...]
    fixed: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class SignalValues:
    """The values of one signal.

    Attributes:
        name: as in `SignalNames`.
        values: by generation and kind, by index of the unit, NaN for undefined.
    """

    name: str
    values: Mapping[tuple[int, str], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class SignalFailure:
    """Signals could not be read, in one line."""

    message: str


SignalPiece = SignalNames | SignalValues | SignalFailure


class SignalReader:
    """Reads signals in a thread of its own for each question.

    Attributes:
        mailbox: what was read.

    Args:
        database: the file.
        run: number of the run.
        describe: turns an exception into one line for the user.
    """

    def __init__(self, database: Path, run: int, describe: Callable[[BaseException], str]) -> None:
        self.mailbox: deque[SignalPiece] = deque()
        self._database = database
        self._run = run
        self._describe = describe

    def look_for_names(self) -> None:
        """Begin to read which signals there are."""
        self._begin(lambda queries: _names(queries, self._run))

    def read(self, name: str) -> None:
        """Begin to read the values of a signal."""
        self._begin(lambda queries: _values(queries, self._run, name))

    def _begin(self, question: Callable[[Queries], SignalPiece]) -> None:
        threading.Thread(target=self._work, args=(question,), name="signals", daemon=True).start()

    def _work(self, question: Callable[[Queries], SignalPiece]) -> None:
        try:
            with open_queries(self._database) as queries, queries.snapshot():
                self.mailbox.append(question(queries))
        except BaseException as error:
            self.mailbox.append(SignalFailure(self._describe(error)))


def _names(queries: Queries, run: int) -> SignalNames:
    known = [signal for signal in queries.signal_names(run) if not set(KINDS).isdisjoint(signal.kinds)]
    fixed = frozenset(signal.shown for signal in known if signal.is_of_tokens)
    names = (f"{NEGATIVE if signal.lower_is_confident else ''}{signal.shown}" for signal in known)
    return SignalNames(tuple(names), fixed)


def _values(queries: Queries, run: int, name: str) -> SignalValues:
    values: dict[tuple[int, str], NDArray[np.float64]] = {}
    for kind in _MAP_KINDS:
        rows = queries.signals(run, name.removeprefix(NEGATIVE), kind)
        for generation, group in groupby(rows, key=lambda row: row.generation):
            column = _column(list(group))
            values[generation, kind] = -column if name.startswith(NEGATIVE) else column
    return SignalValues(name, values)


def _column(rows: list[SignalRecord]) -> NDArray[np.float64]:
    column = np.full(1 + max(row.index for row in rows), np.nan)
    for row in rows:
        if row.value is not None:
            column[row.index] = row.value
    return column
