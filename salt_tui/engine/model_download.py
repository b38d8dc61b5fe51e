"""Fetch the files of a model from the model hub: resumable, checked, and in place only when whole.

The hub's own client asks, authenticates and tries again; what it leaves out is going on after the program ended, so the
unfinished file is kept here, under the name of its content.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from salt_tui.engine.errors import ModelError
from salt_tui.engine.model_files import MissingModelError, check_file, locate, split_names
from salt_tui.engine.model_registry import ModelRegistry
from salt_tui.paths import models_directory
from salt_tui.similar_names import did_you_mean
from salt_tui.visible_text import visible

HUB = "hf:"
"""How a file on the hub that is in no ``models.toml`` begins: ``hf:OWNER/REPOSITORY/FILE``."""

LEFT_FREE = 100 << 20
"""Bytes of the disk that a fetched file leaves free."""

_EXTRA = "fetching models needs huggingface-hub: pip install 'saltbench-tui[pull]'"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCK = 1 << 20


class DownloadError(Exception):
    """Fetching stopped on the way; what came is kept, and fetching again goes on from there."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model on the hub.

    Attributes:
        repository: ``organisation/name``.
        files: paths in it; several for a split model.
    """

    repository: str
    files: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where its first file will be."""
        return models_directory() / self.files[0]


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """How far one file is.

    Attributes:
        file: its name.
        stage: what is done with its bytes.
        done: bytes.
        total: bytes in all.
    """

    file: str
    stage: Literal["fetch", "check"]
    done: int
    total: int


Report = Callable[[DownloadProgress], None]


@dataclass(frozen=True, slots=True)
class _Source:
    """One file as the hub describes it; ``sha256`` is None where it gives no checksum."""

    name: str
    url: str
    size: int
    tag: str
    sha256: str | None


def find_on_hub(name: str, registry: ModelRegistry) -> HubModel:
    """Return what a name stands for: one of ``models.toml`` with a repository, or ``hf:OWNER/REPOSITORY/FILE``.

    Raises:
        ModelError: neither, or a model that does not come from the hub; one line that says what to do.
    """
    if name.startswith(HUB):
        owner, _, rest = name.removeprefix(HUB).partition("/")
        repository, _, file = rest.partition("/")
        parts = [owner, repository, *file.split("/")]
        if not all(_PART.fullmatch(part) for part in parts) or not file.lower().endswith(".gguf"):
            raise ModelError(f"{visible(name)} is no file on the hub: write hf:OWNER/REPOSITORY/FILE.gguf")
        return HubModel(f"{owner}/{repository}", split_names(file))
    entry = registry.entries.get(name)
    if entry is None:
        meant = did_you_mean(name, registry.entries)
        raise ModelError(
            f'no model is called "{visible(name)}"{meant} (`salt-tui models list` shows the names; or give'
            " hf:OWNER/REPOSITORY/FILE.gguf)"
        )
    if entry.repository:
        return HubModel(entry.repository, split_names(entry.file or ""))
    try:
        here = locate(name, entry)
    except MissingModelError as error:
        raise ModelError(str(error)) from None
    raise ModelError(f"model {visible(name)} does not come from the hub: it is {visible(str(here))}")


def fetch(model: HubModel, report: Report) -> Path:
    """Fetch all files of a model to `salt_tui.paths.models_directory`, and return the first one's path.

    A file that is there already with the right content is left as it is.  ``HF_ENDPOINT``, ``HF_TOKEN`` and the login
    of the hub's own client count here too.

    Args:
        model: what to fetch.
        report: takes the progress, several times a second.

    Raises:
        ModelError: no such file, no permission, no room, another file of that name, or a file that is no model.
        DownloadError: the connection, the disk or the checksum failed.
    """
    sources = [_describe(model.repository, file) for file in model.files]
    for source in sources:
        _look_for_room(source)
    for source in sources:
        _fetch_one(source, report)
    check_file(model.path)
    return model.path


def _describe(repository: str, file: str) -> _Source:
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise ModelError(_EXTRA) from error
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns on stderr of each try
    disable_progress_bars()
    endpoint = os.environ.get("HF_ENDPOINT")
    url = hf_hub_url(repository, file, endpoint=endpoint)
    what = f"{repository}/{file}"
    with _explained(what):
        try:
            found = get_hf_file_metadata(url, endpoint=endpoint)
        except HfHubHTTPError as error:
            raise _refused(what, error) from error
    if found.size is None or not found.etag:
        raise DownloadError(f"{what}: the hub does not say how large it is; try again later")
    tag = found.etag.lower()
    return _Source(file, url, found.size, tag, tag if _SHA256.fullmatch(tag) else None)


