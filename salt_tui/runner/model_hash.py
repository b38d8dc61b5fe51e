"""The content hash of a model file, computed beside loading."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from salt_tui.engine.engine import ModelError

BLOCK_BYTES = 1 << 22
WAITING_SECONDS = 1.0


class ModelHash:
    """Hashes a model's files in a thread of its own; loading reads the same pages, so this costs little on top.

    Args:
        files: the file, or all parts of a split model, hashed in order.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._digest: str | None = None
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="model-hash", daemon=True)
        self._thread.start()

    def result(self, while_waiting: Callable[[], None] = lambda: None) -> str:
        """Wait for the SHA-256 in hexadecimal.

        Args:
            while_waiting: called every second until the hash is there; may raise to stop waiting.

        Raises:
            ModelError: a file cannot be read.
        """
        while self._thread.is_alive():
            self._thread.join(WAITING_SECONDS)
            while_waiting()
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
