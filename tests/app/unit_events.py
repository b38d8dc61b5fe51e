"""Events and answers for the app's tests, written by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from salt_tui.app.live_state import LiveState
from salt_tui.runner.events import (
    AnswerFinished,
    AnswerStarted,
    AtomScored,
    PromptEvaluated,
    RunEvent,
    RunStarted,
    TaskProgress,
    TokenArrived,
)
from scoring.confidence import CONFIDENCE_FUNCTIONS, unit_confidences

STATUS_OF = {"·": "correct", "×": "wrong", "+": "redundant", "-": "missing", "?": "abstained"}


def started(*tasks: str, total: int = 4) -> RunStarted:
    """Begin run 7 of a model."""
    progress = tuple(TaskProgress(task, 0, total) for task in tasks or ("maze",))
    return RunStarted(7, "tiny · a model", "CPU ×2", 4, "easy", True, progress, ())


def scored(
    generation: int, index: int, line: int, glyph: str, probability: float, task: str = "maze", kind: str = "atom"
) -> AtomScored:
    """Score one unit of one token with that probability."""
    import math

    status = STATUS_OF[glyph]
    known = {} if status == "missing" else unit_confidences([math.log(probability)], [1.0 - probability])
    assert not known or list(known) == list(CONFIDENCE_FUNCTIONS)
    said = None if status == "missing" else f"a{index}"
    right = None if status == "redundant" else f"a{index}" if status == "correct" else f"b{index}"
    return AtomScored(generation, task, kind, index, line, said, right, status, known)


def answer_events(
    generation: int, position: int, lines: Sequence[str], task: str = "maze", status: str | None = "complete"
) -> list[RunEvent]:
    """Write an answer whose lines are given as glyphs; confidences fall from 0.95 in steps of 0.1."""
    events: list[RunEvent] = [
        AnswerStarted(generation, task, position, 1, tuple(len(line) - line.count("+") for line in lines)),
        PromptEvaluated(generation, 10, 20),
        TokenArrived(generation, 0),
    ]
    index = right = 0
    for line, glyphs in enumerate(lines):
        for glyph in glyphs:
            events.append(scored(generation, index, line, glyph, 0.95 - 0.1 * (index % 10), task))
            index += 1
            right += glyph == "·"
        events.append(scored(generation, line, line, "·" if set(glyphs) == {"·"} else "×", 0.5, task, "line"))
    if status is not None:
        said = index - sum(line.count("-") for line in lines)
        events.append(AnswerFinished(generation, task, position, status, right, said, index, 30))
    return events


def state_of(*events: RunEvent, clock: object = None) -> LiveState:
    """Return the state after these events."""
    state = LiveState() if clock is None else LiveState(clock)  # type: ignore[arg-type]
    state.apply(deque(events))
    return state
