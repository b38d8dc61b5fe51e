"""One engine for several edits: the same numbers as one for each, and gone when somebody needs its memory."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from salt_tui.cli import run_command_line
from salt_tui.engine.models import ResolvedModel, open_engine
from salt_tui.engine.process import EngineProcess
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import Notice, RunEnded, TextWritten
from salt_tui.runner.kept_engine import EngineKeeper
from salt_tui.runner.studies import loading
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from tests.conftest import ScriptedModel

TASK = "dna_translation"
BRANCHES = (
    "SELECT variant, direction, edits, target, outcome, log_probability_reference, parent, number, token.position,"
    " token.id, log_probability, entropy, forced FROM intervention JOIN generation ON generation.id = generation"
    " JOIN token ON token.generation = generation.id ORDER BY variant, token.position"
).replace("ON generation.id = generation J", "ON generation.id = intervention.generation J")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[EngineProcess]:
    """Every engine that a study opens."""
    opened: list[EngineProcess] = []

    def recorded(resolved: ResolvedModel, log: Path) -> EngineProcess:
        engine = open_engine(resolved, log)
        assert isinstance(engine, EngineProcess)
        opened.append(engine)
        return engine

    monkeypatch.setattr(loading, "open_engine", recorded)
    return opened


@pytest.fixture
def keeper() -> Iterator[EngineKeeper]:
    keeper = EngineKeeper(left_seconds=0.3)
    yield keeper
    assert keeper.release(10)


def make_run(model: Path, database: Path) -> None:
    assert run_command_line(
        ["run", "-m", str(model), "--tasks", TASK, "--difficulty", "medium", "--limit", "2", "--seed", "1",
         "--db", str(database), "--display", "none"]
    ) == 0  # fmt: skip


def begin(keeper: EngineKeeper, database: Path, **options: str) -> BackgroundRun:
    request = StudyRequest("manual", "1", {"answer": f"{TASK}:1", **options})
    run = BackgroundRun(lambda emit: prepare_study(request, database, emit, keeper=keeper), str, keeper)
    run.start()
    return run


def edit(keeper: EngineKeeper, database: Path, **options: str) -> RunEnded:
    run = begin(keeper, database, **options)
    assert run.join(60)
    last = run.mailbox[-1]
    assert isinstance(last, RunEnded)
    return last


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def rows(database: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(BRANCHES).fetchall()


def is_gone(engine: EngineProcess) -> bool:
    try:
        os.kill(engine.process_id, 0)
    except ProcessLookupError:
        return True
    return False


def test_edits_share_an_engine_and_give_what_each_alone_gives(
    scripted_model: ScriptedModel, tmp_path: Path, engines: list[EngineProcess], keeper: EngineKeeper
) -> None:
    model = scripted_model(TASK, limit=2, difficulty="medium")
    kept, alone = tmp_path / "kept.db", tmp_path / "alone.db"
    edits = ({"set": "3=AAA", "name": "x"}, {"set": "2=CCC"}, {"from": "x", "set": "7=TTT;8=GGG"})
    for database in (kept, alone):
        make_run(model, database)
    for options in edits:
        flags = [part for name, text in options.items() for part in (f"--{name}", text)]
        edited = ["edit", "1", f"{TASK}:1", *flags, "--db", str(alone), "--display", "none"]
        assert run_command_line(edited) == 0
    engines.clear()
    for options in edits:
        assert edit(keeper, kept, **options).state == "finished"
        assert edit(keeper, kept, set="3=AAA CCC").message == "--set 3=AAA CCC: it is 2 atoms, not one"
    assert len(engines) == 1
    assert keeper.held is None or keeper.held > 10**6
    assert rows(kept) == rows(alone)
    assert rows(kept)
    # Killed while nothing is computed, it is started again; with another file in its place it is not used.
    os.kill(engines[0].process_id, signal.SIGKILL)
    run = begin(keeper, kept, set="1=CCC")
    assert run.join(60)
    assert [event.text for event in run.mailbox if isinstance(event, Notice)] == [
        "the engine died while nothing was computed; it is started again"
    ]
    assert len(engines) == 1
    model.write_text(model.read_text() + " ")
    assert "needs another model than" in str(edit(keeper, kept, set="1=GGG").message)
    assert len(engines) == 2
    assert is_gone(engines[0])
    assert is_gone(engines[1])


def test_an_engine_goes_when_its_memory_is_needed_or_everybody_has_left(
    scripted_model: ScriptedModel, tmp_path: Path, engines: list[EngineProcess], keeper: EngineKeeper
) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(TASK, limit=2, difficulty="medium", seconds_per_step=0.02)
    make_run(model, database)
    run = begin(keeper, database, set="1=CCC")
    until(lambda: any(isinstance(event, TextWritten) for event in tuple(run.mailbox)))
    assert not keeper.is_free
    keeper.make_room()
    assert keeper.is_free
    assert is_gone(engines[0])
    assert run.join(60)
    assert isinstance(run.mailbox[-1], RunEnded)
    assert run.mailbox[-1].state == "interrupted"
    # Stopped by hand the engine stays, and what was broken off leaves nothing behind.
    run = begin(keeper, database, set="1=CCC")
    until(lambda: any(isinstance(event, TextWritten) for event in tuple(run.mailbox)))
    run.stop()
    assert run.join(60)
    assert edit(keeper, database, set="2=TTT").state == "finished"
    assert len(engines) == 2
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM generation WHERE stop_reason IS NULL").fetchone() == (0,)
    assert {row[0] for row in rows(database) if row[1] != "baseline"} == {"b1"}
    keeper.leave()
    keeper.stay()
    time.sleep(0.5)
    assert not is_gone(engines[1])
    keeper.leave()
    until(lambda: keeper.is_free)
    assert is_gone(engines[1])
    assert keeper.held is None
