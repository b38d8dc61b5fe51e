"""Maze: a checker that counts shortest paths in another way, segments, and texts that are no problem."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.maze import Maze
from tasks.task import DIFFICULTIES, IntegerRange, Problem, ProblemTextError
from tests.examples import examples
from tests.tasks import drawing
from tests.tasks.drawing import PROBLEMS

TASK = Maze()
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}

draw = partial(drawing.draw, TASK)


def count_shortest_walks(text: str) -> tuple[int, int]:
    """Return length and number of the shortest walks from S to G: the first step at which any walk arrives."""
    grid = np.array([list(row) for row in text.splitlines()])
    free = np.pad(grid != "#", 1)
    goal = np.pad(grid == "G", 1)
    walks = np.pad(grid == "S", 1).astype(np.int64)
    for length in range(grid.size):
        if walks[goal][0]:
            return length, int(walks[goal][0])
        spread = np.zeros_like(walks)
        spread[1:] += walks[:-1]
        spread[:-1] += walks[1:]
        spread[:, 1:] += walks[:, :-1]
        spread[:, :-1] += walks[:, 1:]
        # Only whether walks exist and their number at arrival matter, so large counts may be capped.
        walks = np.minimum(spread * free, 1_000)
    return grid.size, 0


def walk(text: str, reference: str) -> str:
    """Return the symbols on the cells that the moves lead over, S first."""
    rows = text.splitlines()
    row, column = next((r, line.index("S")) for r, line in enumerate(rows) if "S" in line)
    seen = "S"
    for move in reference.split():
        row, column = row + STEPS[move][0], column + STEPS[move][1]
        assert 0 <= row < len(rows)
        assert 0 <= column < len(rows[0])
        seen += rows[row][column]
    return seen


def check(text: str, reference: str) -> None:
    length, count = count_shortest_walks(text)
    assert count == 1
    assert length == len(reference.split()) >= 2
    assert walk(text, reference) == "S" + "." * (length - 1) + "G"
    lines = reference.splitlines()
    assert all(len(set(line.split())) == 1 for line in lines)
    assert all(before[0] != after[0] for before, after in pairwise(lines))


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_exactly_one_shortest_path_leads_to_the_goal(level: str) -> None:
    rows, columns = TASK.levels[level]["rows"], TASK.levels[level]["columns"]
    assert isinstance(rows, IntegerRange)
    assert isinstance(columns, IntegerRange)
    for index in range(PROBLEMS):
        problem = draw(level, index)
        check(problem.text, problem.reference)
        assert TASK.solve(problem.text) == problem.reference
        grid = problem.text.splitlines()
        assert rows.low <= len(grid) <= rows.high
        assert columns.low <= len(grid[0]) <= columns.high


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(2, 7), st.integers(0, 30))
def test_any_size_gives_a_problem(seed: int, rows: int, columns: int, openings: int) -> None:
    sizes = {"rows": rows, "columns": columns, "openings": openings}
    parameters = {name: IntegerRange(value, value) for name, value in sizes.items()}
    text, reference = TASK.generate(Random(seed), parameters)
    check(text, reference)
    assert (len(text.splitlines()), len(text.splitlines()[0])) == (rows, columns)


def test_openings_make_loops() -> None:
    def has_loop(text: str) -> bool:
        free = np.array([list(row) for row in text.splitlines()]) != "#"
        joins = (free[1:] & free[:-1]).sum() + (free[:, 1:] & free[:, :-1]).sum()
        return bool(joins >= free.sum())

    closed = {**TASK.levels["hard"], "openings": IntegerRange(0, 0)}
    assert not any(has_loop(TASK.generate(Random(seed), closed)[0]) for seed in range(30))
    assert sum(has_loop(draw("paper", index).text) for index in range(30)) >= 10


def test_solve_reads_a_grid_by_hand() -> None:
    assert TASK.solve("S.#\n#..\n##G") == "R\nD\nR\nD"
    assert TASK.solve(" S . . \n\n # # . \r\n G . . \n") == "R R\nD D\nL L"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the grid has no 'S'"),
        ("S..\n...", "the grid has no 'G'"),
        ("S..\n..\n..G", "line 2: 2 cells where the first row has 3"),
        ("S.x\n..G", "line 1, cell 3: 'x' is none of"),
        ("S.G\n..S", "line 2, cell 3: a second 'S'"),
        ("S#G\n.#.", "no path leads from S to G"),
        ("SG\n..", "S and G are neighbours"),
        ("S.\n.G", "2 shortest paths lead from S to G"),
    ],
)
def test_a_text_that_is_no_problem_says_what_and_where(text: str, message: str) -> None:
    with pytest.raises(ProblemTextError, match=f"^maze: {message}|^maze: {message.split(':')[0]}: "):
        TASK.solve(text)


def test_wrong_atoms_are_the_other_moves() -> None:
    problem = draw("easy", 0)
    for index, right in enumerate(problem.reference.split()):
        drawn = {TASK.wrong_atom(Random(seed), problem, index) for seed in range(60)}
        assert drawn == set("UDLR") - {right}


def test_the_explanation_names_every_corner() -> None:
    text = "S..\n##.\nG.."
    explanation = TASK.explain(Problem(TASK.name, text, TASK.solve(text), "easy", 0))
    assert explanation == (
        "S is at row 1, column 1 and G at row 3, column 1. The shortest path has 6 moves.\n"
        "Go right 2 to row 1, column 3.\nGo down 2 to row 3, column 3.\nGo left 2 to row 3, column 1."
    )


def test_results_of_interventions_carry_the_caveat() -> None:
    assert "flipping may change the right answer" in TASK.dependence.intervention_caveat
