"""What every task of the registry keeps, at every level; a task's own tests hold what is special about it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tasks.answer import parse_answer, split_reference
from tasks.draws import derive_seed
from tasks.parameters import canonical_parameters, format_parameter, level_parameters, validate_parameters
from tasks.problems import draw_problem, draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation, fenced, worked_answer, worked_examples
from tasks.registry import TASKS
from tasks.release import solve_release_row
from tasks.task import DIFFICULTIES, FENCE, METHODS, Method, ProblemTextError
from tests.tasks.drawing import draw

ROOT = Path(__file__).resolve().parents[2]
RUNS_FUNCTIONS = {"code": pytest.mark.process}
"""Tasks whose problems are solved by running a function in a process of its own."""

NAMES = [pytest.param(name, marks=RUNS_FUNCTIONS.get(name, ())) for name in TASKS]
LEVELS = [pytest.param(name, level, marks=RUNS_FUNCTIONS.get(name, ())) for name in TASKS for level in DIFFICULTIES]

GOLDEN = {
    "arc_grid": "fd0ad256f976d4b6 7c42dc2422f4d924 dba3bdef815155aa 6f24a0e511959936 2a19c512142440f5",
    "code": "2d45c016ded132c4 af26b6e83ef24a97 5500a700e9ec6412 30e5d71f656e8ada 908979a0b07ad833",
    "dna_translation": "c6bbfa488d52f769 69e952dd4ab4ab0c 7d526423c721e59b 7c89f8f8ed34b4aa 02d63e298a881e5d",
    "first_order_logic": "6b33bcdd6a68b008 0edbaf72fd092701 86413a5a49160b2e 8599bc9fabe414e0 ba08dadebac57b95",
    "kronecker_product": "2441dd4ce80a424b 8a4baf1a35c994b3 30c7c1ccb6f10587 5c224c002866abf9 72f88d6e36c1df3b",
    "matrix_multiplication": "aaf5b02e1a0ce466 93603479b113efa5 c84e1b5a5d3405fb 73547220897dd1ff ebb5047a7baee030",
    "maze": "babd81fe3428d485 cce066fa515e5806 ac5308fbb0b52609 8fb496b3c995b90f 29eb665097b85fac",
    "words_collection": "489782570fccb052 4f8e66e9a06ce579 95b8581b1b9eef0e 905f3fbfdee8844b 164e15441cbde2cd",
}
"""For each task the hashes of the first 20 test problems, from ``trivial`` to ``paper``.

