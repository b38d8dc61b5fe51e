"""A database that goes away while it is being written, and leases that could not be given back."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from salt_tui.store.errors import StoreFailure
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.store import StoreError, open_store

CLAIM = """
import sys
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
open_store(sys.argv[1]).claim(Work(int(sys.argv[2])))
"""


def beside(path, suffix):
    return path.with_name(path.name + suffix)


def replace(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize(
    ("suffix", "change", "how"),
    [
        ("", Path.unlink, "deleted or moved away"),
        ("", lambda path: path.rename(path.with_name("moved.db")), "deleted or moved away"),
        ("", replace, "replaced by another file"),
        ("-wal", Path.unlink, "deleted or moved away"),
        ("-wal", replace, "replaced by another file"),
        ("-shm", Path.unlink, "deleted or moved away"),
    ],
)
def test_a_file_that_goes_away_is_noticed_by_whatever_writes_next(
    path, create, begin, store, token, end, suffix, change, how
):
    run = create()
    generation = begin(run)
    store.add_tokens(generation, [token(0)])
    change(beside(path, suffix))
    writes = (
        lambda: store.heartbeat(Work(run)),
        store.flush,
        lambda: store.end_generation(generation, end()),
        lambda: store.release(Work(run), "finished"),
        store.close,
    )
    for write in writes:
        with pytest.raises(StoreFailure, match=how) as caught:
            write()
        assert str(beside(path, suffix)) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_link_that_leads_elsewhere_is_another_file(tmp_path, model, run_record, problem):
    (tmp_path / "x.db").symlink_to(tmp_path / "one.db")
    with open_store(tmp_path / "one.db") as store:
        run = store.create_run(model(), (b"a",), run_record(), [problem(0)])
    store = open_store(tmp_path / "x.db")
    store.claim(Work(run))
    (tmp_path / "x.db").unlink()
    (tmp_path / "x.db").symlink_to(tmp_path / "two.db")
    open_store(tmp_path / "two.db").close()
    with pytest.raises(StoreFailure, match="replaced by another file"):
        store.heartbeat(Work(run))
    with pytest.raises(StoreFailure):
        store.close()


@pytest.mark.process
def test_what_other_programs_may_do_to_a_file_raises_no_alarm(path, create, begin, store, token):
    run = create()
    generation = begin(run)
    others = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA wal_checkpoint(TRUNCATE)')"
    for position, script in enumerate((others, others + "; c.execute('VACUUM')")):
        store.add_tokens(generation, [token(position)])
        store.flush()
        open_queries(path).close()
        open_store(path).close()
        subprocess.run([sys.executable, "-c", script, str(path)], check=True)
        store.heartbeat(Work(run))
    store.release(Work(run), "interrupted")
    with open_queries(path) as queries:
        assert len(queries.tokens(generation)) == 2


@pytest.fixture
def left_over(path, model, run_record, problem, monkeypatch):
    """Store a run whose lease this process could not give back."""
    monkeypatch.setattr("salt_tui.store.writer.CLAIMED_BUSY_TIMEOUT", 0.05)
    store = open_store(path, busy_timeout=0.05)
    run = store.create_run(model(), (b"a",), run_record(), [problem(0)])
    store.claim(Work(run))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailure):
        store.close()
    other.execute("COMMIT")
    other.close()
    return run


@pytest.mark.process
def test_a_lease_that_could_not_be_given_back_holds_up_only_other_processes(path, left_over):
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT state, lease_pid IS NULL FROM run").fetchall() == [("running", 0)]
    with open_queries(path) as queries:
        assert queries.list_runs()[0].state == "interrupted"
        assert queries.run_record(left_over).state == "interrupted"
    elsewhere = subprocess.run(
        [sys.executable, "-c", CLAIM, str(path), str(left_over)], capture_output=True, text=True, check=False
    )
    assert "is being computed by process" in elsewhere.stderr
    with open_store(path) as store, open_queries(path) as queries:
        store.claim(Work(left_over))
        assert queries.list_runs()[0].state == "running"
        with open_store(path) as second, pytest.raises(StoreError, match="this very process"):
            second.claim(Work(left_over))
        store.release(Work(left_over), "finished")
        assert queries.list_runs()[0].state == "finished"


def test_a_run_whose_lease_could_not_be_given_back_can_be_deleted(path, left_over):
    with open_store(path) as store:
        store.delete_work(Work(left_over))
    with open_queries(path) as queries:
        assert queries.list_runs() == []


def test_a_lease_belongs_to_one_database(tmp_path, model, run_record, problem):
    paths = [tmp_path / "one.db", tmp_path / "two.db"]
    for path in paths:
        with open_store(path) as store:
            store.create_run(model(), (b"a",), run_record(), [problem(0)])
    with open_store(paths[0]) as one, open_store(paths[1]) as two:
        one.claim(Work(1))
        two.claim(Work(1))
        two.release(Work(1), "interrupted")
        with open_store(paths[0]) as again, pytest.raises(StoreError, match="this very process"):
            again.claim(Work(1))


def test_of_many_threads_one_gets_the_run(path, left_over):
    got, refused = [], []
    begin = threading.Barrier(4)

    def work():
        store = open_store(path)
        begin.wait()
        try:
            store.claim(Work(left_over))
            got.append(store)
        except StoreError as error:
            refused.append(str(error))
            store.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1
    assert len(refused) == 3
    assert all("this very process" in line for line in refused)
    got[0].close()
