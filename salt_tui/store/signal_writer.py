"""Writing what is said about answers: signals, activations and the design of interventions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from salt_tui.store.errors import StoreError
from salt_tui.store.records import ActivationRecord, InterventionRecord, SignalRecord, Work
from salt_tui.store.rows import activation_row, intervention_row, signal_row
from salt_tui.store.schema import COMPUTED_SIGNALS, CONFIDENCE_COLUMNS
from salt_tui.store.writer import Writer, now_text

# A study that was interrupted while these were written says them again.
INTO_SIGNAL = 'INTO signal (run, study, generation, kind, "index", name, value, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
_REPLACE_SIGNAL = f"INSERT OR REPLACE {INTO_SIGNAL}"
_INSERT_ACTIVATION = (
    'INSERT OR REPLACE INTO activation (study, generation, kind, "index", layer, positions, scale, vector)'
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_WITHOUT_PLACE = (
    'SELECT generation, kind, "index" FROM signal WHERE run = :run AND study IS NULL AND name = :name AND NOT EXISTS ('
    "SELECT 1 FROM generation JOIN problem ON problem.id = generation.problem"
    " LEFT JOIN unit ON unit.generation = generation.id AND unit.kind = signal.kind"
    ' AND unit."index" = signal."index"'
    " LEFT JOIN token ON signal.kind = 'token' AND token.generation = generation.id"
    ' AND token.position = signal."index"'
    " WHERE generation.id = signal.generation AND generation.study IS NULL AND problem.run = :run"
    " AND coalesce(unit.generation, token.generation) IS NOT NULL) LIMIT 1"
)
_INSERT_INTERVENTION = (
    "INSERT OR REPLACE INTO intervention (generation, study, answer, target, variant, direction, edits,"
    " treatment_global, treatment_local, length, correct_before, correct_before_local, outcome,"
    " log_probability_reference, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SignalWriter(Writer):
    """Signals, activations and interventions."""

    def add_signals(self, work: Work, signals: Sequence[SignalRecord]) -> None:
        """Add signals to a run or study.

        Those of a claimed study or run are buffered and written with its next rows; one that is there already is
        replaced.  Those of a run that nobody computes (saved probes, scores from elsewhere) are written at once; no
        name may be there already.

        Raises:
            StoreError: a value that is not finite or a signal without value and reason, the study is not held, an
                answer belongs to another run, or the run has such a signal or it is one of `COMPUTED_SIGNALS`;
                nothing of the call is kept.
        """
        rows = [signal_row(work, signal) for signal in signals]
        if work.study is not None or work in self._claimed:
            self._held(work)
            self._refuse_foreign_answers(work, {signal.generation for signal in signals})
            self._buffer(work, _REPLACE_SIGNAL, rows)
            return
        names = sorted({signal.name for signal in signals})
        taken = [name for name in names if name in COMPUTED_SIGNALS]
        if taken:
            raise StoreError(f"{taken[0]!r} is computed from the tokens of an answer; choose another name")
        with self._transaction() as connection:
            self._refuse_missing_or_live(work)
            self._refuse_foreign_answers(work, {signal.generation for signal in signals})
            for name in names:
                known = connection.execute(
                    "SELECT 1 FROM signal WHERE run = ? AND coalesce(study, 0) = 0 AND name = ? LIMIT 1",
                    (work.run, name),
                ).fetchone()
                if known is not None:
                    raise StoreError(f"{work.title} has a signal {name!r} already; remove that or choose another name")
            connection.executemany(f"INSERT {INTO_SIGNAL}", rows)

    def add_foreign_signal(
        self, run: int, name: str, signals: Iterable[SignalRecord], *, lower_is_confident: bool
    ) -> int:
        """Add scores that another program gave to the answers of a run, all of them or none.

        Args:
            run: that nobody is computing.
            name: of the signal, as all records have it.
            signals: are read while they are written, so they need not fit into memory.
            lower_is_confident: the direction.

        Returns:
            How many there were.

        Raises:
            StoreError: as `add_signals`, a study of the run has such a signal, or a score is about something that the
                answers of the run do not hold.
        """
        if name in COMPUTED_SIGNALS or name in CONFIDENCE_COLUMNS:
            raise StoreError(f"{name!r} is computed from the tokens of an answer; choose another name")
        work = Work(run)
        with self._transaction() as connection:
            self._refuse_missing_or_live(work)
            known = connection.execute(
                "SELECT study.number FROM signal LEFT JOIN study ON study.id = signal.study"
                " WHERE signal.run = ? AND signal.name = ? AND coalesce(study.state, '') <> 'deleted' LIMIT 1",
                (run, name),
            ).fetchone()
            if known is not None:
                giver = work.title if known[0] is None else f"study {run}.{known[0]}"
                raise StoreError(f"{giver} has a signal {name!r} already; remove that or choose another name")
            connection.execute(
                "INSERT OR REPLACE INTO foreign_signal (run, name, lower_is_confident, added_at) VALUES (?, ?, ?, ?)",
                (run, name, int(lower_is_confident), now_text()),
            )
            rows = (signal_row(work, signal) for signal in signals)
            added = connection.executemany(f"INSERT {INTO_SIGNAL}", rows).rowcount
            strange = connection.execute(_WITHOUT_PLACE, {"run": run, "name": name}).fetchone()
            if strange is not None:
                raise StoreError(f"answer {strange[0]} of {work.title} has no {strange[1]} {strange[2]} any more")
        return max(0, added)

    def remove_signals(self, run: int, name: str) -> None:
        """Remove a run's own signals of a name; those of studies go with their study.

        Raises:
            StoreError: no such run, another process is computing it, or it has no such signal.
        """
        with self._transaction() as connection:
            if Work(run) not in self._claimed:
                self._refuse_missing_or_live(Work(run))
            removed = connection.execute(
                "DELETE FROM signal WHERE run = ? AND coalesce(study, 0) = 0 AND name = ?", (run, name)
            ).rowcount
            if removed == 0:
                raise StoreError(f"run {run} in {self.path} has no signal {name!r} of its own")
            connection.execute("DELETE FROM foreign_signal WHERE run = ? AND name = ?", (run, name))

    def add_activations(self, work: Work, activations: Sequence[ActivationRecord]) -> None:
        """Buffer activations of a claimed study; one that is there already is replaced.

        Raises:
            StoreError: a value that is not finite, the study is not held, or an answer belongs to another run; nothing
                of the call is buffered.
        """
        study = self._held_study(work)
        rows = [activation_row(study, activation) for activation in activations]
        self._refuse_foreign_answers(work, {activation.generation for activation in activations})
        self._buffer(work, _INSERT_ACTIVATION, rows)

    def add_interventions(self, work: Work, branches: Sequence[InterventionRecord]) -> None:
        """Buffer the design of branches of a claimed study; one that is there already is replaced.

        Raises:
            StoreError: a value that is not finite, or the study is not held; nothing of the call is buffered.
        """
        study = self._held_study(work)
        self._buffer(work, _INSERT_INTERVENTION, [intervention_row(study, branch) for branch in branches])

    def _refuse_foreign_answers(self, work: Work, generations: set[int]) -> None:
        found = self._rows(
            "SELECT count(*) FROM generation JOIN problem ON problem.id = generation.problem"
            " WHERE generation.id IN (SELECT value FROM json_each(?)) AND problem.run = ?",
            (json.dumps(sorted(generations)), work.run),
        )
        if found[0][0] != len(generations):
            raise StoreError(f"a signal or activation is of a generation that is not of run {work.run} in {self.path}")

    def _held_study(self, work: Work) -> int:
        self._held(work)
        if work.study is None:
            raise StoreError(f"{work.title} is no study")
        return work.study
