"""The last row of a screen: the keys that are of use now, whole, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.keys import KEY_NAME_REPLACEMENTS, key_to_character
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

ALWAYS = ("app.help", "app.quit")
"""Shown last, whatever else has to go."""

_UNICODE_NAMES = {short: name for name, short in KEY_NAME_REPLACEMENTS.items()}
"""Of the keys that Textual renamed after it had named them by their character."""


class KeyFooter(Footer):
    """Shows keys by usefulness, and none that cannot be pressed now: Textual's own cuts the last ones at the edge.

    A key that the field with the focus would take as a character is not shown, but another of the same binding is.
    """

    def __init__(self, order: Sequence[str]) -> None:
        """Show the bindings of these ids, the most useful first."""
        super().__init__(compact=True, show_command_palette=False)
        self._order = (*order, *ALWAYS)
        self._drawn: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay the keys out."""
        self._drawn = self._fitting()
        for key, shown, words, action, tooltip in self._drawn:
            yield FooterKey(key, shown, words, action, tooltip=tooltip)

    def _fitting(self) -> tuple[tuple[str, str, str, str, str], ...]:
        keys = self._possible()
        room = self.app.size.width - sum(_width(keys[name]) for name in ALWAYS if name in keys)
        fitting = []
        for name, entry in keys.items():
            if name in ALWAYS:
                fitting.append(entry)
            elif _width(entry) <= room:
                room -= _width(entry)
                fitting.append(entry)
        return tuple(fitting)

    def _possible(self) -> dict[str, tuple[str, str, str, str, str]]:
        focused = self.screen.focused
        found: dict[str, tuple[str, str, str, str, str]] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            name = binding.id or ""
            character = key_to_character(_UNICODE_NAMES.get(binding.key, binding.key))
            typed = focused is not None and focused.check_consume_key(binding.key, character)
            if active.enabled and name in self._order and name not in found and not typed:
                words = binding.tooltip or binding.description
                found[name] = (
                    binding.key,
                    self.app.get_key_display(binding),
                    binding.description,
                    binding.action,
                    words,
                )
        return {name: found[name] for name in self._order if name in found}

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Lay out again where other keys are of use."""
        if self.is_attached and screen is self.screen:
            self.call_after_refresh(self._lay_out)

    async def _lay_out(self) -> None:
        if self.is_attached and self._fitting() != self._drawn:
            await self.recompose()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out again for the width."""
        self.call_after_refresh(self._lay_out)


def _width(entry: tuple[str, str, str, str, str]) -> int:
    """Return the cells of a key, its label, and the blanks after each."""
    return cell_len(entry[1]) + 1 + cell_len(entry[2]) + 1
