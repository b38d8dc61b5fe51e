"""Lets the atoms of a stored run arrive again on a map of their own, one answer after the other.  No drawing here."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from salt_tui.app.answer_cells import KINDS, AnswerCells
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.token_player import TokenPlayer


class RunPlayer:
    """Fills a map with the atoms that have arrived again.

    Attributes:
        clock: how many atoms have arrived, and whether more do.
        map: holds them; an answer of which only a part has arrived is shown as being written.

    Args:
        source: the map of the whole run.
    """

    def __init__(self, source: AtomMap) -> None:
        self._source = source
        self._ends = list(accumulate(len(answer.units["atom"]) for answer in source.answers))
        self.clock = TokenPlayer(self._ends[-1] if self._ends else 0)
        self._shown = 0
        self.map = self._empty()

    def _empty(self) -> AtomMap:
        played = AtomMap()
        played.function, played.width, played.kind = self._source.function, self._source.width, self._source.kind
        return played

    def fill(self) -> set[int]:
        """Bring the map to what has arrived; return the numbers of the answers that changed."""
        arrived = self.clock.arrived
        if arrived < self._shown:
            self.map = self._empty()
        first = len(self.map.answers) - 1 if self.map.answers else 0
        last = min(bisect_right(self._ends, max(0, arrived - 1)), len(self._ends) - 1)
        self.map.function = self._source.function
        changed = set()
        for number in range(max(0, first), last + 1 if arrived else 0):
            answer = self._source.answers[number]
            said = arrived - (self._ends[number] - len(answer.units["atom"]))
            self.map.add(answer if arrived >= self._ends[number] else _beginning(answer, said))
            changed.add(answer.generation)
        self._shown = arrived
        return changed


def _beginning(answer: AnswerCells, count: int) -> AnswerCells:
    """Return an answer with its first atoms only, and the lines that they are on."""
    part = AnswerCells(
        answer.generation, answer.task, answer.position, "streaming", tokens=answer.tokens,
        reference_lines=answer.reference_lines or tuple(answer.asked_lines("atom")),
        maze=answer.maze, moves=answer.moves[:count],
    )  # fmt: skip
    line = answer.units["atom"].lines[count - 1] if count else -1
    for kind in KINDS:
        whole = answer.units[kind]
        until = count if kind == "atom" else sum(place < line for place in whole.lines)
        part.units[kind].take(whole, until)
    return part
