"""Signals that are functions of the stored tokens: computed when they are read, so every stored run has them."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from salt_tui.store.errors import StoreError, explain
from salt_tui.store.reader import Reader
from salt_tui.store.records import SignalKind, SignalRecord
from salt_tui.store.schema import COMPUTED_SIGNALS, ENTROPY_BOUND, TOKEN_SIGNALS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOKEN_SIGNAL_KINDS: tuple[SignalKind, ...] = ("atom", "line", "generation")
"""What they are about."""

TOO_FEW_ALTERNATIVES = "no second token is stored"
"""The reason where the engine gave fewer than two alternatives of a token."""

NOT_KNOWN = "the probability of a token is not known"
"""The reason where the engine lost a token."""

ALTERNATIVES = 20
"""That a full list has; the same as the engine's, of which the store knows nothing."""

_CHUNK = 50_000
"""Rows turned into arrays at a time: 1,000,000 at once would hold 15,000,000 Python objects."""

_NAME = "coalesce(token.id, CAST(token.bytes AS TEXT))"
_PER_TOKEN = {
    "min_probability": "log_probability",
    "first_token_probability": "log_probability",
    "mean_margin": "json_extract(alternatives, '$[0][1]'), json_extract(alternatives, '$[1][1]')",
    # Looked for only where it is not the first: nearly every token of a greedy answer is.
    "mean_rank": f"CASE json_extract(alternatives, '$[0][0]') WHEN {_NAME} THEN 1 ELSE 1 + coalesce("
    f"(SELECT key FROM json_each(alternatives) WHERE json_extract(value, '$[0]') = {_NAME}),"
    " nullif(json_array_length(alternatives), 0)) END",
    ENTROPY_BOUND: f"entropy_lower_bound(alternatives, {_NAME}, log_probability)",
}
"""SQL: what each needs to know of a token.  A token outside the stored list has the rank after the last of it."""

_COUNTED_ANSWERS = (
    "SELECT generation.id FROM problem JOIN generation ON generation.problem = problem.id AND generation.study IS NULL"
    " WHERE problem.run = ? AND generation.id = coalesce(?, generation.id)"
)


