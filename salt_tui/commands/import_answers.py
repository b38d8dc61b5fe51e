"""``salt-tui import``."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.failures import DONE, say
from salt_tui.commands.report import print_summary
from salt_tui.measure.run_report import report_run
from salt_tui.paths import database_path
from salt_tui.reports.json_report import run_data
from salt_tui.runner.imports.importing import import_answers
from salt_tui.visible_text import visible


def import_file(file: Path, database: Path | None, *, json_output: bool) -> int:
    """Make a run of answers that another program gave, and print its result as `run` does.

    Raises:
        UsageError: the file cannot be read or a row is bad; nothing is stored.
        StoreError: it cannot be stored.
    """
    path = database or database_path()
    imported = import_answers(path, file)
    say(
        f"run {imported.run}: {imported.answers:,} answers of {visible(imported.model)},"
        f" {imported.with_tokens:,} with log-probabilities"
    )
    report = report_run(path, str(imported.run))
    if json_output:
        print(json.dumps(run_data(report), ensure_ascii=False, allow_nan=False))
    else:
        print_summary(report)
    return DONE
