"""The parent's handle through a real child process: answers, crashes, restarts, cancels and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import salt_tui
from salt_tui.engine.errors import ContextError, EngineError, ModelError
from salt_tui.engine.events import EngineDied, Event, LoadProgress, PromptProgress, SequenceEnded, Token
from salt_tui.engine.options import ContextOptions, LoadOptions
from salt_tui.engine.process import EngineProcess, describe_death, read_log_tail
from salt_tui.engine.requests import ChatTurn, Free, Generate

CHILD = Path(__file__).with_name("obedient_child.py")
COMMAND = (sys.executable, "-P", str(CHILD))
ANSWER, SEGFAULT, KILL, HANG, RAISE, SLOW = range(6)
LOAD = LoadOptions("model", "auto", None, {}, "2026-01-02")
CONTEXT = ContextOptions(4, 64, 64, 64, None, "auto", "f16", "f16")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineProcess]:
    with EngineProcess(COMMAND, tmp_path / "logs" / "engine.log") as engine:
        yield engine


def wait_for(engine: EngineProcess, enough: Callable[[list[Event]], bool], seconds: float = 20) -> list[Event]:
    events: list[Event] = []
    deadline = time.monotonic() + seconds
    while not enough(events) and time.monotonic() < deadline:
        events += engine.events(0.2)
    assert enough(events), events
    return events


def died(events: list[Event]) -> list[EngineDied]:
    return [event for event in events if isinstance(event, EngineDied)]


def test_whoever_waits_for_an_answer_is_called_in_silence_and_after_a_restart_too(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("salt_tui.engine.process._WAITING_SECONDS", 0.005)
    calls: list[float] = []
    engine.call_while_waiting(lambda: calls.append(time.monotonic()))
    engine.load(LOAD)
    before = len(calls)
    assert before > 3  # Python's own start takes longer than three times the pause
    engine.restart()
    assert len(calls) > before + 3


def test_requests_are_answered(engine: EngineProcess) -> None:
    progress: list[LoadProgress] = []
    assert engine.load(LOAD, progress.append).description == "model"
    assert progress == [LoadProgress(0.5)]
    assert engine.vocabulary() == (b"a", b"\xff", b"")
    assert engine.encode([[ChatTurn("user", "four"), ChatTurn("user", "é")], []]) == [(4, 1), ()]
    assert engine.tokenize(b"ab") == (50,)
    assert engine.open_context(CONTEXT).width == 4


def test_the_child_is_nice_and_in_a_session_of_its_own(engine: EngineProcess) -> None:
    build = engine.build()
    assert int(build.versions["nice"]) >= min(19, os.nice(0) + 10)
    assert int(build.system_information) == engine.process_id


def test_errors_are_one_line_of_the_right_kind(engine: EngineProcess) -> None:
    with pytest.raises(ModelError, match="missing: no such model"):
        engine.load(LoadOptions("missing", 0, None, {}, "2026-01-02"))
    with pytest.raises(ContextError, match="-np 5"):
        engine.open_context(ContextOptions(5, 64, 64, 64, None, "auto", "f16", "f16"))
    with pytest.raises(EngineError, match="ZeroDivisionError") as caught:
        engine.tokenize(b"")
    assert "\n" not in str(caught.value)
    assert "Traceback" in Path(engine.log_path).read_text()
    assert engine.tokenize(b"ab") == (50,)


@pytest.mark.parametrize(
    "bad", [Generate(1, (), 0, (Free(1),)), Generate(1, (0,), 0, (Free(0),)), Generate(1, (0,), 2, (Free(1),))]
)
def test_requests_that_make_no_sense_are_refused(engine: EngineProcess, bad: Generate) -> None:
    with pytest.raises(ValueError, match=r"must|no tokens"):
        engine.submit(bad)


def test_more_tokens_than_the_pipe_holds_arrive_in_order(engine: EngineProcess) -> None:
    for key in range(3):
        engine.submit(Generate(key, (ANSWER,), 0, (Free(20_000),)))
    events = wait_for(engine, lambda events: sum(isinstance(event, SequenceEnded) for event in events) == 3, 60)
    assert [event.key for event in events if isinstance(event, SequenceEnded)] == [0, 1, 2]
    assert sum(isinstance(event, Token) for event in events) == 60_000


def test_events_that_come_before_an_answer_are_kept(engine: EngineProcess) -> None:
    engine.submit(Generate(7, (ANSWER,), 0, (Free(2),)))
    time.sleep(0.05)
    assert engine.tokenize(b"ab") == (50,)
    events = wait_for(engine, lambda events: len(events) >= 3)
    assert events[-1] == SequenceEnded(7, "length")


def test_events_come_back_empty_when_nothing_happens(engine: EngineProcess) -> None:
    engine.build()
    assert engine.events(0.1) == []


@pytest.mark.parametrize(("order", "code"), [(SEGFAULT, -signal.SIGSEGV), (KILL, -signal.SIGKILL), (RAISE, 1)])
def test_a_crash_is_one_event_and_the_restart_loads_and_opens_again(
    engine: EngineProcess, order: int, code: int
) -> None:
    engine.load(LOAD)
    engine.open_context(CONTEXT)
    engine.submit(Generate(1, (ANSWER,), 0, (Free(1),)))
    engine.submit(Generate(2, (order,), 0, (Free(1),)))
    events = wait_for(engine, died)
    assert events[-2] == SequenceEnded(1, "length")
    death = died(events)[0]
    assert death.exit_code == code
    assert death.log_tail
    assert not any("\x1b" in line for line in death.log_tail)
    if order == RAISE:
        assert "RuntimeError: as told" in describe_death(death)
    assert engine.events(0.05) == []
    with pytest.raises(EngineError, match="restart"):
        engine.submit(Generate(3, (ANSWER,), 0, (Free(1),)))
    engine.restart()
    engine.submit(Generate(3, (ANSWER,), 0, (Free(2),)))
    events = wait_for(engine, lambda events: any(isinstance(event, SequenceEnded) for event in events))
    assert [type(event) for event in events] == [Token, Token, SequenceEnded]


def test_a_crash_from_outside_is_seen_although_nothing_was_asked(engine: EngineProcess) -> None:
    engine.build()
    os.kill(engine.process_id, signal.SIGKILL)
    assert wait_for(engine, died)[-1] == EngineDied(-9, ("hello on stdout", "hello on \\x1b[31mstderr"))


def test_a_crash_while_loading_is_a_model_error(engine: EngineProcess) -> None:
    with pytest.raises(ModelError, match=r"crash: the engine died \(SIGSEGV.*while loading") as caught:
        engine.load(LoadOptions("crash", 0, None, {}, "2026-01-02"))
    assert "\n" not in str(caught.value)
    assert len(died(engine.events(0))) == 1


def test_cancel_one_and_all(engine: EngineProcess) -> None:
    for key in range(3):
        engine.submit(Generate(key, (SLOW,), 0, (Free(1),)))
    engine.cancel(1)
    assert SequenceEnded(1, "cancelled") in wait_for(
        engine, lambda events: any(isinstance(event, SequenceEnded) for event in events)
    )
    engine.cancel()
    events = wait_for(engine, lambda events: sum(isinstance(event, SequenceEnded) for event in events) == 2)
    ended = [event for event in events if isinstance(event, SequenceEnded)]
    assert ended == [SequenceEnded(0, "cancelled"), SequenceEnded(2, "cancelled")]


@pytest.mark.parametrize("order", [SLOW, HANG])
def test_closing_ends_the_child_whatever_it_does(engine: EngineProcess, order: int) -> None:
    engine.submit(Generate(1, (order,), 0, (Free(1),)))
    wait_for(engine, lambda events: any(isinstance(event, PromptProgress) for event in events))
    engine.close()
    with pytest.raises(ProcessLookupError):
        os.kill(engine.process_id, 0)
    engine.close()
    engine.cancel()
    with pytest.raises(EngineError, match="closed"):
        engine.build()


def test_a_stopped_child_is_closed_by_force(engine: EngineProcess) -> None:
    engine.build()
    os.kill(engine.process_id, signal.SIGSTOP)
    engine.close()
    with pytest.raises(ProcessLookupError):
        os.kill(engine.process_id, 0)


@pytest.mark.parametrize(
    "suspended",
    [False, pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel"))],
)
def test_the_child_dies_with_its_parent_although_it_computes(tmp_path: Path, suspended: bool) -> None:
    program = f"""
