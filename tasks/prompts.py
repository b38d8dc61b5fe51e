"""The words around a problem: instructions, how to fence the answer, worked examples (SALT figures 9-14).

Everything but the problem comes first, so two problems of one task share their whole preamble and its KV state is
computed once.  The wording is the project's own.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from tasks.draws import derive_seed
from tasks.task import FENCE, METHODS, Method, ParameterError, Problem, Task, Turn

DEFAULT_SHOTS = 3
"""Worked examples before a problem when nothing else is asked for."""

FENCE_INSTRUCTIONS: dict[Method, str] = {
    "regular": f"Write only the answer, between two lines of {FENCE}.",
    "cot": f"Reason first, step by step. Then write the answer, and nothing else, between two lines of {FENCE}.",
}
"""How each method asks for the answer; the fence is shown as the parser expects it."""

_EXAMPLE_DRAWS = 1000  # levels that have enough distinct problems need a few draws more than examples


def fenced(answer: str) -> str:
    """Return the answer between two fence lines."""
    return f"{FENCE}\n{answer}\n{FENCE}"


@lru_cache(maxsize=64)  # three ARC puzzles take about 40 ms, and every conversation of a run asks for the same
def worked_examples(task: Task, difficulty: str, count: int) -> tuple[Problem, ...]:
    """Return the first ``count`` worked examples of a level: distinct and always the same.

    They are drawn with `Task.example_parameters` and do not depend on the run's seed or parameters.

    Raises:
        ParameterError: if ``count`` is negative or the level has fewer distinct problems.
    """
    if count < 0:
        raise ParameterError(f"{count} worked examples asked for; at least 0")
    level = task.example_level[difficulty]
    examples: dict[str, Problem] = {}
    for index in range(_EXAMPLE_DRAWS + count):
        if len(examples) == count:
            break
        seed = derive_seed(task.name, "worked example", level, index)
        text, reference = task.generate(Random(seed), task.example_parameters(difficulty))
        problem = Problem(task.name, text, reference, level, seed)
        examples.setdefault(problem.id, problem)
    if len(examples) < count:
        raise ParameterError(f"{task.name}: {count} worked examples asked for, {level} has only {len(examples)}")
    return tuple(examples.values())


def worked_answer(task: Task, problem: Problem, method: Method) -> str:
    """Return the reply that a worked example shows: the fenced reference, after its explanation for ``cot``."""
    answer = fenced(problem.reference)
    return f"{task.explain(problem)}\n{answer}" if method == "cot" else answer


def conversation(task: Task, problem: Problem, method: Method, shots: int) -> tuple[Turn, ...]:
    """Return the turns that ask a model to solve a problem.

    A system turn with the instructions, ``shots`` worked examples as pairs of user and assistant turns, and last a
    user turn with the problem text alone.  Two problems of one level differ in the last turn only.

    Raises:
        ParameterError: if the level has fewer than ``shots`` worked examples.
        ValueError: if the method is not one of `tasks.task.METHODS`.
    """
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not one of {', '.join(METHODS)}")
    turns = [Turn("system", f"{task.instructions()} {FENCE_INSTRUCTIONS[method]}")]
    for example in worked_examples(task, problem.difficulty, shots):
        turns += [Turn("user", example.text), Turn("assistant", worked_answer(task, example, method))]
    turns.append(Turn("user", problem.text))
    return tuple(turns)
