"""A run in a thread: what is left when its database goes away or its disk is full, and going on afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from salt_tui.runner import preparation
from salt_tui.runner.background import BackgroundRun
from salt_tui.runner.events import AtomScored, RunEnded, RunEvent, RunStarted
from salt_tui.runner.jobs import Emit
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.resumption import prepare_resume
from salt_tui.store.errors import StoreError, StoreFailure
from salt_tui.store.queries import open_queries
from tests.conftest import ScriptedModel

TASKS = ("kronecker_product", "dna_translation")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def begin(model: Path, database: Path) -> BackgroundRun:
    asked = RunRequest(str(model), TASKS, "trivial", 3, 1)
    return started(lambda emit: prepare_run(asked, database, emit))


def resume(database: Path) -> BackgroundRun:
    with open_queries(database) as queries:
        stored = queries.run_record(1)
    return started(lambda emit: prepare_resume(stored, database, emit, allow_environment_change=False, threads=None))


def started(prepare: Callable[[Emit], object]) -> BackgroundRun:
    background = BackgroundRun(prepare, str)  # type: ignore[arg-type]  # they return a ReadyWork
    background.start()
    return background


def until_an_atom(background: BackgroundRun) -> None:
    deadline = time.monotonic() + 30
    while not any(isinstance(event, AtomScored) for event in tuple(background.mailbox)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(background: BackgroundRun) -> RunEnded:
    assert background.join(30)
    last: RunEvent = background.mailbox[-1]
    assert isinstance(last, RunEnded)
    return last


def state(database: Path) -> str:
    with open_queries(database) as queries:
        return queries.list_runs()[0].state


def test_a_deleted_database_fails_the_run_and_names_it(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    background = begin(scripted_model(*TASKS, seconds_per_step=0.05), database)
    until_an_atom(background)
    database.unlink()
    last = ended(background)
    assert (last.run, last.state) == (1, "failed")
    assert last.message is not None
    assert last.message.startswith(f"{database} was deleted")
    assert isinstance(background.failure, StoreFailure)


@pytest.mark.parametrize(("moment", "stored"), [("open_model", False), ("make_ready", True)])
def test_a_stop_during_preparation_leaves_nothing_or_a_run_whose_number_is_told(
    scripted_model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, stored: bool
) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS)
    step = getattr(preparation, moment)

    def stop_and_go_on(*arguments: object, **options: object) -> object:
        background.stop()
        return step(*arguments, **options)

    monkeypatch.setattr(preparation, moment, stop_and_go_on)
    background = BackgroundRun(
        lambda emit: prepare_run(RunRequest(str(model), TASKS, "trivial", 3, 1), database, emit), str
    )
    background.start()
    last = ended(background)
    assert database.exists() == stored
    if stored:
        with open_queries(database) as queries:
            assert [(listing.run, listing.state) for listing in queries.list_runs()] == [(1, "interrupted")]
    assert (last.run, last.state) == (1 if stored else 0, "interrupted")
    assert any(isinstance(event, RunStarted) for event in background.mailbox) == stored


def test_a_paused_run_notices_too(
    scripted_model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("salt_tui.runner.heartbeat.HEARTBEAT_SECONDS", 0.2)
    database = tmp_path / "x.db"
    background = begin(scripted_model(*TASKS, seconds_per_step=0.05), database)
    until_an_atom(background)
    assert background.pause()
    database.unlink()
    assert ended(background).state == "failed"


def test_after_a_full_disk_the_same_process_goes_on_when_there_is_room(
    scripted_model: ScriptedModel, small_disk: Path
) -> None:
    database = small_disk / "x.db"
    background = begin(scripted_model(*TASKS, seconds_per_step=0.05), database)
    until_an_atom(background)
    ballast = small_disk / "ballast"
    fill(ballast)
    last = ended(background)
    assert last.state == "failed"
    assert "is full" in str(last.message)
    assert isinstance(background.failure, StoreError)
    ballast.unlink()
    assert state(database) in {"failed", "interrupted"}
    again = resume(database)
    assert ended(again).state == "finished"
    assert state(database) == "finished"


def test_a_run_is_not_computed_twice_in_one_process(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    background = begin(scripted_model(*TASKS, seconds_per_step=0.05), database)
    until_an_atom(background)
    assert state(database) == "running"
    refused = ended(resume(database))
    assert refused.state == "failed"
    assert f"run 1 is being computed by this very process {os.getpid()}" in str(refused.message)
    background.stop()
    assert ended(background).state == "interrupted"


def fill(ballast: Path) -> None:
    """Take all the room there is, also what becomes free while this is done."""
    with ballast.open("wb", buffering=0) as file:
        for _ in range(2):
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                time.sleep(0.01)