class TokenSignalQueries(Reader):
    """Signals of the tokens of a run's answers."""

    def _has_tokens(self, run: int) -> bool:
        """Tell whether any answer of a run has tokens; a text that was imported need not."""
        found = self._rows(f"SELECT EXISTS (SELECT 1 FROM token WHERE generation IN ({_COUNTED_ANSWERS}))", (run, None))
        return bool(found[0][0])

    def _signals_of_tokens(self, run: int) -> tuple[str, ...]:
        """Return the signals that the tokens of a run give."""
        return COMPUTED_SIGNALS if self._how_listed(run) is not None else TOKEN_SIGNALS

    def _how_listed(self, run: int) -> bool | None:
        """Tell whether the lists of a run hold each of the most probable tokens.

        True: they do.  False: a list that is shorter than it could be may lack tokens of equal text, as those of
        completions do, which are objects by text.  None: the whole vocabulary is known, nothing is, or the
        probabilities may be those after a sampler.
        """
        row = self._row(
            "SELECT statistics = 'top_k' AND json_extract(plan, '$.sent.before_sampling') IS 1,"
            " json_extract(plan, '$.sent.path') IS '/chat/completions' FROM run WHERE id = ?",
            (run,),
            f"run {run}",
        )
        return bool(row[1]) if row[0] else None

    def _token_signal(
        self, run: int, name: str, kind: SignalKind, answer: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a signal of the units of a run that have tokens, or of one answer's.

        Args:
            run: number of the run.
            name: one of `COMPUTED_SIGNALS`.
            kind: of the units.
            answer: its number; None for all.

        Returns:
            Generation and index, shape ``(n, 2)``, in this order, and the values, NaN where one is undefined.
        """
        import numpy as np

        # Where tokens may be lost, units that touch a loss have no confidence; elsewhere all with tokens have one.
        top_k = self._row("SELECT statistics FROM run WHERE id = ?", (run,), f"run {run}")[0] != "vocabulary"
        known = "token_start IS NOT NULL" + (" AND max_probability IS NOT NULL" if top_k else "")
        units = self._array(
            f'SELECT generation, "index", token_start, token_end FROM unit WHERE generation IN ({_COUNTED_ANSWERS})'
            f' AND kind = ? AND {known} ORDER BY generation, "index"',
            (run, answer, kind),
            4,
        )
        width = 2 if name == "mean_margin" else 1
        if name == ENTROPY_BOUND:
            bound = partial(_entropy_bound_of_row, whole=bool(self._how_listed(run)))
            self._connection.create_function(ENTROPY_BOUND, 3, bound, deterministic=True)
        tokens = self._array(
            f"SELECT generation, position, byte_end > byte_start, {_PER_TOKEN[name]} FROM token"
            f" WHERE generation IN ({_COUNTED_ANSWERS}) ORDER BY generation, position",
            (run, answer),
            3 + width,
        )
        if not len(units):
            return units[:, :2], np.empty(0)
        # A generation's tokens stand behind one another from position 0, so a place among all is found by its first.
        first = np.searchsorted(tokens[:, 0], units[:, 0])
        places = np.stack([first + units[:, 2], first + units[:, 3]], axis=1).astype(np.int64)
        last = np.minimum(places[:, 1], len(tokens)) - 1
        if not len(tokens) or not np.array_equal(tokens[last, :2], np.stack([units[:, 0], units[:, 3] - 1], axis=1)):
            raise StoreError(f"{self.path}: run {run} has units without their tokens; it is damaged")
        if name not in {"mean_rank", ENTROPY_BOUND} and np.any(tokens[:, 3:] > 0.0):
            raise StoreError(f"{self.path}: run {run} has a log-probability above 0; it is damaged")
        values = tokens[:, 3]
        if name == "mean_margin":
            values = np.exp(values) - np.exp(tokens[:, 4])
        elif name not in {"mean_rank", ENTROPY_BOUND}:
            values = np.exp(values)
        return units[:, :2], _reduce(name, values, tokens[:, 2] > 0, places.ravel())

    def _token_signal_records(
        self, run: int, name: str, kind: SignalKind, answer: int | None = None
    ) -> list[SignalRecord]:
        import numpy as np

        keys, values = self._token_signal(run, name, kind, answer)
        reason = TOO_FEW_ALTERNATIVES if name in {"mean_margin", "mean_rank"} else NOT_KNOWN
        return [
            SignalRecord(int(generation), kind, int(index), name, None, reason)
            if np.isnan(value)
            else SignalRecord(int(generation), kind, int(index), name, float(value))
            for (generation, index), value in zip(keys, values, strict=True)
        ]

    def _array(self, statement: str, parameters: tuple[Any, ...], width: int) -> NDArray[np.float64]:
        """Return all rows of a statement as one array of doubles, exact for integers below 2**53, NULL as NaN."""
        import numpy as np

        chunks = [np.empty((0, width))]
        try:
            cursor = self._connection.execute(statement, parameters)
            while rows := cursor.fetchmany(_CHUNK):
                chunks.append(np.array(rows, dtype=np.float64))
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        except (TypeError, ValueError) as error:
            raise StoreError(f"{self.path} holds something else where numbers belong; it is damaged") from error
        return np.concatenate(chunks)


def entropy_lower_bound(listed: Sequence[float], chosen: float | None, *, whole: bool) -> float:
    """Return a lower bound of the entropy of a distribution of which the most probable tokens are known, in nats.

    −Σ p ln p − r ln min(r, p_k) over the listed tokens and a chosen one outside the list; r is the probability that is
    left, and no token that has a part of it has more than the least probable one listed.

    Args:
        listed: log-probabilities of the most probable tokens.
        chosen: log-probability of the chosen token if it is not among them.
        whole: none of the most probable tokens is missing in the list; else nothing is said of the others but r.

    Returns:
        At least 0; the entropy itself where nothing is left.
    """
    known = [*listed, *([] if chosen is None else [chosen])]
    left = max(0.0, 1.0 - math.fsum(math.exp(log) for log in known))
    bound = -math.fsum(math.exp(log) * log for log in known)
    if left > 0.0:
        most = min(left, math.exp(min(listed))) if whole and listed else left
        bound -= left * math.log(most) if most > 0.0 else 0.0
    return max(0.0, bound)


def _entropy_bound_of_row(alternatives: str, name: str, log_probability: float | None, *, whole: bool) -> float | None:
    """Return `entropy_lower_bound` of a stored token; None of one that is not known."""
    if log_probability is None:
        return None
    pairs = json.loads(alternatives)
    outside = name not in {pair[0] for pair in pairs if isinstance(pair[0], str)}
    full = whole or len(pairs) >= ALTERNATIVES
    return entropy_lower_bound([pair[1] for pair in pairs], log_probability if outside else None, whole=full)


def _reduce(
    name: str, values: NDArray[np.float64], spoken: NDArray[np.bool_], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Reduce the tokens of each unit to its value.

    Args:
        name: one of `COMPUTED_SIGNALS`.
        values: per token.
        spoken: which tokens have bytes; the others belong to no unit.
        places: first token and the one after the last of each unit, one after the other; the first has bytes.
    """
    import numpy as np

    if name == "first_token_probability":
        return values[places[::2]]
    # ``reduceat`` needs every place to exist, and reduces from each place to the next; those between units are dropped.
    if name == "min_probability":
        lowest = np.append(np.where(spoken, values, np.inf), np.inf)
        return np.minimum.reduceat(lowest, places)[::2]
    totals = np.add.reduceat(np.append(np.where(spoken, values, 0.0), 0.0), places)[::2]
    counts = np.add.reduceat(np.append(spoken.astype(np.float64), 0.0), places)[::2]
    return totals / counts
