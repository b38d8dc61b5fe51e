"""Prompts: the fence as the parser expects it, a shared preamble, fixed worked examples."""

from __future__ import annotations

import re
from random import Random

import pytest

from tasks.answer import parse_answer, split_reference
from tasks.draws import derive_seed
from tasks.problems import draw_problem
from tasks.prompts import DEFAULT_SHOTS, conversation, fenced, worked_answer, worked_examples
from tasks.registry import TASKS
from tasks.task import DIFFICULTIES, FENCE, METHODS, Method, ParameterError

LEVELS = [(name, level) for name in TASKS for level in DIFFICULTIES]


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
    assert not re.search(r"\*{4}|</?think>", problem.text)


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_conversations_differ_in_the_last_turn_only(name: str, level: str) -> None:
    task = TASKS[name]
    one, other = (draw_problem(task, level, task.levels[level], seed, 1) for seed in (1, 2))
    assert one.text != other.text
    first, second = conversation(task, one, "regular", 2), conversation(task, other, "regular", 2)
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


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


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_worked_examples_are_fixed_and_distinct(name: str, level: str) -> None:
    task = TASKS[name]
    five = worked_examples(task, level, 5)
    assert five[:3] == worked_examples(task, level, 3)
    assert len({example.id for example in five}) == 5
    for example in five:
        assert example.difficulty == task.example_level[level]
        assert task.solve(example.text) == example.reference


def test_reasoning_comes_before_the_fence() -> None:
    task = TASKS["dna_translation"]
    example = worked_examples(task, "trivial", 1)[0]
    reasoned = worked_answer(task, example, "cot")
    assert reasoned.endswith(fenced(example.reference))
    assert len(reasoned) > len(worked_answer(task, example, "regular")) == len(fenced(example.reference))


def test_too_many_worked_examples_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least 0"):
        worked_examples(TASKS["dna_translation"], "trivial", -1)


def test_an_unknown_method_is_refused() -> None:
    task = TASKS["dna_translation"]
    problem = draw_problem(task, "trivial", task.levels["trivial"], 1, 0)
    with pytest.raises(ValueError, match="regular, cot"):
        conversation(task, problem, "poem", 0)  # type: ignore[arg-type]
