"""Which pieces of text cannot continue an atom, so that the atom before them is complete.

Without them 18 would count as written where a model goes on to 180.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence

from tasks.splitting import WhitespaceSplitter
from tasks.task import Task


class AtomEndings:
    """Finds, in a vocabulary, the tokens that end an atom.

    Args:
        pieces: bytes of every token id.
        end_tokens: ids that end a generation; they end every atom.
    """

    def __init__(self, pieces: Sequence[bytes], end_tokens: Sequence[int]) -> None:
        self._size = len(pieces)
        self._ends = frozenset(end_tokens)
        self._by_first: defaultdict[str, list[int]] = defaultdict(list)
        for number, piece in enumerate(pieces):
            first = _first_character(piece)
            if first is not None and number not in self._ends:
                self._by_first[first].append(number)

    def after(self, task: Task, reference: str, index: int) -> tuple[int, ...]:
        """Return the ids that cannot continue the atom at an index of a right answer, ascending.

        These are the ids whose bytes begin with what ends the atom there (for most tasks white space; within a list
        also the comma, but not the space before it), with an asterisk, which begins the fence, and the ends of a
        generation.  A token that begins with a part of a character counts as going on.

        Raises:
            IndexError: if the reference has no such atom.
        """
        splitter = task.splitter()
        spans = [*splitter.feed(reference), *splitter.finish()]
        if not 0 <= index < len(spans):
            raise IndexError(f"atom {index} of {len(spans)}")
        end = spans[index].end
        before = task.splitter()
        if any(span.end == end for span in before.feed(reference[:end])):
            return tuple(range(self._size))  # a bracket has closed it
        found = set(self._ends)
        for first, numbers in self._by_first.items():
            if first.isalnum():
                continue
            if isinstance(before, WhitespaceSplitter):
                ends = first.isspace()
            else:
                ends = any(span.end == end for span in copy.deepcopy(before).feed(first))
            if ends or first == "*":
                found.update(numbers)
        return tuple(sorted(found))


def _first_character(piece: bytes) -> str | None:
    """Return the first character of a piece, None where it has none or only a part of one."""
    for length in range(1, min(4, len(piece)) + 1):
        try:
            return piece[:length].decode()
        except UnicodeDecodeError:
            continue
    return None
