"""The writer: runs, leases, answers and the buffer."""

from __future__ import annotations

import math
import os
import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from salt_tui.store import work_writer
from salt_tui.store.queries import open_queries
from salt_tui.store.records import GenerationStart, Work
from salt_tui.store.store import StoreError, StoreFailure, open_store


def count(path, table, condition="1"):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0]
    finally:
        connection.close()


def test_problems_come_back_as_they_were_stored_with_64_bit_seeds(store, create, problem):
    pending = store.pending_problems(create())
    assert [entry.problem for entry in pending] == [problem(0), problem(1), problem(2)]
    assert pending[0].problem.seed == 2**64 - 1
    assert {(entry.generation, entry.attempt) for entry in pending} == {(None, 0)}


def test_equal_files_are_one_model_and_each_run_keeps_its_own_name(store, create, path):
    first, second, third = create(), create(name="other"), create(sha256="b" * 64)
    assert count(path, "model") == 2
    assert count(path, "vocabulary") == 512
    with open_queries(path) as queries:
        assert [queries.run_record(run).model.name for run in (first, second, third)] == ["tiny", "other", "tiny"]


def test_numbers_of_runs_are_not_used_again(store, create):
    last = create()
    store.delete_work(Work(last))
    assert create() == last + 1


def test_repeated_problems_are_refused(store, model, run_record, problem, path):
    twice = [problem(0), replace(problem(0), position=1)]
    with pytest.raises(StoreError, match="refused a row"):
        store.create_run(model(), (b"x",), run_record(), twice)
    assert count(path, "run") == count(path, "model") == 0


def test_nothing_is_visible_before_flush_and_everything_after(store, create, path, token, atom, begin):
    generation = begin(create())
    assert store.oldest_unwritten is None
    before = time.monotonic()
    store.add_tokens(generation, [token(0), token(1)])
    store.add_units(generation, [atom(0)])
    assert before <= store.oldest_unwritten <= time.monotonic()
    assert count(path, "token") == count(path, "unit") == 0
    store.flush()
    assert (count(path, "token"), count(path, "unit")) == (2, 1)
    assert store.oldest_unwritten is None


def test_after_closing_a_copy_of_the_file_alone_is_whole_though_somebody_reads(
    store, create, path, tmp_path, token, atom, begin
):
    generation = begin(create())
    with open_queries(path) as queries:
        assert queries.list_runs()
        store.add_units(generation, [atom(0)])
        store.close()
        copy = tmp_path / "copy.db"
        copy.write_bytes(path.read_bytes())
        assert count(copy, "unit") == 1


def test_a_restarted_answer_loses_tokens_units_and_revision(store, create, path, token, atom, begin):
    run = create()
    generation = begin(run)
    store.add_units(generation, [atom(0)])
    store.withdraw_units(generation, 1)
    store.add_tokens(generation, [token(0)])
    store.flush()
    store.add_tokens(generation, [token(1)])
    pending = store.pending_problems(run)[0]
    assert (pending.generation, pending.attempt) == (generation, 1)
    assert begin(run, attempt=2) == generation
    assert store.oldest_unwritten is None
    store.flush()
    assert count(path, "token") == count(path, "unit") == 0
    assert count(path, "generation", "attempt = 2 AND revision = 0 AND prompt_tokens = '[1,2,3]'") == 1


def test_withdrawing_deletes_units_and_keeps_tokens(store, create, path, token, atom, begin):
    generation = begin(create())
    store.add_units(generation, [atom(0)])
    store.flush()
    store.add_tokens(generation, [token(0)])
    store.add_units(generation, [atom(1)])
    store.withdraw_units(generation, 1)
    assert (count(path, "token"), count(path, "unit")) == (1, 0)
    store.add_units(generation, [atom(0)])
    with pytest.raises(StoreError, match="cannot be withdrawn"):
        store.withdraw_units(generation, 1)
    store.flush()
    assert count(path, "unit") == 1


def test_the_end_of_an_answer_is_one_transaction(store, create, path, token, atom, end, begin):
    run = create()
    generation = begin(run)
    store.add_tokens(generation, [token(0)])
    store.add_units(generation, [atom(0), atom(0)])
    with pytest.raises(StoreError, match="refused a row"):
        store.end_generation(generation, end())
    assert count(path, "token") == count(path, "generation", "stop_reason IS NOT NULL") == 0
    begin(run, attempt=2)
    store.add_tokens(generation, [token(0)])
    store.add_units(generation, [atom(0)])
    store.end_generation(generation, end(reply=b"A"))
    assert count(path, "unit") == count(path, "generation", "stop_reason IS NOT NULL") == 1
    assert len(store.pending_problems(run)) == 2


