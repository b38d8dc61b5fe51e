"""``salt-tui export``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.exports.export import export_work
from salt_tui.exports.formats import EXPORT_FORMATS, ExportOptions
from salt_tui.paths import database_path
from salt_tui.similar_names import did_you_mean
from salt_tui.store.errors import StoreError
from salt_tui.store.placing import scratch_folder
from salt_tui.store.queries import open_queries
from salt_tui.visible_text import visible

STDOUT = "-"


def export_to(
    name: str,
    target: str,
    database: Path | None,
    *,
    format_name: str | None = None,
    overwrite: bool = False,
    options: ExportOptions | None = None,
) -> int:
    """Write one run or study to a file, whose name says the format, or to stdout as ``format_name`` says."""
    path = database or database_path()
    with open_queries(path) as queries:
        work = queries.find_work(name)
    if target == STDOUT:
        suffix = _format_for_stdout(format_name or "csv")
        # Whole before its first byte is written: a reader of the pipe never gets half a table.
        with scratch_folder() as folder:
            file = folder / f"export{suffix}"
            export_work(path, work, file, options=options)
            if sys.stdout.isatty():
                # As text, so that nothing in it acts on the terminal.
                with file.open(encoding="utf-8", newline="") as text:
                    shutil.copyfileobj(text, sys.stdout)
            else:
                with file.open("rb") as whole:
                    shutil.copyfileobj(whole, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        return DONE
    if format_name is not None:
        raise StoreError("--format is for -o -: the name of a file says its format")
    export_work(path, work, target, overwrite=overwrite, options=options)
    say(f"{work.title} is in {target}")
    return DONE


def _format_for_stdout(name: str) -> str:
    known = [suffix.removeprefix(".") for suffix, entry in EXPORT_FORMATS.items() if not entry.database]
    if name not in known:
        raise StoreError(f'"{visible(name)}" cannot go to stdout{did_you_mean(name, known)} ({", ".join(known)} can)')
    suffix = f".{name}"
    if not EXPORT_FORMATS[suffix].readable and sys.stdout.isatty():
        raise StoreError(f"{name} is nothing for a terminal: send it to a file or a pipe")
    return suffix
