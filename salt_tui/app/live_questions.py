"""What Live asks before it changes a run that is being computed, or lets one go on elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.dialogs import Question
from salt_tui.app.run_session import CANCELLABLE, RunSession


def ask_to_cancel(app: App[Any], session: RunSession, answer: AnswerCells, say: Callable[[str], None]) -> None:
    """Ask whether to cancel an answer, or say that it is not being written."""
    name = f"answer {answer.position + 1} of {answer.task}"
    if answer.status not in CANCELLABLE:
        say(f"{name} is not being written: it is {answer.status.replace('_', ' ')}")
        return

    def cancel(yes: bool | None) -> None:
        if yes and not session.cancel_answer(answer.generation):
            say(f"{name} has ended by itself")

    consequence = "It is left out of all numbers and the run goes on; resuming the run computes it."
    app.push_screen(Question(f"Cancel {name}?", consequence), cancel)


def ask_to_stop(app: App[Any], session: RunSession, stopped: Callable[[], None]) -> None:
    """Ask whether to stop a run."""

    def stop(yes: bool | None) -> None:
        if yes:
            session.stop()
            stopped()

    app.push_screen(Question("Stop this run?", "It can be resumed later, bit for bit."), stop)


def ask_for_another_environment(
    app: App[Any], run: int, differences: Sequence[str], resume: Callable[[], object]
) -> None:
    """Ask whether a run that refused may go on where its numbers may differ."""

    def answered(yes: bool | None) -> None:
        if yes:
            resume()

    question = f"Resume run {run} in another environment?"
    consequence = "Numbers may differ from here on; the run is marked not exact for good."
    app.push_screen(Question(question, f"{'; '.join(differences)}.  {consequence}"), answered)
