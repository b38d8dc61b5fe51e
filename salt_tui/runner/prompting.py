"""From problems to token ids: conversations, the shared preamble and the limits that depend on lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.engine.engine import ChatTurn, Engine, ModelError
from tasks.prompts import conversation, worked_answer
from tasks.task import Method, Problem, Task

SENTINELS = ("0", "A")
"""Two problem texts whose prompts agree exactly up to the problem: their common token prefix is the preamble."""

ANSWER_ALLOWANCE = 2
"""A model may write this many times the tokens of the longest right answer of the task before it is cut."""

ANSWER_MARGIN = 32
"""Tokens on top, for words around the fences."""

THINKING_ALLOWANCE = 4096
"""Tokens on top for a reasoning model, which thinks before it answers."""

CONTEXT_STEP = 256
"""llama.cpp pads a context to a multiple of this, so asking for less saves nothing."""


@dataclass(frozen=True, slots=True)
class EncodedProblem:
    """The prompt of one problem; ``preamble`` tokens of it are shared by the task and evaluated once."""

    prompt: tuple[int, ...]
    preamble: int


def encode_problems(
    engine: Engine, task: Task, problems: Sequence[Problem], method: Method, shots: int
) -> list[EncodedProblem]:
    """Render and tokenise the prompts of one task.

    The cut after the preamble depends on the task alone, never on which problems a run holds; where a tokenizer
    merges across it, that prompt's preamble is shorter.

    Raises:
        ModelError: all prompts are equal, so the template does not show the problem.
    """
    if not problems:
        return []
    opening = [ChatTurn(turn.role, turn.content) for turn in conversation(task, problems[0], method, shots)[:-1]]
    texts = (*SENTINELS, *(problem.text for problem in problems))
    first, second, *prompts = engine.encode([[*opening, ChatTurn("user", text)] for text in texts])
    if first == second:
        raise ModelError("the chat template leaves the problem out of the prompt: give another one in models.toml")
    preamble = first[: common_prefix(first, second)]
    return [EncodedProblem(prompt, common_prefix(preamble, prompt[:-1])) for prompt in prompts]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many leading items agree."""
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)


def answer_limit(engine: Engine, task: Task, problems: Sequence[Problem], method: Method, *, reasoning: bool) -> int:
    """Return the token limit of a task's answers, derived from its longest right answer.

    Args:
        engine: tokenises; token counts differ between models.
        task: words the answer.
        problems: all problems of the plan, at least one.
        method: ``cot`` counts the explanation in.
        reasoning: the model thinks first.
    """
    longest = max(problems, key=lambda problem: len(worked_answer(task, problem, method)))
    tokens = len(engine.tokenize(worked_answer(task, longest, method).encode()))
    return ANSWER_ALLOWANCE * tokens + ANSWER_MARGIN + (THINKING_ALLOWANCE if reasoning else 0)


def needed_context(prompts: Sequence[EncodedProblem], max_tokens: int) -> int:
    """Return the context that holds the longest prompt and a full answer, rounded up to `CONTEXT_STEP`."""
    longest = max(len(encoded.prompt) for encoded in prompts) + max_tokens
    return -(-longest // CONTEXT_STEP) * CONTEXT_STEP
