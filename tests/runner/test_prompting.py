"""Prompts: the shared preamble depends on the task alone, limits follow from lengths."""

from __future__ import annotations

from collections.abc import Sequence

from salt_tui.engine.requests import ChatTurn
from salt_tui.runner.prompting import CONTEXT_STEP, answer_limit, common_prefix, encode_problems, needed_context
from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.registry import TASKS, get_task
from tasks.task import Problem


class ByteEngine:
    """Tokenises text to its bytes."""

    def encode(self, conversations: Sequence[Sequence[ChatTurn]]) -> list[tuple[int, ...]]:
        """Tokenise conversations."""
        return [tuple("".join(f"<{turn.role}>{turn.content}</>" for turn in turns).encode()) for turns in conversations]

    def tokenize(self, text: bytes) -> tuple[int, ...]:
        """Tokenise a text."""
        return tuple(text)


ENGINE = ByteEngine()


def problems(name: str, seed: int, limit: int) -> tuple[Problem, ...]:
    task = get_task(name)
    return draw_problems(task, "trivial", level_parameters(task, "trivial"), seed, limit, 2).problems


def test_the_preamble_is_everything_before_the_problem() -> None:
    for name in TASKS:
        (problem,) = problems(name, 1, 1)
        (encoded,) = encode_problems(ENGINE, get_task(name), [problem], "regular", 2)  # type: ignore[arg-type]
        assert bytes(encoded.prompt[encoded.preamble :]) == f"{problem.text}</>".encode()


def test_the_preamble_does_not_depend_on_the_other_problems() -> None:
    task = get_task("kronecker_product")
    few = encode_problems(ENGINE, task, problems(task.name, 1, 1), "regular", 2)  # type: ignore[arg-type]
    many = encode_problems(ENGINE, task, problems(task.name, 1, 5), "regular", 2)  # type: ignore[arg-type]
    assert many[0] == few[0]
    assert len({encoded.preamble for encoded in many}) == 1


def test_no_problems_no_prompts() -> None:
    assert encode_problems(ENGINE, get_task("maze"), [], "regular", 2) == []  # type: ignore[arg-type]


def test_common_prefix() -> None:
    assert common_prefix((1, 2, 3), (1, 2, 4)) == 2
    assert common_prefix((1, 2), (1, 2, 3)) == 2
    assert common_prefix((), (1,)) == 0


def test_limits_grow_with_the_longest_answer() -> None:
    task = get_task("dna_translation")
    short, long = (Problem(task.name, "AAA", reference, "trivial", 0) for reference in ("TTT", "TTT " * 30))
    limits = [
        answer_limit(ENGINE, task, drawn, "regular", reasoning=False)  # type: ignore[arg-type]
        for drawn in ([short], [long], [long, short])
    ]
    assert limits[0] < limits[1] == limits[2]
    thinking = answer_limit(ENGINE, task, [short], "regular", reasoning=True)  # type: ignore[arg-type]
    assert thinking > limits[0] + 1000


def test_needed_context_is_a_multiple_that_holds_everything() -> None:
    encoded = encode_problems(ENGINE, get_task("maze"), problems("maze", 1, 3), "regular", 2)  # type: ignore[arg-type]
    longest = max(len(item.prompt) for item in encoded)
    needed = needed_context(encoded, 100)
    assert needed % CONTEXT_STEP == 0
    assert longest + 100 <= needed < longest + 100 + CONTEXT_STEP