def _refused(what: str, error: Exception) -> Exception:
    """Return the refusal of the hub in our words."""
    from huggingface_hub import errors

    match error:
        case errors.GatedRepoError():
            return ModelError(
                f"{what} is given only to those who accepted its licence: accept it on the hub and set HF_TOKEN"
            )
        case errors.RepositoryNotFoundError():
            return ModelError(f"{what}: the hub has no such repository, or it is private (HF_TOKEN shows who you are)")
        case errors.EntryNotFoundError():
            return ModelError(f"{what}: the repository has no such file")
    status: Any = getattr(getattr(error, "response", None), "status_code", None)
    return DownloadError(f"{what}: the hub answered {status or type(error).__name__}; try again later")


def _look_for_room(source: _Source) -> None:
    """Refuse a file that does not fit beside what is there of it already."""
    target, unfinished = _target(source), _unfinished(source)
    if target.exists():
        return
    folder = models_directory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = source.size - (unfinished.stat().st_size if unfinished.exists() else 0)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ModelError(f"{folder} cannot be used for models: {error.strerror}; set SALT_TUI_HOME") from error
    if wanted + LEFT_FREE > free:
        raise ModelError(
            f"{source.name} takes {wanted / 1e6:,.0f} MB more and {free / 1e6:,.0f} MB of the disk are free; free "
            "space, or set SALT_TUI_HOME to another disk"
        )


def _fetch_one(source: _Source, report: Report) -> None:
    target = _target(source)
    if target.exists():
        if target.stat().st_size != source.size or _digest(target, source, report) not in (source.sha256, None):
            raise ModelError(
                f"{target} is there and is another file than {source.name} on the hub; move it away, then fetch again"
            )
        return
    unfinished = _unfinished(source)
    with _explained(source.name):
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("ab") as file:
            _lock(file, source)
            _receive(source, file, report)
            file.flush()
            os.fsync(file.fileno())
            if _digest(unfinished, source, report) not in (source.sha256, None):
                unfinished.unlink()
                raise DownloadError(
                    f"{source.name}: what came has another SHA-256 than the hub says; it was deleted; fetch it again"
                )
            unfinished.replace(target)


def _receive(source: _Source, file: IO[bytes], report: Report) -> None:
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, not exported

    there = file.tell()
    if there > source.size:
        file.truncate(there := 0)
    counted = _Counted(file, lambda done: report(DownloadProgress(source.name, "fetch", done, source.size)))
    http_get(
        source.url,
        counted,  # type: ignore[arg-type]  # writes, tells, seeks and truncates, which is all that is asked of it
        resume_size=there,
        headers=build_hf_headers(),
        expected_size=source.size,
    )


def _digest(path: Path, source: _Source, report: Report) -> str | None:
    """Return the SHA-256 of a file, None where the hub gives none to compare with."""
    if source.sha256 is None:
        return None
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            report(DownloadProgress(source.name, "check", done, source.size))
    return digest.hexdigest()


def _target(source: _Source) -> Path:
    return models_directory() / source.name


def _unfinished(source: _Source) -> Path:
    """Return the file that fetching goes on with; another content on the hub has another name here."""
    target = _target(source)
    return target.with_name(f"{target.name}.{hashlib.sha256(source.tag.encode()).hexdigest()[:12]}.part")


def _lock(file: IO[bytes], source: _Source) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ModelError(f"{source.name} is being fetched by another program; wait for it") from None


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn what a connection or a disk raises into one line."""
    from httpx2 import HTTPError, InvalidURL
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    again = "what came is kept, fetching again goes on from there"
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise ModelError(f"{what} is not fetched: HF_HUB_OFFLINE is set") from error
    except InvalidURL as error:
        raise ModelError(f"{what}: HF_ENDPOINT is no address ({error})") from error
    except HfHubHTTPError as error:
        raise DownloadError(f"{what}: the hub refused it ({_first_line(error)}); {again}") from error
    except HTTPError as error:
        raise DownloadError(f"{what}: the hub cannot be reached ({_first_line(error)}); {again}") from error
    except OSError as error:
        raise DownloadError(f"{what}: {error.strerror or _first_line(error)}; {again}") from error


def _first_line(error: Exception) -> str:
    return visible(next(iter(str(error).splitlines()), "") or type(error).__name__)


class _Counted:
    """A file that says after each write how long it is."""

    def __init__(self, file: IO[bytes], told: Callable[[int], None]) -> None:
        self._file = file
        self._told = told

    def write(self, block: bytes) -> int:
        """Write and tell."""
        count = self._file.write(block)
        self._told(self._file.tell())
        return count

    def tell(self) -> int:
        """Return the place."""
        return self._file.tell()

    def seek(self, place: int) -> int:
        """Go to a place."""
        return self._file.seek(place)

    def truncate(self) -> int:
        """Cut here."""
        return self._file.truncate()
