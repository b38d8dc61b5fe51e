"""The resamples of a task's answers: one seeded set per task, whatever is measured on it and wherever it is shown.

Every function, map and metric of a task is measured on the same draws, so that their intervals can be compared; and
because the seed is made of the task's name alone, a run that is shown while it goes on, one of its tasks alone and the
finished report have the same draws and so the same digits.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from scoring.benchmark_intervals import draw_generations
from scoring.cross_fitting import DEFAULT_SEED


def draws_of(task: str, answers: int, draws: int) -> NDArray[np.float64]:
    """Return how often each answer of a task counts in each resample, shape ``(draws, answers)``.

    Args:
        task: its name, which seeds the draws.
        answers: how many answers are drawn from; one fewer is drawn, which makes the spread right for few of them.
        draws: number of resamples, at least 0.
    """
    return draw_generations(answers, draws, generator_of(task), max(answers - 1, 0))


def generator_of(task: str) -> np.random.Generator:
    """Return a fresh generator for what is drawn about a task."""
    return np.random.default_rng([DEFAULT_SEED, zlib.crc32(task.encode())])