import os, signal
from pathlib import Path
from salt_tui.engine.requests import Free, Generate
from salt_tui.engine.process import EngineProcess
engine = EngineProcess({COMMAND!r}, Path({str(tmp_path / "log")!r}))
engine.submit(Generate(1, ({HANG},), 0, (Free(1),)))
engine.events(20)
if {suspended}:
    engine.suspend()
print(engine.process_id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    root = str(Path(salt_tui.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    parent = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert parent.returncode == -signal.SIGKILL
    child = Path(f"/proc/{int(parent.stdout)}")
    deadline = time.monotonic() + 5
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.exists()


def test_nothing_of_the_child_reaches_the_parents_streams(
    engine: EngineProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.build()
    assert capfd.readouterr() == ("", "")
    assert "hello on stdout" in Path(engine.log_path).read_text()


def test_the_newest_logs_are_kept_and_nothing_else_is_removed(tmp_path: Path) -> None:
    for number in range(10, 40):
        (tmp_path / f"engine-20260101-0000{number}-1-1.log").write_text("old")
    (tmp_path / "notes.log").write_text("mine")
    log = tmp_path / "engine-20260102-000000-1-1.log"
    with EngineProcess(COMMAND, log) as engine:
        engine.build()
        engine.restart()
        engine.build()
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == [*(f"engine-20260101-0000{number}-1-1.log" for number in range(21, 40)), log.name, "notes.log"]
    assert log.read_text().count("hello on stdout") == 2


def test_the_log_of_a_child_that_still_runs_is_kept(tmp_path: Path) -> None:
    oldest = tmp_path / "engine-20200101-000000-1-1.log"
    with EngineProcess(COMMAND, oldest) as engine:
        engine.build()
        for number in range(10, 40):
            (tmp_path / f"engine-20260101-0000{number}-1-1.log").write_text("old")
        for name in ("engine-20260102-000000-1-1.log", "engine-20190101-000000-1-1.log"):  # a clock that was set back
            with EngineProcess(COMMAND, tmp_path / name) as other:
                other.build()
                assert (tmp_path / name).exists()
        assert "hello on stdout" in oldest.read_text()
    with EngineProcess(COMMAND, tmp_path / "engine-20260103-000000-1-1.log") as engine:
        engine.build()
    assert not oldest.exists()


def test_the_tail_of_a_log_is_escaped_and_bounded(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(b"before\n" + b"".join(b"line %d\n" % number for number in range(50)) + b"\x1b[2J\xff\n")
    tail = read_log_tail(log, 7)
    assert len(tail) == 8
    assert tail[-1] == "\\x1b[2J\ufffd"
    assert read_log_tail(log, log.stat().st_size) == ()
    assert read_log_tail(tmp_path / "none") == ()


def test_a_program_or_log_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be started"):
        EngineProcess((str(tmp_path / "nothing"),), tmp_path / "log")
    (tmp_path / "folder").mkdir()
    with pytest.raises(EngineError, match=r"log cannot be written: .*folder.*; SALT_TUI_HOME names another place"):
        EngineProcess(COMMAND, tmp_path / "folder")


def test_files_of_the_working_directory_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "salt_tui", "json"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('this is somebody else')")
    monkeypatch.chdir(tmp_path)
    with EngineProcess(COMMAND, tmp_path / "log") as engine:
        assert engine.build().engine == "obedient"


def test_an_illegal_instruction_is_explained() -> None:
    line = describe_death(EngineDied(-signal.SIGILL, ("reserve took 6 ms",)))
    assert line.startswith("the engine died (SIGILL; last words: reserve took 6 ms); llama.cpp uses instructions")
    assert "SIGILL" in Path(__file__).parents[2].joinpath("docs", "performance.md").read_text("utf-8")
