"""``salt-tui export``."""

from __future__ import annotations

from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.exports.export import export_run, export_study
from salt_tui.paths import database_path
from salt_tui.store.queries import open_queries


def export_to(name: str, target: Path, database: Path | None, *, overwrite: bool, excel_safe: bool = False) -> int:
    """Write one run or study to ``target``; the format follows from its name."""
    path = database or database_path()
    with open_queries(path) as queries:
        work = queries.find_work(name)
    if work.study is None:
        export_run(path, work.run, target, overwrite=overwrite, excel_safe=excel_safe)
    else:
        export_study(path, work, target, overwrite=overwrite, excel_safe=excel_safe)
    say(f"{work.title} is in {target}")
    return DONE
