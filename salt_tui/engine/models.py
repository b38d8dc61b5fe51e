"""From the word after ``-m`` to a checked file and the engine that opens it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from salt_tui.engine.chat_template import check_syntax
from salt_tui.engine.engine import Engine
from salt_tui.engine.engine_kinds import REMOTE, engine_kind, kind_of
from salt_tui.engine.errors import ModelError
from salt_tui.engine.gguf_header import GGUFHeader
from salt_tui.engine.memory_need import memory_needed
from salt_tui.engine.model_files import (
    MissingModelError,
    locate,
    split_names,
)
from salt_tui.engine.model_registry import (
    PLAIN,
    ModelEntry,
    ModelKind,
    ModelRegistry,
    TemplateOption,
    load_registry,
)
from salt_tui.engine.remote_server import Server
from salt_tui.paths import expanded
from salt_tui.similar_names import did_you_mean
from salt_tui.visible_text import visible

__all__ = [
    "MissingModelError",
    "ModelEntry",
    "ModelKind",
    "ModelRegistry",
    "ModelRow",
    "ResolvedModel",
    "list_models",
    "load_registry",
    "open_engine",
    "resolve_entry",
    "resolve_model",
    "resolve_stored",
]

_PART = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that is there and whole.

    Attributes:
        name: the name in ``models.toml``, or the file's name.
        path: the file, absolute; the first part of a split model.  None for a model without a file.
        entry: what ``models.toml`` says, or an entry with the path alone.
        default_context: tokens per answer when ``-c`` is not given; None chooses by the plan.
        kind: from the entry, else from the file: without a template ``base``, with a template that knows
            ``<think>`` ``reasoning``, else ``instruct``.
        template: for `LoadOptions`: None keeps the file's own, ``""`` asks for plain completion prompts.
        template_options: for `LoadOptions`.
        engine: name of the kind of engine that opens it, see `salt_tui.engine.engine_kinds`.
    """

    name: str
    path: Path | None
    entry: ModelEntry
    default_context: int | None
    kind: ModelKind
    template: str | None
    template_options: dict[str, TemplateOption]
    engine: str

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the model in order; several when it is split, none for a model without a file."""
        path = self.path
        return () if path is None else tuple(path.with_name(name) for name in split_names(path.name))

    @property
    def place(self) -> str:
        """Where it is, for people and for the store: the path of its file, the address of its server."""
        return str(self.path) if self.path is not None else self.entry.url or f"{self.engine}: no file"

    def to_json(self) -> str:
        """Write the model as canonical JSON, keys sorted, for a run's record."""
        value = {
            "name": self.name,
            "path": None if self.path is None else str(self.path),
            "kind": self.kind,
            "engine": self.engine,
            "entry": json.loads(self.entry.to_json()),
        }
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ResolvedModel:
        """Read what `to_json` wrote; the file is not looked at (see `resolve_stored`)."""
        value = json.loads(text)
        entry = ModelEntry.from_json(json.dumps(value["entry"]))
        path = None if value["path"] is None else Path(value["path"])
        return _resolved(value["name"], path, entry, value["kind"], value["engine"])


def resolve_model(name_or_path: str, registry: ModelRegistry) -> ResolvedModel:
    """Resolve what the user wrote after ``-m``: a known name, else the path of a file.

    Raises:
        ModelError: nothing of that name, or a file that cannot be used; one line that says what to do.
    """
    if entry := registry.entries.get(name_or_path):
        return resolve_entry(name_or_path, entry)
    if "://" in name_or_path:
        # Not repeated: it may hold a key.
        raise ModelError(
            "a model on a server needs a name: give it a table with url and model in models.toml (`salt-tui doctor`"
            " says where that is), then run it by the table's name"
        )
    path = expanded(name_or_path, ModelError)
    looks_like_path = path.suffix.lower() in (".gguf", ".json") or len(path.parts) > 1
    if not name_or_path.strip() or not (looks_like_path or _exists(path)):
        meant = did_you_mean(name_or_path, registry.entries)
        raise ModelError(
            f'no model or file is called "{visible(name_or_path)}"{meant} '
            "(`salt-tui models list` shows the names; or give the path of a GGUF file)"
        )
    path = path.absolute()
    return resolve_entry(visible(_PART.sub("", path.name).removesuffix(".gguf")), ModelEntry(path=str(path)))


def resolve_entry(name: str, entry: ModelEntry) -> ResolvedModel:
    """Find and check the file of an entry; raises `ModelError`."""
    return _resolve(name, entry)[0]


def _resolve(name: str, entry: ModelEntry) -> tuple[ResolvedModel, GGUFHeader | None]:
    """Return the header too; a script has none."""
    if entry.server is not None:
        check_key(name, entry.server)
        return _resolved(name, None, entry, entry.kind or "instruct", REMOTE), None
    path = locate(name, entry).absolute()
    if entry.template and entry.template != PLAIN:
        check_syntax(entry.template)
    engine = kind_of(path)
    header = engine.check(path)
    kind = entry.kind or ("instruct" if header is None else _kind(header, entry.template))
    return _resolved(name, path, entry, kind, engine.name), header


