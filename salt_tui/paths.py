"""Where the program keeps its files: database, downloaded models, the user's settings, logs.

``SALT_TUI_HOME`` puts all of them under one folder (a USB stick, a test); ``SALT_TUI_DB`` names the database alone.
Nothing here creates anything.
"""

from __future__ import annotations

import itertools
import os
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

APPLICATION = "salt-tui"
ENGINE_LOG_PREFIX = "engine-"
"""How the names of the engine's logs begin."""

_numbers = itertools.count(1)


def _directory(name: str, default: str) -> Path:
    home = os.environ.get("SALT_TUI_HOME")
    return Path(home).expanduser() / name if home else Path(default)


def data_directory() -> Path:
    """Return the folder of the database and of downloaded models."""
    return _directory("data", platformdirs.user_data_dir(APPLICATION, appauthor=False))


def database_path() -> Path:
    """Return the default database: ``SALT_TUI_DB`` where set, else ``salt.db`` in the data folder."""
    override = os.environ.get("SALT_TUI_DB")
    return Path(override).expanduser() if override else data_directory() / "salt.db"


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
        return Path(cache).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "huggingface" / "hub"


def shipped_models_file() -> Path:
    """Return the program's own ``models.toml``: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).parent
    inside = package / "models.toml"
    return inside if inside.is_file() else package.parent / "models.toml"
