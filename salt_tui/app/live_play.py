"""Play on Live: the atoms of a run arrive again on the map, and the line below it says how many have."""

from __future__ import annotations

import time
from collections.abc import Callable

from salt_tui.app.atom_heatmap import AtomHeatmap
from salt_tui.app.atom_map import AtomMap
from salt_tui.app.run_player import RunPlayer
from salt_tui.app.scrubber import Scrubber, played_words


class PlayedRun:
    """A run that arrives again.

    Args:
        source: the map of the whole run.
        heatmap: shows what has arrived.
        scrubber: gives the width of its bar.
        say: shows a text in the scrubber.
    """

    def __init__(self, source: AtomMap, heatmap: AtomHeatmap, scrubber: Scrubber, say: Callable[[str], None]) -> None:
        self._player = RunPlayer(source)
        self._heatmap = heatmap
        self._scrubber = scrubber
        self._say = say
        self._ticked = time.monotonic()
        heatmap.show_map(self._player.map, follow=True)

    @property
    def playing(self) -> bool:
        """Whether more atoms arrive."""
        return self._player.clock.playing

    def toggle(self) -> None:
        """Let atoms arrive, or pause."""
        self._player.clock.toggle()
        self._ticked = time.monotonic()
        self._draw()

    def change_speed(self, step: int) -> None:
        """Play faster (1) or slower (-1)."""
        self._player.clock.change_speed(step)
        self._draw()

    def go_to(self, share: float) -> None:
        """Show the atoms up to a place, from 0 to 1."""
        self._player.clock.go_to(round(share * self._player.clock.total))
        self._draw()

    def tick(self) -> bool:
        """Show what has arrived since the last frame; return whether the last atom came."""
        clock = self._player.clock
        now = time.monotonic()
        before, was_playing = clock.arrived, clock.playing
        clock.pass_time(now - self._ticked)
        self._ticked = now
        if clock.arrived != before:
            self._draw()
        return was_playing and not clock.playing

    def _draw(self) -> None:
        shown = self._player.map
        changed = self._player.fill()
        if self._player.map is shown:
            self._heatmap.show_changes(changed)
        else:
            self._heatmap.show_map(self._player.map, follow=True)
        self._say(played_words(self._player.clock, "atoms", self._scrubber.bar_width))
