"""Answers drawn with known truth, for simulations of what a report concludes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scoring.conclusions import Alternatives

UNITS = 30


def token_functions(
    log_probabilities: NDArray[np.float64], entropies: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the nine confidence functions of units of k tokens, columns of shape ``(n,)``, higher is surer."""
    probabilities = np.exp(log_probabilities)
    mean, total = log_probabilities.mean(axis=1), log_probabilities.sum(axis=1)
    return {
        "perplexity": -np.exp(-mean),
        "log_perplexity": mean,
        "mean_probability": probabilities.mean(axis=1),
        "median_probability": np.median(probabilities, axis=1),
        "max_probability": probabilities.max(axis=1),
        "logprob_sum": total,
        "mean_entropy": -entropies.mean(axis=1),
        "max_entropy": -entropies.max(axis=1),
        "joint_probability": np.exp(total),
    }


def outcomes(answers: int, generator: np.random.Generator, units: int = UNITS) -> tuple[np.ndarray, np.ndarray]:
    """Return the answer and the correctness of units; the rate differs between tasks and between answers."""
    generation = np.repeat(np.arange(answers), units)
    rate = generator.beta(2.0, 2.0)
    of_answers = np.clip(generator.beta(4.0 * rate + 0.2, 4.2 - 4.0 * rate, size=answers), 0.02, 0.98)
    return generation, generator.random(generation.size) < of_answers[generation]


def noise(task: str, answers: int, generator: np.random.Generator, units: int = UNITS) -> Alternatives:
    """Return a task in which probabilities mean nothing: units of three tokens, surer in some answers."""
    generation, correct = outcomes(answers, generator, units)
    level = np.exp(generator.normal(0.0, 0.5, answers))[generation][:, None]
    log_probabilities = -generator.gamma(1.0, 1.0, (correct.size, 3)) * level
    entropies = generator.gamma(1.5, 0.5, (correct.size, 3)) * level
    return Alternatives(task, correct, generation, token_functions(log_probabilities, entropies))


def with_better_one(
    task: str, answers: int, generator: np.random.Generator, others: int = 8, better_by: float = 0.25
) -> Alternatives:
    """Return a task with independent functions that know nothing and one shifted by so many deviations where right."""
    generation, correct = outcomes(answers, generator)
    scores: Mapping[str, NDArray[np.float64]] = {
        f"other {number}": generator.normal(size=correct.size) for number in range(others)
    }
    better = generator.normal(size=correct.size) + better_by * correct
    return Alternatives(task, correct, generation, {"better": better, **scores})
