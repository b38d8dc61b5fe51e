"""``salt-tui export``."""

from __future__ import annotations

from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.exports.export import export_run
from salt_tui.paths import database_path
from salt_tui.store.queries import open_queries


def export_to(name: str, target: Path, database: Path | None, *, overwrite: bool) -> int:
    """Write one run to ``target``; the format follows from its name."""
    path = database or database_path()
    with open_queries(path) as queries:
        run = queries.find_run(name)
    export_run(path, run, target, overwrite=overwrite)
    say(f"run {run} is in {target}")
    return DONE
