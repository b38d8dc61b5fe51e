"""Prompts: reasoning before the fence, and what is refused."""

from __future__ import annotations

import pytest

from tasks.problems import draw_problem
from tasks.prompts import conversation, fenced, worked_answer, worked_examples
from tasks.registry import TASKS
from tasks.task import ParameterError


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
