"""When silence is mentioned and when the engine is given up."""

from __future__ import annotations

import pytest

from salt_tui.runner.events import NoProgress, RunEvent
from salt_tui.runner.watchdog import (
    FIRST_WORD_SECONDS,
    LEAST_PATIENCE_SECONDS,
    PATIENCE_FACTOR,
    AnswerWatch,
    Watchdog,
)

pytestmark = pytest.mark.quick


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        """Begin at some time."""
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_silence_is_mentioned_after_a_while_and_each_time_it_has_doubled() -> None:
    clock = Clock()
    watchdog = Watchdog(clock)
    said = []
    for second in range(1, int(8 * FIRST_WORD_SECONDS) + 1):
        clock.now = 100.0 + second
        if watchdog.has_something_to_say():
            said.append(watchdog.silence())
    assert said == [FIRST_WORD_SECONDS * factor for factor in (1, 2, 4, 8)]


def test_progress_ends_the_silence() -> None:
    clock = Clock()
    watchdog = Watchdog(clock)
    clock.now += 3 * FIRST_WORD_SECONDS
    assert watchdog.has_something_to_say()
    watchdog.progressed()
    assert not watchdog.has_something_to_say()
    clock.now += FIRST_WORD_SECONDS
    assert watchdog.has_something_to_say()


def test_who_was_slow_before_is_waited_for_longer() -> None:
    clock = Clock()
    watchdog = Watchdog(clock)
    clock.now += LEAST_PATIENCE_SECONDS
    assert watchdog.gives_up()
    clock.now -= LEAST_PATIENCE_SECONDS / 2
    watchdog.progressed()
    clock.now += PATIENCE_FACTOR * LEAST_PATIENCE_SECONDS / 2 - 1
    assert not watchdog.gives_up()
    clock.now += 1
    assert watchdog.gives_up()


def test_time_in_which_nothing_was_asked_is_no_silence() -> None:
    clock = Clock()
    watchdog = Watchdog(clock)
    clock.now += 5000
    watchdog.begin()
    assert watchdog.silence() == 0
    clock.now += LEAST_PATIENCE_SECONDS
    assert watchdog.gives_up()


def test_who_waits_for_an_answer_hears_of_it_and_other_work_is_no_silence() -> None:
    clock, said, beats = Clock(), list[RunEvent](), list[float]()
    watch = AnswerWatch(said.append, "nano to be loaded", lambda: beats.append(clock.now), clock)

    def wait(seconds: int) -> None:
        for _ in range(seconds):
            clock.now += 1
            watch()

    wait(int(FIRST_WORD_SECONDS) - 1)
    watch.progressed()
    wait(int(FIRST_WORD_SECONDS) - 1)
    assert said == []
    wait(1)
    assert said == [NoProgress("nano to be loaded", FIRST_WORD_SECONDS)]
    assert len(beats) == 2 * FIRST_WORD_SECONDS - 1
    clock.now += 100  # spent on something else than waiting
    wait(int(FIRST_WORD_SECONDS) - 1)
    assert len(said) == 1
