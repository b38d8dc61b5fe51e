"""Reading files of JSON lines that this program did not write; bad rows are named by line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from salt_tui.runner.errors import UsageError


def read_text(file: Path) -> str:
    """Return the text of a UTF-8 file; raises `UsageError`."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


def read_rows(file: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSON lines file; blank lines are passed over.

    Args:
        file: UTF-8.
        required: fields that must be there, texts.
        optional: fields that may be there; texts or null.

    Raises:
        UsageError: naming file, line and field.
    """
    # Not splitlines: it also breaks at U+2028 and others, which JSON allows inside strings.
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            yield _row(f"{file}:{number}", line, required, optional)


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
    return row
