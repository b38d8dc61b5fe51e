"""Questions about generations: answers, what studies generated, their tokens and units."""

from __future__ import annotations

import json
import sys

from salt_tui.store.errors import StoreError
from salt_tui.store.reader import Reader
from salt_tui.store.records import Role, TokenRecord, UnitKind, UnitRecord, Work
from salt_tui.store.results import StoredAnswer, StoredGeneration, StoredToken
from salt_tui.store.rows import (
    PROBLEM_FIELDS,
    TOKEN_COLUMNS,
    UNIT_COLUMNS,
    problem_record,
    token_record,
    unit_record,
)

_PROBLEM_COLUMNS = ", ".join(f"problem.{name}" for name in PROBLEM_FIELDS)


class GenerationQueries(Reader):
    """Generations, one or all of a run or study."""

    def answers(self, run: int) -> list[StoredAnswer]:
        """Return the answers of a run, those not begun included, in the order of the plan."""
        return self._answers("problem.run = ? ORDER BY problem.id", run)

    def answer(self, generation: int) -> StoredAnswer:
        """Return one answer, also a branch or sample that a study generated."""
        found = self._answers("generation.id = ?", generation, "TRUE")
        if not found:
            raise StoreError(f"there is no answer {generation} in {self.path}")
        return found[0]

    def _answers(self, condition: str, parameter: int, among: str = "generation.study IS NULL") -> list[StoredAnswer]:
        rows = self._rows(
            "SELECT problem.id, generation.id, attempt, revision, json_array_length(prompt_tokens), preamble,"
            " (SELECT count(*) FROM token WHERE token.generation = generation.id),"
            " reply, stop_reason, extraction, answer_status, error, prompt_seconds, decode_seconds,"
            f" {_PROBLEM_COLUMNS} FROM problem"
            f" LEFT JOIN generation ON generation.problem = problem.id AND {among} WHERE {condition}",
            (parameter,),
        )
        return [
            StoredAnswer(row[0], problem_record(row[14:], self._place(f"problem {row[0]}")), *row[1:14]) for row in rows
        ]

    def generations(self, work: Work, role: Role | None = None) -> list[StoredGeneration]:
        """Return the generations of a run or study that have begun, of one role or of all.

        They are ordered by problem, in the order of the plan, then by parent and number.
        """
        rows = self._rows(
            "SELECT generation.id, problem.id, problem.task, problem.position, role, parent, number, attempt, revision,"
            " preamble, reply, stop_reason, extraction, answer_status, error, prompt_seconds, decode_seconds"
            " FROM problem JOIN generation ON generation.problem = problem.id"
            " WHERE problem.run = ? AND study IS ? AND role = coalesce(?, role) ORDER BY problem.id, parent, number",
            (work.run, work.study, role),
        )
        return [StoredGeneration(*row) for row in rows]

    def token_count(self, run: int) -> int:
        """Return how many tokens are stored of a run's own answers."""
        rows = self._rows(
            "SELECT count(*) FROM problem JOIN generation ON generation.problem = problem.id AND study IS NULL"
            " JOIN token ON token.generation = generation.id WHERE problem.run = ?",
            (run,),
        )
        return int(rows[0][0])

    def answers_that_say(self, run: int, words: str) -> frozenset[int]:
        """Return the generations of a run's answers whose reply or problem holds some words in any ASCII case."""
        rows = self._rows(
            "SELECT generation.id FROM generation JOIN problem ON problem.id = generation.problem"
            " WHERE problem.run = ? AND study IS NULL"
            " AND (instr(lower(CAST(reply AS TEXT)), lower(?)) > 0 OR instr(lower(problem.text), lower(?)) > 0)",
            (run, words, words),
        )
        return frozenset(row[0] for row in rows)

    def reply(self, generation: int) -> bytes | None:
        """Return the bytes of a reply; None until it is finished."""
        row = self._row("SELECT reply FROM generation WHERE id = ?", (generation,), f"generation {generation}")
        reply: bytes | None = row[0]
        return reply

    def prompt(self, generation: int) -> tuple[int, ...] | None:
        """Return the token ids of a prompt; None where the engine gave none."""
        what = f"generation {generation}"
        row = self._row("SELECT prompt_tokens FROM generation WHERE id = ?", (generation,), what)
        if row[0] is None:
            return None
        return self._place(what).read("prompt_tokens", row[0], _token_ids)

    def vocabulary(self, run: int) -> tuple[bytes, ...]:
        """Return the bytes of each token id of a run's model, in order of id; empty where the engine gave none."""
        rows = self._rows(
            "SELECT bytes FROM vocabulary WHERE model = (SELECT model FROM run WHERE id = ?) ORDER BY id", (run,)
        )
        return tuple(row[0] for row in rows)

    def units(self, generation: int, kind: UnitKind | None = None) -> list[UnitRecord]:
        """Return the units of a generation, of one kind or of all, ordered by kind and index."""
        rows = self._rows(
            f'SELECT {UNIT_COLUMNS} FROM unit WHERE generation = ? AND kind = coalesce(?, kind) ORDER BY kind, "index"',
            (generation, kind),
        )
        place = self._place(f"generation {generation}")
        return [unit_record(row, place) for row in rows]

    def unit(self, generation: int, kind: UnitKind, place: int) -> UnitRecord | None:
        """Return the unit at a place, from 0, among those of a kind in order of index; None past the last."""
        rows = self._rows(
            f'SELECT {UNIT_COLUMNS} FROM unit WHERE generation = ? AND kind = ? ORDER BY "index" LIMIT 1 OFFSET ?',
            (generation, kind, place),
        )
        found = self._place(f"generation {generation}")
        return next((unit_record(row, found) for row in rows), None)

    def tokens(self, generation: int, within: range | None = None) -> list[StoredToken]:
        """Return the tokens of a generation with their bytes, in order.

        Args:
            generation: its number.
            within: the only positions that are wanted; None for all.
        """
        first, last = (0, sys.maxsize) if within is None else (within.start, within.stop - 1)
        place = self._place(f"generation {generation}")
        records = [
            token_record(row, place)
            for row in self._rows(
                f"SELECT {TOKEN_COLUMNS} FROM token WHERE generation = ? AND position BETWEEN ? AND ?"
                " ORDER BY position",
                (generation, first, last),
            )
        ]
        names = {record.id for record in records}.union(*(record.alternatives for record in records))
        pieces = self._pieces(generation, {name for name in names if isinstance(name, int)})
        return [_stored_token(record, pieces) for record in records]

    def token_ids(self, generation: int) -> tuple[int, ...]:
        """Return the ids of the tokens of a generation, in order; empty where the engine gave none for some."""
        rows = self._rows("SELECT id FROM token WHERE generation = ? ORDER BY position", (generation,))
        return () if any(row[0] is None for row in rows) else tuple(row[0] for row in rows)

    def prompt_bytes(self, generation: int) -> bytes | None:
        """Return the text of a prompt, the template's marks spelled out; None where the engine gave no ids."""
        prompt = self.prompt(generation)
        if prompt is None:
            return None
        pieces = self._pieces(generation, set(prompt))
        return b"".join(pieces[token] for token in prompt)

    def _pieces(self, generation: int, ids: set[int]) -> dict[int, bytes]:
        """Return the bytes of token ids by the vocabulary of the model that computed a generation."""
        pieces: dict[int, bytes] = dict(
            self._rows(
                "SELECT id, bytes FROM vocabulary WHERE id IN (SELECT value FROM json_each(?))"
                " AND model = (SELECT coalesce(study.model, run.model) FROM generation"
                " JOIN problem ON problem.id = generation.problem JOIN run ON run.id = problem.run"
                " LEFT JOIN study ON study.id = generation.study WHERE generation.id = ?)",
                (json.dumps(sorted(ids)), generation),
            )
        )
        unknown = ids - set(pieces)
        if unknown:
            raise StoreError(
                f"{self.path}: token {min(unknown)} of generation {generation} is not in the vocabulary of its model"
            )
        return pieces


def _stored_token(record: TokenRecord, pieces: dict[int, bytes]) -> StoredToken:
    piece = record.piece
    if piece is None:
        piece = b"" if record.id is None else pieces[record.id]
    return StoredToken(
        record, piece, tuple(name if isinstance(name, bytes) else pieces[name] for name in record.alternatives)
    )


def _token_ids(text: str) -> tuple[int, ...]:
    return tuple(int(token) for token in json.loads(text))
