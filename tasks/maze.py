"""The only shortest path through a maze (SALT section 4.2 and appendix A.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import groupby
from random import Random
from typing import ClassVar, TypeAlias, cast

from tasks.draws import draw_distinct, draw_integer, draw_item, draw_shuffled
from tasks.task import (
    Dependence,
    IntegerRange,
    Parameter,
    Parameters,
    Problem,
    ProblemTextError,
    RangeParameter,
    Task,
)

Cell: TypeAlias = tuple[int, int]
"""Row and column, from 0 at the top left."""

MOVES: Mapping[str, Cell] = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
_WORDS = {"U": "up", "D": "down", "L": "left", "R": "right"}
_FEWEST_MOVES = 2


class Maze(Task):
    """Walk from S to G in a grid of walls ``#`` and free cells ``.``; the atoms are moves, the lines straight segments.

    Free cells are carved as an induced tree: a cell is freed only if exactly one of its neighbours is free, so one path
    joins any two.  S and G are drawn at least two moves apart.  Then some walls are opened again, which makes loops and
    detours; half of the openings are taken back until exactly one shortest path of at least two moves is left, which
    holds at the latest when none remains.  The grid has no frame: its edge is the border.
    """

    name = "maze"
    title = "Maze"
    description = "the only shortest path through a maze, move by move"
    prompt_version = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        RangeParameter("rows", 2, 60, "height of the grid"),
        RangeParameter("columns", 2, 60, "width of the grid"),
        RangeParameter(
            "openings", 0, 30, "percentage of the walls to open again, which makes loops; fewer where they would tie"
        ),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": {"rows": IntegerRange(2, 3), "columns": IntegerRange(3, 4), "openings": IntegerRange(0, 0)},
        "easy": {"rows": IntegerRange(4, 5), "columns": IntegerRange(4, 5), "openings": IntegerRange(0, 10)},
        "medium": {"rows": IntegerRange(6, 8), "columns": IntegerRange(6, 8), "openings": IntegerRange(0, 10)},
        "hard": {"rows": IntegerRange(9, 13), "columns": IntegerRange(9, 13), "openings": IntegerRange(0, 10)},
        "paper": {"rows": IntegerRange(11, 25), "columns": IntegerRange(11, 25), "openings": IntegerRange(0, 10)},
    }
    dependence = Dependence(
        inputs="the whole grid: whether a move is on the shortest path depends on cells far from it",
        earlier_atoms="the earlier moves, which say where the move starts",
        intervention_caveat="flipping may change the right answer: after another move the path starts elsewhere",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Carve the grid, draw S and G, open walls."""
        rows = _draw_within(random, parameters, "rows")
        columns = _draw_within(random, parameters, "columns")
        openings = _draw_within(random, parameters, "openings")
        free = _carve_tree(random, rows, columns)
        start = draw_item(random, sorted(free))
        goals = _far_cells(free, start)
        if not goals:
            # All other free cells touch S; from one of them the rest is two moves away.
            start = draw_item(random, sorted(free - {start}))
            goals = _far_cells(free, start)
        # Only the farther half of the goals, or paths of two or three moves would be frequent in a large maze.
        goal = draw_item(random, goals[len(goals) // 2 :])
        walls = [(row, column) for row in range(rows) for column in range(columns) if (row, column) not in free]
        opened = draw_distinct(random, walls, len(walls) * openings // 100)
        while not _has_one_path(free.union(opened), start, goal):
            opened = opened[: len(opened) // 2]
        free.update(opened)
        text = "\n".join(
            "".join(
                "S" if cell == start else "G" if cell == goal else "." if cell in free else "#"
                for cell in ((row, column) for column in range(columns))
            )
            for row in range(rows)
        )
        return text, _write_path(_trace_path(free, start, goal))

    def solve(self, text: str) -> str:
        """Find the path in a grid of ``#``, ``.``, one ``S`` and one ``G``; spaces between cells are ignored.

        Raises:
            ProblemTextError: if the text is no such grid, G cannot be reached, fewer than two moves are needed, or
                several shortest paths exist.
        """
        free, start, goal = _read_grid(text)
        distances, counts = _shortest_paths(free, start)
        if goal not in distances:
            raise ProblemTextError("maze: no path leads from S to G")
        if distances[goal] < _FEWEST_MOVES:
            raise ProblemTextError("maze: S and G are neighbours; a problem needs at least 2 moves")
        if counts[goal] != 1:
            raise ProblemTextError(f"maze: {counts[goal]} shortest paths lead from S to G; a problem has exactly one")
        return _write_path(_trace_path(free, start, goal))

    def instructions(self) -> str:
        """Say what is asked."""
        return (
            "Find the shortest path from S to G in the maze. # is a wall and . is free; a move goes one cell up (U), "
            "down (D), left (L) or right (R) and never leaves the grid. Write the moves in order, separated by spaces, "
            "and begin a new line whenever the direction changes."
        )

    def explain(self, problem: Problem) -> str:
        """Walk along the path, segment by segment; rows and columns are counted from 1."""
        free, start, goal = _read_grid(problem.text)
        moves = _trace_path(free, start, goal)
        steps = [f"S is at {_place(start)} and G at {_place(goal)}. The shortest path has {len(moves)} moves."]
        row, column = start
        for move, group in groupby(moves):
            length = len(list(group))
            row += MOVES[move][0] * length
            column += MOVES[move][1] * length
            steps.append(f"Go {_WORDS[move]} {length} to {_place((row, column))}.")
        return "\n".join(steps)

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw one of the other three directions.

        Raises:
            IndexError: if the reference has no such atom.
        """
        right = problem.reference.split()[index]
        return draw_item(random, [move for move in MOVES if move != right])


def _draw_within(random: Random, parameters: Parameters, name: str) -> int:
    value = cast(IntegerRange, parameters[name])
    return draw_integer(random, value.low, value.high)


def _neighbours(cell: Cell) -> tuple[Cell, Cell, Cell, Cell]:
    """Return the cells above, below, left and right, the order of `MOVES`; they may lie outside the grid."""
    row, column = cell
    return (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)


def _carve_tree(random: Random, rows: int, columns: int) -> set[Cell]:
    """Free cells depth first; the result is connected, has no cycle, and has at least three cells."""
    first = (draw_integer(random, 0, rows - 1), draw_integer(random, 0, columns - 1))
    free = {first}
    stack = [first]
    while stack:
        cell = stack[-1]
        for near in draw_shuffled(random, _neighbours(cell)):
            inside = 0 <= near[0] < rows and 0 <= near[1] < columns
            if inside and near not in free and len(free.intersection(_neighbours(near))) == 1:
                free.add(near)
                stack.append(near)
                break
        else:
            stack.pop()
    return free


def _shortest_paths(free: set[Cell], start: Cell) -> tuple[dict[Cell, int], dict[Cell, int]]:
    """Return the distance of every reachable cell in moves, nearest first, and the number of its shortest paths."""
    distances = {start: 0}
    counts = {start: 1}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        for near in _neighbours(cell):
            if near not in free:
                continue
            if near not in distances:
                distances[near] = distances[cell] + 1
                counts[near] = 0
                queue.append(near)
            if distances[near] == distances[cell] + 1:
                counts[near] += counts[cell]
    return distances, counts


def _far_cells(free: set[Cell], start: Cell) -> list[Cell]:
    """Return the cells at least two moves away, nearest first."""
    distances, _ = _shortest_paths(free, start)
    return [cell for cell, distance in distances.items() if distance >= _FEWEST_MOVES]


def _has_one_path(free: set[Cell], start: Cell, goal: Cell) -> bool:
    """Say whether exactly one shortest path of at least two moves leads to the goal, which must be reachable."""
    distances, counts = _shortest_paths(free, start)
    return distances[goal] >= _FEWEST_MOVES and counts[goal] == 1


def _trace_path(free: set[Cell], start: Cell, goal: Cell) -> list[str]:
    """Return the moves of a shortest path; the only one where `_shortest_paths` counts one."""
    distances, _ = _shortest_paths(free, goal)
    moves: list[str] = []
    cell = start
    while cell != goal:
        move, cell = next(
            (move, near)
            for move, near in zip(MOVES, _neighbours(cell), strict=True)
            if distances.get(near) == distances[cell] - 1
        )
        moves.append(move)
    return moves


def _write_path(moves: Sequence[str]) -> str:
    return "\n".join(" ".join(segment) for _, segment in groupby(moves))


def _place(cell: Cell) -> str:
    return f"row {cell[0] + 1}, column {cell[1] + 1}"


def _read_grid(text: str) -> tuple[set[Cell], Cell, Cell]:
    free: set[Cell] = set()
    ends: dict[str, Cell] = {}
    lines = [(number, "".join(line.split())) for number, line in enumerate(text.splitlines(), 1)]
    rows = [(number, row) for number, row in lines if row]
    for index, (number, row) in enumerate(rows):
        if len(row) != len(rows[0][1]):
            raise ProblemTextError(f"maze: line {number}: {len(row)} cells where the first row has {len(rows[0][1])}")
        for column, symbol in enumerate(row):
            if symbol not in "#.SG":
                raise ProblemTextError(
                    f"maze: line {number}, cell {column + 1}: {symbol!r} is none of '#', '.', 'S', 'G'"
                )
            if symbol in ends:
                raise ProblemTextError(f"maze: line {number}, cell {column + 1}: a second {symbol!r}")
            if symbol in "SG":
                ends[symbol] = (index, column)
            if symbol != "#":
                free.add((index, column))
    for symbol in "SG":
        if symbol not in ends:
            raise ProblemTextError(f"maze: the grid has no {symbol!r}")
    return free, ends["S"], ends["G"]
