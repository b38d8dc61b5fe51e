"""``salt-tui edit``: change atoms of one answer and see what the model writes then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from salt_tui.commands.computing import compute, display_named
from salt_tui.commands.failures import DONE
from salt_tui.commands.line_width import terminal_width
from salt_tui.paths import database_path
from salt_tui.reports.branches import branch_data, branch_lines
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study
from salt_tui.store.queries import open_queries


def edit_answer(
    run: str, options: Mapping[str, int | str], database: Path | None, display: str | None, *, json_output: bool
) -> int:
    """Compute a branch of one answer and print it beside the answer.

    Args:
        run: name of the run.
        options: of the kind ``manual``.
        database: the file; None for the usual one.
        display: as `display_named`.
        json_output: print one JSON object.
    """
    path = database or database_path()
    request = StudyRequest("manual", run, options)
    computed = compute(lambda emit: prepare_study(request, path, emit), path, display_named(display))
    if computed.name is None or computed.code != DONE:
        return computed.code
    with open_queries(path) as queries, queries.snapshot():
        study = queries.find_work(computed.name)
        if json_output:
            print(json.dumps(branch_data(queries, study), ensure_ascii=False, allow_nan=False))
        else:
            for line in branch_lines(queries, study, terminal_width()):
                print(line)
    return computed.code
