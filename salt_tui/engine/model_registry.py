"""Read ``models.toml``: names for models, the shipped file first and the user's merged over it key by key."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from salt_tui.engine.errors import ModelError
from salt_tui.engine.remote_server import RESERVED, Server, checked_url, is_variable_name, secret_name
from salt_tui.paths import PathError, expanded, shipped_models_file, user_models_file
from salt_tui.similar_names import did_you_mean

ModelKind = Literal["instruct", "reasoning", "base"]
"""Follows instructions, thinks before it answers, or only continues text."""

TemplateOption: TypeAlias = bool | int | str

PLAIN = "none"
"""The value of ``template`` that asks for plain completion prompts."""

_LARGEST = 1_000_000
"""Bytes of a file of models."""

_SOURCES = ("path", "package", "repository", "url")
_OF_FILES = ("file", "context", "template", "template_options")
"""Keys that mean nothing to a server, which has its own context and template."""
_OF_SERVERS = ("model", "key_env", "request")
_SERVED_KINDS = ("chat", "instruct", "reasoning", "base")
_KEY_TYPES: dict[str, tuple[type, str]] = {
    "title": (str, "text"),
    "description": (str, "text"),
    "caveat": (str, "text"),
    "licence": (str, "text"),
    "kind": (str, "text"),
    "path": (str, "text"),
    "package": (str, "text"),
    "repository": (str, "text"),
    "file": (str, "text"),
    "context": (int, "a whole number"),
    "template": (str, "text"),
    "template_options": (dict, "a table"),
    "url": (str, "text"),
    "model": (str, "text"),
    "key_env": (str, "text"),
    "request": (dict, "a table"),
}


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One table of ``models.toml``; exactly one of path, package, repository and url is set.

    Attributes:
        title: the name for screens, None to show the table's name.
        description: one line for lists.
        caveat: one line that every run of the model has as a warning.
        licence: SPDX identifier or the licence's own name.
        kind: None where the file has to tell.
        path: of the file, absolute.
        package: import name of an installed Python package that carries the file.
        repository: ``organisation/name`` on the model hub.
        file: the file in the package (may be a pattern) or in the repository.
        context: tokens per answer when ``-c`` is not given; None chooses by the plan.
        template: replaces the file's chat template; ``none`` asks for plain completion prompts.
        template_options: variables for the template.
        url: base address of a server that speaks OpenAI's interface.
        model: the name that the model is served under.
        key_env: name of the environment variable that holds the server's key.
        request: further fields of every request to the server.
    """

    title: str | None = None
    description: str | None = None
    caveat: str | None = None
    licence: str | None = None
    kind: ModelKind | None = None
    path: str | None = None
    package: str | None = None
    repository: str | None = None
    file: str | None = None
    context: int | None = None
    template: str | None = None
    template_options: dict[str, TemplateOption] = field(default_factory=dict)
    url: str | None = None
    model: str | None = None
    key_env: str | None = None
    request: dict[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> Server | None:
        """The server that has the model; None for a file."""
        if self.url is None or self.model is None:
            return None
        return Server(self.url, self.model, self.key_env, self.kind == "base", dict(self.request))

    def to_json(self) -> str:
        """Write the entry as canonical JSON, keys sorted and empty ones left out, for a run's record."""
        filled = {key: value for key, value in asdict(self).items() if value not in (None, {})}
        return json.dumps(filled, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ModelEntry:
        """Read an entry that `to_json` wrote; raises `ModelError`."""
        return _entry("the stored entry", json.loads(text), "the run's record")


@dataclass(frozen=True, slots=True)
class ModelRegistry:
    """All known names; ``default`` is one of them."""

    default: str
    entries: dict[str, ModelEntry]


def load_registry(shipped: Path | None = None, user: Path | None = None) -> ModelRegistry:
    """Read the shipped ``models.toml`` and merge the user's over it.

    A key of the user's file replaces the same key of the same model; ``template_options`` is merged key by key
    too, and naming a source (``path``, ``package``, ``repository``, ``url``) replaces the shipped source with its file.
    A relative ``path`` starts at the folder of the file it stands in.

    Args:
        shipped: the program's own file when None.
        user: the file in the user's settings when None; it need not exist.

    Raises:
        ModelError: unreadable file, unknown key, wrong type, or an entry without exactly one source; one line.
    """
    shipped = shipped_models_file() if shipped is None else shipped
    user = user_models_file() if user is None else user
    default, tables = _read(shipped)
    where = str(shipped)
    if user.exists():
        user_default, user_tables = _read(user)
        default = user_default or default
        for name, table in user_tables.items():
            tables[name] = _merged(tables.get(name, {}), table)
        where = f"{user} merged over {shipped}"
    entries = {name: _entry(f"[{name}]", table, where) for name, table in tables.items()}
    if default not in entries:
        known = _nearest(default or "", entries)
        raise ModelError(f"{where}: default = {json.dumps(default)} names no model{known}")
    return ModelRegistry(default, entries)


def usable_registry() -> tuple[ModelRegistry, str | None]:
    """Return the known models, and what is wrong with the user's own file, without which they are then read.

    Raises:
        ModelError: the shipped file is damaged.
    """
    try:
        return load_registry(), None
    except ModelError as error:
        # The name of the file says which it is; its whole path would leave no room for the error on a screen.
        return load_registry(user=Path(os.devnull)), str(error).replace(str(user_models_file()), "models.toml")


def _read(path: Path) -> tuple[str | None, dict[str, dict[str, object]]]:
    """Read and check one file: its default and its tables."""
    if path.is_fifo():
        raise ModelError(f"{path} is a pipe, and perhaps nobody writes to it; make it a file")
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ModelError(f"{path} has more than {_LARGEST:,} bytes; a table for each model is enough")
        content = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"{path} is not valid TOML: {error}") from None
    default = content.pop("default", None)
    if default is not None and not isinstance(default, str):
        raise ModelError(f'{path}: default must be text, the name of a model; write default = "smollm2"')
    for name, table in content.items():
        if not isinstance(table, dict):
            raise ModelError(
                f'{path}: {name} is no table; a model begins with [{name}], and the only key outside is "default"'
            )
        _check(f"{path}: [{name}]", table)
        if "path" in table:
            try:
                table["path"] = str(path.parent.absolute() / expanded(table["path"]))
            except PathError as error:
                raise ModelError(f"{path}: [{name}]: {error}") from None
    return default, content


def _check(where: str, table: Mapping[str, object]) -> None:
    """Check names, types and values of the keys of one table."""
    for key, value in table.items():
        if key not in _KEY_TYPES:
            raise ModelError(f'{where}: unknown key "{key}"{_nearest(key, _KEY_TYPES)}')
        expected, words = _KEY_TYPES[key]
        if not isinstance(value, expected) or isinstance(value, bool):
            raise ModelError(f'{where}: "{key}" must be {words}, not {_shown(value)}')
    kind, context, options = table.get("kind"), table.get("context"), table.get("template_options", {})
    kinds = _SERVED_KINDS if "url" in table else get_args(ModelKind)
    if kind is not None and kind not in kinds:
        raise ModelError(f'{where}: "kind" must be one of {", ".join(kinds)}, not {_shown(kind)}')
    if "url" in table or any(key in table for key in _OF_SERVERS):
        _check_server(where, table)
    if isinstance(context, int) and context < 1:
        raise ModelError(f'{where}: "context" must be at least 1 token, not {context}; leave it out for automatic')
    if isinstance(options, dict):
        for option, value in options.items():
            if not isinstance(value, bool | int | str):
                raise ModelError(
                    f"{where}: template option {json.dumps(option)} must be text, a whole number, true or false"
                )


def _check_server(where: str, table: Mapping[str, object]) -> None:
    """Check the keys of a table that go with a server; what could be a key of the server is never repeated."""
    key_env, request = table.get("key_env"), table.get("request", {})
    if isinstance(key_env, str) and not is_variable_name(key_env):
        raise ModelError(
            f'{where}: "key_env" must be the name of an environment variable such as OPENAI_API_KEY, not a key itself'
        )
    if isinstance(request, dict):
        for name in request:
            if name in RESERVED:
                raise ModelError(f'{where}: "request" may not hold "{name}": the program fills it in')
        if (name := secret_name(request)) is not None:
            raise ModelError(
                f'{where}: "request" may not hold {json.dumps(name)}: it is stored with every run, and keys are not;'
                " put the key into an environment variable and name that in key_env"
            )
        try:
            json.dumps(request, allow_nan=False)
        except (TypeError, ValueError):
            raise ModelError(
                f'{where}: "request" may hold texts, numbers, true, false, lists and tables only'
            ) from None
    if "url" in table:
        try:
            checked_url(str(table["url"]))
        except ValueError as error:
            raise ModelError(f'{where}: "url" {error}') from None


def _merged(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    kept = {
        key: value
        for key, value in base.items()
        if not (any(source in over for source in _SOURCES) and key in (*_SOURCES, *_OF_SERVERS, "file"))
    }
    merged = kept | dict(over)
    old, new = base.get("template_options"), over.get("template_options")
    if isinstance(old, dict) and isinstance(new, dict):
        merged["template_options"] = old | new
    return merged


def _entry(name: str, table: Mapping[str, object], where: str) -> ModelEntry:
    """Make the entry of a merged table."""
    where = f"{where}: {name}"
    _check(where, table)
    sources = [source for source in _SOURCES if source in table]
    if len(sources) != 1:
        given = f"not {' and '.join(sources)}" if sources else "and has none"
        raise ModelError(f"{where} needs one of path, package + file, repository + file, url + model, {given}")
    if sources == ["url"]:
        return _served(where, table)
    if foreign := [key for key in _OF_SERVERS if key in table]:
        raise ModelError(f'{where}: "{foreign[0]}" goes with url, a model on a server')
    if sources == ["path"] and "file" in table:
        raise ModelError(f'{where}: "file" goes with package or repository; with path, write the whole path there')
    if sources != ["path"] and "file" not in table:
        raise ModelError(f'{where}: {sources[0]} needs "file", the name of the GGUF in it')
    if not all(str(table[key]).strip() for key in (*sources, "file") if key in table):
        raise ModelError(f'{where}: "{sources[0]}" and "file" must not be empty')
    repository = table.get("repository")
    if isinstance(repository, str) and (repository.count("/") != 1 or not all(repository.split("/"))):
        raise ModelError(f'{where}: "repository" must be organisation/name, not {_shown(repository)}')
    known = {one.name for one in fields(ModelEntry)}
    return replace(ModelEntry(), **{key: value for key, value in table.items() if key in known})  # type: ignore[arg-type]


def _served(where: str, table: Mapping[str, object]) -> ModelEntry:
    """Make the entry of a model on a server."""
    if foreign := [key for key in _OF_FILES if key in table]:
        raise ModelError(
            f'{where}: "{foreign[0]}" goes with a file; the server has its own context and template'
            " (request = { chat_template_kwargs = { … } } passes options to it)"
        )
    if not str(table.get("model", "")).strip():
        raise ModelError(f'{where}: url needs "model", the name that the model is served under')
    known = {one.name for one in fields(ModelEntry)}
    entry = replace(ModelEntry(), **{key: value for key, value in table.items() if key in known})  # type: ignore[arg-type]
    kind: ModelKind = entry.kind if entry.kind in get_args(ModelKind) else "instruct"  # type: ignore[assignment]
    return replace(entry, url=checked_url(str(table["url"])), kind=kind)


def _nearest(name: str, known: Mapping[str, object]) -> str:
    """Say which known name is meant, or which there are."""
    return did_you_mean(name, known) or f"; there are: {', '.join(known)}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 40 else text[:37] + "..."
