"""The command line: parses, calls `salt_tui.commands`, prints nothing itself.

Imports are inside the commands: importing numpy alone would double the time of ``--help``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

import salt_tui
from salt_tui.cli_groups import db_app, models_app, print_help, tasks_app
from salt_tui.cli_scores import scores_app, signals_app
from salt_tui.commands.failures import DONE, USAGE, report_failure
from salt_tui.commands.options import (
    ComparisonFormat,
    Database,
    DisplayMode,
    DisplayOption,
    FlashAttention,
    JsonOption,
    ReportedArgument,
    ReportFormat,
    UnitChoice,
    WorkArgument,
    names_in,
)
from salt_tui.commands.standard_streams import finish_output

app = typer.Typer(
    name="salt-tui",
    help="How often is a GGUF model right, and does it know when it is wrong? Without a command: opens the app.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(tasks_app, name="tasks", help="The tasks: list them, show a problem, solve problem texts.")
study_app = typer.Typer()
app.add_typer(study_app, name="study", help="Further work on a stored run, such as more samples of each problem.")
app.add_typer(db_app, name="db", help="Compare a file with itself; score stored replies again.")
app.add_typer(models_app, name="models", help="The models of models.toml: what is there, and how to get the rest.")
signals_app.callback(invoke_without_command=True)(print_help)
app.add_typer(signals_app, name="signals", help="Scores of other programs as signals of a run.")
app.add_typer(scores_app)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 usage or unusable model, 130 interrupted."""
    return finish_output(_run(arguments))


def _run(arguments: Sequence[str]) -> int:
    command = whole_command() if arguments[:1] == ["study"] else get_command(app)
    try:
        # Not `main`: it would end a Ctrl+C without a word and answer for a lost stdout.
        with command.make_context("salt-tui", list(arguments)) as context:
            code: object = command.invoke(context)
        return code if isinstance(code, int) else DONE
    except typer.Exit as exit_request:
        return exit_request.exit_code
    except typer.Abort:
        return report_failure(KeyboardInterrupt())
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else USAGE
    except BrokenPipeError:  # the reader of stdout has gone (`| head`)
        return DONE
    except BaseException as error:
        return report_failure(error)


def whole_command() -> TyperGroup:
    """Return the command line with the kinds of study, whose code every other command does without."""
    from salt_tui.commands.study import add_study_commands

    study_app.registered_commands.clear()
    add_study_commands(
        study_app,
        {
            "run": Annotated[str, typer.Argument(metavar="RUN|latest", help="Number of the run.")],
            "database": Database,
            "display": DisplayOption,
            "json_output": JsonOption,
        },
    )
    return get_group(app)