def test_a_finished_answer_stays_as_it_is(store, create, end, begin):
    run = create()
    problem = store.pending_problems(run)[0].id
    generation = begin(run)
    store.end_generation(generation, end())
    with pytest.raises(StoreError, match="not open"):
        store.end_generation(generation, end())
    with pytest.raises(StoreError, match="finished"):
        store.begin_generation(Work(run), GenerationStart(problem, (), 0, 2))
    with pytest.raises(StoreError, match="not open"):
        store.withdraw_units(generation, 5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_before_they_become_null(store, create, token, atom, end, value, begin):
    generation = begin(create())
    for broken in (
        replace(token(0), log_probability=value),
        replace(token(0), entropy=value),
        replace(token(0), alternative_log_probabilities=(-1.0, value)),
    ):
        with pytest.raises(StoreFailure, match="token 0 of generation"):
            store.add_tokens(generation, [token(1), broken])
    with pytest.raises(StoreError, match=r"max_probability of atom 0 of generation .* is"):
        store.add_units(generation, [replace(atom(0), confidences=(*atom(0).confidences[:4], value, *(None,) * 4))])
    with pytest.raises(StoreError, match="prompt_seconds"):
        store.end_generation(generation, replace(end(), prompt_seconds=value))
    assert store.oldest_unwritten is None


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "right"},
        {"kind": "word"},
        {"text": None},
        {"reference": None},
        {"status": "redundant"},
        {"token_end": None},
        {"byte_start": 9},
        {"index": -1},
        {"text": "\ud800"},
        {"confidences": (0.5, *(None,) * 8)},
        {"confidences": (*(None,) * 4, 1.5, *(None,) * 4)},
    ],
)
def test_rows_that_contradict_the_schema_are_refused(store, create, atom, path, changes, begin):
    generation = begin(create())
    store.add_units(generation, [replace(atom(0), **changes)])
    with pytest.raises(StoreError, match="refused a row") as caught:
        store.flush()
    assert "\n" not in str(caught.value)
    assert count(path, "unit") == 0
    begin(1, attempt=2)


def test_an_answer_that_was_not_begun_takes_no_rows(store, token):
    with pytest.raises(StoreFailure, match=r"generation 77 .* did not begin it"):
        store.add_tokens(77, [token(0)])
    assert store.oldest_unwritten is None


def test_deleting_a_run_deletes_everything_of_it_and_its_model_with_the_last(store, create, filled, path):
    other = create(count=1)
    store.release(Work(filled), "interrupted")
    store.delete_work(Work(filled))
    for table in ("generation", "token", "unit"):
        assert count(path, table) == 0
    assert (count(path, "problem"), count(path, "model"), count(path, "vocabulary")) == (1, 1, 256)
    store.delete_work(Work(other))
    assert count(path, "model") == count(path, "vocabulary") == 0
    with pytest.raises(StoreError, match=f"no run {other}"):
        store.delete_work(Work(other))


def test_a_killed_deletion_is_invisible_and_removed_by_the_next(store, create, filled, path, monkeypatch):
    store.release(Work(filled), "finished")
    last = create(count=1)

    def die():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "_remove_deleted", die)
        with pytest.raises(KeyboardInterrupt):
            store.delete_work(Work(filled))
    with open_queries(path) as queries:
        assert [listing.run for listing in queries.list_runs()] == [last]
        with pytest.raises(StoreError, match="no run"):
            queries.run_record(filled)
    for view in ("atom_view", "reliability_view"):
        assert count(path, view) == 0
    assert count(path, "run_summary") == 1
    for method in (store.claim, store.delete_work):
        with pytest.raises(StoreError, match=f"no run {filled}"):
            method(Work(filled))
    store.delete_work(Work(last))
    assert [count(path, table) for table in ("run", "problem", "generation", "unit", "model")] == [0] * 5


def test_deleting_many_answers_takes_several_transactions(store, create, path, end, monkeypatch):
    monkeypatch.setattr(work_writer, "_DELETIONS", tuple((statement, 2) for statement, _ in work_writer._DELETIONS))
    run = create(count=5)
    store.claim(Work(run))
    for entry in store.pending_problems(run):
        store.end_generation(store.begin_generation(Work(run), GenerationStart(entry.id, (), 0)), end())
    store.release(Work(run), "finished")
    store.delete_work(Work(run))
    assert [count(path, table) for table in ("run", "problem", "generation")] == [0] * 3


