"""The content hash of a model file, computed beside loading."""

from __future__ import annotations

import hashlib
import re
import threading
from pathlib import Path

from salt_tui.engine.engine import ModelError

BLOCK_BYTES = 1 << 22
SPLIT_NAME = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")


class ModelHash:
    """Hashes a model's files in a thread of its own; loading reads the same pages, so this costs little on top.

    Args:
        path: the file, or the first part of a split model; then all parts are hashed in order.
    """

    def __init__(self, path: Path) -> None:
        self._files = model_files(path)
        self._digest: str | None = None
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="model-hash", daemon=True)
        self._thread.start()

    def result(self) -> str:
        """Wait for the SHA-256 in hexadecimal; raises `ModelError` when a file cannot be read."""
        self._thread.join()
        if self._digest is None:
            raise ModelError(f"cannot read the model file: {self._error}")
        return self._digest

    def _work(self) -> None:
        digest = hashlib.sha256()
        try:
            for path in self._files:
                with path.open("rb") as file:
                    while block := file.read(BLOCK_BYTES):
                        digest.update(block)
        except OSError as error:
            self._error = error
            return
        self._digest = digest.hexdigest()


def model_files(path: Path) -> tuple[Path, ...]:
    """Return the file itself, or every part of a split model named ``…-00001-of-0000N.gguf``."""
    match = SPLIT_NAME.match(path.name)
    if match is None:
        return (path,)
    return tuple(
        path.with_name(f"{match['stem']}-{part:05d}-of-{match['parts']}.gguf")
        for part in range(1, int(match["parts"]) + 1)
    )
