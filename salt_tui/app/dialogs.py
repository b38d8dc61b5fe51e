"""Small windows over a screen: a question, a line of input, a text to read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.widgets import Input, Static

from salt_tui.app.text_rows import broken_lines
from salt_tui.visible_text import visible

BOX_WIDTH = 76
"""As in the stylesheet."""

_BESIDES_TEXT = 6
"""Cells of a box's border, padding and scrollbar."""


def keep_printable(event: Input.Changed) -> None:
    """Take characters out of a field that would reach the terminal as commands."""
    if not event.value.isprintable():
        event.input.value = "".join(filter(str.isprintable, event.value))


class Question(ModalScreen[bool]):
    """Asks for a yes, y, or a no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="question.yes"),
        Binding("n,escape,q", "answer(False)", "No", id="question.no"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        """Ask a question and say what a yes does."""
        super().__init__(classes="window")
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        """Show the question."""
        with Vertical(classes="window-box"):
            yield Static(visible(self._question), markup=False, classes="window-title")
            yield Static("\n".join(map(visible, self._consequence.split("\n"))), markup=False)
            yield Static("y yes   n no", markup=False, classes="window-keys")

    def action_answer(self, answer: bool) -> None:
        """Close with the answer."""
        self.dismiss(answer)


MODEL_FILES = (".gguf", ".scripted.json")
PROBLEM_FILES = (".jsonl",)


class FilePaths(Suggester):
    """Completes the path of a folder or of a file with one of some endings."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        """Look at the folder anew for every letter: files come and go."""
        super().__init__(use_cache=False, case_sensitive=True)
        self._endings = endings

    async def get_suggestion(self, value: str) -> str | None:
        """Return the first path that begins with what was typed; None without any."""
        return completed_path(value, self._endings)


def completed_path(typed: str, endings: tuple[str, ...] = MODEL_FILES) -> str | None:
    """Return the first folder, or file with one of the endings, that a path begins; None where there is none."""
    folder, _, beginning = typed.rpartition("/")
    if not typed or (not folder and not typed.startswith("/")):
        return None
    try:
        with os.scandir(Path(f"{folder}/").expanduser()) as entries:
            found = sorted(
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in entries
                if entry.name.startswith(beginning)
                and (beginning or not entry.name.startswith("."))
                and (entry.is_dir() or entry.name.endswith(endings))
            )
    except (OSError, RuntimeError, ValueError):
        return None
    return f"{folder}/{found[0]}" if found and found[0] != beginning else None


class LineOfInput(ModalScreen[str | None]):
    """Asks for a line of text; None when the user leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", id="input.leave")]

    def __init__(self, title: str, value: str, hint: str, problem: str = "", *, paths: tuple[str, ...] = ()) -> None:
        """Ask, with a value to begin from, say what was wrong with it, and complete paths with these endings."""
        super().__init__(classes="window")
        self._title = title
        self._value = value
        self._hint = hint
        self._problem = problem
        self._suggester = FilePaths(paths) if paths else None

    def compose(self) -> ComposeResult:
        """Show the line."""
        with Vertical(classes="window-box"):
            yield Static(visible(self._title), markup=False, classes="window-title")
            yield Input(
                self._value, compact=True, select_on_focus=not self._problem, suggester=self._suggester, id="line"
            )
            if self._problem:
                yield Static(f"! {visible(self._problem)}", markup=False, classes="wrong")
            yield Static(f"{visible(self._hint)}   enter accepts, escape leaves", markup=False, classes="window-keys")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Drop what was pasted and cannot be shown."""
        keep_printable(event)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Close without a text."""
        self.dismiss(None)


def text_width(screen: int) -> int:
    """Return the cells of a row of `TextToRead` on a screen of so many cells."""
    return max(1, min(BOX_WIDTH, screen) - _BESIDES_TEXT)


class TextToRead(ModalScreen[None]):
    """Shows a text that can be scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,f1", "leave", "Back", id="text.leave"),
    ]

    def __init__(self, title: str, text: str) -> None:
        """Show a text; its lines must be visible already."""
        super().__init__(classes="window")
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Show it."""
        with Vertical(classes="window-box tall"):
            yield Static(visible(self._title), markup=False, classes="window-title")
            with VerticalScroll(id="text-scroll"):
                yield Static(markup=False, id="text")
            yield Static("↑↓ page home end scroll   escape back", markup=False, classes="window-keys")

    def on_resize(self) -> None:
        """Break the lines for this width."""
        self.query_one("#text", Static).update(broken_lines(self._text, text_width(self.size.width)))

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
