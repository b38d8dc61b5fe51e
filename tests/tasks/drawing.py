"""The problems that the tests of every task look at: drawn alike, so that their golden hashes stand in one table."""

from __future__ import annotations

from random import Random

import hypothesis

from tasks.draws import derive_seed
from tasks.task import Problem, Task

PROBLEMS = hypothesis.settings().max_examples
"""How many problems of a level a second solver checks: 100, and with the profile of `make soak` 10,000."""


def draw(task: Task, level: str, index: int) -> Problem:
    """Draw test problem ``index`` of a level; the same on every platform, whatever the seed of a run."""
    seed = derive_seed("test", task.name, level, index)
    text, reference = task.generate(Random(seed), task.levels[level])
    return Problem(task.name, text, reference, level, seed)
