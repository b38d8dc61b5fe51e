"""The headless displays: what they draw from the events of a run, without running one."""

from __future__ import annotations

import io
import itertools
import re

import pyte
import pytest
from rich.console import Console

from salt_tui.display.plain_display import PlainDisplay
from salt_tui.display.rich_display import RichDisplay, render_run
from salt_tui.display.run_view import RunView
from salt_tui.runner.events import (
    AnswerFinished,
    AnswerRetried,
    AnswerStarted,
    AtomScored,
    ModelLoading,
    NoProgress,
    Notice,
    PromptEvaluated,
    RunEnded,
    RunEvent,
    RunStarted,
    TaskProgress,
    TokenArrived,
    UnitsWithdrawn,
)

pytestmark = pytest.mark.quick

STARTED = RunStarted(
    run=7,
    model="m · llama 135M",
    device="CPU ×2",
    width=4,
    difficulty="trivial",
    exact=True,
    tasks=(TaskProgress("maze", 1, 3), TaskProgress("code", 0, 2)),
    warnings=("no device",),
)


def atom(index: int, status: str, line: int = 0, confidence: float = 0.9, generation: int = 1) -> AtomScored:
    return AtomScored(generation, "maze", "atom", index, line, "U", "U", status, {"max_probability": confidence})


def finished(generation: int = 1, position: int = 0, correct: int = 2, generated: int = 3) -> AnswerFinished:
    return AnswerFinished(generation, "maze", position, "complete", correct, generated, 3, 9)


STORY: tuple[RunEvent, ...] = (
    ModelLoading("m", 0.5),
    STARTED,
    AnswerStarted(1, "maze", 0, 1, (2, 1)),
    PromptEvaluated(1, 60, 120),
    TokenArrived(1, 0),
    atom(0, "correct"),
    atom(1, "wrong"),
    atom(2, "correct", line=1),
    finished(),
)


def view_of(*events: RunEvent) -> RunView:
    view = RunView(clock=itertools.count().__next__)
    for event in events:
        view.apply(event)
    return view


def drawn(view: RunView, width: int = 80, height: int = 24) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, markup=False, highlight=False, emoji=False, color_system=None)
    console.print(render_run(view, width, height))
    return stream.getvalue()


def test_a_frame_shows_progress_verdicts_and_notices() -> None:
    text = drawn(view_of(*STORY))
    assert "run 7 · m · llama 135M · CPU ×2 · width 4" in text
    assert "2/3" in text
    assert "2/3 atoms right" in text
    assert "·×  · 2/3 complete" in text
    assert "no device" in text


def test_a_frame_fits_the_terminal() -> None:
    events: list[RunEvent] = [STARTED]
    for generation in range(1, 60):
        events.append(AnswerStarted(generation, "maze", generation, 1, (200,)))
        events.append(TokenArrived(generation, 0))
        events += [atom(index, "wrong", generation=generation) for index in range(200)]
    for width, height in ((80, 24), (120, 40), (60, 16)):
        lines = drawn(view_of(*events), width, height).splitlines()
        assert len(lines) <= height
        assert max(len(line) for line in lines) <= width


