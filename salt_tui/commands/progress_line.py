"""What is computed next, where computing takes minutes."""

from __future__ import annotations

import sys

from salt_tui.commands.failures import say


def show_progress(text: str) -> None:
    """Say what is computed: on a terminal on one line that the next one replaces, elsewhere on lines; empty ends it."""
    if not sys.stderr.isatty():
        if text:
            say(text)
    else:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()
