"""``salt-tui run`` and ``salt-tui resume``: compute with a display, end with the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from salt_tui.commands.computing import ComputedRun, compute, display_named
from salt_tui.commands.failures import DONE, FAILED, say
from salt_tui.commands.line_width import terminal_width
from salt_tui.commands.report import print_summary
from salt_tui.measure.floors import below_floors, read_floors
from salt_tui.measure.run_report import RunReport, report_run
from salt_tui.measure.spread import spread_between
from salt_tui.paths import database_path
from salt_tui.reports.json_report import run_data
from salt_tui.reports.summary import spread_table
from salt_tui.runner.jobs import Emit
from salt_tui.runner.loop import ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.resumption import prepare_resume
from salt_tui.store.queries import open_queries
from salt_tui.usage_error import UsageError

MOST_REPEATS = 1000


def run_new(
    requests: Sequence[RunRequest],
    database: Path | None,
    display: str | None,
    *,
    json_output: bool,
    fail_under: Sequence[str] = (),
) -> int:
    """Make runs and compute one after the other.

    Args:
        requests: what to run, at least one; those of one model that differ in the sampler's seed are repeats.
        database: the file; None for the usual one.
        display: its name; None chooses.
        json_output: print one JSON object; of several runs with them under ``runs``.
        fail_under: ``NAME=NUMBER`` texts; a run whose value is lower makes the exit code 1.

    Returns:
        The code of the first run that did not end well, else 1 where a value is too low, else 0.
    """
    floors = read_floors(fail_under)
    path = database or database_path()
    computed: list[ComputedRun] = []
    for request in requests:
        # Each run is computed before the next is prepared: both would hold a model in memory.
        one = compute(partial(_prepare, request, path), path, display_named(display))
        computed.append(one)
        if len(requests) > 1 and one.run is not None and not json_output:
            print_summary(report_run(path, str(one.run)))
        if one.code != DONE:
            break
    reports = [report_run(path, str(one.run)) for one in computed if one.run is not None]
    if len(requests) == 1:
        _print_reports(reports, json_output=json_output)
    else:
        _print_several(reports, json_output=json_output)
    code = computed[-1].code
    for report in reports:
        for problem in below_floors(report, floors):
            say(f"run {report.run.run}: {problem}")
            code = code or FAILED
    return code


def _prepare(request: RunRequest, path: Path, emit: Emit) -> ReadyWork:
    return prepare_run(request, path, emit)


def repeated(request: RunRequest, times: int) -> list[RunRequest]:
    """Return a request once per seed of the sampler, from its own on.

    Raises:
        UsageError: fewer than one, or repeats of greedy decoding, which would be equal.
    """
    if not 1 <= times <= MOST_REPEATS:
        raise UsageError(f"--repeat {times}: 1 to {MOST_REPEATS} runs")
    if times > 1 and not request.sampling.temperature:
        raise UsageError("--repeat: greedy answers would be equal; choose --temp above 0")
    return [
        replace(request, sampling=replace(request.sampling, seed=request.sampling.seed + number))
        for number in range(times)
    ]


def _print_reports(reports: Sequence[RunReport], *, json_output: bool) -> None:
    for report in reports:
        if json_output:
            print(json.dumps(run_data(report), ensure_ascii=False, allow_nan=False))
        else:
            print_summary(report)


def _print_several(reports: Sequence[RunReport], *, json_output: bool) -> None:
    """Print several runs as one object, or the spread of each model's repeats, which were printed one by one."""
    models: dict[str, list[RunReport]] = {}
    for report in reports:
        models.setdefault(report.run.model.name, []).append(report)
    spreads = {name: spread_between(found) for name, found in models.items() if len(found) > 1}
    if json_output:
        data: dict[str, Any] = {"runs": [run_data(report) for report in reports]}
        data["spread"] = {
            name: {rate: asdict(found) for rate, found in spread.items()} for name, spread in spreads.items()
        }
        print(json.dumps(data, ensure_ascii=False, allow_nan=False))
        return
    for name, spread in spreads.items():
        print()
        for line in spread_table(name, spread).as_text(terminal_width()):
            print(line)


def run_again(
    name: str,
    database: Path | None,
    display: str | None,
    *,
    json_output: bool,
    allow_environment_change: bool,
    threads: int | None,
    cache_mb: int | None = None,
) -> int:
    """Go on with a stored run or study; a finished one is shown and left as it is.

    Args:
        name: ``N``, ``N.K``, or ``latest`` for the newest that is not finished.
        database: the file; None for the usual one.
        display: its name; None chooses.
        json_output: print one JSON object.
        allow_environment_change: go on in another environment.
        threads: None takes those of the run.
        cache_mb: memory for what jobs of a study share, MiB; None takes the usual.

    Raises:
        UsageError: ``cache_mb`` for a run.
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
            cache_mb=cache_mb,
        )
    if cache_mb is not None:
        raise UsageError(f"--cache-mb is for studies, and {work.title} is none: leave it out")
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
    _print_reports([report_run(database, str(run))], json_output=json_output)
