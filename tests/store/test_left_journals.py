"""What a program leaves beside a database: logs of files that were replaced, and files that were never finished."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from salt_tui.exports.export import export_work
from salt_tui.store import left_journal
from salt_tui.store.placing import complete_file, remove_unfinished
from salt_tui.store.queries import open_queries
from salt_tui.store.records import GenerationStart, Work
from salt_tui.store.store import StoreError, StoreFailure, open_store


def beside(path, suffix):
    return path.with_name(path.name + suffix)


def sound(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


def fill(store, run, token, end, answers):
    for entry in store.pending_problems(run)[:answers]:
        generation = store.begin_generation(Work(run), GenerationStart(entry.id, (1,), 0))
        store.add_tokens(generation, [token(position) for position in range(200)])
        store.end_generation(generation, end(reply=b"A" * 200))


@pytest.mark.parametrize("restored", [True, False], ids=["replaced", "deleted"])
def test_the_log_of_a_file_that_was_replaced_is_moved_aside(path, store, create, token, end, restored):
    # A backup put in place while a run goes on: the next program must find the backup as it is.
    run = create(count=30)
    backup = path.with_name("backup.db")
    shutil.copy(path, backup)
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, backup)
    store.claim(Work(run))
    fill(store, run, token, end, 20)
    content = backup.read_bytes()
    if restored:
        backup.replace(path)
    else:
        path.unlink()
    said = r"was (replaced|deleted).*; its last changes are in x\.db-wal\.left-1; put it back or begin anew"
    with pytest.raises(StoreFailure, match=said):
        store.heartbeat(Work(run))
    with pytest.raises(StoreFailure, match=said):
        store.close()
    assert not beside(path, "-wal").exists()
    assert not beside(path, "-shm").exists()
    assert beside(path, "-wal.left-1").stat().st_size > 0
    if restored:
        assert path.read_bytes() == content
    with open_store(path) as opened:
        if restored:
            assert len(opened.pending_problems(run)) == 30
    assert sound(path)


def test_a_second_log_gets_another_name_and_a_foreign_one_stays(path, store, create, token, end):
    run = create()
    store.claim(Work(run))
    beside(path, "-wal.left-1").write_text("mine")
    path.unlink()
    with pytest.raises(StoreFailure, match=r"x\.db-wal\.left-2"):
        store.heartbeat(Work(run))
    assert beside(path, "-wal.left-1").read_text() == "mine"
    with pytest.raises(StoreFailure):
        store.close()


LEAVE = """
import os, signal, sys
from salt_tui.store.records import GenerationEnd, GenerationStart, TokenRecord, Work
from salt_tui.store.store import open_store
store = open_store(sys.argv[1])
store._connection.execute("PRAGMA wal_autocheckpoint = 0")
store.claim(Work(1))
for entry in store.pending_problems(1):
    generation = store.begin_generation(Work(1), GenerationStart(entry.id, (1,), 0))
    tokens = [TokenRecord(n, 65, n, n + 1, -0.5, 0.5, (65,) * 20, (-0.5,) * 20, False) for n in range(200)]
    store.add_tokens(generation, tokens)
    store.end_generation(generation, GenerationEnd(b"A" * 200, "end", "fenced", "complete", None, 0.1, 0.1))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left_log(path, model, run_record, problem):
    """Leave the log of a killed writer beside a database."""
    with open_store(path) as store:
        store.create_run(
            model(), tuple(bytes([value]) for value in range(256)), run_record(), [problem(n) for n in range(40)]
        )
    done = subprocess.run([sys.executable, "-c", LEAVE, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    left_journal._fitting.clear()
    return beside(path, "-wal")


@pytest.mark.process
def test_the_log_of_a_killed_run_is_taken_up(path, left_log):
    assert left_log.stat().st_size > 100_000
    with open_store(path) as store:
        assert store.pending_problems(1) == []
    assert sound(path)


@pytest.mark.process
def test_the_log_of_another_file_is_not_written_into_a_database(path, left_log, tmp_path, model, run_record, problem):
    other = tmp_path / "other.db"
    with open_store(other) as store:
        for count in (300, 7):
            store.create_run(model(), (b"x",) * 50, run_record(), [problem(n) for n in range(count)])
    content = other.read_bytes()
    other.replace(path)
    for opened in (open_store, open_queries, open_store):
        with pytest.raises(StoreError, match=r"x\.db does not fit x\.db-wal beside it.*move x\.db-wal away") as caught:
            opened(path)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == content
    left_log.rename(tmp_path / "away")
    beside(path, "-shm").unlink(missing_ok=True)
    with open_store(path) as store:
        assert len(store.pending_problems(1)) == 300
    assert sound(path)


@pytest.mark.process
def test_a_damaged_file_beside_a_log_is_called_damaged(path, left_log):
    content = bytearray(path.read_bytes())
    content[4096 : 4096 * 12] = b"\xff" * (4096 * 11)
    path.write_bytes(content)
    left = left_log.read_bytes()
    for opened in (open_store, open_queries):
        with pytest.raises(StoreError, match=r"x\.db is damaged"):
            opened(path)
    assert left_log.read_bytes() == left


def test_a_log_in_use_is_not_looked_at(path, store, create, monkeypatch):
    store.claim(Work(create()))

    def fail(*arguments):
        raise AssertionError("looked")

    with monkeypatch.context() as patch:
        patch.setattr(left_journal, "_damage", fail)
        with pytest.raises(AssertionError):
            open_store(path)
    open_store(path).close()
    assert left_journal._fitting


EXPORT = """
import os, signal, sys, time
from pathlib import Path
from salt_tui.store.placing import complete_file
with complete_file(Path(sys.argv[1]), (), database=True) as temporary:
    temporary.write_text("half")
    temporary.with_name(temporary.name + "-journal").write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.mark.process
def test_what_a_killed_export_left_is_removed_by_the_next_and_a_living_ones_stays(path, filled, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    killed, living = (
        subprocess.Popen([sys.executable, "-c", EXPORT, str(folder / name)], stdout=subprocess.PIPE, text=True)
        for name in ("killed.db", "living.db")
    )
    try:
        for process in (killed, living):
            assert process.stdout.readline() == "writing\n"
        assert len(list(folder.iterdir())) == 4
        killed.kill()
        killed.wait()
        export_work(path, Work(filled), folder / "run.csv")
        names = sorted(entry.name for entry in folder.iterdir())
        assert len(names) == 3, "the target and the two files of the one that lives"
        assert names[-1] == "run.csv"
    finally:
        for process in (killed, living):
            process.kill()
            process.wait()
            process.stdout.close()
    open_store(folder / "x.db").close()
    assert sorted(entry.name for entry in folder.iterdir()) == ["run.csv", "x.db"]


def test_only_files_of_ours_are_removed(tmp_path):
    (tmp_path / ".salt-tui-mine.new").mkdir()
    (tmp_path / ".salt-tui-notes").write_text("mine")
    (tmp_path / "far").write_text("mine")
    (tmp_path / ".salt-tui-link.new").symlink_to(tmp_path / "far")
    os.mkfifo(tmp_path / ".salt-tui-pipe.new")
    before = sorted(tmp_path.iterdir())
    remove_unfinished(tmp_path)
    remove_unfinished(tmp_path / "nowhere")
    assert sorted(tmp_path.iterdir()) == before
    with complete_file(tmp_path / "y", (), database=False) as temporary:
        remove_unfinished(tmp_path)
        assert temporary.exists()
    assert (tmp_path / "y").exists()


def test_a_damaged_database_is_named_and_not_the_file_it_is_exported_to(path, filled, store, tmp_path):
    store.release(Work(filled), "interrupted")
    store.close()
    with sqlite3.connect(path) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'token'").fetchone()[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    with open_queries(path) as queries:
        assert queries.find_run("latest") == filled
    for suffix in (".db", ".jsonl"):
        with pytest.raises(StoreError, match=rf"^{path} is damaged") as caught:
            export_work(path, Work(filled), tmp_path / f"run{suffix}")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / f"run{suffix}").exists()
