"""Who may write: leases in other namespaces and times, and holders that lost what they held without noticing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from salt_tui.store.lease import STALE_AFTER, own_lease
from salt_tui.store.queries import open_queries
from salt_tui.store.records import GenerationStart, SignalRecord, StudyRecord, Work
from salt_tui.store.store import StoreError, StoreFailure, open_store

OLD = "2020-01-01T00:00:00.000+00:00"


def change_lease(path, table="run", **columns):
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)}", (*columns.values(),))
    connection.close()


def content(path):
    with sqlite3.connect(path) as connection:
        rows = [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("run", "study", "generation", "token", "unit", "signal")
        ]
    connection.close()
    return rows


@pytest.fixture
def make_work(store, create):
    """Give a function that makes a run, or a study of a run, and says how to begin its first generation."""

    def make(kind):
        run = create()
        problem = store.pending_problems(run)[0].id
        if kind == "run":
            return Work(run), GenerationStart(problem, (1,), 0)
        study = StudyRecord("samples", "{}", "plan", "{}", "environment", True, ())
        return store.create_study(run, study), GenerationStart(problem, (1,), 0, role="sample")

    return make


@pytest.mark.parametrize(
    "write",
    [
        lambda store, work, start, generation, end: store.heartbeat(work),
        lambda store, work, start, generation, end: store.flush(),
        lambda store, work, start, generation, end: store.begin_generation(work, start),
        lambda store, work, start, generation, end: store.withdraw_units(generation, 1),
        lambda store, work, start, generation, end: store.end_generation(generation, end),
        lambda store, work, start, generation, end: store.update_environment(work, "{}", "x", None, ()),
        lambda store, work, start, generation, end: store.release(work, "finished"),
        lambda store, work, start, generation, end: store.set_note(work.run, "note"),
        lambda store, work, start, generation, end: store.close(),
    ],
    ids=["heartbeat", "flush", "begin", "withdraw", "end", "environment", "release", "note", "close"],
)
@pytest.mark.parametrize("kind", ["run", "study"])
def test_a_holder_that_lost_its_work_writes_nothing(path, store, make_work, token, end, kind, write):
    work, start = make_work(kind)
    store.claim(work)
    generation = store.begin_generation(work, start)
    store.add_tokens(generation, [token(0)])
    change_lease(path, kind, lease_host="elsewhere", lease_heartbeat=OLD)
    with open_store(path) as second:
        second.claim(work)
        assert second.begin_generation(work, start) == generation
        second.add_tokens(generation, [token(0), token(1)])
        second.end_generation(generation, end(reply=b"AA"))
        second.flush()
        before = content(path)
        expected = rf"{kind} {work} was taken over by process \d+ on .*; this one stops writing to it"
        with pytest.raises(StoreFailure, match=expected):
            write(store, work, start, generation, end(reply=b"A"))
        assert content(path) == before
        assert store.oldest_unwritten is None, "what was buffered for it is dropped"
        if write.__code__.co_names != ("close",):
            for later in (store.heartbeat, lambda work: store.add_tokens(generation, [token(0)])):
                with pytest.raises(StoreFailure, match=expected):
                    later(work)
        assert content(path) == before
        second.release(work, "finished")


def test_each_claim_takes_a_new_fencing_number_and_generations_remember_theirs(path, store, create):
    run = create()
    for number, problem in enumerate(store.pending_problems(run)[:2], start=1):
        store.claim(Work(run))
        store.begin_generation(Work(run), GenerationStart(problem.id, (1,), 0))
        assert content(path)[0][0][-1] == number
        store.release(Work(run), "interrupted")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT fence FROM generation ORDER BY id").fetchall() == [(1,), (2,)]
    connection.close()


def test_a_holder_that_lost_its_work_may_take_it_up_again(path, store, create):
    run = create()
    store.claim(Work(run))
    change_lease(path, lease_host="elsewhere", lease_heartbeat=OLD)
    with open_store(path) as second:
        second.claim(Work(run))
        second.release(Work(run), "interrupted")
    with pytest.raises(StoreFailure, match="taken over by another process"):
        store.heartbeat(Work(run))
    store.claim(Work(run))
    store.heartbeat(Work(run))
    store.release(Work(run), "finished")


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells the dead from the living")
def test_a_killed_process_that_its_parent_has_not_waited_for_is_dead(store, create, path):
    run = create()
    script = (
        "import sys, time; from salt_tui.store.store import open_store; from salt_tui.store.records import Work\n"
        "store = open_store(sys.argv[1]); store.claim(Work(int(sys.argv[2]))); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path), str(run)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with open_queries(path) as queries:
            assert queries.run_record(run).state == "running"
            holder.kill()
            os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the process table
            assert queries.list_runs()[0].state == queries.run_record(run).state == "interrupted"


def test_one_that_was_deleted_meanwhile_is_named_so(path, store, create):
    run = create()
    store.claim(Work(run))
    change_lease(path, lease_host="elsewhere", lease_heartbeat=OLD)
    with open_store(path) as second:
        second.delete_work(Work(run))
    with pytest.raises(StoreFailure, match=f"run {run} was deleted by another process"):
        store.release(Work(run), "finished")


def test_what_the_holder_of_one_run_lost_does_not_stop_another(path, store, create, token):
    first, second = create(), create()
    generations = []
    for run in (first, second):
        store.claim(Work(run))
        problem = store.pending_problems(run)[0].id
        generations.append(store.begin_generation(Work(run), GenerationStart(problem, (1,), 0)))
        store.add_tokens(generations[-1], [token(0)])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE run SET fence = fence + 1 WHERE id = ?", (first,))
    connection.close()
    with pytest.raises(StoreFailure, match=f"run {first} was taken over"):
        store.flush()
    store.flush()
    assert [row[0] for row in content(path)[3]] == [generations[1]]
    store.release(Work(second), "finished")


@pytest.mark.parametrize(
    ("ahead", "live"),
    [
        (timedelta(0), True),
        (STALE_AFTER - timedelta(seconds=5), True),
        (timedelta(days=30_000), False),
        (-STALE_AFTER + timedelta(seconds=5), True),
        (-STALE_AFTER - timedelta(seconds=1), False),
    ],
)
@pytest.mark.parametrize("column", ["lease_host", "lease_namespace"])
def test_a_lease_from_elsewhere_lives_by_its_heartbeat_and_not_in_the_future(path, store, create, column, ahead, live):
    # The process of the lease exists here: its number says nothing in another namespace or on another machine.
    run = create()
    store.claim(Work(run))
    change_lease(path, **{column: "elsewhere", "lease_heartbeat": (datetime.now(UTC) + ahead).isoformat()})
    with open_store(path) as second, open_queries(path) as queries:
        assert queries.list_runs()[0].state == ("running" if live else "interrupted")
        if live:
            with pytest.raises(StoreError, match=f"run {run} is being computed by process"):
                second.claim(Work(run))
        else:
            second.claim(Work(run))
            second.release(Work(run), "interrupted")
            with pytest.raises(StoreFailure, match="taken over"):
                store.heartbeat(Work(run))


HOLD = """
import sys, time
from salt_tui.store.records import Work
from salt_tui.store.store import open_store
with open_store(sys.argv[1]) as store:
    store.claim(Work(int(sys.argv[2])))
    print("claimed", flush=True)
    sys.stdin.read()