A hash changes only when the problems do, and then stored runs and new ones no longer ask the same questions.
"""

LONG = "Q" * 100_000
LONGEST_MESSAGE = 300
HOSTILE = {
    "long": LONG,
    "long after A=": f"A=\n{LONG}",
    "long after B=": f"A=\n1\nB=\n{LONG}",
    "long after Input 1:": f"Input 1:\n{LONG}",
    "number of thousands of digits": f"Input {'1' * 100_000}:",
    "long category": f"List the {'q' * 100_000} in this text, 10 per line:\nx",
    "words per line of thousands of digits": f"List the colours in this text, {'1' * 100_000} per line:\nx",
    "no words per line": "List the colours in this text, 0 per line:\nred",
    "long assignment": f"p1\n\nInitial Assignments:\n{LONG}",
    "long formula": f"∧(p1, {LONG})",
    "long function": f"def {LONG}(a):\n    pass\n\nprint({LONG}())",
    "long word among integers": f"1 2 {LONG}",
    "integer of thousands of digits": f"A=\n1 {'1' * 100_000}\nB=\n1\n2",
    "integers and one of thousands of digits": f"1 2 {'1' * 100_000}",
    "digits of another script": "A=\n1 ٤\nB=\n1 2\n3 4",
    "empty": "",
    "half a character": "\ufffd",
}


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_the_same_seed_gives_the_same_problems_on_every_platform(name: str, level: str) -> None:
    problems = [draw(TASKS[name], level, index) for index in range(20)]
    content = "\0".join(part for problem in problems for part in (problem.text, problem.reference))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    assert digest == GOLDEN[name].split()[DIFFICULTIES.index(level)]


@pytest.mark.process
def test_another_process_draws_the_same() -> None:
    script = (
        "import json\nfrom tasks.registry import TASKS\nfrom tests.tasks.drawing import draw\n"
        "print(json.dumps([draw(task, 'hard', index).text for task in TASKS.values() for index in range(3)]))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(run.stdout) == [draw(task, "hard", index).text for task in TASKS.values() for index in range(3)]


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_the_text_alone_gives_the_reference(name: str, level: str) -> None:
    task = TASKS[name]
    for index in range(30):
        problem = draw(task, level, index)
        assert task.solve(problem.text) == problem.reference
        assert not re.search(r"\*{4}|</?think>", problem.text + problem.reference)


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_every_level_is_valid_and_survives_the_command_line(name: str, level: str) -> None:
    task = TASKS[name]
    parameters = level_parameters(task, level)
    validate_parameters(task, parameters)
    overrides = [f"{key}={format_parameter(value)}" for key, value in parameters.items()]
    assert level_parameters(task, level, overrides[::-1]) == parameters
    assert canonical_parameters(dict(reversed(parameters.items()))) == canonical_parameters(parameters)


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_every_level_has_problems_beyond_its_worked_examples(name: str, level: str) -> None:
    task = TASKS[name]
    drawn = draw_problems(task, level, task.levels[level], 1, 5, DEFAULT_SHOTS)
    assert drawn.note is None
    identifiers = {problem.id for problem in drawn.problems}
    assert len(identifiers) == 5
    assert not identifiers & {example.id for example in worked_examples(task, level, DEFAULT_SHOTS)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_every_prompt_shows_the_fence_as_the_parser_expects_it(name: str, level: str, method: Method) -> None:
    task = TASKS[name]
    problem = draw_problem(task, level, task.levels[level], 7, 0)
    turns = conversation(task, problem, method, DEFAULT_SHOTS)
    assert [turn.role for turn in turns] == ["system", *["user", "assistant"] * DEFAULT_SHOTS, "user"]
    assert turns[0].content.count(FENCE) == 1
    for example, turn in zip(worked_examples(task, level, DEFAULT_SHOTS), turns[2::2], strict=True):
        answer = parse_answer(task, turn.content.encode())
        assert answer.extraction == "fenced"
        atoms = tuple(task.normalise(unit.text) for unit in answer.of_kind("atom"))
        assert atoms == split_reference(task, example.reference).atoms
        assert turn.content.count(FENCE) == 2
    for turn in turns:
        assert "****" not in turn.content.replace(FENCE, "")
    assert turns[-1].content == problem.text


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_conversations_differ_in_the_last_turn_only(name: str, level: str) -> None:
    task = TASKS[name]
    one, other = (draw_problem(task, level, task.levels[level], seed, 1) for seed in (1, 2))
    assert one.text != other.text
    first, second = conversation(task, one, "regular", 2), conversation(task, other, "regular", 2)
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_worked_examples_are_fixed_and_distinct(name: str, level: str) -> None:
    task = TASKS[name]
    five = worked_examples(task, level, 5)
    assert five[:3] == worked_examples(task, level, 3)
    assert len({example.id for example in five}) == 5
    for example in five:
        assert example.difficulty == task.example_level[level]
        assert task.solve(example.text) == example.reference


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_reasoning_stands_before_the_fenced_reference(name: str, level: str) -> None:
    task = TASKS[name]
    problem = draw(task, level, 0)
    reasoned = worked_answer(task, problem, "cot")
    explanation = reasoned.removesuffix(fenced(problem.reference))
    assert explanation.strip() != ""
    assert "*" not in explanation


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_a_reference_in_fences_is_found_whole(name: str, level: str) -> None:
    task = TASKS[name]
    for index in range(20):
        problem = draw_problem(task, level, task.levels[level], 3, index)
        answer = parse_answer(task, f"Well:\n{fenced(problem.reference)}\nDone.".encode())
        reference = split_reference(task, problem.reference)
        assert answer.extraction == "fenced"
        assert tuple(task.normalise(unit.text) for unit in answer.of_kind("atom")) == reference.atoms
        assert tuple(task.normalise(unit.text) for unit in answer.of_kind("line")) == reference.lines
        assert [task.normalise(unit.text) for unit in answer.of_kind("generation")] == [reference.generation]
        assert tuple(unit.line for unit in answer.of_kind("atom")) == reference.atom_lines
        assert len(reference.atoms) == len(reference.atom_lines) > 0


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_a_wrong_atom_in_place_of_a_right_one_changes_that_atom_only(name: str, level: str) -> None:
    task = TASKS[name]
    problem = draw_problem(task, level, task.levels[level], 5, 2)
    random = Random(derive_seed("wrong", name, level))
    reply = fenced(problem.reference).encode()
    right = split_reference(task, problem.reference).atoms
    for index, unit in enumerate(parse_answer(task, reply).of_kind("atom")[:40]):
        wrong = task.wrong_atom(random, problem, index)
        changed = parse_answer(task, reply[: unit.start] + wrong.encode() + reply[unit.end :]).of_kind("atom")
        atoms = tuple(task.normalise(atom.text) for atom in changed)
        assert atoms[index] == task.normalise(wrong) != right[index]
        assert atoms[:index] + atoms[index + 1 :] == right[:index] + right[index + 1 :]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_text_that_is_no_problem_is_refused_in_a_short_message(name: str, text: str) -> None:
    for row in ({"input": text}, {"input": text, "task": ["x"]}):
        with pytest.raises(ProblemTextError) as caught:
            solve_release_row(TASKS[name], row)
        assert len(str(caught.value)) < LONGEST_MESSAGE
