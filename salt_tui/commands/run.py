"""``salt-tui run`` and ``salt-tui resume``: compute with a display, end with the report."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.computing import ComputedRun, compute, display_named
from salt_tui.commands.failures import DONE, say
from salt_tui.commands.report import print_summary
from salt_tui.measure.run_report import report_run
from salt_tui.paths import database_path
from salt_tui.reports.json_report import run_data
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.resumption import prepare_resume
from salt_tui.store.queries import open_queries


def run_new(request: RunRequest, database: Path | None, display: str | None, *, json_output: bool) -> int:
    """Make a run and compute it."""
    path = database or database_path()
    computed = compute(lambda emit: prepare_run(request, path, emit), path, display_named(display))
    return _finish(computed, path, json_output=json_output)


def run_again(
    name: str,
    database: Path | None,
    display: str | None,
    *,
    json_output: bool,
    allow_environment_change: bool,
    threads: int | None,
) -> int:
    """Go on with a stored run or study; a finished one is shown and left as it is.

    Args:
        name: ``N``, ``N.K``, or ``latest`` for the newest that is not finished.
        database: the file; None for the usual one.
        display: its name; None chooses.
        json_output: print one JSON object.
        allow_environment_change: go on in another environment.
        threads: None takes those of the run.
    """
    path = database or database_path()
    with open_queries(path) as queries:
        work = queries.find_unfinished() if name == "latest" else queries.find_work(name)
        study = None if work.study is None else queries.study_record(work)
        stored = queries.run_record(work.run)
    if study is not None:
        from salt_tui.commands.study import go_on_with_study

        return go_on_with_study(
            study,
            path,
            display,
            json_output=json_output,
            allow_environment_change=allow_environment_change,
            threads=threads,
        )
    if stored.state == "finished":
        say(f"run {stored.run} is finished, nothing to do")
        _print_result(path, stored.run, json_output=json_output)
        return DONE
    computed = compute(
        lambda emit: prepare_resume(
            stored, path, emit, allow_environment_change=allow_environment_change, threads=threads
        ),
        path,
        display_named(display),
        resumed=work,
    )
    return _finish(computed, path, json_output=json_output)


def _finish(computed: ComputedRun, database: Path, *, json_output: bool) -> int:
    if computed.run is not None:
        _print_result(database, computed.run, json_output=json_output)
    return computed.code


def _print_result(database: Path, run: int, *, json_output: bool) -> None:
    report = report_run(database, str(run))
    if json_output:
        print(json.dumps(run_data(report), ensure_ascii=False, allow_nan=False))
    else:
        print_summary(report)
