"""``salt-tui models list`` and ``check``."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from salt_tui.commands.failures import DONE
from salt_tui.commands.line_width import line_width
from salt_tui.engine.kv_memory import available_memory
from salt_tui.engine.models import ModelRow, ResolvedModel, list_models, load_registry, resolve_model
from salt_tui.engine.remote_server import Server
from salt_tui.paths import user_models_file
from salt_tui.visible_text import visible


def list_known(context: int, width: int, *, json_output: bool) -> int:
    """Print every model of ``models.toml``, whether it can be used here, and what memory a run takes."""
    rows = list_models(load_registry(), context, width)
    free = available_memory()
    if json_output:
        print(json.dumps([{**_data(row), "fits": _fits(row, free)} for row in rows], ensure_ascii=False))
        return DONE
    longest, wide = max(len(row.name) for row in rows), line_width()
    print(f"  {'name':<{longest}} {'kind':<9} {'here':>7} {'memory':>7} {'trained':>7} model")
    for row in rows:
        here = "no" if not row.available else "yes" if row.file_bytes is None else _size(row.file_bytes)
        here = "server" if row.available and row.server is not None else here
        memory = "" if row.memory is None else _size(row.memory)
        mark = "!" if _fits(row, free) is False else " "
        trained = "" if row.context is None else str(row.context)
        line = (
            f"{'*' if row.default else ' '} {visible(row.name):<{longest}} {row.kind or '':<9}"
            f" {here:>7} {memory:>7}{mark}{trained:>7} {visible(row.title)}"
        )
        print(line if len(line) <= wide else f"{line[: wide - 1]}…")
    print("* is used without -m. How to get another: salt-tui models check NAME")
    print(f"memory: about what a run takes with -c {context} -np {width}, on all devices together")
    if free is not None:
        print(f"! is more than the {_size(free)} of main memory that are free now")
    print(f"Your own entries go to {visible(str(user_models_file()))}")
    return DONE


def _fits(row: ModelRow, free: int | None) -> bool | None:
    return None if row.memory is None or free is None else row.memory <= free


def check_model(name: str, *, json_output: bool) -> int:
    """Check the file of one model without loading it; raises `ModelError` that says what to do.

    A server is not asked: `doctor` does that.
    """
    resolved = resolve_model(name, load_registry())
    if resolved.entry.server is not None:
        _check_served(resolved, resolved.entry.server, json_output=json_output)
        return DONE
    size = sum(path.stat().st_size for path in resolved.files)
    if json_output:
        data = {"name": resolved.name, "path": resolved.place, "kind": resolved.kind, "file_bytes": size}
        data["caveat"] = resolved.entry.caveat
        print(json.dumps(data, ensure_ascii=False))
    else:
        print(f"{visible(resolved.name)}: {resolved.kind}, {_size(size)}, {visible(resolved.place)}")
        if resolved.entry.caveat:
            print(f"  {visible(resolved.entry.caveat)}")
    return DONE


def _check_served(resolved: ResolvedModel, server: Server, *, json_output: bool) -> None:
    """Say where a model on a server is, and what is known without asking."""
    if json_output:
        data = {"name": resolved.name, "path": server.url, "kind": resolved.kind, "file_bytes": None}
        data |= {"model": server.model, "key_env": server.key_env, "caveat": resolved.entry.caveat}
        print(json.dumps(data, ensure_ascii=False))
        return
    kind = "base" if server.completions else resolved.kind
    key = f", key in {server.key_env}" if server.key_env else ""
    print(f"{visible(resolved.name)}: {kind}, served as {visible(server.model)} at {visible(server.url)}{key}")
    for line in (*server.warnings, *([resolved.entry.caveat] if resolved.entry.caveat else [])):
        print(f"  {visible(line)}")
    print(f"  salt-tui doctor -m {visible(resolved.name)} asks the server")


def _data(row: ModelRow) -> dict[str, Any]:
    data = asdict(row)
    data["path"] = None if row.path is None else str(row.path)
    return {**{field.name: data[field.name] for field in fields(row)}, "available": row.available}


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
