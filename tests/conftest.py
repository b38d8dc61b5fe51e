"""Fixtures that every area uses: a clean home, and scripted models that answer the project's own problems."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, worked_answer
from tasks.registry import get_task
from tasks.task import Problem, Task

ScriptedModel = Callable[..., Path]

MISTAKES = 0.3
"""Share of the pieces of an answer that a scripted model gets wrong."""


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's database, settings and logs out of every test."""
    monkeypatch.setenv("SALT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SALT_TUI_DB", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


def answer_tokens(task: Task, problem: Problem, random: Random) -> list[list[object]]:
    """Return a scripted reply to a problem: mostly right, with log-probabilities that mean nothing."""
    pieces = re.findall(r"\S+|\s+", worked_answer(task, problem, "regular"))
    tokens: list[list[object]] = []
    for piece in pieces:
        is_atom = piece.strip() and set(piece) != {"*"}
        text = task.wrong_atom(random, problem, 0) if is_atom and random.random() < MISTAKES else piece
        tokens.append([text, -random.random()])
    return tokens


@pytest.fixture
def scripted_model(tmp_path: Path) -> ScriptedModel:
    """Write a script that answers the problems of a run; keyword arguments become keys of the script.

    The second reply takes ``crash``, or with ``crash_always`` every one.
    """

    def make(
        *names: str,
        limit: int = 3,
        seed: int = 1,
        difficulty: str = "trivial",
        crash: dict[str, int] | None = None,
        crash_always: bool = False,
        **keys: object,
    ) -> Path:
        replies = []
        for name in names:
            task = get_task(name)
            parameters = level_parameters(task, difficulty)
            for problem in draw_problems(task, difficulty, parameters, seed, limit, DEFAULT_SHOTS).problems:
                tokens = answer_tokens(task, problem, Random(problem.id))
                replies.append({"match": problem.text, "tokens": tokens})
        if crash is not None:
            for reply in replies if crash_always else replies[1:2]:
                reply["crash"] = crash
        path = tmp_path / "model.scripted.json"
        path.write_text(json.dumps({"replies": replies, **keys}), encoding="utf-8")
        return path

    return make
