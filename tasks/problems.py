"""Drawing the problems of a run: as many as wanted, all different, none of them a worked example."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tasks.draws import derive_seed
from tasks.parameters import canonical_parameters
from tasks.prompts import worked_examples
from tasks.task import ParameterError, Parameters, Problem, Task

MISSES_IN_A_ROW = 500
"""How many draws in a row may repeat something before a level counts as exhausted."""


@dataclass(frozen=True, slots=True)
class DrawnProblems:
    """The problems of one task in a run.

    Attributes:
        problems: in the order in which they are asked.
        note: a sentence saying that the level has too few problems; None when it has enough.
    """

    problems: tuple[Problem, ...]
    note: str | None


def draw_problem(task: Task, difficulty: str, parameters: Parameters, run_seed: int, index: int) -> Problem:
    """Draw problem ``index``, whose seed is hash(task, difficulty, parameters, run seed, index)."""
    seed = derive_seed(task.name, difficulty, canonical_parameters(parameters), run_seed, index)
    text, reference = task.generate(Random(seed), parameters)
    return Problem(task.name, text, reference, difficulty, seed)


def draw_problems(
    task: Task, difficulty: str, parameters: Parameters, run_seed: int, limit: int, shots: int
) -> DrawnProblems:
    """Draw ``limit`` different problems; repeats and the run's worked examples are passed over.

    Args:
        task: the task.
        difficulty: the name of the level; decides the worked examples and goes into every seed.
        parameters: the level's parameters with the overrides, validated (`tasks.parameters.level_parameters`).
        run_seed: ``--seed``.
        limit: how many, at least 1.
        shots: how many worked examples stand before each problem.

    Raises:
        ParameterError: if ``limit`` is below 1 or the level has fewer than ``shots`` worked examples.
    """
    if limit < 1:
        raise ParameterError(f"limit {limit} is out of range; at least 1")
    seen = {example.id for example in worked_examples(task, difficulty, shots)}
    problems: list[Problem] = []
    misses = index = 0
    while len(problems) < limit and misses < MISSES_IN_A_ROW:
        problem = draw_problem(task, difficulty, parameters, run_seed, index)
        index += 1
        if problem.id in seen:
            misses += 1
            continue
        misses = 0
        seen.add(problem.id)
        problems.append(problem)
    note = None
    if len(problems) < limit:
        note = (
            f"{task.name} at {difficulty} has too few different problems: {len(problems)} instead of {limit}; "
            f"{MISSES_IN_A_ROW} draws in a row repeated one of them or a worked example."
        )
    return DrawnProblems(tuple(problems), note)
