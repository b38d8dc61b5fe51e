"""Lets stored tokens, or the atoms of a run, arrive again at a speed that can be changed.  No drawing here."""

from __future__ import annotations

SPEEDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Tokens, or atoms of a run, a second."""

_USUAL = 3


class TokenPlayer:
    """Counts how many tokens have arrived again.

    Attributes:
        total: tokens there are.
        playing: whether they arrive now.

    Args:
        total: tokens there are.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.playing = False
        self._arrived = float(total)
        self._speed = _USUAL

    @property
    def arrived(self) -> int:
        """How many tokens are shown."""
        return min(self.total, int(self._arrived))

    @property
    def speed(self) -> int:
        """Tokens a second."""
        return SPEEDS[self._speed]

    def toggle(self) -> None:
        """Play or pause; from the beginning when all have arrived."""
        self.playing = not self.playing
        if self.playing and self.arrived >= self.total:
            self._arrived = 0.0

    def pass_time(self, seconds: float) -> None:
        """Let tokens arrive; stop at the last."""
        if self.playing:
            self._arrived = min(float(self.total), self._arrived + seconds * self.speed)
            self.playing = self.arrived < self.total

    def go_to(self, arrived: int) -> None:
        """Show exactly so many tokens."""
        self._arrived = float(min(self.total, max(0, arrived)))

    def change_speed(self, step: int) -> None:
        """Play faster (1) or slower (-1)."""
        self._speed = min(len(SPEEDS) - 1, max(0, self._speed + step))
