"""Lines that are not wider than the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator


def wrapped(line: str, width: int, indent: str = "  ") -> Iterator[str]:
    """Yield a line in pieces not wider than that; paths and names of metrics stay whole."""
    yield from textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
