"""The loop on the scripted engine: what is stored, what is reported, and what a crash or a stop leaves."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from salt_tui.engine.models import load_registry, open_engine, resolve_model
from salt_tui.engine.options import ContextOptions
from salt_tui.engine.process import EngineProcess
from salt_tui.measure.run_report import report_run
from salt_tui.reports.json_report import run_data
from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    AtomScored,
    NoProgress,
    Notice,
    RunEnded,
    RunEvent,
    RunStarted,
)
from salt_tui.runner.loop import Loop
from salt_tui.runner.model_identity import FileIdentity
from salt_tui.runner.opened_model import load_model
from salt_tui.runner.plan import Environment
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import EngineOptions, RunRequest
from salt_tui.runner.restart_check import difference_after_restart
from salt_tui.runner.resumption import environment_differences, prepare_resume
from salt_tui.store.queries import open_queries
from salt_tui.store.records import Work
from salt_tui.store.schema import CONFIDENCE_COLUMNS
from salt_tui.store.store import Store, StoreError
from salt_tui.usage_error import UsageError
from scoring.confidence import CONFIDENCE_FUNCTIONS

TASKS = ("kronecker_product", "dna_translation")

CONTENT = (
    "SELECT problem.task, problem.position, token.position, token.id, log_probability, entropy, alternatives"
    " FROM token JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3",
    'SELECT problem.task, problem.position, kind, "index", unit.text, status, max_probability, perplexity'
    " FROM unit JOIN generation ON generation.id = unit.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3, 4",
)


def request(model: Path, tasks: tuple[str, ...] = TASKS, limit: int = 3) -> RunRequest:
    return RunRequest(str(model), tasks, "trivial", limit, 1)


def compute(asked: RunRequest, database: Path, stop_after: int | None = None) -> tuple[str, list[RunEvent]]:
    """Run, or stop after so many atoms; return the state and the events."""
    events: list[RunEvent] = []
    stop = threading.Event()

    def emit(event: RunEvent) -> None:
        events.append(event)
        if stop_after is not None and sum(isinstance(item, AtomScored) for item in events) >= stop_after:
            stop.set()

    ready = prepare_run(asked, database, emit)
    try:
        return Loop(ready, emit, stop).run(), events
    finally:
        ready.close()


def resume(database: Path) -> tuple[str, list[RunEvent]]:
    events: list[RunEvent] = []
    with open_queries(database) as queries:
        stored = queries.run_record(queries.find_run("latest"))
    ready = prepare_resume(stored, database, events.append, allow_environment_change=False, threads=None)
    try:
        return Loop(ready, events.append, threading.Event()).run(), events
    finally:
        ready.close()


def _environment(exactness: dict[str, float], *, exact: bool) -> Environment:
    return Environment(
        "1", "3.11", "llama.cpp", {}, (), "auto", 0, False, 2, 512, 512, "f16", "f16", True, exactness, exact
    )


def content(database: Path) -> list[list[tuple[object, ...]]]:
    with sqlite3.connect(database) as connection:
        return [connection.execute(query).fetchall() for query in CONTENT]


def of_kind(events: list[RunEvent], kind: Callable[..., object]) -> list[RunEvent]:
    return [event for event in events if isinstance(event, kind)]  # type: ignore[arg-type]


def test_the_store_has_one_column_per_confidence_function() -> None:
    assert tuple(CONFIDENCE_FUNCTIONS) == CONFIDENCE_COLUMNS


def test_a_run_ends_finished_with_every_answer_scored(scripted_model, tmp_path: Path) -> None:
    state, events = compute(request(scripted_model(*TASKS)), tmp_path / "x.db")
    assert state == "finished"
    assert len(of_kind(events, RunStarted)) == 1
    assert isinstance(events[-1], RunEnded)
    finished = of_kind(events, AnswerFinished)
    assert sorted((event.task, event.position) for event in finished) == [
        (task, position) for task in sorted(TASKS) for position in range(3)
    ]
    assert {event.answer_status for event in finished} == {"complete"}


def test_what_an_answer_is_planned_to_take_comes_from_the_references_and_the_limit(
    scripted_model, tmp_path: Path
) -> None:
    asked = request(scripted_model(*TASKS))
    for limit, name in ((None, "a.db"), (3, "b.db"), (5000, "c.db")):
        _, events = compute(replace(asked, max_tokens=limit), tmp_path / name)
        started = of_kind(events, RunStarted)[0]
        assert isinstance(started, RunStarted)
        with open_queries(tmp_path / name) as queries:
            limits = {task["task"]: task["max_tokens"] for task in queries.run_plan(1)["tasks"]}
            references = [(answer.problem.task, answer.problem.reference) for answer in queries.answers(1)]
        for task in started.tasks:
            longest = max(len(reference) for name, reference in references if name == task.task)
            assert task.planned_tokens == min(limits[task.task], 2 * longest + 32)


def test_the_rows_of_unit_add_up_to_the_report(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    compute(request(scripted_model(*TASKS)), database)
    data = run_data(report_run(database, "latest"))
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "SELECT problem.task, sum(status != 'missing'), sum(status = 'correct') FROM unit"
            " JOIN generation ON generation.id = unit.generation JOIN problem ON problem.id = generation.problem"
            " WHERE kind = 'atom' GROUP BY 1"
        ).fetchall()
    assert rows
    for task, atoms, correct in rows:
        assert data["tasks"][task]["atoms"] == atoms
        assert data["tasks"][task]["correct"] == correct
        assert data["tasks"][task]["precision"] == correct / atoms


def test_every_atom_event_is_a_row(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    _, events = compute(request(scripted_model(*TASKS)), database)
    with sqlite3.connect(database) as connection:
        stored = set(
            connection.execute("SELECT generation, kind, \"index\", text, status FROM unit WHERE kind != 'generation'")
        )
    said = {
        (event.generation, event.kind, event.index, event.text, event.status) for event in of_kind(events, AtomScored)
    }
    assert said == stored


def test_width_and_order_do_not_change_what_is_stored(scripted_model, tmp_path: Path) -> None:
    asked = request(scripted_model(*TASKS))
    compute(asked, tmp_path / "a.db")
    compute(replace(asked, tasks=TASKS[::-1]), tmp_path / "b.db")
    assert content(tmp_path / "a.db") == content(tmp_path / "b.db")


@pytest.mark.parametrize("atoms", [1, 9, 18])
def test_stopped_and_resumed_equals_uninterrupted(scripted_model, tmp_path: Path, atoms: int) -> None:
    asked = request(scripted_model(*TASKS, seconds_per_step=0.002))
    compute(asked, tmp_path / "whole.db")
    state, before = compute(asked, tmp_path / "halves.db", stop_after=atoms)
    assert state == "interrupted"
    state, after = resume(tmp_path / "halves.db")
    assert state == "finished"
    assert content(tmp_path / "halves.db") == content(tmp_path / "whole.db")
    done = len(of_kind(before, AnswerFinished))
    assert sum(task.done for task in of_kind(after, RunStarted)[0].tasks) == done
    assert done + len(of_kind(after, AnswerFinished)) == 6


def test_a_crash_is_one_line_and_the_answer_is_tried_again_once(scripted_model, tmp_path: Path) -> None:
    model = scripted_model(*TASKS, crash={"after": 3, "signal": 11, "times": 1})
    state, events = compute(request(model), tmp_path / "x.db")
    assert state == "finished"
    notices = [event.text for event in of_kind(events, Notice)]
    assert len(notices) == 1
    assert "SIGSEGV" in notices[0]
    assert of_kind(events, AnswerRetried)
    assert {event.answer_status for event in of_kind(events, AnswerFinished)} == {"complete"}


def test_an_answer_that_always_crashes_is_failed_and_left_out(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, crash={"after": 3, "signal": 9, "times": 99})
    state, _ = compute(request(model), database)
    data = run_data(report_run(database, "latest"))
    assert state == "finished"
    statuses = [task["statuses"] for task in data["tasks"].values()]
    assert sum(status.get("failed", 0) for status in statuses) >= 1
    assert data["tasks"]["kronecker_product"]["left_out"] >= 1
    with sqlite3.connect(database) as connection:
        failed = connection.execute(
            "SELECT count(token.id) FROM generation LEFT JOIN token ON token.generation = generation.id"
            " WHERE answer_status = 'failed'"
        ).fetchone()
    assert failed == (0,)


@pytest.mark.parametrize("width", [1, 4])
def test_an_engine_that_always_crashes_fails_the_run_and_resuming_computes_what_is_open(
    scripted_model, tmp_path: Path, width: int
) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, crash={"after": 1, "signal": 9, "times": 99}, crash_always=True)
    state, events = compute(replace(request(model), engine=EngineOptions(width=width)), database)
    assert state == "failed"
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert "3 times without finishing an answer" in str(last.message)
    assert len(of_kind(events, Notice)) == 2
    failed = of_kind(events, AnswerFinished)
    assert {event.answer_status for event in failed} == {"failed"}
    assert 1 <= len(failed) <= width
    for reply in range(6):
        model.with_name(f"{model.name}.crash-{reply}").write_bytes(b"x" * 99)  # the script's crashes are used up
    state, events = resume(database)
    assert state == "finished"
    # Nothing could be computed, so the cause lay outside: those that were tried twice are open again, too.
    assert [event.answer_status for event in of_kind(events, AnswerFinished)] == ["complete"] * 6


def test_the_lease_is_kept_alive_while_a_model_is_loaded_and_loaded_again(
    scripted_model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[str] = []
    doing = ["nothing"]
    beat, result, restart = Store.heartbeat, FileIdentity.sha256, EngineProcess.restart

    def heartbeat(self: Store, work: Work) -> None:
        beats.append(doing[-1])
        beat(self, work)

    def slow_result(self: FileIdentity, *arguments: Callable[[], None]) -> str:
        doing.append("hash")
        self._hash._thread = threading.Thread(target=time.sleep, args=(0.05,))
        self._hash._thread.start()
        try:
            return result(self, *arguments)
        finally:
            doing.pop()

    def marked_restart(self: EngineProcess) -> None:
        doing.append("restart")
        restart(self)
        doing.pop()

    model = scripted_model(*TASKS, crash={"after": 3, "signal": 9, "times": 1}, seconds_per_step=0.02)
    compute(request(model), tmp_path / "x.db", stop_after=1)
    model.with_name(f"{model.name}.crash-1").unlink(missing_ok=True)
    monkeypatch.setattr("salt_tui.runner.heartbeat.HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr("salt_tui.runner.model_identity.WAITING_SECONDS", 0.01)
    monkeypatch.setattr(Store, "heartbeat", heartbeat)
    monkeypatch.setattr(FileIdentity, "sha256", slow_result)
    monkeypatch.setattr(EngineProcess, "restart", marked_restart)
    with open_queries(tmp_path / "x.db") as queries:
        stored = queries.run_record(1)
    ready = prepare_resume(stored, tmp_path / "x.db", lambda event: None, allow_environment_change=False, threads=None)
    try:
        assert {"nothing", "hash"} <= set(beats)
        assert Loop(ready, lambda event: None, threading.Event()).run() == "finished"
        assert "restart" in beats
        count = len(beats)
        assert ready.engine.vocabulary()
        assert len(beats) == count  # the lease has been given back
    finally:
        ready.close()


def test_resume_names_another_model_file(scripted_model, tmp_path: Path) -> None:

    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, seconds_per_step=0.002)
    compute(request(model), database, stop_after=5)
    model.write_text(model.read_text() + " ")
    with pytest.raises(UsageError, match="needs another model than"):
        resume(database)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("DELETE FROM problem WHERE id = (SELECT max(id) FROM problem)", "lacks 1 of the problems that its plan asks"),
        ("UPDATE problem SET content_id = 'x' WHERE id = 1", "a problem that its plan does not ask"),
        ("UPDATE problem SET position = 99 WHERE id = 1", "a problem that its plan does not ask"),
    ],
)
def test_a_run_whose_problems_are_not_those_of_its_plan_does_not_go_on(
    scripted_model, tmp_path: Path, edit: str, said: str
) -> None:
    database = tmp_path / "x.db"
    compute(request(scripted_model(*TASKS, seconds_per_step=0.002)), database, stop_after=2)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(edit)
    with pytest.raises(StoreError, match=said):
        resume(database)


def test_a_run_that_is_not_exact_says_so_and_resumes(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, exactness={"company": 0.5, "slots": 0.25})
    _, events = compute(request(model), database, stop_after=5)
    state, again = resume(database)
    assert state == "finished"
    for started in (*of_kind(events, RunStarted), *of_kind(again, RunStarted)):
        assert isinstance(started, RunStarted)
        assert started.exact is False
        assert any("not exact" in warning and "0.5" in warning for warning in started.warnings)


def test_what_was_measured_may_differ_when_a_run_is_not_exact_anyway() -> None:
    before = _environment({"company": 0.5}, exact=False)
    assert environment_differences(before, _environment({"company": 0.25}, exact=False)) == ()
    assert environment_differences(before, _environment({"company": 0.0}, exact=True)) == ()
    exact = _environment({"company": 0.0}, exact=True)
    assert "exact: true -> false" in environment_differences(exact, before)
    threads = replace(before, threads=3)
    assert environment_differences(before, threads) == ("threads: 2 -> 3",)


def test_a_restart_is_compared_token_by_token(tmp_path: Path) -> None:
    script = tmp_path / "any.scripted.json"
    script.write_text(json.dumps({"replies": [{"tokens": [["a", -0.25]] * 6}, {"tokens": [["b", -0.5]] * 6}]}))
    resolved = resolve_model(str(script), load_registry())
    with open_engine(resolved, tmp_path / "log") as engine:
        load_model(engine, resolved, EngineOptions(), "2026-01-02", lambda event: None)
        engine.open_context(ContextOptions(2, 256, 64, 64, 1, "auto", "f16", "f16", check="none"))
        assert difference_after_restart(engine, 2) == 0.0
        script.write_text(script.read_text().replace("-0.25", "-0.75"))  # the next child plays another script
        assert difference_after_restart(engine, 2) > 0


def test_a_child_that_stands_still_is_named_and_then_started_again(
    scripted_model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("salt_tui.runner.watchdog.FIRST_WORD_SECONDS", 0.3)
    monkeypatch.setattr("salt_tui.runner.watchdog.LEAST_PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr("salt_tui.runner.watchdog.PATIENCE_FACTOR", 0.0)
    compute(request(scripted_model(*TASKS)), tmp_path / "whole.db")
    events: list[RunEvent] = []
    ready = prepare_run(
        request(scripted_model(*TASKS, seconds_per_step=0.01)), tmp_path / "halted.db", lambda event: None
    )
    engine = ready.engine
    assert isinstance(engine, EngineProcess)

    def emit(event: RunEvent) -> None:
        events.append(event)
        if len(of_kind(events, AtomScored)) == 3 and isinstance(event, AtomScored):
            os.kill(engine.process_id, signal.SIGSTOP)

    try:
        assert Loop(ready, emit, threading.Event()).run() == "finished"
    finally:
        ready.close()
    silences = of_kind(events, NoProgress)
    assert [isinstance(event, NoProgress) and event.waiting_for.startswith("the ") for event in silences][:1] == [True]
    assert any("made no progress" in event.text for event in events if isinstance(event, Notice))
    assert content(tmp_path / "halted.db") == content(tmp_path / "whole.db")


def test_a_run_in_which_nothing_could_be_computed_has_failed(scripted_model, tmp_path: Path) -> None:
    other_problems = scripted_model(*TASKS, seed=2)
    state, events = compute(request(other_problems), tmp_path / "x.db")
    assert state == "failed"
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert last.message == "nothing could be computed: the script has no reply to this prompt"


def test_an_engine_that_must_load_again_refuses_another_model(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS, seconds_per_step=0.01)
    ready = prepare_run(request(model), database, lambda event: None)
    engine = ready.engine
    assert isinstance(engine, EngineProcess)
    other = tmp_path / "other"
    other.write_text(model.read_text() + " ")
    events: list[RunEvent] = []

    def emit(event: RunEvent) -> None:
        events.append(event)
        if isinstance(event, AtomScored) and other.exists():
            other.replace(model)
            os.kill(engine.process_id, signal.SIGKILL)

    try:
        assert Loop(ready, emit, threading.Event()).run() == "failed"
    finally:
        ready.close()
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert "its file holds another model by now" in str(last.message)


def test_a_model_that_is_written_to_in_use_makes_the_run_not_exact(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    model = scripted_model(*TASKS)
    ready = prepare_run(request(model), database, lambda event: None)
    model.write_text(model.read_text() + " ")
    try:
        assert Loop(ready, lambda event: None, threading.Event()).run() == "finished"
    finally:
        ready.close()
    with open_queries(database) as queries:
        record = queries.run_record(1).record
    assert record.exact is False
    assert "was written into the model's file" in record.warnings[-1]
    assert json.loads(record.environment)["exact"] is False


def test_resume_refuses_when_a_stored_prompt_is_rendered_otherwise(scripted_model, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    compute(request(scripted_model(*TASKS, seconds_per_step=0.002)), database, stop_after=5)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE generation SET prompt_tokens = json_insert(prompt_tokens, '$[#]', 1) WHERE id = 1")
    with pytest.raises(UsageError, match="the prompt of answer 1 of kronecker_product is another than it was"):
        resume(database)
    with open_queries(database) as queries:
        assert queries.run_record(1).state == "interrupted"


def test_a_cancelled_answer_was_only_skipped_and_is_computed_on_resume(scripted_model, tmp_path: Path) -> None:
    compute(request(scripted_model(*TASKS)), tmp_path / "whole.db")
    database = tmp_path / "x.db"
    ready = prepare_run(request(scripted_model(*TASKS, seconds_per_step=0.02)), database, lambda event: None)
    events: list[RunEvent] = []

    def emit(event: RunEvent) -> None:
        events.append(event)
        if isinstance(event, AtomScored) and len(of_kind(events, AtomScored)) == 1:
            loop.cancel(event.generation)

    loop = Loop(ready, emit, threading.Event())
    try:
        assert loop.run() == "interrupted"
    finally:
        ready.close()
    statuses = sorted(event.answer_status for event in events if isinstance(event, AnswerFinished))
    assert statuses == ["cancelled", *["complete"] * 5]
    last = events[-1]
    assert isinstance(last, RunEnded)
    assert last.message == "1 answer was cancelled; resuming computes what was cancelled"
    state, events = resume(database)
    assert state == "finished"
    assert len(of_kind(events, AnswerFinished)) == 1
    assert content(database) == content(tmp_path / "whole.db")
