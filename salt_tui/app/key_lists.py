"""Which keys there are and what they do: for help, for the command palette, and for the user's file of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from salt_tui.app.dialogs import LineOfInput, Question, TextToRead
from salt_tui.app.export_window import FileWindow
from salt_tui.app.screens import SCREENS

WINDOWS: tuple[type[DOMNode], ...] = (Question, LineOfInput, TextToRead, FileWindow)

PARTS = {"map": "Map", "pairs": "Answers", "tasks": "Tasks", "models": "Models", "app": "Everywhere"} | {
    name: entry.title for name, entry in SCREENS.items()
}
"""Titles of groups of keys, by the first part of a binding's id.  What is not listed is a key of a window."""


def named_bindings(owner: type[DOMNode]) -> list[Binding]:
    """Return the bindings of a class that have an id."""
    return [binding for binding in owner.BINDINGS if isinstance(binding, Binding) and binding.id]


def binding_owners(app: type[DOMNode]) -> tuple[type[DOMNode], ...]:
    """Return every class that has bindings; imports all screens."""
    screens = [entry.load() for entry in SCREENS.values()]
    parts = [part for screen in screens for part in (*screen.WIDGETS, screen)]
    return (app, *dict.fromkeys(parts), *WINDOWS)


def all_bindings(app: type[DOMNode]) -> list[Binding]:
    """Return all bindings that have an id."""
    return [binding for owner in binding_owners(app) for binding in named_bindings(owner)]


def bindings_on(screen: Screen[object], app: DOMNode) -> Iterator[tuple[Binding, DOMNode]]:
    """Yield the bindings of a screen, of the widgets that it shows, and of the app, each with its owner."""
    widgets = (widget for widget in screen.walk_children(Widget) if widget.display)
    for owner in (screen, *widgets, app):
        for binding in named_bindings(type(owner)):
            yield binding, owner


def words_of(binding: Binding) -> str:
    """Say what a key does."""
    return binding.tooltip or binding.description


def part_of(binding: Binding) -> str | None:
    """Return the title of the group of a key; None for one that is not listed."""
    return PARTS.get((binding.id or "").partition(".")[0])


def keys_of(binding: Binding, changed: Mapping[str, str]) -> list[str]:
    """Return the names of the keys of a binding, as the user's file has them."""
    return [key.strip() for key in changed.get(binding.id or "", binding.key).split(",")]
