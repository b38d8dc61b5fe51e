"""What every area uses: the tiers, a clean home, and scripted models that answer the project's own problems.

A test is *quick* (`make quick`) if it starts neither the app nor a model nor a child process: in `QUICK_AREAS`, and in
files that say ``pytestmark = pytest.mark.quick``, every test that is not marked ``process``.  A quick test that starts
a process fails.  Tests marked ``soak`` repeat for hours and run only when asked for (`make soak`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import hypothesis
import pytest

from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, worked_answer
from tasks.registry import get_task
from tasks.task import Problem, Task

ScriptedModel = Callable[..., Path]

MISTAKES = 0.3
"""Share of the pieces of an answer that a scripted model gets wrong."""

QUICK_AREAS = ("measure", "scoring", "store", "tasks")
"""Folders of tests that are quick unless they say otherwise."""

PROCESS_EVENTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn")
"""What Python's auditing calls the start of a process."""

# A busy machine is no mistake, so no example has a deadline; `make soak` draws a hundred times as many.
hypothesis.settings.register_profile("test", deadline=None, print_blob=True)
hypothesis.settings.register_profile("soak", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile("test")

# A program that was started with & ignores Ctrl+C, one that was started with nohup the end of its terminal, and so
# would every child whose stopping is tested.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_running: list[pytest.Item] = []


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("quick") is not None and item.get_closest_marker("process") is None


def _refuse_processes(event: str, _arguments: tuple[object, ...]) -> None:
    if event in PROCESS_EVENTS and _running and _is_quick(_running[-1]):
        raise AssertionError(f"a quick test starts a process ({event}): mark it `process`, or its file not `quick`")


sys.addaudithook(_refuse_processes)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start half as many workers again as there are processors: tests of the app and of programs wait a lot."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors + (processors + 1) // 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the quick tests and leave the soaking ones out, unless the expression of ``-m`` names them."""
    here = Path(__file__).parent
    for item in items:
        area = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        if area in QUICK_AREAS:
            item.add_marker("quick")
    if "soak" not in config.getoption("markexpr"):
        soaking = [item for item in items if item.get_closest_marker("soak")]
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soaking)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know which test runs, for `_refuse_processes`."""
    _running.append(item)
    try:
        return (yield)
    finally:
        _running.pop()


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
