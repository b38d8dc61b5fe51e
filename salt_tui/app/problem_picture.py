"""A problem drawn as a person would see it: a maze with both ways in it, others as their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.store.records import UnitRecord
from salt_tui.visible_text import visible

_MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
WALL, FREE, RIGHT_WAY, SAID_WAY = "█", " ", "·", "o"


@dataclass(frozen=True, slots=True)
class Spot:
    """A character of a picture; ``status`` is the verdict of the atom that leads there, None where none does."""

    text: str
    status: str | None = None


def picture(task: str, text: str, reference: str, atoms: Sequence[UnitRecord]) -> list[list[Spot]]:
    """Return a problem row by row.

    Args:
        task: its task.
        text: as it was asked.
        reference: the right answer.
        atoms: what was said.
    """
    if task == "maze" and (drawn := _maze(text, reference, atoms)):
        return drawn
    return [[Spot(visible(line))] for line in text.split("\n")]


def _maze(text: str, reference: str, atoms: Sequence[UnitRecord]) -> list[list[Spot]]:
    """Draw the grid with the right way, and over it the way that was said, as far as it stays on the grid."""
    grid = [line.strip() for line in text.split("\n") if line.strip()]
    start = next(((y, line.index("S")) for y, line in enumerate(grid) if "S" in line), None)
    if start is None or len({len(line) for line in grid}) != 1 or not set("".join(grid)) <= set(".#SG"):
        return []
    spots = {
        (y, x): Spot({"#": WALL, ".": FREE}.get(cell, cell))
        for y, line in enumerate(grid)
        for x, cell in enumerate(line)
    }
    for place in _way(start, reference.split()):
        if place in spots and spots[place].text == FREE:
            spots[place] = Spot(RIGHT_WAY)
    said = [atom for atom in atoms if atom.text is not None]
    for place, atom in zip(_way(start, [atom.text or "" for atom in said]), said, strict=False):
        if place not in spots:
            break
        mark = spots[place].text
        spots[place] = Spot(mark if mark in {"S", "G"} else SAID_WAY, atom.status)
    # Two columns for a cell make it about square.
    return [
        [spot for x in range(len(grid[0])) for spot in (spots[y, x], _beside(spots[y, x]))] for y in range(len(grid))
    ]


def _beside(spot: Spot) -> Spot:
    return Spot(WALL if spot.text == WALL else " ", spot.status)


def _way(start: tuple[int, int], moves: Sequence[str]) -> list[tuple[int, int]]:
    """Return the cells that moves lead to, up to the first text that is no move."""
    y, x = start
    way = []
    for move in moves:
        if move not in _MOVES:
            break
        y, x = y + _MOVES[move][0], x + _MOVES[move][1]
        way.append((y, x))
    return way
