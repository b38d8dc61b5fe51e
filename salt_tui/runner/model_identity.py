"""Is the model still the one that the plan names?  Hashes of files, and what a server says of a model without one."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from salt_tui.engine.errors import ModelError
from salt_tui.engine.model_info import ModelInfo

BLOCK_BYTES = 1 << 22
WAITING_SECONDS = 1.0


def _nothing() -> None:
    """Wait without doing anything else."""


OF_FILE, OF_SERVER = "sha256:", "remote:"
"""What the text that identifies a model begins with: by the hash of its file, by what a server says; see `IMPORTED`."""


def sha256_of(identity: str) -> str | None:
    """Return the hash in the identity of a model that has a file, in hexadecimal; None for others."""
    return identity.removeprefix(OF_FILE) if identity.startswith(OF_FILE) else None


def shown_identity(identity: str) -> str:
    """Return an identity for a line of text; hashes are shortened."""
    digest = sha256_of(identity)
    return identity if digest is None else f"SHA-256 {digest[:12]}…"


class ModelIdentity(Protocol):
    """What tells a loaded model from others, and whether that still holds."""

    def text(self, info: ModelInfo, while_waiting: Callable[[], None] = ...) -> str:
        """Return the identity of a model, called after loading; raises `ModelError` where it is in doubt."""
        ...

    def is_unchanged(self, while_waiting: Callable[[], None] = ...) -> bool:
        """Say whether what would be loaded now is the same model."""
        ...

    def was_written_to(self, while_waiting: Callable[[], None] = ...) -> bool:
        """Say whether the loaded model became another one while it was in use."""
        ...


def identity_of(files: Sequence[Path]) -> ModelIdentity:
    """Return what identifies a model: begins to hash its files, if it has any."""
    return FileIdentity(files) if files else ReportedIdentity()


class ReportedIdentity:
    """A model without a file is what its engine says it is; the engine notices by itself when that changes."""

    def text(self, info: ModelInfo, while_waiting: Callable[[], None] = _nothing) -> str:
        """Return what the engine reported while loading."""
        if info.identity is None:
            raise ModelError("the engine does not say which model it loaded: please report it")
        return info.identity

    def is_unchanged(self, while_waiting: Callable[[], None] = _nothing) -> bool:
        """Return True: an engine that answers with another model refuses to."""
        return True

    def was_written_to(self, while_waiting: Callable[[], None] = _nothing) -> bool:
        """Return False, likewise."""
        return False


@dataclass(frozen=True, slots=True)
class _FileState:
    """What changes when a file is replaced or written to."""

    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> _FileState | None:
        """Look at a file; None where it cannot be looked at."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def is_same_file(self, other: _FileState | None) -> bool:
        """Say whether the other is this very file, whatever it holds by now."""
        return other is not None and (self.device, self.inode) == (other.device, other.inode)


class FileIdentity:
    """The files of a model: hashed once beside loading, looked at again whenever they are read again.

    Hashing runs in a thread of its own; loading reads the same pages, so it costs little on top.  Looking again costs
    nothing while device, inode, size and time are those of the hashed files; where they are not, the files are hashed
    again.

    Args:
        files: the file, or all parts of a split model, hashed in order.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._states = self._look()
        self._hash = _Hashing(self._files)

    def text(self, info: ModelInfo, while_waiting: Callable[[], None] = _nothing) -> str:
        """Return ``sha256:`` and the hash, as `sha256` does."""
        return OF_FILE + self.sha256(while_waiting)

    def sha256(self, while_waiting: Callable[[], None] = _nothing) -> str:
        """Wait for the SHA-256 in hexadecimal; called after loading.

        Args:
            while_waiting: called every second until the hash is there; may raise to stop waiting.

        Raises:
            ModelError: a file cannot be read, or changed while it was loaded.
        """
        digest = self._hash.result(while_waiting)
        if self._look() != self._states:
            raise ModelError(f"{self._files[0]} changed while it was loaded; try again when nothing writes to it")
        return digest

    def is_unchanged(self, while_waiting: Callable[[], None] = _nothing) -> bool:
        """Say whether the files hold what was hashed.

        Args:
            while_waiting: see `sha256`.

        Raises:
            ModelError: a file cannot be read.
        """
        states = self._look()
        if states == self._states:
            return True
        if _Hashing(self._files).result(while_waiting) != self._hash.result():
            return False
        self._states = states
        return True

    def was_written_to(self, while_waiting: Callable[[], None] = _nothing) -> bool:
        """Say whether other content was written into the very files that are loaded.

        A file that is mapped into memory then computes with the new content.  A file that was replaced or deleted
        stays mapped as it was.
        """
        pairs = zip(self._states, self._look(), strict=True)
        same_files = all(before is not None and before.is_same_file(now) for before, now in pairs)
        return same_files and not self.is_unchanged(while_waiting)

    def _look(self) -> tuple[_FileState | None, ...]:
        return tuple(map(_FileState.of, self._files))


class _Hashing:
    """One reading of the files in a thread of its own."""

    def __init__(self, files: tuple[Path, ...]) -> None:
        self._files = files
        self._digest: str | None = None
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="model-hash", daemon=True)
        self._thread.start()

    def result(self, while_waiting: Callable[[], None] = _nothing) -> str:
        """Wait for the hash; raises `ModelError`."""
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
