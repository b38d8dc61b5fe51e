"""One sentence over a screen while the terminal is too small for it."""

from __future__ import annotations

from textual.widgets import Static

from salt_tui.app.terminal import MINIMUM_HEIGHT, MINIMUM_WIDTH


class SizeCover(Static):
    """The sentence; the stylesheet shows it by the size classes that every screen gets from the app.

    It is a layer of each screen and no screen of its own: a pushed screen stays on the stack of one mode, under
    windows opened over it.
    """

    def __init__(self) -> None:
        """Say what is needed."""
        super().__init__(
            f"salt-tui needs {MINIMUM_WIDTH} columns and {MINIMUM_HEIGHT} rows; `salt-tui run` works in any size",
            classes="size-cover",
            markup=False,
        )