def test_claim_release_and_state(store, create, path):
    run = create()
    with open_queries(path) as queries:
        assert queries.list_runs()[0].state == "interrupted"
        store.claim(Work(run))
        assert queries.list_runs()[0].state == "running"
        store.heartbeat(Work(run))
        store.release(Work(run), "failed", "the engine died")
        assert (queries.list_runs()[0].state, queries.list_runs()[0].message) == ("failed", "the engine died")
        store.claim(Work(run))
        store.release(Work(run), "finished")
        listing = queries.list_runs()[0]
    assert (listing.state, listing.message) == ("finished", None)
    assert listing.finished_at is not None
    with pytest.raises(StoreError, match="not held"):
        store.heartbeat(Work(run))


def test_a_run_held_by_a_live_process_cannot_be_claimed_or_deleted(store, create, path):
    run = create()
    store.claim(Work(run))
    expected = f"process {os.getpid()} on {socket.gethostname()}"
    with open_store(path) as second:
        with pytest.raises(StoreError, match=expected) as caught:
            second.claim(Work(run))
        assert not isinstance(caught.value, StoreFailure)
        with pytest.raises(StoreError, match=expected):
            second.delete_work(Work(run))
    with pytest.raises(StoreError, match=expected):
        store.delete_work(Work(run))
    with pytest.raises(StoreError, match=expected):
        store.claim(Work(run))
    store.release(Work(run), "finished")


@pytest.mark.process
def test_the_lease_of_a_dead_process_is_taken_over(store, create, path):
    run = create()
    script = (
        "import os, sys; from salt_tui.store.store import open_store; from salt_tui.store.records import Work\n"
        "store = open_store(sys.argv[1]); store.claim(Work(int(sys.argv[2]))); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path), str(run)], check=False)
    assert done.returncode == -9
    assert count(path, "run", "state = 'running' AND lease_pid IS NOT NULL") == 1
    with open_queries(path) as queries:
        assert queries.list_runs()[0].state == "interrupted"
    store.claim(Work(run))
    store.release(Work(run), "finished")
    assert count(path, "run", "state = 'finished' AND lease_pid IS NULL") == 1


def set_lease(path, **columns):
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE run SET {', '.join(f'{name} = ?' for name in columns)}", tuple(columns.values()))
    connection.commit()
    connection.close()


def test_a_reused_process_number_is_not_the_holder(store, create, path):
    run = create()
    store.claim(Work(run))
    set_lease(path, lease_process_start="1")
    with open_store(path) as second:
        second.claim(Work(run))
        second.release(Work(run), "interrupted")
    with pytest.raises(StoreFailure, match="taken over"):
        store.heartbeat(Work(run))
    assert count(path, "run", "state = 'interrupted'") == 1


def test_another_host_is_dead_after_thirty_seconds_without_a_heartbeat(store, create, path):
    run = create()
    store.claim(Work(run))
    set_lease(path, lease_host="elsewhere")
    with open_store(path) as second:
        with pytest.raises(StoreError, match="on elsewhere"):
            second.claim(Work(run))
        set_lease(path, lease_heartbeat="2020-01-01T00:00:00.000+00:00")
        second.claim(Work(run))
        second.release(Work(run), "interrupted")
    with pytest.raises(StoreFailure, match="taken over"):
        store.release(Work(run), "finished")
    with pytest.raises(StoreFailure, match="taken over"):
        store.heartbeat(Work(run))


def test_closing_writes_what_is_buffered_and_gives_the_lease_back(path, store, create, token):
    run = create()
    second = open_store(path)
    second.claim(Work(run))
    generation = second.begin_generation(Work(run), GenerationStart(second.pending_problems(run)[0].id, (), 0))
    second.add_tokens(generation, [token(0)])
    second.close()
    second.close()
    assert count(path, "token") == 1
    assert count(path, "run", "state = 'interrupted' AND lease_pid IS NULL") == 1


def test_the_environment_can_be_replaced(store, create, path):
    run = create()
    store.update_environment(Work(run), '{"threads":4}', "new", False, ["changed"])
    with open_queries(path) as queries:
        record = queries.run_record(run).record
    assert record.environment == '{"threads":4}'
    assert (record.environment_hash, record.exact, record.warnings) == ("new", False, ("changed",))
    with pytest.raises(StoreError, match="no run 99"):
        store.update_environment(Work(99), "{}", "new", None, [])