@app.callback(invoke_without_command=True)
def open_screens(
    context: typer.Context,
    database: Database = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    """Open the app when there is no command."""
    if version:
        typer.echo(f"salt-tui {salt_tui.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is not None:
        if database is not None:
            raise typer.BadParameter(f"--db goes behind the command: salt-tui {context.invoked_subcommand} --db FILE")
        return DONE
    from salt_tui.app.launch import open_app

    return open_app(database)


@app.command()
def run(
    models: Annotated[
        list[str] | None, typer.Option("-m", "--model", help="Name from models.toml or path to a GGUF; repeatable.")
    ] = None,
    tasks: Annotated[str, typer.Option("--tasks", help="Names joined by commas, or all.")] = "all",
    difficulty: Annotated[str, typer.Option("--difficulty", help="trivial, easy, medium, hard or paper.")] = "easy",
    limit: Annotated[int, typer.Option("--limit", help="Problems per task.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Draws the problems.")] = 0,
    method: Annotated[str, typer.Option("--method", help="regular, or cot: reason first.")] = "regular",
    shots: Annotated[int | None, typer.Option("--shots", help="Worked examples before the problem.")] = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="key=value of a task; repeatable.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("-n", help="Tokens per answer; default: from the longest right answer.")
    ] = None,
    temperature: Annotated[float, typer.Option("--temp", help="0 is greedy.")] = 0.0,
    top_k: Annotated[int, typer.Option("--top-k", help="0 keeps all.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", help="1 keeps all.")] = 1.0,
    min_p: Annotated[float, typer.Option("--min-p", help="0 keeps all.")] = 0.0,
    sampler_seed: Annotated[int, typer.Option("--sampler-seed", help="Draws tokens when --temp > 0.")] = 0,
    date: Annotated[
        str | None, typer.Option("--date", help="The day that chat templates show, YYYY-MM-DD; default: today.")
    ] = None,
    context: Annotated[
        int | None, typer.Option("-c", help="Context per answer, tokens; default: what is needed.")
    ] = None,
    width: Annotated[int, typer.Option("-np", help="Answers decoded at once: 1, 2, 3 or a multiple of 4.")] = 4,
    threads: Annotated[int | None, typer.Option("-t", help="Threads; default: cores, 1 for tiny models.")] = None,
    batch: Annotated[int, typer.Option("-b", help="Prompt tokens per call.")] = 512,
    micro_batch: Annotated[int, typer.Option("-ub", help="Prompt tokens per computation.")] = 512,
    gpu_layers: Annotated[str, typer.Option("-ngl", help="Layers on the GPU: auto, all or a count.")] = "auto",
    flash_attention: Annotated[FlashAttention, typer.Option("-fa", help="Flash attention.")] = FlashAttention.AUTO,
    key_type: Annotated[str, typer.Option("-ctk", help="Type of the KV cache's keys.")] = "f16",
    value_type: Annotated[str, typer.Option("-ctv", help="Type of the KV cache's values.")] = "f16",
    repeat: Annotated[int, typer.Option("--repeat", help="Runs with one sampler seed after the other.")] = 1,
    fail_under: Annotated[
        list[str] | None, typer.Option("--fail-under", help="NAME=NUMBER, such as precision=.4: exit 1 below it.")
    ] = None,
    database: Database = None,
    display: DisplayOption = None,
    json_output: JsonOption = False,
) -> int:
    """Evaluate models: ask, decode, score every atom, store it."""
    from salt_tui.commands.run import repeated, run_new
    from salt_tui.runner.plan import SamplingPlan
    from salt_tui.runner.request import EngineOptions, RunRequest, read_gpu_layers

    first, *others = models or ["smollm2"]
    request = RunRequest(
        model=first,
        tasks=tuple(name.strip() for name in tasks.split(",") if name.strip()),
        difficulty=difficulty,
        limit=limit,
        seed=seed,
        method=method,
        shots=shots,
        parameters=tuple(param or ()),
        max_tokens=max_tokens,
        date=date,
        sampling=SamplingPlan(temperature, top_k, top_p, min_p, sampler_seed),
        engine=EngineOptions(
            gpu_layers=read_gpu_layers(gpu_layers),
            width=width,
            context=context,
            threads=threads,
            batch=batch,
            micro_batch=micro_batch,
            flash_attention=flash_attention.value,
            key_type=key_type,
            value_type=value_type,
        ),
    )
    if display is DisplayMode.APP:
        _refuse_in_app(
            {
                "several -m": bool(others),
                "--repeat": repeat > 1,
                "--fail-under": bool(fail_under),
                "--json": json_output,
            }
        )
        from salt_tui.app.launch import open_app

        return open_app(database, lambda desk: desk.runs.begin(request))
    requests = [one for name in (first, *others) for one in repeated(replace(request, model=name), repeat)]
    shown = display.value if display else None
    return run_new(requests, database, shown, json_output=json_output, fail_under=fail_under or ())


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def replay(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN|latest", help="Number of the run; then the options of `study`.")],
) -> int:
    """Change atoms of stored answers and see what the model does next; the same as `study interventions`."""
    return _run(["study", "interventions", run, *context.args])


@app.command()
def edit(
    run: Annotated[str, typer.Argument(metavar="RUN|latest", help="Number of the run.")],
    answer: Annotated[str, typer.Argument(metavar="TASK:POSITION", help="Which answer, counted from 1.")],
    branch: Annotated[str, typer.Option("--from", help="Edit this branch of the answer, not the answer.")] = "",
    fix: Annotated[str, typer.Option("--fix", help="Atoms to make right: numbers from 1, or all.")] = "",
    corrupt: Annotated[str, typer.Option("--corrupt", help="Atoms to make wrong: numbers from 1, or all.")] = "",
    corrupt_random: Annotated[
        int, typer.Option("--corrupt-random", help="Right atoms before the target to make wrong, drawn.")
    ] = 0,
    values: Annotated[str, typer.Option("--set", help="NUMBER=TEXT, several separated by semicolons.")] = "",
    target: Annotated[int, typer.Option("--target", help="The model writes from here; default: behind the edits.")] = 0,
    name: Annotated[str, typer.Option("--name", help="Of the branch; default: b1, b2, …")] = "",
    seed: Annotated[int, typer.Option("--seed", help="Draws wrong atoms.")] = 1,
    database: Database = None,
    display: DisplayOption = None,
    json_output: JsonOption = False,
) -> int:
    """Change atoms of one answer and see what the model writes then."""
    from salt_tui.commands.edit import edit_answer

    options: dict[str, int | str] = {
        "answer": answer,
        "from": branch,
        "fix": fix,
        "corrupt": corrupt,
        "corrupt_random": corrupt_random,
        "set": values,
        "target": target,
        "name": name,
        "seed": seed,
    }
    return edit_answer(run, options, database, display.value if display else None, json_output=json_output)


@app.command()
def resume(
    run: WorkArgument = "latest",
    allow_environment_change: Annotated[
        bool, typer.Option("--allow-environment-change", help="Go on elsewhere; the run is marked not exact.")
    ] = False,
    threads: Annotated[int | None, typer.Option("-t", help="Threads; default: as the run began.")] = None,
    cache_mb: Annotated[
        int | None,
        typer.Option("--cache-mb", help="Of a study: memory for what jobs share, MiB; default: 1024."),
    ] = None,
    database: Database = None,
    display: DisplayOption = None,
    json_output: JsonOption = False,
) -> int:
    """Go on with an interrupted run or study; a finished one is left as it is."""
    if display is DisplayMode.APP:
        _refuse_in_app(
            {
                "--allow-environment-change": allow_environment_change,
                "-t": threads is not None,
                "--cache-mb": cache_mb is not None,
                "--json": json_output,
            }
        )
        from salt_tui.app.launch import open_on_stored_run

        return open_on_stored_run(database, run)
    from salt_tui.commands.run import run_again

    return run_again(
        run,
        database,
        display.value if display else None,
        json_output=json_output,
        allow_environment_change=allow_environment_change,
        threads=threads,
        cache_mb=cache_mb,
    )


@app.command()
def report(
    run: ReportedArgument = "latest",
    output: Annotated[
        ReportFormat, typer.Option("--format", help="table, json, csv, md, latex or html.")
    ] = ReportFormat.TABLE,
    unit: Annotated[str, typer.Option("--unit", help="atom, line, generation; joined by commas.")] = "",
    function: Annotated[str, typer.Option("--function", help="Confidence functions, joined by commas.")] = "",
    calibrator: Annotated[
        str, typer.Option("--calibrator", help="Calibration maps, joined by commas; none: raw scores.")
    ] = "",
    full: Annotated[bool, typer.Option("--full", help="Every function with every map at every unit.")] = False,
    by: Annotated[
        str | None, typer.Option("--by", help="Slice by task, difficulty, line, position or any stored column.")
    ] = None,
    analyses: Annotated[
        bool, typer.Option("--analyses", help="Add alignment, densities, label noise, tokens and characters.")
    ] = False,
    draws: Annotated[int, typer.Option("--draws", help="Bootstrap draws for 95 % intervals; 0: none.")] = 1000,
    answers: Annotated[
        int | None, typer.Option("--answers", help="With html: answers token by token; default: 16.")
    ] = None,
    database: Database = None,
) -> int:
    """Print how right and how calibrated a run is, and by which function, map and unit; or what a study found."""
    from salt_tui.commands.report import print_report
    from salt_tui.measure.row_selection import select_rows

    if is_study_name(run):
        from salt_tui.commands.study import report_study

        return report_study(run, database, output.value)
    units, functions, calibrators = map(names_in, (unit, function, calibrator))
    selection = select_rows(units, functions, calibrators, by=by, draws=draws, full=full, analyses=analyses)
    return print_report(run, database, output.value, selection, answers)


@app.command()
def plot(
    kind: Annotated[str, typer.Argument(metavar="[KIND]", help="Which figure; --list names them.")] = "",
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN|RUN.K|latest …]", help="Of what; compare takes two runs.")
    ] = None,
    target: Annotated[Path | None, typer.Option("-o", help="FILE.png, FILE.svg or FILE.pdf.")] = None,
    unit: Annotated[UnitChoice | None, typer.Option("--unit", help="What is drawn; default: atoms.")] = None,
    function: Annotated[
        str | None, typer.Option("--function", help="Confidence function; default: max_probability.")
    ] = None,
    calibrator: Annotated[str, typer.Option("--map", help="Calibration map; none: raw scores.")] = "none",
    task: Annotated[str | None, typer.Option("--task", help="One task instead of all.")] = None,
    positions: Annotated[str, typer.Option("--positions", help="Of activations: producing, or own.")] = "producing",
    draws: Annotated[int, typer.Option("--draws", help="Bootstrap draws for 95 % intervals; 0: none.")] = 1000,
    listed: Annotated[bool, typer.Option("--list", help="Name the kinds of figures.")] = False,
    database: Database = None,
) -> int:
    """Draw a figure of a stored run or study into a file, ready for a paper."""
    from salt_tui.commands.plot import list_figures, plot_figure
    from salt_tui.figures.measured import FigureOptions

    if listed or not kind:
        return list_figures()
    chosen = FigureOptions(
        unit=None if unit is None else unit.value, calibrator=calibrator, task=task, positions=positions, draws=draws
    )
    if function is not None:
        chosen = replace(chosen, function=function)
    return plot_figure(kind, runs or (), database, target, chosen)


