"""What the app remembers and what the user may set, in the configuration folder: last choices, keys."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from salt_tui.paths import user_models_file

NUMBER_FIELDS = {"limit": "Samples", "seed": "Seed", "width": "Width"}
"""Titles of the fields of Setup that hold a number."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What Setup was last left with."""

    model: str = "smollm2"
    tasks: tuple[str, ...] = ()
    difficulty: str = "easy"
    limit: int = 20
    method: str = "regular"
    seed: int = 0
    width: int = 4

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Read what JSON gave; a field that is absent or of another type keeps its default."""
        known: dict[str, Any] = {}
        for field in fields(cls):
            value = data.get(field.name) if isinstance(data, dict) else None
            default = field.default
            if field.name == "tasks" and isinstance(value, list):
                known["tasks"] = tuple(name for name in value if isinstance(name, str))
            elif type(value) is type(default) and field.name != "tasks":
                known[field.name] = value
        return cls(**known)


def choices_path() -> Path:
    """Return the file of the last choices."""
    return user_models_file().with_name("last-choices.json")


def keys_path() -> Path:
    """Return the user's file of keys; it need not exist."""
    return user_models_file().with_name("keys.toml")


def load_choices() -> Choices:
    """Return the last choices, defaults where there are none or the file is damaged."""
    return Choices.from_data(_load(choices_path()))


def save_choices(choices: Choices) -> None:
    """Remember the choices; a folder that cannot be written is no reason to stop."""
    _save(choices_path(), asdict(choices))


@dataclass(frozen=True, slots=True)
class View:
    """How runs were last looked at.

    Attributes:
        function: name of the confidence function, empty for the usual one.
        shading: what colours say, a value of `Shading`; empty for the usual.
    """

    function: str = ""
    shading: str = ""


def view_path() -> Path:
    """Return the file of the last view."""
    return user_models_file().with_name("last-view.json")


def load_view() -> View:
    """Return the last view, the usual one where there is none or the file is damaged."""
    data = _load(view_path())
    known = data if isinstance(data, dict) else {}
    return View(*(value if isinstance(value := known.get(name), str) else "" for name in ("function", "shading")))


def save_view(view: View) -> None:
    """Remember the view."""
    _save(view_path(), asdict(view))


def _load(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _save(path: Path, data: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
        temporary.write_text(json.dumps(data, indent=1), encoding="utf-8")
        temporary.replace(path)


def load_keys(known: set[str]) -> tuple[dict[str, str], list[str]]:
    """Read ``keys.toml``: ``"map.next_wrong" = "n"`` per binding; several keys are joined by commas.

    Args:
        known: ids of all bindings.

    Returns:
        Keys by binding id, and one line for everything that was ignored.
    """
    path = keys_path()
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError) as error:
        return {}, [f"{path} is ignored: {error}"]
    keys: dict[str, str] = {}
    ignored: list[str] = []
    for name, value in table.items():
        if name not in known:
            ignored.append(f"{path}: there is no binding {name!r}; ? lists them")
        elif not isinstance(value, str) or not value.strip():
            ignored.append(f"{path}: {name} must be keys joined by commas")
        elif (wrong := next((key for key in value.split(",") if not _is_key(key.strip())), None)) is not None:
            ignored.append(
                f"{path}: {name}: {wrong.strip() or 'nothing'!r} is no key; f5, ctrl+n, slash and n are some"
            )
        else:
            keys[name] = ",".join(key.strip() for key in value.split(","))
    return keys, ignored


_MODIFIERS = {"ctrl", "shift", "alt", "super", "hyper", "meta"}


def _is_key(name: str) -> bool:
    """Say whether a name is one that Textual gives to a key, or the character of one."""
    from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

    *modifiers, key = name.split("+") if name != "+" else (name,)
    if not key or not set(modifiers) <= _MODIFIERS or key != key.strip():
        return False
    if len(key) == 1:
        return key.isprintable() and not key.isspace()
    return key in set(Keys) or key in KEY_NAME_REPLACEMENTS.values() or key_to_character(key) is not None
