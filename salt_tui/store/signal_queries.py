"""Questions about what is said about answers: signals and activations."""

from __future__ import annotations

from collections.abc import Iterator

from salt_tui.store.errors import StoreError
from salt_tui.store.records import ActivationRecord, SignalKind, SignalRecord, Work
from salt_tui.store.results import SignalName
from salt_tui.store.rows import activation_vector
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from salt_tui.store.token_signals import TOKEN_SIGNAL_KINDS, TokenSignalQueries
from salt_tui.visible_text import visible


class SignalQueries(TokenSignalQueries):
    """Signals and activations of a run and its studies."""

    def signal_names(self, run: int) -> list[SignalName]:
        """Return which signals there are about the answers of a run: of its tokens, its own, then by study and name."""
        rows = self._rows(
            "SELECT DISTINCT signal.study, study.number, signal.name, signal.kind, coalesce(lower_is_confident, 0)"
            " FROM signal LEFT JOIN study ON study.id = signal.study LEFT JOIN foreign_signal"
            " ON signal.study IS NULL AND foreign_signal.run = signal.run AND foreign_signal.name = signal.name"
            " WHERE signal.run = ? AND coalesce(study.state, '') <> 'deleted'"
            " ORDER BY study.number, signal.name, signal.kind",
            (run,),
        )
        kinds: dict[tuple[Work, str], list[SignalKind]] = {}
        if self._has_tokens(run):
            kinds = {(Work(run), name): list(TOKEN_SIGNAL_KINDS) for name in self._signals_of_tokens(run)}
        lower = set()
        for study, number, name, kind, lower_is_confident in rows:
            kinds.setdefault((Work(run, study, number), name), []).append(kind)
            if lower_is_confident:
                lower.add((Work(run, study, number), name))
        given = [name for _, name in kinds]
        return [
            SignalName(
                name=name,
                work=work,
                kinds=tuple(found),
                shown=visible(name if given.count(name) == 1 and name not in CONFIDENCE_COLUMNS else f"{name}@{work}"),
                lower_is_confident=(work, name) in lower,
            )
            for (work, name), found in kinds.items()
        ]

    def find_signal(self, run: int, name: str) -> SignalName:
        """Return the signal called ``name``, ``name@RUN`` or ``name@RUN.K``.

        Raises:
            StoreError: there is none, or several have that name; the message says which there are.
        """
        known = self.signal_names(run)
        for signal in known:
            if name in (signal.shown, f"{signal.name}@{signal.work}"):
                return signal
        listed = ", ".join((*CONFIDENCE_COLUMNS, *(signal.shown for signal in known)))
        raise StoreError(f"unknown confidence function {name!r}; valid: {listed}")

    def signals(self, run: int, name: str, kind: SignalKind, answer: int | None = None) -> list[SignalRecord]:
        """Return a signal of a run as rows, ordered by generation and index; `find_signal` says which names there are.

        Args:
            run: number of the run.
            name: of the signal.
            kind: of what it is about.
            answer: number of the only answer that is wanted; None for all.

        Raises:
            StoreError: as `find_signal`.
        """
        signal = self.find_signal(run, name)
        if signal.is_of_tokens:
            return self._token_signal_records(run, signal.name, kind, answer)
        rows = self._rows(
            'SELECT generation, kind, "index", name, value, reason FROM signal WHERE run = ? AND coalesce(study, 0) = ?'
            ' AND name = ? AND kind = ? AND generation = coalesce(?, generation) ORDER BY generation, "index"',
            (run, signal.work.study or 0, signal.name, kind, answer),
        )
        place = self._place(f"run {run}")
        for row in rows:
            place.number(f"signal {signal.shown} of generation {row[0]}", row[4])
        return [SignalRecord(*row) for row in rows]

    def letters(self, run: int) -> Iterator[tuple[int, str, float | None, str | None]]:
        """Read what the answers of a run gave to each letter of a choice.

        Yields:
            Generation, letter, its share of the probability of all letters (None where it is undefined) and why it is.
        """
        _, rows = self._stream(
            "SELECT generation, substr(name, 8), value, reason FROM signal WHERE run = ? AND study IS NULL"
            " AND kind = 'token' AND name GLOB 'choice_[A-Z]' ORDER BY generation, name",
            (run,),
        )
        place = self._place(f"run {run}")
        for generation, letter, value, reason in rows:
            if value is not None and not 0.0 <= value <= 1.0:
                raise place.foreign(f"choice_{letter} of generation {generation}", value)
            yield generation, letter, value, reason

    def activations(
        self, study: Work, kind: SignalKind, layer: int, positions: str = "producing"
    ) -> Iterator[ActivationRecord]:
        """Read the activations of one layer, ordered by generation and index, one at a time."""
        _, rows = self._stream(
            'SELECT generation, kind, "index", layer, positions, scale, vector FROM activation'
            ' WHERE study = ? AND kind = ? AND layer = ? AND positions = ? ORDER BY generation, "index"',
            (study.study, kind, layer, positions),
        )
        for row in rows:
            yield ActivationRecord(*(*row[:5], activation_vector(row[5], row[6])))

    def activation_layers(self, study: Work) -> list[int]:
        """Return the layers that a study holds activations of, in order."""
        return [
            row[0]
            for row in self._rows(
                "SELECT DISTINCT layer FROM activation WHERE study = ? ORDER BY layer", (study.study,)
            )
        ]
