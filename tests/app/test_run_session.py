"""A run behind the screen: pausing changes no number, stopping while loading, reading a stored run."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from salt_tui.app.run_session import RunSession, describe
from salt_tui.runner.events import RunEnded, RunStarted
from salt_tui.runner.stored_run import ReadingEnded, StoredRunReader
from salt_tui.store.unit_stream import AnswerUnits, answer_units
from tests.app.conftest import compute, request
from tests.app.written_run import WrittenRun
from tests.stored_runs import store_run

CONTENT = (
    "SELECT problem.task, problem.position, token.position, token.id, log_probability, entropy FROM token"
    " JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3"
)


def content(database: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(CONTENT).fetchall()


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_paused_run_goes_on_with_the_same_numbers_and_keeps_its_lease(
    script: Callable[..., Path], tmp_path: Path
) -> None:
    path = script(seconds_per_step=0.02)
    session = RunSession.begin(request(path), tmp_path / "paused.db")

    def atoms() -> int:
        session.pull()
        return sum(len(answer.units["atom"]) for answer in session.state.map.answers)

    wait_until(lambda: atoms() > 2)
    assert session.toggle_pause()
    before, since = atoms(), time.monotonic()

    def still() -> bool:
        nonlocal before, since
        if atoms() != before:
            before, since = atoms(), time.monotonic()
        return time.monotonic() - since > 0.4

    wait_until(still)
    assert session.state.phase == "paused"
    assert session.computing
    assert not session.toggle_pause()
    wait_until(lambda: session.wait(0.01) or atoms() < 0, 60)
    session.pull()
    assert session.state.phase == "finished"
    compute(tmp_path / "whole.db", path)
    assert content(tmp_path / "paused.db") == content(tmp_path / "whole.db")


def test_a_run_that_cannot_begin_ends_with_one_line(tmp_path: Path) -> None:
    session = RunSession.begin(request(tmp_path / "nothing.scripted.json"), tmp_path / "salt.db")
    assert session.wait(30)
    session.pull()
    assert session.state.phase == "failed"
    assert len(session.state.log) == 1
    assert "nothing.scripted.json" in session.state.log[0]
    assert not session.toggle_pause()
    assert not session.cancel_answer(1)


def test_a_stored_run_is_read_in_order_with_its_beginning_and_end(stored: Path) -> None:
    reader = StoredRunReader(stored, 1, describe)
    reader.start()
    wait_until(lambda: bool(reader.mailbox) and isinstance(reader.mailbox[-1], ReadingEnded))
    pieces = list(reader.mailbox)
    assert isinstance(pieces[0], RunStarted)
    assert [(task.task, task.done, task.total) for task in pieces[0].tasks] == [
        ("kronecker_product", 4, 4),
        ("dna_translation", 4, 4),
    ]
    answers = [piece for piece in pieces if isinstance(piece, AnswerUnits)]
    assert [answer.generation for answer in answers] == sorted(answer.generation for answer in answers)
    assert [(answer.generation, answer.tokens, answer.units["atom"].values.tobytes()) for answer in answers] == [
        (answer.generation, answer.tokens, answer.units["atom"].values.tobytes()) for answer in answer_units(stored, 1)
    ]
    assert pieces[-2] == RunEnded(1, "finished", None)
    assert pieces[-1] == ReadingEnded(None)


def test_reading_a_run_that_is_not_there_ends_with_one_line(stored: Path) -> None:
    session = RunSession.stored(99, stored)
    wait_until(lambda: bool(session.pull().messages))
    assert not session.reading
    assert "99" in session.state.log[0]


def test_stopping_does_not_end_the_reading_of_what_is_stored(stored: Path) -> None:
    session = RunSession.stored(1, stored)
    session.stop()

    def read() -> bool:
        session.pull()
        return not session.reading

    wait_until(read)
    assert session.state.phase == "finished"
    assert len(session.state.map.answers) == len(list(answer_units(stored, 1)))
    session.close()


def test_a_cancelled_answer_is_not_shown_beside_its_new_one_when_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store_run(path, tasks=("maze",), answers=3, atoms=4)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE generation SET answer_status = 'cancelled', stop_reason = 'cancelled' WHERE id = 2")
    for goes_on, shown in ((True, ["complete", "complete"]), (False, ["complete", "cancelled", "complete"])):
        session = RunSession(path)
        session.run = 1
        if goes_on:
            session._compute(WrittenRun())
        session._read(finished_only=goes_on)
        deadline = time.monotonic() + 20
        while session.reading and time.monotonic() < deadline:
            session.pull()
        assert [answer.status for answer in session.state.map.answers] == shown
        session.close()
