"""What the screen Compare shows of two runs: which, by which metric and signal, and where the cursor stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from salt_tui.app.compare_layout import CompareLayout, Spot
from salt_tui.measure.answer_pairs import AnsweredIn
from salt_tui.measure.two_runs import ComparedRuns, ReadRun, RunName, RunPair, read_pair
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import UnitRecord
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from scoring.confidence import HEADLINE_FUNCTION
from scoring.paired_runs import COMPARED, CONFIDENCE_METRICS, PairedMetric


@dataclass(frozen=True, slots=True)
class SpokenAtom:
    """What one run has at the index of the cursor.

    Attributes:
        unit: the atom; None where the answer has none there.
        confidence: by the function that is shown, None where it is undefined.
    """

    unit: UnitRecord | None
    confidence: float | None


class CompareState:
    """Two runs beside each other.

    Attributes:
        names: the runs, first and second.
        pair: what was read of them, None while nothing was.
        functions: the confidence functions that are known in both; looked up once, as that looks through all units.
        metric: which one the table shows.
        function: the confidence function of Brier, AUROC and ECE and of the cells.
        layout: of the answers.
        spot: the cursor, None without an answer.
        problem: why the runs cannot be compared, None where they can.
    """

    def __init__(self, names: tuple[RunName, RunName], metric: str = COMPARED[0]) -> None:
        self.names = names
        self.pair: RunPair | None = None
        self.functions: tuple[str, ...] = ()
        self.metric = metric
        self.function = HEADLINE_FUNCTION
        self.layout = CompareLayout((), 80)
        self.spot: Spot | None = None
        self.problem: str | None = None
        self._measured: dict[str, dict[str, PairedMetric]] = {}
        self._queries: dict[Path, Queries] = {}
        self._spoken: tuple[Spot, str, tuple[SpokenAtom, SpokenAtom]] | None = None

    @property
    def metrics(self) -> Mapping[str, PairedMetric]:
        """The metrics that were measured by ``function`` until now, by name."""
        return self._measured.get(self.function, {})

    def take_metric(self, function: str, metric: PairedMetric) -> None:
        """Keep what was measured by a function; precision and recall are the same by all."""
        self._measured.setdefault(function, {})[metric.name] = metric
        if metric.name not in CONFIDENCE_METRICS:
            for name in self.functions:
                self._measured.setdefault(name, {})[metric.name] = metric

    @property
    def waiting_for(self) -> str:
        """What is being done; empty when all is there."""
        if self.problem is not None:
            return ""
        if self.pair is None:
            return f"reading {self.names[0].run} and {self.names[1].run} …"
        missing = [name for name in COMPARED if name not in self.metrics]
        done = len(COMPARED) - len(missing)
        return f"comparing: {missing[0]}, {done + 1} of {len(COMPARED)} …" if missing else ""

    def take_pair(self, pair: RunPair) -> None:
        """Show two runs that were read."""
        self.pair = pair
        self.functions = pair.functions
        if self.function not in self.functions and self.functions:
            self.function = self.functions[0]
        self.problem = pair.too_few

    def lay_out(self, width: int) -> None:
        """Break the answers for a width, if they are not; the first time, go to the first flip."""
        if self.pair is None or (self.layout.pairs is self.pair.answers and self.layout.width == width):
            return
        self.layout = CompareLayout(self.pair.answers, width)
        if self.spot is None:
            first = self.layout.next_flip(None, 1)
            self.spot = first or (Spot(0, 0, 0) if self.pair.answers else None)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that both runs hold answers of."""
        return () if self.pair is None else tuple(dict.fromkeys(pair.task for pair in self.pair.answers))

    @property
    def task(self) -> str | None:
        """The task under the cursor."""
        return None if self.pair is None or self.spot is None else self.pair.answers[self.spot.pair].task

    @property
    def compared(self) -> ComparedRuns | None:
        """The whole comparison, as it is exported; None before all of it is measured."""
        if self.pair is None or any(name not in self.metrics for name in COMPARED):
            return None
        return self.pair.compared(self.function, {name: self.metrics[name] for name in COMPARED})

    def next_metric(self, step: int = 1) -> None:
        """Let the table show another metric."""
        self.metric = COMPARED[(COMPARED.index(self.metric) + step) % len(COMPARED)]

    def next_function(self, step: int = 1) -> bool:
        """Choose another function that both runs know; return whether there is one."""
        known = self.functions
        if len(known) < 2:
            return False
        place = known.index(self.function) if self.function in known else 0
        self.function = known[(place + step) % len(known)]
        return True

    def go_to_task(self, task: str) -> None:
        """Go to the first flip of a task, to its first answer where there is none."""
        if self.pair is None:
            return
        numbers = [number for number, pair in enumerate(self.pair.answers) if pair.task == task]
        changed = [number for number in numbers if self.pair.answers[number].is_changed]
        if numbers:
            side = 0 if self.spot is None else self.spot.side
            self.spot = self.layout.first_of((changed or numbers)[0], side)

    def next_task(self) -> None:
        """Go to the next task, after the last to the first."""
        tasks = self.tasks
        if self.task in tasks:
            self.go_to_task(tasks[(tasks.index(self.task) + 1) % len(tasks)])

    # --- one answer ---------------------------------------------------------------------------------------------

    def run_of(self, side: int) -> ReadRun | None:
        """Return one of the runs that were read."""
        return None if self.pair is None else (self.pair.first, self.pair.second)[side]

    def answer_at(self, spot: Spot) -> AnsweredIn | None:
        """Return the answer that holds an atom."""
        if self.pair is None:
            return None
        pair = self.pair.answers[spot.pair]
        return (pair.first, pair.second)[spot.side]

    def confidences(self, number: int, side: int) -> Sequence[float]:
        """Return the confidence of every atom of an answer by index, NaN where it is undefined."""
        run, answer = self.run_of(side), self.answer_at(Spot(number, side, 0))
        if run is None or answer is None or self.function not in run.columns.confidences:
            return ()
        column = run.columns.confidences[self.function]
        return [float(column[row]) if row >= 0 else float("nan") for row in answer.row_of.tolist()]

    def spoken(self) -> tuple[SpokenAtom, SpokenAtom] | None:
        """Return what both runs have at the cursor, its texts from the store; None without an answer."""
        spot = self.spot
        if spot is None or self.pair is None:
            return None
        if self._spoken is None or self._spoken[:2] != (spot, self.function):
            self._spoken = spot, self.function, (self._spoken_by(spot, 0), self._spoken_by(spot, 1))
        return self._spoken[2]

    def _spoken_by(self, spot: Spot, side: int) -> SpokenAtom:
        answer, run = self.answer_at(Spot(spot.pair, side, 0)), self.run_of(side)
        if answer is None or run is None or spot.atom >= answer.row_of.size or answer.row_of[spot.atom] < 0:
            return SpokenAtom(None, None)
        row = int(answer.row_of[spot.atom])
        values = run.columns.confidences.get(self.function)
        value = None if values is None else float(values[row])
        place = row - answer.rows.start
        unit = self._open(self.names[side].database).unit(answer.generation, "atom", place)
        return SpokenAtom(unit, value if value is not None and value == value else None)

    def _open(self, database: Path) -> Queries:
        if database not in self._queries:
            self._queries[database] = open_queries(database)
        return self._queries[database]

    def close(self) -> None:
        """Give the files back."""
        for queries in self._queries.values():
            queries.close()
        self._queries = {}


def read_both(names: tuple[RunName, RunName]) -> RunPair:
    """Read two runs with every function of their tokens.

    Raises:
        StoreError: no such file or run.
        UsageError: the same run twice.
    """
    return read_pair(*names, CONFIDENCE_COLUMNS)
