"""Killed writers, full disks and other programs that hold the lock, all of them real."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from salt_tui.store.errors import StoreFailure
from salt_tui.store.queries import open_queries
from salt_tui.store.records import GenerationStart, Work
from salt_tui.store.store import StoreError, open_store

WRITER = """
import sys
from salt_tui.store.records import GenerationEnd, GenerationStart, TokenRecord, UnitRecord, Work
from salt_tui.store.store import open_store
store = open_store(sys.argv[1])
run = int(sys.argv[2])
store.claim(Work(run))
print("claimed", flush=True)
for entry in store.pending_problems(run):
    generation = store.begin_generation(Work(run), GenerationStart(entry.id, (1, 2), 1, entry.attempt + 1))
    for position in range(10):
        store.add_tokens(generation, [TokenRecord(position, 65, position, position + 1, -0.5, 0.5, (65,) * 20,
            (-0.5,) * 20, False)])
        store.add_units(generation, [UnitRecord("atom", position, 0, "A", "A", "correct", position, position + 1,
            position, position + 1, (1.5, 0.4, 0.5, 0.5, 0.5, -0.4, 0.3, 0.3, 0.5))])
        if position == 6:
            store.withdraw_units(generation, 1)
        elif position % 3 == 0:
            store.flush()
    store.end_generation(generation, GenerationEnd(b"A" * 10, "end", "fenced", "complete", None, 0.1, 0.1))
store.release(Work(run), "finished")
"""

LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
"""


def new_run(path, model, run_record, problem, count):
    with open_store(path) as store:
        vocabulary = tuple(bytes([value]) for value in range(256))
        return store.create_run(model(), vocabulary, run_record(), [problem(index) for index in range(count)])