def check_key(name: str, server: Server) -> None:
    """See that the key of a server is there; raises `ModelError`."""
    if server.key_env is not None and not os.environ.get(server.key_env, "").strip():
        raise ModelError(
            f"model {visible(name)}: its key is not there; set the environment variable {server.key_env} to it"
        )


def resolve_stored(stored: ResolvedModel) -> ResolvedModel:
    """Find and check the file of a stored run again, whatever ``models.toml`` says by now.

    The file is taken from where it was, and looked for as the stored entry says when it is gone.  Whether it is the
    same file is for the caller's hash to tell.

    Raises:
        ModelError: it is not there or broken.
    """
    if stored.entry.server is not None:
        check_key(stored.name, stored.entry.server)
        return stored
    if stored.path is not None and not _exists(stored.path):
        return replace(stored, path=resolve_entry(stored.name, stored.entry).path)
    engine_kind(stored.engine).check(stored.path)
    return stored


def _resolved(name: str, path: Path | None, entry: ModelEntry, kind: ModelKind, engine: str) -> ResolvedModel:
    template = "" if entry.template == PLAIN else entry.template
    return ResolvedModel(name, path, entry, entry.context, kind, template, dict(entry.template_options), engine)


def open_engine(resolved: ResolvedModel, log_path: Path) -> Engine:
    """Start the engine that can open the model; nothing is loaded yet.

    Args:
        resolved: the model.
        log_path: the file that everything the child prints goes to.
    """
    return engine_kind(resolved.engine).open(log_path)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One line of ``salt-tui models list``; None where the file is not there to tell.

    Attributes:
        name: for ``-m``.
        title, description, licence: from ``models.toml``.
        default: used when ``-m`` is not given.
        kind: see `ResolvedModel`.
        path: the file; None for a model on a server.
        memory: bytes that a run takes about, see `salt_tui.engine.memory_need`; None where the file does not tell.
        server: address of the server that has it; None for a file.
        file_bytes: of all its parts.
        context: tokens it was trained on.
        has_template: it carries a chat template or ``models.toml`` gives one.
        problem: why it cannot be used, one line; None when it can.
        command: how to fetch it when it is not there.
    """

    name: str
    title: str
    description: str | None
    licence: str | None
    default: bool
    kind: ModelKind | None
    path: Path | None
    file_bytes: int | None
    architecture: str | None
    quantisation: str | None
    context: int | None
    has_template: bool | None
    problem: str | None
    command: str | None
    server: str | None = None
    memory: int | None = None

    @property
    def available(self) -> bool:
        """The model is there and whole."""
        return self.problem is None


LISTED_CONTEXT, LISTED_WIDTH = 2048, 4
"""Tokens per answer and answers at once for which the list says what memory a run takes."""


def list_models(registry: ModelRegistry, context: int = LISTED_CONTEXT, width: int = LISTED_WIDTH) -> list[ModelRow]:
    """Describe every known model from the header of its file, in the order of ``models.toml``; loads nothing.

    Args:
        registry: the models.
        context: tokens per answer for which memory is told.
        width: answers at once for which memory is told.
    """
    return [_row(name, entry, name == registry.default, context, width) for name, entry in registry.entries.items()]


def _row(name: str, entry: ModelEntry, default: bool, context: int, width: int) -> ModelRow:
    problem: str | None = None
    command: str | None = None
    resolved: ResolvedModel | None = None
    header: GGUFHeader | None = None
    try:
        resolved, header = _resolve(name, entry)
    except MissingModelError as error:
        problem, command = str(error), error.command
    except ModelError as error:
        problem, command = str(error), None
    own = bool(header and header.template)
    size = sum(path.stat().st_size for path in resolved.files) if resolved and resolved.files else None
    return ModelRow(
        name=name,
        title=entry.title or name,
        description=entry.description,
        licence=entry.licence,
        default=default,
        kind=resolved.kind if resolved else entry.kind,
        path=resolved.path if resolved else None,
        file_bytes=size,
        architecture=header.architecture if header else None,
        quantisation=header.quantisation if header else None,
        context=header.trained_context if header else None,
        has_template=(own if resolved.template is None else bool(resolved.template)) if resolved and header else None,
        problem=problem,
        command=command,
        server=entry.server.address if entry.server else None,
        memory=memory_needed(header, size, context, width) if header and size else None,
    )


def _kind(header: GGUFHeader, template: str | None) -> ModelKind:
    text = header.template if template is None else template
    if not text or text == PLAIN:
        return "base"
    return "reasoning" if "<think>" in text else "instruct"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