@app.command()
def runs(database: Database = None, json_output: JsonOption = False) -> int:
    """List the stored runs and their studies."""
    from salt_tui.commands.runs import list_runs

    return list_runs(database, json_output=json_output)


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN|RUN.K|latest", help="A run, or a study of it.")],
    answer: Annotated[str, typer.Argument(metavar="TASK:POSITION", help="Which answer, counted from 1.")],
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Print one answer: prompt, reply with marks, reference, atoms with confidences."""
    from salt_tui.commands.show import show_answer

    return show_answer(run, answer, database, json_output=json_output)


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN [RUN RUN …]", help="N, latest or FILE.db:N; pairs.")],
    output: Annotated[
        ComparisonFormat, typer.Option("--format", help="table, json, csv, md, latex or html.")
    ] = ComparisonFormat.TABLE,
    function: Annotated[
        str | None, typer.Option("--function", help="Confidence function of Brier, AUROC, ECE.")
    ] = None,
    database: Database = None,
) -> int:
    """Say what changed between two runs on the problems that both answered."""
    from salt_tui.commands.compare import compare_runs

    return compare_runs(runs, database, output.value, function)


@app.command()
def export(
    run: Annotated[str, typer.Argument(metavar="RUN|RUN.K|latest", help="A run, or a study of it.")],
    output: Annotated[
        str, typer.Option("-o", "--output", help="File ending in .csv, .jsonl, .parquet or .db; - is stdout.")
    ],
    format_name: Annotated[
        str | None, typer.Option("--format", help="For -o -: csv (if left out), jsonl or parquet.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="A row per token, in .csv and .parquet.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    excel_safe: Annotated[
        bool, typer.Option("--excel-safe", help="CSV: an apostrophe before texts that a spreadsheet would run.")
    ] = False,
    database: Database = None,
) -> int:
    """Write a run or a study to a file; the format follows from its name."""
    from salt_tui.commands.export import export_to
    from salt_tui.exports.formats import ExportOptions

    options = ExportOptions(excel_safe=excel_safe, tokens=tokens)
    return export_to(run, output, database, format_name=format_name, overwrite=force, options=options)


study_app.callback(invoke_without_command=True)(print_help)


@app.command()
def doctor(
    model: Annotated[str, typer.Option("-m", "--model", help="Model for the exactness check.")] = "smollm2",
    json_output: JsonOption = False,
) -> int:
    """Say what this installation can do: build, devices, files, exactness."""
    from salt_tui.commands.doctor import examine

    return examine(model, json_output=json_output)


@app.command()
def tour(database: Database = None) -> int:
    """Show in a minute what this is, with the tiny model that comes with it."""
    from salt_tui.commands.tour import show_tour

    return show_tour(database)


@app.command()
def bench(
    model: Annotated[str, typer.Option("-m", "--model", help="Name from models.toml or path to a GGUF.")] = "smollm2",
    widths: Annotated[str, typer.Option("-np", help="Answers decoded at once; joined by commas.")] = "1,4,8,16",
    repetitions: Annotated[int, typer.Option("-r", min=1, help="Repetitions of every measurement.")] = 3,
    threads: Annotated[int | None, typer.Option("-t", help="Threads; default: cores, 1 for tiny models.")] = None,
    gpu_layers: Annotated[str, typer.Option("-ngl", help="Layers on the GPU: auto, all or a count.")] = "auto",
) -> int:
    """Measure a model's speed here, and what statistics, storing and the display cost."""
    from salt_tui.commands.bench import bench as measure
    from salt_tui.runner.request import EngineOptions, read_gpu_layers

    options = EngineOptions(gpu_layers=read_gpu_layers(gpu_layers), threads=threads)
    return measure(model, options, widths, repetitions)


def _refuse_in_app(given: Mapping[str, bool]) -> None:
    """Refuse options that were given and that the app would not follow."""
    names = ", ".join(name for name, there in given.items() if there)
    if names:
        raise typer.BadParameter(f"--display app does not take {names}; leave it out or choose another display")


def is_study_name(name: str) -> bool:
    """Say whether a name is that of a study, ``RUN.K``, rather than that of a run."""
    return "." in name
