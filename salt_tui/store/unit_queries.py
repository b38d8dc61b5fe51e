"""The units of a run as arrays, for measuring, and the atoms that a person looks at first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from salt_tui.store.records import SignalKind, UnitKind
from salt_tui.store.results import SignalName, UnitColumns, WrongAtom
from salt_tui.store.rows import MOST_UNITS
from salt_tui.store.schema import CONFIDENCE_COLUMNS, LEFT_OUT_STATUSES, STATUS_CODE, UNDEFINED_BY_STATISTICS
from salt_tui.store.signal_queries import SignalQueries
from salt_tui.store.stored_values import Place
from salt_tui.visible_text import visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COUNTS = f"generation.answer_status NOT IN ({', '.join(map(repr, LEFT_OUT_STATUSES))})"
_JOIN_ANSWER = "JOIN generation ON generation.problem = problem.id AND generation.study IS NULL"


class UnitQueries(SignalQueries):
    """Units of answers, many at a time."""

    def unit_columns(self, run: int, kind: UnitKind, functions: Sequence[str] = CONFIDENCE_COLUMNS) -> UnitColumns:
        """Return the units of a run as arrays, of finished answers that count.

        Args:
            run: its number.
            kind: ``atom``, ``line`` or ``generation``.
            functions: the confidence functions wanted: columns of ``unit`` or signals, a signal as `find_signal`
                names it.  Fewer are faster.

        Raises:
            StoreError: an unknown function; the message says which there are.
        """
        import numpy as np

        signals = {name: self.find_signal(run, name) for name in functions if name not in CONFIDENCE_COLUMNS}
        answers = self._rows(
            "SELECT problem.task, problem.position, generation.id FROM problem"
            f" {_JOIN_ANSWER} WHERE problem.run = ? AND {_COUNTS} ORDER BY problem.id",
            (run,),
        )
        names = list(dict.fromkeys(row[0] for row in answers))
        place = np.array([(row[2], names.index(row[0]), row[1]) for row in answers], dtype=np.int64).reshape(-1, 3)
        place = place[np.argsort(place[:, 0])]
        stored = [name for name in functions if name not in signals]
        columns = ["generation", '"index"', "coalesce(line, -1)", STATUS_CODE, *stored]
        statement = (
            f"SELECT {', '.join(columns)} FROM unit WHERE kind = ? AND generation IN (SELECT value FROM json_each(?))"
            ' ORDER BY generation, "index"'
        )
        table = self._array(statement, (kind, json.dumps(place[:, 0].tolist())), len(columns))
        place_of_run = self._place(f"run {run}")
        if np.isnan(table[:, 3]).any():
            raise place_of_run.foreign(f"status of a unit of kind {kind}", "no status that there is")
        if (table[:, 1] > MOST_UNITS).any():
            raise place_of_run.foreign(f"index of a unit of kind {kind}", int(table[:, 1].max()))
        for column, name in enumerate(stored, start=4):
            _refuse_infinite(place_of_run, name, table[:, column])
        whole = table[:, :4].astype(np.int64)
        answer = np.searchsorted(place[:, 0], whole[:, 0])
        values = {name: table[:, 4 + column].copy() for column, name in enumerate(stored)}
        for name, signal in signals.items():
            values[name] = self._signal_values(run, signal, kind, whole[:, 0], whole[:, 1])
        statistics = self._row("SELECT statistics FROM run WHERE id = ?", (run,), f"run {run}")[0]
        reasons = UNDEFINED_BY_STATISTICS.get(statistics, {})
        return UnitColumns(
            kind=kind,
            task_names=tuple(map(visible, names)),
            task=place[answer, 1],
            generation=whole[:, 0],
            position=place[answer, 2],
            index=whole[:, 1],
            line=whole[:, 2],
            status=whole[:, 3],
            confidences={name: values[name] for name in functions},
            lower_is_confident=frozenset(name for name, signal in signals.items() if signal.lower_is_confident),
            undefined={name: reason for name, reason in reasons.items() if name in functions},
        )

    def _signal_values(
        self, run: int, signal: SignalName, kind: UnitKind, generation: NDArray[np.int64], index: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return a signal for units in order of generation and index; NaN where it is undefined or was not asked."""
        import numpy as np

        if signal.is_of_tokens:
            keys, of_units = self._token_signal(run, signal.name, kind)
            table = np.column_stack([keys, of_units])
        else:
            table = self._stored_signal(run, signal, kind)
        found = table[:, :2].astype(np.int64)
        span = 1 + max(index.max(initial=0), found[:, 1].max(initial=0))
        wanted, known = generation * span + index, found[:, 0] * span + found[:, 1]
        if not len(known):
            return np.full(len(wanted), np.nan)
        nearest = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[nearest] == wanted, table[nearest, 2], np.nan)

    def _stored_signal(self, run: int, signal: SignalName, kind: UnitKind) -> NDArray[np.float64]:
        """Return generation, index and value of a signal, shape ``(n, 3)``, in order; NaN where it is undefined."""
        table = self._array(
            'SELECT generation, "index", value FROM signal WHERE run = ? AND coalesce(study, 0) = ? AND name = ?'
            ' AND kind = ? ORDER BY generation, "index"',
            (run, signal.work.study or 0, signal.name, kind),
            3,
        )
        _refuse_infinite(self._place(f"run {run}"), f"signal {signal.shown}", table[:, 2])
        return table

    def places(self, run: int, kind: SignalKind) -> NDArray[np.int64]:
        """Return what of a kind the answers of a run hold, finished or not.

        Returns:
            Generation, index, and whether it is missing (0 or 1), shape ``(n, 3)``, ordered by generation and index.
        """
        import numpy as np

        answers = f"SELECT generation.id FROM problem {_JOIN_ANSWER} WHERE problem.run = ?"
        columns, table, condition = "generation, \"index\", status = 'missing'", "unit", "AND kind = ?"
        if kind == "token":
            columns, table, condition = "generation, position, 0", "token", "AND 'token' = ?"
        statement = f"SELECT {columns} FROM {table} WHERE generation IN ({answers}) {condition} ORDER BY 1, 2"
        return self._array(statement, (run, kind), 3).astype(np.int64)

    def atom_rows(self, run: int) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Return the columns of ``atom_view`` and its rows for a run, read while they are consumed."""
        return self._stream('SELECT * FROM atom_view WHERE run = ? ORDER BY generation, "index"', (run,))

    def confidently_wrong(self, run: int, limit: int, task: str | None = None) -> list[WrongAtom]:
        """Return the wrong and redundant atoms that the model was surest of, by ``max_probability``, surest first."""
        rows = self._rows(
            "WITH surest AS ("
            ' SELECT problem.task, problem.position, unit.generation, unit."index", unit.max_probability'
            f" FROM problem {_JOIN_ANSWER}"
            " JOIN unit INDEXED BY unit_atom_status ON unit.generation = generation.id AND unit.kind = 'atom'"
            f" AND unit.status IN ('wrong', 'redundant') WHERE problem.run = ? AND {_COUNTS}"
            " AND problem.task = coalesce(?, problem.task) AND unit.max_probability IS NOT NULL"
            ' ORDER BY unit.max_probability DESC, unit.generation, unit."index" LIMIT ?)'
            ' SELECT surest.generation, surest.task, surest.position, unit."index", line, text, reference, status,'
            " unit.max_probability FROM surest JOIN unit ON unit.generation = surest.generation"
            ' AND unit.kind = \'atom\' AND unit."index" = surest."index"'
            ' ORDER BY unit.max_probability DESC, unit.generation, unit."index"',
            (run, task, limit),
        )
        return [WrongAtom(*row) for row in rows]


def _refuse_infinite(place: Place, name: str, values: NDArray[np.float64]) -> None:
    import numpy as np

    if np.isinf(values).any():
        raise place.foreign(name, "infinite")
