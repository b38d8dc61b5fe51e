"""The numbers of Live are those of what is shown, or say that they are not yet."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from salt_tui.app import live_lines
from salt_tui.app.application import SaltApp
from salt_tui.app.run_session import RunSession
from salt_tui.measure.running import TaskNumbers
from salt_tui.runner.events import RunEnded, TaskProgress
from scoring.value import Value, undefined
from tests.app.pilot import drive, screen_text, until
from tests.app.unit_events import answer_events, started, state_of
from tests.app.written_run import session_of, show

TASKS = (
    "arc_grid", "code", "dna_translation", "first_order_logic", "kronecker_product", "matrix_multiplication", "maze",
    "words_collection",
)  # fmt: skip


def numbers(precision: Value, *along: float | None) -> TaskNumbers:
    """Return the numbers of a task with that precision."""
    return TaskNumbers(precision, Value(0.25), Value(0.125), along)


def test_every_task_has_its_precision_beside_the_others() -> None:
    state = state_of(started(*TASKS), *answer_events(1, 0, ["·×"], task="arc_grid"))
    found = {
        "arc_grid": numbers(Value(0.5)), "code": numbers(undefined("nothing generated")), "maze": numbers(Value(1.0))
    }  # fmt: skip
    first, *rest = live_lines.task_lines(state, found, "maze", 2, 80)
    assert first.startswith(" 8 tasks ")
    assert "1/32 answers · arc_grid 1/4" in first
    assert rest == [
        " arc_grid       .50  code           –    dna_translati… …    first_order_l… …   ",
        " kronecker_pro… …    matrix_multip… …   >maze           1.00 words_collect… …   ",
    ]
    assert live_lines.task_lines(state, found, "maze", 2, 200)[1:] == [
        " arc_grid .50  code –  dna_translation …  first_order_logic …  kronecker_product …  matrix_multiplication …"
        " >maze 1.00  words_collection …"
    ]
    whole = live_lines.task_lines(state, found, "maze", 8, 120)
    assert [line[:22].rstrip() for line in whole] == [f"{'>' if task == 'maze' else ' '}{task}" for task in TASKS]


def test_a_task_that_is_done_is_a_thin_line_and_one_at_work_has_a_bar() -> None:
    events = [event for number in range(4) for event in answer_events(number + 1, number, ["·×"])]
    state = state_of(started("maze", "code"), *events, *answer_events(9, 0, ["·"], task="code"))
    found = {"maze": numbers(Value(0.5), 1.0, 0.5, None, 0.0), "code": numbers(Value(1.0), 1.0)}
    done, at_work = live_lines.task_lines(state, found, None, 3, 80)
    assert done == " maze     4/4  right .50  asked .25  ECE .12  along █▅ ▁"
    assert at_work.startswith(" code     1/4 ▕▓▓░░░░░░▏  so far █  ")
    assert at_work.endswith(" tok/s")
    narrow = live_lines.task_lines(state, found, None, 3, 34)
    assert narrow[0] == " maze     4/4"
    assert narrow[1].startswith(" code     1/4 ▕▓▓░░░░░░▏")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_lines_of_tasks_fit_and_name_all(width: int) -> None:
    state = state_of(started(*TASKS, total=1_000), *answer_events(1, 0, ["·×"], task="kronecker_product"))
    lines = live_lines.task_lines(state, {}, "code", 2, width)
    assert len(lines) <= 3
    assert all(cell_len(line) <= width for line in lines)
    assert all(task[:4] in " ".join(lines[1:]) for task in TASKS)
    assert "1/8000" in lines[0]


@pytest.mark.parametrize(("rows", "width"), [(2, 60), (2, 80), (2, 200), (8, 80)])
def test_a_task_is_found_where_its_name_and_its_number_stand(rows: int, width: int) -> None:
    state = state_of(started(*TASKS), *answer_events(1, 0, ["·×"], task="kronecker_product"))
    lines = live_lines.task_lines(state, {}, "code", rows, width)
    for task in TASKS:
        line, column = next(
            (line, words.index(task[:4]))
            for line, words in enumerate(lines)
            if task[:4] in words and (line or rows == 8)
        )
        assert live_lines.task_at(state, {}, rows, width, line, column) == task
        assert live_lines.task_at(state, {}, rows, width, line, column - 1) == task, "the mark before the name"
    if rows == 2:
        assert live_lines.task_at(state, {}, rows, width, 0, 1) is None, "the line of all tasks"
    assert live_lines.task_at(state, {}, rows, width, len(lines), 1) is None


def test_the_score_is_that_of_the_unit_that_is_shown(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, ["··", "·×", "·-"]))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        screen = await show(app, pilot, session)
        assert "   1   4/6 " in screen.heatmap.draw_row(1).text
        await pilot.press("g")
        assert "   1   1/3 " in screen.heatmap.draw_row(1).text

    drive(scenario, tmp_path / "salt.db")


def test_numbers_under_an_ended_run_are_those_of_all_its_atoms_or_marked(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started("maze", "code"), *answer_events(1, 0, ["·×"]))
    session.pull()
    assert live_lines.metric_lines(session, 80) == (" right …  asked …  ECE …  AUROC …", " measuring … · 2 tasks")
    session.measure()
    session.wait_for_measurement(30)
    assert "n 2 in 1 answer · " in live_lines.metric_lines(session, 80)[1]
    assert live_lines.metric_lines(session, 80)[1].endswith(" · 1 of 2 tasks")
    run.mailbox.extend(answer_events(2, 0, ["·×·"], task="code"))
    session.pull()
    assert "measuring" not in live_lines.metric_lines(session, 80)[1], "of the n that is said"
    run.mailbox.append(RunEnded(7, "finished", None))
    run.ends = True
    session.pull()
    assert live_lines.metric_lines(session, 80)[1].startswith(" measuring … · n 2 in 1 answer · ")
    session.measure()
    session.wait_for_measurement(30)
    assert live_lines.metric_lines(session, 80)[1] == " n 5 in 2 answers · AUROC inside answers ↑ .75 (2/2) · 2 tasks"
    session.next_task()
    assert live_lines.metric_lines(session, 80) == (" right …  asked …  ECE …  AUROC …", " measuring … · maze")


def test_no_number_is_shown_of_a_part_of_a_stored_run(stored: Path) -> None:
    session = RunSession.stored(1, stored)
    assert "reading …" in live_lines.metric_lines(session, 80)[1]
    deadline = time.monotonic() + 20
    seen = set()
    while session.reading and time.monotonic() < deadline:
        session.pull()
        if not session.reading:
            break
        session.measure()
        seen.add(live_lines.metric_lines(session, 80))
    assert {first for first, _ in seen} == {" right …  asked …  ECE …  AUROC …"}
    assert session.measured is None
    session.measure()
    session.wait_for_measurement(30)
    assert session.waiting_for == ""
    assert "in 8 answers" in live_lines.metric_lines(session, 80)[1]


def test_how_much_of_a_stored_run_was_read_is_said(tmp_path: Path) -> None:
    session = RunSession(tmp_path / "salt.db")
    session.state.apply(deque([replace(started(), tasks=(TaskProgress("maze", 20, 20), TaskProgress("code", 4, 20)))]))
    session.reading = True
    session._read_answers = 7
    assert live_lines.metric_lines(session, 80)[1] == " reading 7/24 answers … · 2 tasks"


def test_a_mean_says_of_how_many_tasks_it_is(tmp_path: Path) -> None:
    session, _ = session_of(
        tmp_path / "salt.db", started("maze", "code"), *answer_events(1, 0, ["·×"]),
        *answer_events(2, 0, ["··"], task="code"),
    )  # fmt: skip
    session.pull()
    session.measure()
    session.wait_for_measurement(30)
    first, second = live_lines.metric_lines(session, 80)
    assert first.startswith(" right ↑ .75  asked ↑ .75  ECE ↓ ")
    assert first.endswith("AUROC ↑ 1.00 of 1 task")
    assert second == " n 4 in 2 answers · AUROC inside answers ↑ 1.00 (1/2) of 1 task · 2 tasks"


def test_numbers_that_cannot_be_measured_are_said_once(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("no such column")

    monkeypatch.setattr("salt_tui.measure.running.measure_running", fail)
    session = RunSession.stored(1, stored)
    deadline = time.monotonic() + 20
    while session.reading and time.monotonic() < deadline:
        session.pull()
    session.measure()
    session.wait_for_measurement(30)
    said = [message for _ in range(3) for message in session.pull().messages if "measured" in message]
    assert said == ["the numbers could not be measured: ValueError: no such column"]


def test_why_a_run_failed_stays_on_the_screen_until_the_cursor_is_moved(tmp_path: Path) -> None:
    session, run = session_of(tmp_path / "salt.db", started(), *answer_events(1, 0, ["·×"]))

    async def scenario(app: SaltApp, pilot: Pilot[int]) -> None:
        await show(app, pilot, session)
        run.mailbox.append(RunEnded(7, "failed", "the disk is full"))
        run.ends = True
        await until(pilot, lambda: "the disk is full" in "".join(screen_text(app).splitlines()[-5:-3]))
        assert "why the run ended" in screen_text(app)
        await pilot.press("left")
        await until(pilot, lambda: "why the run ended" not in screen_text(app))
        assert "maze · answer 1 · atom 1" in screen_text(app)

    drive(scenario, tmp_path / "salt.db")
