"""One stored answer, token by token: its text, its atoms, and what the model nearly said.  No drawing here."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from salt_tui.app.right_tokens import Candidate, RightToken, candidates, right_pieces, right_token, where_it_parts
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.records import ProblemRecord, UnitRecord
from salt_tui.store.results import EditedBranch, StoredToken
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from salt_tui.visible_text import visible
from scoring.signals import confidence_entry


@dataclass(frozen=True, slots=True)
class Letter:
    """One character of a reply as it is shown.

    Attributes:
        text: itself, or its escape where it is invisible.
        token: number of the token that its first byte belongs to.
        atom: number of the atom that it is a part of, None between atoms.
    """

    text: str
    token: int
    atom: int | None


@dataclass(frozen=True, slots=True)
class AtomSignal:
    """A signal of the atoms of an answer, from a study, from elsewhere, or computed from stored tokens.

    Attributes:
        name: what to call it.
        values: by index of the atom, None where it is undefined.
        ranks: by index, its place among the atoms of the task, 1 for the surest, and of how many; empty where the other
            answers were not looked at.
    """

    name: str
    values: Mapping[int, float | None]
    ranks: Mapping[int, tuple[int, int]]


class AnswerDocument:
    """A stored answer.

    Attributes:
        generation: its number in the store.
        problem: what was asked.
        status: how it ended, None while it is being written.
        tokens: in order.
        atoms: in order of index; missing ones have no text.
        prompt: the whole prompt, None where the engine gave none.
        signals: what else says how sure its atoms are.
        branch: what was edited, where it is a branch; None for an answer.
        reply: the bytes that were said.
        lines: the reply, line by line.
    """

    def __init__(
        self,
        generation: int,
        problem: ProblemRecord,
        status: str | None,
        tokens: Sequence[StoredToken],
        atoms: Sequence[UnitRecord],
        prompt: bytes | None,
        signals: Sequence[AtomSignal] = (),
        branch: EditedBranch | None = None,
    ) -> None:
        self.generation = generation
        self.problem = problem
        self.status = status
        self.tokens = tuple(tokens)
        self.atoms = tuple(atoms)
        self.prompt = prompt
        self.signals = tuple(signals)
        self.branch = branch
        self.reply = b"".join(token.piece for token in tokens)
        self.lines = self._letters()

    @property
    def answer(self) -> int:
        """Number of the answer that it is, or a branch of."""
        return self.generation if self.branch is None else self.branch.record.answer

    # --- the text -----------------------------------------------------------------------------------------------

    def _letters(self) -> tuple[tuple[Letter, ...], ...]:
        """Return the reply as lines of letters; bytes that are no text are escaped one by one."""
        ends: list[int] = []
        position = 0
        for stored in self.tokens:
            position += len(stored.piece)
            ends.append(position)
        spans = [(atom.byte_start, atom.byte_end, number) for number, atom in enumerate(self.atoms)]
        inside = sorted((start, end, number) for start, end, number in spans if start is not None and end is not None)
        lines: list[list[Letter]] = [[]]
        token = span = start = 0
        for character in self.reply.decode("utf-8", errors="surrogateescape"):
            while token + 1 < len(ends) and ends[token] <= start:
                token += 1
            while span < len(inside) and inside[span][1] <= start:
                span += 1
            atom = inside[span][2] if span < len(inside) and inside[span][0] <= start else None
            lines[-1].append(Letter("⏎" if character == "\n" else visible(character), token, atom))
            if character == "\n":
                lines.append([])
            start += len(character.encode("utf-8", errors="surrogateescape"))
        return tuple(tuple(line) for line in lines if line)

    def prompt_text(self) -> str:
        """Return the prompt with its control characters visible, one line for each of its lines."""
        return "not known" if self.prompt is None else raw_text(self.prompt)

    def reply_text(self) -> str:
        """Return the reply with its control characters visible, one line for each of its lines."""
        return raw_text(self.reply)

    def values_of(self, function: str) -> list[float | None]:
        """Return the value of every atom by a confidence function or a signal, None where it is undefined."""
        if function in CONFIDENCE_COLUMNS:
            column = CONFIDENCE_COLUMNS.index(function)
            return [atom.confidences[column] for atom in self.atoms]
        known = next((signal.values for signal in self.signals if signal.name == function), {})
        return [known.get(atom.index) for atom in self.atoms]

    # --- steps --------------------------------------------------------------------------------------------------

    def atom_of(self, token: int) -> int | None:
        """Return the atom that a token is a part of, None between atoms."""
        for number, atom in enumerate(self.atoms):
            if atom.token_start is None or atom.token_end is None:
                continue
            if atom.token_start <= token < atom.token_end:
                return number
        return None

    def first_token_of(self, atom: int) -> int | None:
        """Return the first token of an atom; None for one that was not said."""
        return self.atoms[atom].token_start

    def fault_of(self, atom: int) -> int | None:
        """Return the token of a wrong atom at which it parts from the right one, else its first; None without a token.

        It is the last one where the atom ends too early.
        """
        parting, end = where_it_parts(self.atoms[atom], self.tokens), self.atoms[atom].token_end
        return self.first_token_of(atom) if parting is None or end is None else min(parting.position, end - 1)

    def next_atom(self, token: int, step: int, *, wrong: bool = False) -> int | None:
        """Return the token at which the next (1) or previous (-1) atom begins, or the next that is not right."""
        here = self.atom_of(token)
        starts = [
            atom.token_start
            for number, atom in enumerate(self.atoms)
            if atom.token_start is not None and number != here and not (wrong and atom.status == "correct")
        ]
        if step > 0:
            return min((start for start in starts if start > token), default=None)
        return max((start for start in starts if start < token), default=None)

    def token_in_line(self, token: int, step: int) -> int:
        """Return the first token of the line before (-1) or after (1) the one of a token; the same at the ends."""
        firsts = [line[0].token for line in self.lines]
        here = max((number for number, first in enumerate(firsts) if first <= token), default=0)
        return firsts[min(max(0, here + step), len(firsts) - 1)] if firsts else token

    def find(self, words: str, after: int) -> int | None:
        """Return the first token behind another whose text begins an occurrence of some words, round the end."""
        text, tokens = "", []
        for line in self.lines:
            for letter in line:
                text += letter.text.casefold()
                tokens += [letter.token] * len(letter.text.casefold())
        wanted = words.casefold()
        found = [tokens[place] for place in range(len(text)) if wanted and text.startswith(wanted, place)]
        return next((token for token in found if token > after), found[0] if found else None)

    # --- what the model nearly said -----------------------------------------------------------------------------

    def candidates(self, number: int) -> tuple[Candidate, ...]:
        """Return the stored alternatives of a token, likeliest first, and behind them itself where it is not stored."""
        return candidates(self.tokens[number], self._right_pieces(number))

    def right_token(self, number: int) -> RightToken | None:
        """Return the likeliest token with which the right answer goes on; None where that cannot be said.

        That is so between atoms, behind a wrong beginning of an atom, and where nothing is right.
        """
        pieces = self._right_pieces(number)
        return None if pieces is None else right_token(self.tokens[number], pieces)

    def _right_pieces(self, number: int) -> tuple[bytes, bytes] | None:
        atom = self.atom_of(number)
        if atom is None:
            # Behind an atom that ended too early stands a token in place of its rest.
            ended = (unit for unit in self.atoms if unit.token_end == number and unit.status == "wrong")
            unit = next(ended, None)
            pieces = None if unit is None else right_pieces(unit, self.tokens, number)
            return pieces if pieces is not None and pieces[1] else None
        return right_pieces(self.atoms[atom], self.tokens, number)


def raw_text(text: bytes) -> str:
    """Return bytes as visible text that keeps its lines, each line feed shown at its end."""
    lines = text.decode("utf-8", errors="backslashreplace").split("\n")
    return "\n".join([*(f"{visible(line)}⏎" for line in lines[:-1]), visible(lines[-1])])


def load_answer(database: Path, run: int, generation: int, of_task: Set[int]) -> AnswerDocument:
    """Read an answer.

    Args:
        database: the file.
        run: the run of the answer.
        generation: number of the answer.
        of_task: numbers of the answers of its task, among whose atoms the signals are ranked.

    Raises:
        StoreError: there is no such answer, or it cannot be read.
    """
    with open_queries(database) as queries, queries.snapshot():
        stored, branch = queries.answer(generation), queries.find_branch(generation)
        return AnswerDocument(
            generation,
            stored.problem,
            stored.answer_status,
            queries.tokens(generation),
            queries.units(generation, "atom"),
            queries.prompt_bytes(generation),
            _signals(queries, run, generation, of_task) if branch is None else (),
            branch,
        )


def _signals(queries: Queries, run: int, generation: int, of_task: Set[int]) -> list[AtomSignal]:
    found = []
    for signal in queries.signal_names(run):
        if "atom" not in signal.kinds:
            continue
        # Those of tokens are computed when they are read: of one answer at once, of all of them in seconds.
        wanted = generation if signal.is_of_tokens else None
        rows = queries.signals(run, signal.shown, "atom", wanted)
        values = {row.index: row.value for row in rows if row.generation == generation}
        lower = (signal.shown,) if signal.lower_is_confident else ()
        sign = 1.0 if confidence_entry(signal.shown, lower).higher_is_confident else -1.0
        ordered = sorted(sign * row.value for row in rows if row.value is not None and row.generation in of_task)
        ranks = {
            index: (1 + len(ordered) - bisect_right(ordered, sign * value), len(ordered))
            for index, value in values.items()
            if value is not None and wanted is None
        }
        found.append(AtomSignal(signal.shown, values, ranks))
    return found
