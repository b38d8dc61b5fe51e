"""Tokens: one row each, in the order of the plan; positions and indices count from 0, as in the database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from salt_tui.exports.tables import Column, Table
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work
from salt_tui.store.results import StoredToken

COLUMNS = (
    Column("run", "integer"),
    Column("study", "text"),
    Column("task", "text"),
    Column("position", "integer"),
    Column("role", "text"),
    Column("generation", "integer"),
    Column("token", "integer"),
    Column("id", "integer"),
    Column("text", "text"),
    Column("bytes", "bytes"),
    Column("byte_start", "integer"),
    Column("byte_end", "integer"),
    Column("log_probability", "real"),
    Column("entropy", "real"),
    Column("forced", "integer"),
    Column("alternatives", "text"),
)


def token_table(queries: Queries, work: Work) -> Table:
    """Return the tokens of a run's answers, or of all that a study generated.

    ``text`` holds U+FFFD where a token is no whole character, ``bytes`` what it really is.  ``alternatives`` is a JSON
    array of text and log-probability, likeliest first.
    """
    return Table(COLUMNS, _rows(queries, work))


def _rows(queries: Queries, work: Work) -> Iterator[Sequence[object]]:
    name = None if work.study is None else str(work)
    for generation in queries.generations(work):
        for token in queries.tokens(generation.id):
            record = token.record
            yield (
                work.run,
                name,
                generation.task,
                generation.position,
                generation.role,
                generation.id,
                record.position,
                record.id,
                token.piece.decode(errors="replace"),
                token.piece,
                record.start,
                record.end,
                record.log_probability,
                record.entropy,
                int(record.forced),
                _alternatives(token),
            )


def _alternatives(token: StoredToken) -> str:
    pairs = zip(token.alternative_pieces, token.record.alternative_log_probabilities, strict=True)
    return json.dumps([[piece.decode(errors="replace"), value] for piece, value in pairs], ensure_ascii=False)
