"""The display of a headless run without a terminal: one line per answer on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from salt_tui.display.run_view import RunView
from salt_tui.measure.header import statistics_words
from salt_tui.palette import GLYPHS
from salt_tui.runner.events import AnswerFinished, ModelLoading, NoProgress, Notice, RunEnded, RunEvent, RunStarted
from salt_tui.visible_text import visible


class PlainDisplay:
    """Writes a line per finished answer and per notice; no colour, no cursor movement."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._view = RunView()
        self._loading_said = False

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to restore."""

    def __call__(self, event: RunEvent) -> None:
        """Take one event."""
        self._view.apply(event)
        match event:
            case ModelLoading() if not self._loading_said:
                self._loading_said = True
                self._say(f"loading {visible(event.model)}")
            case RunStarted():
                known = statistics_words(event.statistics, ", ")
                self._say(f"{event.title}: {visible(event.model)}, {visible(event.device)}, width {event.width}{known}")
                for warning in event.warnings:
                    self._say(f"warning: {visible(warning)}")
            case AnswerFinished():
                self._answer(event)
            case Notice() | NoProgress():
                self._say(f"note: {visible(event.text)}")
            case RunEnded() if event.state == "finished":  # the command says why a run did not finish
                self._say(f"{event.title} finished")

    def _answer(self, event: AnswerFinished) -> None:
        task = self._view.tasks[event.task]
        answer = self._view.answers[event.generation]
        marks = " ".join("".join(GLYPHS[status] for status, _ in cells) for _, cells in sorted(answer.lines.items()))
        name = f"{visible(event.task)}:{answer.position + 1}"  # as `show` and `edit` take it
        done, counts = f"{task.done}/{task.total}", f"{event.correct}/{event.generated}"
        self._say(f"{name}  {done} done  {counts} right  {event.answer_status}  {marks}".rstrip())

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)