def check(path):
    """Assert that the file is sound and every finished answer whole; return how many are finished."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    rows = connection.execute(
        "SELECT (SELECT count(*) FROM token WHERE generation = generation.id), count(unit.status), revision"
        " FROM generation LEFT JOIN unit ON unit.generation = generation.id WHERE stop_reason IS NOT NULL"
        " GROUP BY generation.id"
    ).fetchall()
    connection.close()
    assert set(rows) <= {(10, 3, 1)}
    return len(rows)


@pytest.mark.process
def test_a_writer_killed_at_any_moment_leaves_no_half_answer_marked_done(path, model, run_record, problem):
    answers = 400
    run = new_run(path, model, run_record, problem, answers)
    moments = random.Random(7)
    done = [0]
    for _ in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(run)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout.readline() == "claimed\n"
        time.sleep(moments.uniform(0.005, 0.08))
        writer.kill()
        assert writer.wait() == -signal.SIGKILL
        writer.stdout.close()
        done.append(check(path))
        assert done[-1] >= done[-2]
    assert 0 < done[-1] < answers
    subprocess.run([sys.executable, "-c", WRITER, str(path), str(run)], check=True, stdout=subprocess.DEVNULL)
    assert check(path) == answers
    with open_queries(path) as queries:
        listing = queries.list_runs()[0]
    assert (listing.state, listing.answers_done) == ("finished", answers)


@pytest.mark.process
def test_a_full_disk_is_one_line_and_nothing_is_half_written(path, model, run_record, problem):
    run = new_run(path, model, run_record, problem, 400)
    script = "import sys\n" + LIMITED + "from salt_tui.store.errors import StoreError\ntry:\n"
    script += "".join(f"    {line}\n" for line in WRITER.splitlines() if line)
    script += "except StoreError as error:\n    print(error)\n    sys.exit(2)\n"
    limit = path.stat().st_size + 400_000
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(run), str(limit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    claimed, message = done.stdout.splitlines()
    assert claimed == "claimed"
    assert str(path) in message
    finished = check(path)
    assert 0 < finished < 400
    subprocess.run([sys.executable, "-c", WRITER, str(path), str(run)], check=True, stdout=subprocess.DEVNULL)
    assert check(path) == 400


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small disk")
@pytest.mark.process
def test_a_disk_without_space_keeps_what_was_committed_and_goes_on_when_there_is_room(
    tmp_path, model, run_record, problem, token, end
):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        path = disk / "x.db"
        run = new_run(path, model, run_record, problem, 2)
        with open_store(path) as store:
            store.claim(Work(run))
            first, second = (entry.id for entry in store.pending_problems(run))
            done = store.begin_generation(Work(run), GenerationStart(first, (1,), 0))
            store.end_generation(done, end())
            generation = store.begin_generation(Work(run), GenerationStart(second, (1,), 0))
            ballast = disk / "ballast"
            ballast.write_bytes(b"x" * (disk_free(disk) - 64 * 1024))
            store.add_tokens(generation, [token(position) for position in range(20_000)])
            with pytest.raises(StoreFailure, match=r"is full|could not be written") as caught:
                store.end_generation(generation, end(reply=b"A" * 20_000))
            assert "\n" not in str(caught.value)
            assert [entry.id for entry in store.pending_problems(run)] == [second]
            ballast.unlink()
            store.begin_generation(Work(run), GenerationStart(second, (1,), 0, 2))
            store.end_generation(generation, end())
            store.release(Work(run), "finished")
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM token").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        ballast.write_bytes(b"x" * disk_free(disk))
        with pytest.raises(StoreError) as caught:
            open_store(disk / "new.db")
        assert "\n" not in str(caught.value)
        assert sorted(entry.name for entry in disk.iterdir()) == ["ballast", "x.db"]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def disk_free(folder):
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def test_a_lock_held_by_another_program_is_waited_for_and_then_one_line(path, model, run_record, problem):
    new_run(path, model, run_record, problem, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = open_store(path, busy_timeout=0.2)
    begin = time.monotonic()
    with pytest.raises(StoreFailure, match="locked by another program") as caught:
        store.claim(Work(1))
    assert time.monotonic() - begin > 0.15, "it waited"
    assert "\n" not in str(caught.value)
    with open_queries(path) as queries:
        assert len(queries.list_runs()) == 1
    other.execute("COMMIT")
    other.close()
    store.claim(Work(1))
    store.release(Work(1), "finished")
    store.close()


def test_a_claimed_run_waits_longer_for_a_lock_than_opening_did(path, model, run_record, problem, token, end):
    run = new_run(path, model, run_record, problem, 1)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with open_store(path, busy_timeout=0.1) as store:
        store.claim(Work(run))
        generation = store.begin_generation(Work(run), GenerationStart(store.pending_problems(run)[0].id, (1,), 0))
        store.add_tokens(generation, [token(0)])
        for write in (
            store.flush,
            lambda: store.heartbeat(Work(run)),
            lambda: store.end_generation(generation, end(reply=b"A")),
        ):
            other.execute("BEGIN IMMEDIATE")
            release = threading.Timer(0.6, other.execute, ("COMMIT",))
            release.start()
            write()
            release.join()
        store.release(Work(run), "interrupted")
    other.close()
    with open_queries(path) as queries:
        assert queries.list_runs()[0].state == "interrupted"


def test_a_lock_that_outlasts_a_claimed_run_is_one_failure_and_the_way_out_is_short(
    path, model, run_record, problem, monkeypatch, token
):
    monkeypatch.setattr("salt_tui.store.writer.CLAIMED_BUSY_TIMEOUT", 1.0)
    run = new_run(path, model, run_record, problem, 1)
    other = sqlite3.connect(path, isolation_level=None)
    store = open_store(path, busy_timeout=0.1)
    store.claim(Work(run))
    generation = store.begin_generation(Work(run), GenerationStart(store.pending_problems(run)[0].id, (1,), 0))
    store.add_tokens(generation, [token(0)])
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    with pytest.raises(StoreFailure, match="locked by another program"):
        store.flush()
    assert time.monotonic() - begin > 0.9
    begin = time.monotonic()
    with pytest.raises(StoreFailure):
        store.close()
    assert time.monotonic() - begin < 0.9
    other.execute("COMMIT")
    other.close()
    with pytest.raises(StoreError, match="closed"):
        store.create_run(model(sha256="c" * 64), (b"x",), run_record(), [])


@pytest.mark.process
def test_two_programs_may_create_one_file_at_once(path):
    script = "import sys; from salt_tui.store.store import open_store; open_store(sys.argv[1]).close()"
    both = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(3)]
    assert [process.wait() for process in both] == [0, 0, 0]
    assert [entry.name for entry in path.parent.iterdir() if "x.db" in entry.name] == ["x.db"]
