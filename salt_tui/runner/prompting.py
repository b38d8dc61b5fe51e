"""From problems to token ids: conversations, the shared preamble and the limits that depend on lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.engine.engine import Engine
from salt_tui.engine.errors import ModelError
from salt_tui.engine.requests import ChatTurn
from salt_tui.store.records import ProblemRecord
from tasks.prompts import conversation, worked_answer
from tasks.registry import get_task
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
    """The prompt of one problem.

    Attributes:
        prompt: its ids; () for an engine that gives no ids.
        preamble: how many of them are shared by the task and evaluated once.
        conversation: what an engine without ids is asked instead.
    """

    prompt: tuple[int, ...]
    preamble: int
    conversation: tuple[ChatTurn, ...] = ()


def encode_problems(
    engine: Engine | None, task: Task, problems: Sequence[Problem], method: Method, shots: int
) -> list[EncodedProblem]:
    """Render and tokenise the prompts of one task.

    The cut after the preamble depends on the task alone, never on which problems a run holds; where a tokenizer
    merges across it, that prompt's preamble is shorter.

    Args:
        engine: tokenises; None for one that gives no ids and is asked conversations.
        task: of the problems.
        problems: what is asked.
        method: of the task.
        shots: worked examples before each problem.

    Raises:
        ModelError: all prompts are equal, so the template does not show the problem.
    """
    if not problems:
        return []
    opening = tuple(ChatTurn(turn.role, turn.content) for turn in conversation(task, problems[0], method, shots)[:-1])
    return encode_conversations(engine, [(*opening, ChatTurn("user", problem.text)) for problem in problems])


def asked_turns(problem: ProblemRecord, method: Method, shots: int) -> tuple[ChatTurn, ...]:
    """Return the conversation that a stored problem was asked with.

    Args:
        problem: as it is stored.
        method: of its task in the plan.
        shots: worked examples before it.
    """
    if problem.answer_kind != "generated":
        return tuple(ChatTurn(turn.role, turn.content) for turn in problem.messages)
    asked = Problem(problem.task, problem.text, problem.reference, problem.difficulty, 0)
    return tuple(
        ChatTurn(turn.role, turn.content) for turn in conversation(get_task(problem.task), asked, method, shots)
    )


def encode_conversations(engine: Engine | None, conversations: Sequence[tuple[ChatTurn, ...]]) -> list[EncodedProblem]:
    """Render and tokenise conversations that end with a question; those with equal turns before it share a preamble.

    Args:
        engine: tokenises; None for one that gives no ids and is asked conversations.
        conversations: what is asked.

    Raises:
        ModelError: the template does not show the last turn.
    """
    if engine is None:
        return [EncodedProblem((), 0, turns) for turns in conversations]
    openings = list(dict.fromkeys(turns[:-1] for turns in conversations))
    probes = [(*opening, ChatTurn("user", text)) for opening in openings for text in SENTINELS]
    encoded = engine.encode([*probes, *conversations])
    preambles: dict[tuple[ChatTurn, ...], tuple[int, ...]] = {}
    for place, opening in enumerate(openings):
        first, second = encoded[2 * place], encoded[2 * place + 1]
        if first == second:
            raise ModelError("the chat template leaves the problem out of the prompt: give another one in models.toml")
        preambles[opening] = first[: common_prefix(first, second)]
    return [
        EncodedProblem(prompt, common_prefix(preambles[turns[:-1]], prompt[:-1]))
        for turns, prompt in zip(conversations, encoded[len(probes) :], strict=True)
    ]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many leading items agree."""
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)


def answer_limit(
    engine: Engine | None, task: Task, problems: Sequence[Problem], method: Method, *, reasoning: bool
) -> int:
    """Return the token limit of a task's answers, derived from its longest right answer.

    Args:
        engine: tokenises; token counts differ between models.  None for one that gives no ids.
        task: words the answer.
        problems: all problems of the plan, at least one.
        method: ``cot`` counts the explanation in.
        reasoning: the model thinks first.
    """
    replies = [worked_answer(task, problem, method) for problem in problems]
    return reply_limit(engine, max(replies, key=len), reasoning=reasoning)


def reply_limit(engine: Engine | None, longest: str, *, reasoning: bool) -> int:
    """Return the token limit of replies whose longest right one is given.

    Where nobody tokenises, as many tokens as the reply has bytes stand for the allowance: a token has at least one, and
    those of usual vocabularies have two to four of such text.
    """
    text = longest.encode()
    allowed = len(text) if engine is None else ANSWER_ALLOWANCE * len(engine.tokenize(text))
    return allowed + ANSWER_MARGIN + (THINKING_ALLOWANCE if reasoning else 0)


def needed_context(prompts: Sequence[EncodedProblem], max_tokens: int) -> int:
    """Return the context that holds the longest prompt and a full answer, rounded up to `CONTEXT_STEP`."""
    longest = max(len(encoded.prompt) for encoded in prompts) + max_tokens
    return -(-longest // CONTEXT_STEP) * CONTEXT_STEP
