"""Files that commands write: whole or not at all."""

from __future__ import annotations

from pathlib import Path

from salt_tui.store.placing import complete_file
from salt_tui.usage_error import UsageError


def write_text_file(path: Path, text: str) -> None:
    """Write a file in place of an empty one or of another file.

    Raises:
        UsageError: it cannot be written; what stood there still does.
    """
    try:
        with complete_file(path, ("empty", "file"), database=False) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except (OSError, FileExistsError) as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error})") from error
