"""Where the program keeps its files: database, downloaded models, the user's settings, logs.

``SALT_TUI_HOME`` puts all of them under one folder (a USB stick, a test); ``SALT_TUI_DB`` names the database alone.
Nothing here creates anything.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

APPLICATION = "salt-tui"
ENGINE_LOG_PREFIX = "engine-"
"""How the names of the engine's logs begin."""

_numbers = itertools.count(1)


class PathError(Exception):
    """A path that cannot be meant; the message is one line for the user."""


def expanded(path: Path | str, error: Callable[[str], Exception] = PathError) -> Path:
    """Return a path with the home folder in place of ``~`` or ``~user`` at its beginning, and without ``..``.

    A folder before ``..`` need not exist, so that one spelling means one file before and after folders are made.

    Args:
        path: as the user wrote it.
        error: makes the exception from its line.

    Raises:
        Exception: what ``error`` makes, where there is no such user or home folder.
    """
    try:
        found = Path(path).expanduser()
    except RuntimeError:
        raise error(f"{str(path)!r} begins with a home folder that is not known; write the whole path") from None
    return Path(os.path.realpath(found.parent)) / found.name if ".." in found.parts else found


def _directory(name: str, default: str) -> Path:
    home = os.environ.get("SALT_TUI_HOME")
    return expanded(home) / name if home else Path(default)


def data_directory() -> Path:
    """Return the folder of the database and of downloaded models."""
    return _directory("data", platformdirs.user_data_dir(APPLICATION, appauthor=False))


def database_path() -> Path:
    """Return the default database: ``SALT_TUI_DB`` where set, else ``salt.db`` in the data folder."""
    override = os.environ.get("SALT_TUI_DB")
    return expanded(override) if override else data_directory() / "salt.db"


def models_directory() -> Path:
    """Return the folder that the fetch commands of ``models list`` download to."""
    return data_directory() / "models"


def user_models_file() -> Path:
    """Return the user's ``models.toml``, which is merged over the shipped one; it need not exist."""
    return _directory("config", platformdirs.user_config_dir(APPLICATION, appauthor=False)) / "models.toml"


def log_directory() -> Path:
    """Return the folder that the engine's output goes to."""
    return _directory("log", platformdirs.user_log_dir(APPLICATION, appauthor=False))


def new_engine_log_path() -> Path:
    """Return a file of its own for what the engine that is started next prints: another one with every call.

    Their names begin with `ENGINE_LOG_PREFIX` and sort by time.
    """
    moment = datetime.now(UTC)
    return log_directory() / f"{ENGINE_LOG_PREFIX}{moment:%Y%m%d-%H%M%S}-{os.getpid()}-{next(_numbers)}.log"


def hub_cache_directory() -> Path:
    """Return the folder in which the model hub's own client keeps what it downloaded, by that client's rules."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return expanded(cache)
    if home := os.environ.get("HF_HOME"):
        return expanded(home) / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return expanded(cache) / "huggingface" / "hub"


def shipped_models_file() -> Path:
    """Return the program's own ``models.toml``: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).parent
    inside = package / "models.toml"
    return inside if inside.is_file() else package.parent / "models.toml"