"""


@pytest.mark.process
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_run_in_a_container_is_not_taken_for_dead_from_outside(path, store, create):
    run = create()
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("namespaces cannot be made here")
    holder = subprocess.Popen(
        [*inside, sys.executable, "-c", HOLD, str(path), str(run)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout.readline() == "claimed\n"
        with pytest.raises(StoreError, match=f"run {run} is being computed by process"):
            store.claim(Work(run))
        holder.stdin.close()
        assert holder.wait(30) == 0
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    store.claim(Work(run))
    store.release(Work(run), "finished")


def test_a_lease_names_where_its_process_number_holds():
    lease = own_lease()
    assert (lease.namespace is not None) == sys.platform.startswith("linux")
    assert own_lease().namespace == lease.namespace


def test_signals_of_a_study_that_was_lost_are_dropped_with_it(path, store, create, begin, finish, atom):
    run = create(count=1)
    answer = begin(run)
    finish(answer, [atom(0)])
    store.release(Work(run), "finished")
    work = store.create_study(run, StudyRecord("combine", "{}", "plan", "{}", "environment", True, ()))
    store.claim(work)
    store.add_signals(work, [SignalRecord(answer, "atom", 0, "agreement", 0.5)])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE study SET fence = 7")
    connection.close()
    with pytest.raises(StoreFailure, match=f"study {run}.1 was taken over"):
        store.flush()
    assert content(path)[5] == []
