"""The kinds of engines there are: what each of them opens, and how."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from salt_tui.engine.engine import Engine
from salt_tui.engine.errors import ModelError
from salt_tui.engine.gguf_header import GGUFHeader
from salt_tui.engine.model_files import check_file, check_readable
from salt_tui.engine.process import LLAMA_COMMAND, EngineProcess

IMPORTED = "imported"
"""The kind of runs whose answers somebody brought: nothing can be computed."""

REMOTE = "remote"
"""The kind of models on servers."""

REMOTE_COMMAND: tuple[str, ...] = (sys.executable, "-P", "-m", "salt_tui.engine.remote_child")

SCRIPTED_COMMAND: tuple[str, ...] = (sys.executable, "-P", "-m", "salt_tui.engine.scripted_child")


@dataclass(frozen=True, slots=True)
class EngineKind:
    """One kind of engine.

    Attributes:
        name: as stored with a run.
        ending: paths with this end belong to it; ``""``: all that no other kind claims; None: it has no files.
        check: looks at a model's file without loading it; returns its header where it has one, raises `ModelError`.
            Models without a file have no path.
        open: starts the engine, given the file that everything it prints goes to; nothing is loaded yet.
        computes: it has numbers of its own that can be timed and checked; a script has not.
    """

    name: str
    ending: str | None
    check: Callable[[Path | None], GGUFHeader | None]
    open: Callable[[Path], Engine]
    computes: bool


def _check_script(path: Path | None) -> None:
    check_readable(_file(path))


def _check_gguf(path: Path | None) -> GGUFHeader | None:
    return check_file(_file(path))


def _file(path: Path | None) -> Path:
    if path is None:
        raise ModelError("the stored model names no file; restore a copy of the database")
    return path


def _check_nothing(path: Path | None) -> None:
    """A server is asked when it is loaded."""


def _refuse_imported(path: Path | None) -> None:
    raise ModelError("the answers were imported: there is no model to ask further")


def _open_imported(log: Path) -> Engine:
    raise ModelError("the answers were imported: there is no model to ask further")


ENGINE_KINDS = (
    EngineKind(
        "scripted", ".scripted.json", _check_script, lambda log: EngineProcess(SCRIPTED_COMMAND, log), computes=False
    ),
    EngineKind(REMOTE, None, _check_nothing, lambda log: EngineProcess(REMOTE_COMMAND, log), computes=False),
    EngineKind(IMPORTED, None, _refuse_imported, _open_imported, computes=False),
    EngineKind("llama", "", _check_gguf, lambda log: EngineProcess(LLAMA_COMMAND, log), computes=True),
)
"""The first one that claims a path opens it."""


def kind_of(path: Path) -> EngineKind:
    """Return the kind of engine that opens a path."""
    return next(kind for kind in ENGINE_KINDS if kind.ending is not None and path.name.endswith(kind.ending))


def engine_kind(name: str) -> EngineKind:
    """Return the kind of this name, as `ResolvedModel.engine` holds it.

    Raises:
        KeyError: there is none.
    """
    return {kind.name: kind for kind in ENGINE_KINDS}[name]