@pytest.mark.parametrize("width", [16, 20, 28, 34, 35, 40, 60, 80, 120])
def test_ten_atoms_the_scale_and_the_end_of_an_answer_are_always_there(width: int) -> None:
    end = AnswerFinished(1, "maze", 12, "context_full", 3, 128, 130, 9)
    view = view_of(
        STARTED,
        AnswerStarted(1, "maze", 12, 1, (130,)),
        TokenArrived(1, 0),
        *(atom(index, "wrong", line=index // 7) for index in range(12)),
        end,
    )
    lines = drawn(view, width).splitlines()
    assert max(map(len, lines)) <= width
    legend = next(number for number, line in enumerate(lines) if re.search(r"0·····(×××××)?1$", line.rstrip()))
    assert sum(line.count("×") for line in lines[legend + 1 :]) == 12
    assert ("~ streaming p" in lines[legend]) == (width >= 80)
    assert any("3/128 context" in line for line in lines)
    assert any("3/128 context full" in line for line in lines) == (width >= 20)


def test_groups_of_ten_stay_countable() -> None:
    events = [*STORY[:5], *(atom(index, "correct") for index in range(25))]
    assert "·········· ·········· ·····" in drawn(view_of(*events))


def test_withdrawn_and_retried_answers_begin_anew() -> None:
    for event in (UnitsWithdrawn(1, 1), AnswerRetried(1, 2)):
        view = view_of(*STORY[:7], event)
        assert view.answers[1].lines == {}


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    text = drawn(view_of(STARTED, Notice("[bold]\x1b]0;x\x07 \u202e")))
    assert "[bold]\\x1b]0;x\\x07 \\u202e" in text


@pytest.mark.parametrize("width", [40, 60, 100])
def test_hostile_names_are_shown_and_not_obeyed(width: int) -> None:
    name, hostile = "\x1b]0;x\x07\u202e漢", ("\x1b", "\x07", "\u202e")
    events = (
        RunStarted(1, name, name, 4, "easy", True, (TaskProgress(name, 0, 1),), ()),
        AnswerStarted(1, name, 0, 1, (1,)),
        TokenArrived(1, 0),
        AnswerFinished(1, name, 0, "complete", 0, 0, 1, 3),
    )
    stream = io.StringIO()
    plain = PlainDisplay(stream)
    for event in events:
        plain(event)
    for text in (drawn(view_of(*events), width), stream.getvalue()):
        assert "\\x1b]" in text
        assert not any(character in text for character in hostile)


def test_rate_and_time_left() -> None:
    view = RunView(clock=(0.05 * step for step in itertools.count()).__next__)  # it is asked twice for an event
    view.apply(STARTED)
    assert view.tokens_per_second() is None
    assert view.remaining_seconds() is None
    for generation in (1, 2):
        view.apply(AnswerStarted(generation, "maze", generation, 1, (1,)))
        for position in range(10):
            view.apply(TokenArrived(generation, position))
        view.apply(finished(generation, generation))
    rate = view.tokens_per_second()
    assert rate is not None
    assert 5 < rate < 12
    left = view.remaining_seconds()
    assert left is not None
    assert 1 < left < 4


def test_old_answers_are_forgotten() -> None:
    view = view_of(STARTED)
    for generation in range(500):
        view.apply(AnswerStarted(generation, "maze", generation, 1, (1,)))
        view.apply(finished(generation, generation))
    assert len(view.answers) < 100


def test_the_plain_display_writes_a_line_per_answer() -> None:
    stream = io.StringIO()
    with PlainDisplay(stream) as display:
        for event in (*STORY, Notice("a\nb"), RunEnded(7, "failed", "no space"), RunEnded(7, "finished", None)):
            display(event)
    assert stream.getvalue().splitlines() == [
        "loading m",
        "run 7: m · llama 135M, CPU ×2, width 4",
        "warning: no device",
        "maze:1  2/3 done  2/3 right  complete  ·× ·",
        "note: a\\nb",
        "run 7 finished",
    ]


def test_silence_is_shown_as_long_as_it_lasts() -> None:
    now = [100.0]
    view = RunView(lambda: now[0])
    for event in STORY[:4]:
        view.apply(event)
    view.apply(NoProgress("the prompt of answer 1 of maze", 10.0))
    now[0] += 5
    assert "no progress for 15 s, waiting for the prompt of answer 1 of maze" in " ".join(drawn(view).split())
    view.apply(Notice("something else"))
    assert view.silence is not None
    view.apply(TokenArrived(1, 0))
    assert view.silence is None
    assert "no progress" not in drawn(view)
    stream = io.StringIO()
    PlainDisplay(stream)(NoProgress("nano to be loaded", 20.4))
    assert stream.getvalue() == "note: no progress for 20 s, waiting for nano to be loaded\n"


def test_the_live_display_leaves_its_last_frame_on_the_screen() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, height=24, force_terminal=True, markup=False, emoji=False)
    with RichDisplay(console) as display:
        for event in STORY:
            display(event)
    screen = pyte.Screen(80, 24)
    pyte.Stream(screen).feed(stream.getvalue().replace("\n", "\r\n"))
    assert any("2/3 complete" in line for line in screen.display)
    assert any("atoms right" in line for line in screen.display)
