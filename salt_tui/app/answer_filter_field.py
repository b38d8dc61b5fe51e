"""The field with the words of a map's filter: which answers it leaves, beside the screen also by what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual import work
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from salt_tui.app.answer_cells import AnswerCells
from salt_tui.app.answer_filter import answers_with
from salt_tui.app.worker_failures import failures_told
from salt_tui.store.queries import open_queries


class AnswerFilterField(Input):
    """Says which answers to show whenever its words, or what is known of the texts, are others.

    Attributes:
        run: number of the run whose texts are looked through; None for none.
        database: its file.

    Args:
        database: the file of runs.
        say_error: is told what failed beside the screen.
    """

    class Filtered(Message):
        """Other answers are to be shown."""

        def __init__(self, wanted: Callable[[AnswerCells], bool] | None) -> None:
            super().__init__()
            self.wanted = wanted

    class Left(Message):
        """The field gives the focus back, with its words as they are."""

    def __init__(self, database: Path, say_error: Callable[[str], None], *, id: str) -> None:
        super().__init__(
            placeholder="show answers with these words: task, status, number, wrong, right, or text",
            compact=True,
            id=id,
        )
        self.run: int | None = None
        self.database = database
        self._say_error = say_error

    def on_mount(self) -> None:
        """Stay out of the way until asked for."""
        self.display = False

    def open(self) -> None:
        """Appear and take the focus."""
        self.display = True
        self.focus()

    def close(self) -> None:
        """Show all answers again and disappear."""
        self.value = ""
        self.display = False
        self.post_message(self.Left())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the answers with these words only."""
        event.stop()
        self.post_message(self.Filtered(answers_with(event.value, {})))
        if self.run is not None and event.value.strip():
            self.find_texts(self.run, event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the words."""
        event.stop()
        self.post_message(self.Left())

    @work(thread=True, exclusive=True, group="texts", exit_on_error=False)
    def find_texts(self, run: int, words: str) -> None:
        """Look beside the screen for answers whose text holds the words."""
        with failures_told(self.app, self._say_error):
            with open_queries(self.database) as queries:
                texts = {word: queries.answers_that_say(run, word) for word in words.casefold().split()}
            if not get_current_worker().is_cancelled:
                self.app.call_from_thread(self._take_texts, words, texts)

    def _take_texts(self, words: str, texts: dict[str, frozenset[int]]) -> None:
        if self.value == words:
            self.post_message(self.Filtered(answers_with(words, texts)))
