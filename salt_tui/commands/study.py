"""``salt-tui study``: further work on a stored run, with one subcommand for each kind of the registry."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from salt_tui.commands.computing import compute, display_named
from salt_tui.commands.failures import DONE, say
from salt_tui.commands.line_width import terminal_width
from salt_tui.engine.options import CACHE_MB
from salt_tui.measure.interventions import InterventionFindings, measure_interventions
from salt_tui.paths import database_path
from salt_tui.reports.intervention_tables import interventions_lines
from salt_tui.reports.interventions_json import interventions_data
from salt_tui.reports.text_tables import TextTable, number
from salt_tui.reports.wrapping import wrapped
from salt_tui.runner.studies.interventions import INTERVENTIONS
from salt_tui.runner.studies.kind import StudyKind, StudyOption, StudyResult
from salt_tui.runner.studies.plan import StudyPlan
from salt_tui.runner.studies.preparation import StudyRequest, prepare_study, prepare_study_resume, read_study_plan
from salt_tui.runner.studies.registry import STUDY_KINDS, study_kind
from salt_tui.store.queries import Queries, open_queries
from salt_tui.store.results import StoredStudy
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from scoring.value import json_number


def add_study_commands(group: typer.Typer, common: Mapping[str, Any]) -> None:
    """Add one command for each kind, with the options of the kind and those that all have.

    Args:
        group: takes the commands.
        common: annotations of the parameters ``run``, ``database``, ``display`` and ``json_output``.
    """
    for kind in STUDY_KINDS.values():
        if not kind.reused:
            group.command(kind.name, help=kind.summary)(_command(kind, common))


def _command(kind: StudyKind, common: Mapping[str, Any]) -> Callable[..., int]:
    context = Annotated[int | None, typer.Option("-c", help="Context per sequence, tokens; at least the run's.")]
    threads = Annotated[int | None, typer.Option("-t", help="Threads; default: as the run.")]
    cache_mb = Annotated[
        int, typer.Option("--cache-mb", help="Memory for prompts and answers that jobs share, MiB; changes no number.")
    ]
    of_a_model: dict[str, tuple[Any, int | None]] = {
        "context": (context, None),
        "threads": (threads, None),
        "cache_mb": (cache_mb, CACHE_MB),
    }
    loading = {} if kind.computed_by == "no model" else of_a_model

    def command(**values: Any) -> int:
        request = StudyRequest(
            kind=kind.name,
            run=values["run"],
            options={option.name: values[option.name] for option in kind.options},
            **{name: values[name] for name in loading},
        )
        display = values["display"]
        if display == "app":
            raise UsageError("--display app shows runs; a study is shown by rich, plain or none")
        return run_study(
            request, values["database"], display.value if display else None, json_output=values["json_output"]
        )

    def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)

    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            parameter("run", common["run"]),
            *(parameter(option.name, _annotation(option), option.default) for option in kind.options),
            *(parameter(name, *declared) for name, declared in loading.items()),
            parameter("database", common["database"], None),
            parameter("display", common["display"], None),
            parameter("json_output", common["json_output"], False),
        ]
    )
    return command


def _annotation(option: StudyOption) -> Any:
    return Annotated[type(option.default), typer.Option(*option.flags, help=option.help)]


def run_study(request: StudyRequest, database: Path | None, display: str | None, *, json_output: bool) -> int:
    """Make a study and compute it."""
    path = database or database_path()
    computed = compute(lambda emit: prepare_study(request, path, emit), path, display_named(display))
    if computed.name is not None:
        print_study(path, computed.name, json_output=json_output)
    return computed.code


def go_on_with_study(
    study: StoredStudy,
    database: Path,
    display: str | None,
    *,
    json_output: bool,
    allow_environment_change: bool,
    threads: int | None,
    cache_mb: int | None,
) -> int:
    """Go on with a stored study; a finished one is shown and left as it is."""
    name = str(study.work)
    if study.state == "finished":
        say(f"{study.work.title} is finished, nothing to do")
        print_study(database, name, json_output=json_output)
        return DONE
    computed = compute(
        lambda emit: prepare_study_resume(
            study,
            database,
            emit,
            allow_environment_change=allow_environment_change,
            threads=threads,
            cache_mb=CACHE_MB if cache_mb is None else cache_mb,
        ),
        database,
        display_named(display),
        resumed=study.work,
    )
    if computed.name is not None:
        print_study(database, name, json_output=json_output)
    return computed.code


def report_study(name: str, database: Path | None, output: str) -> int:
    """Print what a stored study found, as a table or as JSON; studies joined by commas are measured together.

    Raises:
        UsageError: another format, or studies that cannot be measured together.
    """
    if output not in {"table", "json"}:
        page = "; `report RUN --format html` is a page on a run and its studies" if output == "html" else ""
        raise UsageError(f"--format {output}: a study is printed as table or json{page}")
    path = database or database_path()
    if "," in name:
        _print_together(path, name.split(","), json_output=output == "json")
    else:
        print_study(path, name, json_output=output == "json")
    return DONE


def _print_together(database: Path, names: Sequence[str], *, json_output: bool) -> None:
    """Print what interventions on several runs found; each run counts as a model of its own."""
    with open_queries(database) as queries, queries.snapshot():
        works = [queries.find_work(name.strip()) for name in names]
        kinds = {queries.study_record(work).record.kind if work.study is not None else "run" for work in works}
        if kinds != {INTERVENTIONS.name} or len({work.run for work in works}) < len(works):
            raise UsageError(
                f"{','.join(names)}: only studies of interventions on different runs are measured together"
            )
        findings = measure_interventions(queries, works)
    if json_output:
        data = {"studies": list(findings.studies), **interventions_data(findings)}
        print(json.dumps(data, ensure_ascii=False, allow_nan=False))
        return
    for line in interventions_lines(findings, terminal_width()):
        print(line)


def print_study(database: Path, name: str, *, json_output: bool) -> None:
    """Print what a study found so far."""
    with open_queries(database) as queries:
        work = queries.find_work(name)
        kind = STUDY_KINDS.get(queries.study_record(work).record.kind)
    if kind is not None and kind.measures is not None:
        say(f"measuring {kind.measures}")
    if not json_output:
        for line in study_lines(database, name, terminal_width()):
            print(line)
        return
    data, _, findings, _ = _read(database, name)
    found = {} if findings is None else interventions_data(findings)
    print(json.dumps({**data, **found}, ensure_ascii=False, allow_nan=False))


def study_lines(database: Path, name: str, width: int) -> list[str]:
    """Return what a study found so far, as text.

    Args:
        database: the file that holds it.
        name: of the study.
        width: columns of a line.
    """
    data, result, findings, functions = _read(database, name)
    lines = list(_table_lines(data, result, functions, width))
    return lines if findings is None else [*lines, "", *interventions_lines(findings, width)]


def _read(
    database: Path, name: str
) -> tuple[dict[str, Any], StudyResult, InterventionFindings | None, tuple[str, ...]]:
    """Return a study as JSON, what its kind found, the findings of interventions, and its functions for a report."""
    with open_queries(database) as queries, queries.snapshot():
        work = queries.find_work(name)
        study = queries.study_record(work)
        plan = read_study_plan(database, study)
        result = study_kind(plan.kind).result(queries, study, plan)
        data = study_data(queries, study, plan, result)
        findings = measure_interventions(queries, [work]) if plan.kind == INTERVENTIONS.name else None
        # Those of tokens are no confidence in a unit.
        functions = tuple(
            signal.shown
            for signal in queries.signal_names(work.run)
            if signal.work == work and set(signal.kinds) != {"token"}
        )
        return data, result, findings, functions


def study_data(queries: Queries, study: StoredStudy, plan: StudyPlan, result: StudyResult) -> dict[str, Any]:
    """Return a study as JSON; ``rows`` hold what its kind found beside the signals."""
    done = sum(generation.stop_reason is not None for generation in queries.generations(study.work))
    return {
        "study": str(study.work),
        "kind": plan.kind,
        "run": study.work.run,
        "state": study.state,
        "exact": study.record.exact,
        "jobs": plan.jobs or done,  # a study that grows has no number of its own
        "done": done,
        "signals": [signal.name for signal in queries.signal_names(study.work.run) if signal.work == study.work],
        "rows": [dict(zip(result.columns, map(_json_value, row), strict=True)) for row in result.rows],
        "notes": list(result.notes),
    }


def study_table(result: StudyResult) -> TextTable:
    """Return what a kind of study found beside its signals as a table."""
    return TextTable(
        title="",
        heads=tuple(column.replace("_", " ") for column in result.columns),
        rows=tuple(tuple(map(_cell, row)) for row in result.rows),
    )


def _json_value(value: str | float | None) -> str | float | None:
    return json_number(value) if isinstance(value, float) else value


def _cell(value: str | float | None) -> str:
    if isinstance(value, str):
        return visible(value) if value.strip(" ") or not value else f"'{value}'"  # a token of spaces alone
    return str(value) if isinstance(value, int) else number(value)


def _table_lines(data: Mapping[str, Any], result: StudyResult, functions: Sequence[str], width: int) -> Iterator[str]:
    run, state = data["run"], data["state"]
    done = f", {data['done']}/{data['jobs']} done" if data["jobs"] else ""
    exact = ", not exact" if data["exact"] is False else ""
    yield f"study {data['study']}: {data['kind']} of run {run}, {state}{done}{exact}"
    if result.rows:
        yield ""
        yield from study_table(result).as_text()
    if result.notes:
        yield ""
    for note in result.notes:
        yield from wrapped(visible(note), width)  # it names signals, and whoever made the file named those
    if functions:
        yield ""
        yield from wrapped(f"Confidence functions for the report of run {run}: {', '.join(functions)}", width)
        yield f"  salt-tui report {run} --function {','.join(functions)}"
