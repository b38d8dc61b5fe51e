"""Reading files of JSON lines that this program did not write; bad rows are named by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from salt_tui.inputs.text_lines import readable, text_lines
from salt_tui.usage_error import UsageError

MOST_LINES = 5_000_000
"""Of a file with a limit, blank ones too: a stream of line ends has few characters."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(file: Path) -> str:
    """Return the text of a UTF-8 file, without a byte order mark if it begins with one; raises `UsageError`."""
    with readable(file):
        return file.read_text(encoding="utf-8-sig")


def read_rows(
    file: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    *,
    most_characters: int | None = None,
    lines: Iterable[str] | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place, ``file:line``, and the content of every row of a JSON lines file.

    Blank lines are passed over.  Half of a surrogate pair, which JSON can write and UTF-8 cannot, becomes U+FFFD.

    Args:
        file: UTF-8, with or without a byte order mark, plain or compressed with gzip.
        required: fields that must be there, texts.
        optional: fields that may be there; texts or null.
        most_characters: of the file, after it was unpacked; None for no limit.
        lines: of the file, where somebody has begun to read it; None reads it.

    Raises:
        UsageError: naming file, line and field.
    """
    # Not splitlines: it also breaks at U+2028 and others, which JSON allows inside strings.
    read = 0
    for number, line in enumerate(text_lines(file, newline="\n") if lines is None else lines, 1):
        read += len(line)
        if most_characters is not None and number > MOST_LINES:
            raise UsageError(f"{file}:{number}: more than {MOST_LINES:,} lines; nothing after it was read")
        if most_characters is not None and read > most_characters:
            raise UsageError(f"{file}:{number}: more than {most_characters:,} characters; nothing after it was read")
        if line.strip():
            place = f"{file}:{number}"
            yield place, _row(place, line, required, optional)


def _row(place: str, line: str, required: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: not JSON: {error}") from error
    if not isinstance(row, dict):
        raise UsageError(f"{place}: a JSON object is needed, not {type(row).__name__}")
    for name in required:
        if not isinstance(row.get(name), str):
            raise UsageError(f"{place}: {name!r} is {'missing' if name not in row else 'not a text'}")
    for name in optional:
        if row.get(name) is not None and not isinstance(row[name], str):
            raise UsageError(f"{place}: {name!r} is not a text")
    return {
        name: _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value for name, value in row.items()
    }
