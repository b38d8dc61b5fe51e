"""What the terminal can show, found out before anything is drawn."""

from __future__ import annotations

import errno
import sys
import termios
from collections.abc import Mapping

from salt_tui.app.settings import load_view
from salt_tui.palette import DrawingMode, Look, Shading

MINIMUM_WIDTH = 60
MINIMUM_HEIGHT = 16
DESIGN_WIDTH, DESIGN_HEIGHT = 80, 24
"""With fewer columns or rows everything is there, with less room."""


def refusal(environment: Mapping[str, str], *, terminal: bool) -> str | None:
    """Return one line that says why the app cannot open here, None where it can."""
    kind = environment.get("TERM", "")
    if terminal and kind not in {"", "dumb"}:
        return None
    why = f"TERM is {kind or 'not set'}" if terminal else "this is no terminal"
    return f"the app needs a terminal and {why}; `salt-tui run` works without one (salt-tui run --help)"


def is_terminal() -> bool:
    """Say whether input, output and errors are a terminal; Textual draws on the last."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def terminal_is_there() -> bool:
    """Say whether the terminal that the app draws on is still open; true where it never drew on one."""
    if sys.__stderr__ is None:
        return True
    try:
        termios.tcgetattr(sys.__stderr__.fileno())
    except termios.error as error:
        return bool(error.args[0] != errno.EIO)
    except (OSError, ValueError):
        return True
    return True


_LIGHT_GROUNDS = {"7", "15"}


def terminal_look(environment: Mapping[str, str]) -> Look:
    """Choose how cells are drawn.

    ``NO_COLOR``, ``COLORTERM`` and ``TERM`` say how many colours there are; ``COLORFGBG``, which some terminals set,
    says by the number of its last colour whether the ground is light.  What colours say was chosen last time.
    """
    light = environment.get("COLORFGBG", "").rpartition(";")[2] in _LIGHT_GROUNDS
    chosen = load_view().shading
    shading = Shading(chosen) if chosen in set(Shading) else Shading.VERDICT
    return Look(drawing_mode(environment), shading, light)


def drawing_mode(environment: Mapping[str, str]) -> DrawingMode:
    """Return how many colours there are: none with ``NO_COLOR``, else what ``TERM`` and ``COLORTERM`` promise."""
    if environment.get("NO_COLOR"):
        return DrawingMode.PLAIN
    if environment.get("COLORTERM", "").strip().lower() in {"truecolor", "24bit"}:
        return DrawingMode.COLOUR
    kind = environment.get("TERM", "").strip().lower()
    if "256color" in kind or kind.startswith(("xterm-kitty", "alacritty", "wezterm", "foot", "ghostty")):
        return DrawingMode.COLOUR
    return DrawingMode.ANSI
