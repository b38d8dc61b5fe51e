"""One scripted run, computed once and copied into every test that looks at a stored run."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from salt_tui.app.run_session import RunSession
from salt_tui.runner.request import RunRequest
from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS
from tasks.registry import get_task
from tests.conftest import answer_tokens

TASKS = ("kronecker_product", "dna_translation")
LIMIT = 4


def write_script(path: Path, limit: int = LIMIT, **keys: object) -> Path:
    """Write a script that answers the first problems of `TASKS`; the first three atoms of each answer may be wrong."""
    replies = []
    for name in TASKS:
        task = get_task(name)
        drawn = draw_problems(task, "trivial", level_parameters(task, "trivial"), 1, limit, DEFAULT_SHOTS)
        for problem in drawn.problems:
            replies.append({"match": problem.text, "tokens": answer_tokens(task, problem, Random(problem.id))})
    path.write_text(json.dumps({"replies": replies, **keys}), encoding="utf-8")
    return path


def request(script: Path, limit: int = LIMIT) -> RunRequest:
    """Ask for these problems."""
    return RunRequest(str(script), TASKS, "trivial", limit, 1)


def compute(database: Path, script: Path, stop_after: int | None = None) -> RunSession:
    """Compute a run, or stop it after so many atoms."""
    session = RunSession.begin(request(script), database)
    deadline = time.monotonic() + 60
    while not session.wait(0.01) and time.monotonic() < deadline:
        session.pull()
        atoms = sum(len(answer.units["atom"]) for answer in session.state.map.answers)
        if stop_after is not None and atoms >= stop_after:
            session.stop()
    session.pull()
    session.close()
    return session


@pytest.fixture(scope="session")
def _stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SALT_TUI_HOME", str(folder / "home"))
        session = compute(folder / "salt.db", write_script(folder / "tiny.scripted.json"))
    assert session.state.phase == "finished", list(session.state.log)
    return folder


@pytest.fixture
def stored(_stored: Path, tmp_path: Path) -> Path:
    """A database with one finished run, whose script is beside it."""
    for name in ("salt.db", "tiny.scripted.json"):
        shutil.copy(_stored / name, tmp_path / name)
    return tmp_path / "salt.db"


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script; keyword arguments become keys of it."""

    def write(limit: int = LIMIT, **keys: object) -> Path:
        return write_script(tmp_path / "tiny.scripted.json", limit, **keys)

    return write
