"""Whether the disk has room for what is about to be computed, looked at before hours of work."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from salt_tui.usage_error import UsageError

TOKEN_BYTES = 450
"""A stored token at least: 367 bytes for 20 alternatives, measured, and its other columns; units come on top."""


def room_for(size: int, database: Path, title: str) -> str:
    """Say what will be written and what is free.

    Args:
        size: bytes that will be written at least.
        database: the file that grows or is made.
        title: what is about to begin.

    Raises:
        UsageError: less is free.
    """
    # A link is followed, and the folder may not be there yet.
    folders = Path(os.path.realpath(database.expanduser())).parents
    free = shutil.disk_usage(next(folder for folder in folders if folder.exists())).free
    what = f"it will write about {size / 1e6:,.1f} MB, and {free / 1e6:,.0f} MB of the disk are free"
    if size > free:
        raise UsageError(f"{title} is not begun: {what}; free space, or choose another place")
    return what
