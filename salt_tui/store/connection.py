"""A connection to a file, by its path alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["rw", "ro", "ro&immutable=1"]
"""For writing, for reading, or for reading the file without its log; none of them makes a file."""


def connect(path: Path, mode: Mode, busy_timeout: float) -> sqlite3.Connection:
    """Open a file that exists, with transactions begun and ended by hand.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
    )
