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
tasks_app = typer.Typer()
models_app = typer.Typer()
app.add_typer(tasks_app, name="tasks", help="The tasks: list them, show a problem, solve problem texts.")
study_app = typer.Typer()
app.add_typer(study_app, name="study", help="Further work on a stored run, such as more samples of each problem.")
db_app = typer.Typer()
app.add_typer(db_app, name="db", help="Compare a file with itself; score stored replies again.")
app.add_typer(models_app, name="models", help="The models of models.toml: what is there, and how to get the rest.")


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
    )


@app.command()
def report(
    run: ReportedArgument = "latest",
    output: Annotated[
        ReportFormat, typer.Option("--format", help="table, json, csv, md or latex.")
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
    database: Database = None,
) -> int:
    """Print how right and how calibrated a run is, and by which function, map and unit; or what a study found."""
    from salt_tui.commands.report import print_report
    from salt_tui.measure.row_selection import select_rows

    if is_study_name(run):
        from salt_tui.commands.study import report_study

        return report_study(run, database, output.value)
    units, functions, calibrators = map(_names, (unit, function, calibrator))
    selection = select_rows(units, functions, calibrators, by=by, draws=draws, full=full, analyses=analyses)
    return print_report(run, database, output.value, selection)


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
    output: Annotated[Path, typer.Option("-o", "--output", help="File ending in .csv, .jsonl or .db.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    excel_safe: Annotated[
        bool, typer.Option("--excel-safe", help="CSV: an apostrophe before texts that a spreadsheet would run.")
    ] = False,
    database: Database = None,
) -> int:
    """Write a run or a study to a file; the format follows from its name."""
    from salt_tui.commands.export import export_to

    return export_to(run, output, database, overwrite=force, excel_safe=excel_safe)


@tasks_app.callback(invoke_without_command=True)
@models_app.callback(invoke_without_command=True)
@study_app.callback(invoke_without_command=True)
@db_app.callback(invoke_without_command=True)
def print_help(context: typer.Context) -> int:
    """Print the help of a group when there is no command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
    return DONE


@tasks_app.command("list")
def tasks_list(json_output: JsonOption = False) -> int:
    """List the tasks."""
    from salt_tui.commands.tasks import list_tasks

    return list_tasks(json_output=json_output)


@tasks_app.command("show")
def tasks_show(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    difficulty: Annotated[str, typer.Option("--difficulty", help="trivial, easy, medium, hard or paper.")] = "easy",
    seed: Annotated[int, typer.Option("--seed", help="Draws the problems.")] = 0,
    method: Annotated[str, typer.Option("--method", help="regular or cot.")] = "regular",
    shots: Annotated[int | None, typer.Option("--shots", help="Worked examples before the problem.")] = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="key=value; repeatable.")] = None,
    json_output: JsonOption = False,
) -> int:
    """Print parameters, prompt and reference of a level's problem 0."""
    from salt_tui.commands.tasks import show_task

    return show_task(task, difficulty, seed, method, shots, tuple(param or ()), json_output=json_output)


@tasks_app.command("solve")
def tasks_solve(
    task: Annotated[str, typer.Argument(help="Name of the task, ours or the release's.")],
    file: Annotated[Path, typer.Argument(help="JSON lines with `input`, or one problem as plain text.")],
) -> int:
    """Print the reference of each problem text, one JSON string per line."""
    from salt_tui.commands.tasks import solve_file

    return solve_file(task, file)


@tasks_app.command("check")
def tasks_check(
    file: Annotated[Path, typer.Argument(help="JSON lines with problems of your own.")],
    json_output: JsonOption = False,
) -> int:
    """Name every bad row of a file with problems of your own."""
    from salt_tui.commands.problem_files import check_file

    return check_file(file, json_output=json_output)


@tasks_app.command("export")
def tasks_export(
    task: Annotated[str, typer.Argument(help="Name of the task, or file:PROBLEMS.jsonl.")],
    output: Annotated[str, typer.Option("-o", "--output", help="File of JSON lines; - is stdout.")],
    limit: Annotated[int, typer.Option("--limit", help="Problems.")] = 20,
    difficulty: Annotated[str, typer.Option("--difficulty", help="trivial, easy, medium, hard or paper.")] = "easy",
    seed: Annotated[int, typer.Option("--seed", help="Draws the problems.")] = 0,
    method: Annotated[str, typer.Option("--method", help="regular or cot.")] = "regular",
    shots: Annotated[int | None, typer.Option("--shots", help="Worked examples before the problem.")] = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="key=value; repeatable.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> int:
    """Write problems with their prompts and right answers, to ask them elsewhere."""
    from salt_tui.commands.problem_files import ExportedProblems, export_problems

    wanted = ExportedProblems(task, difficulty, limit, seed, method, shots, tuple(param or ()))
    return export_problems(wanted, output, overwrite=force)


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="JSON lines with task, response, reference[, delimiter].")],
    aligned: Annotated[bool, typer.Option("--aligned", help="Needleman-Wunsch instead of strict by index.")] = False,
    unit: Annotated[UnitChoice, typer.Option("--unit", help="atom, line or generation.")] = UnitChoice.ATOM,
    compat: Annotated[bool, typer.Option("--compat", help="Extract answers as the published release does.")] = False,
    json_output: JsonOption = False,
) -> int:
    """Label stored answers without a model."""
    from salt_tui.commands.score import score_file

    return score_file(file, aligned=aligned, unit=unit.value, compat=compat, json_output=json_output)


@app.command()
def metrics(
    file: Annotated[Path, typer.Argument(help="CSV with a header: confidence, correct[, group]; or an export.")],
    confidence_column: Annotated[
        str | None, typer.Option("--confidence-column", help="Its name; default: confidence, score, max_probability.")
    ] = None,
    correct_column: Annotated[str, typer.Option("--correct-column", help="Its name; 0 or 1.")] = "correct",
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="Which answer a row is from; default: group, generation.")
    ] = None,
    weight_column: Annotated[
        str | None,
        typer.Option("--weight-column", help="Units a row stands for: 1 / its chance to be checked."),
    ] = None,
    not_probability: Annotated[
        bool, typer.Option("--not-probability", help="Any numbers; measures their ranking alone.")
    ] = False,
    lower_is_confident: Annotated[
        bool, typer.Option("--lower-is-confident", help="For uncertainties, such as perplexity.")
    ] = False,
    rewards: Annotated[
        str | None,
        typer.Option("--rewards", help="Trusted right, trusted wrong, abstained right, abstained wrong: 1,-3,0,0."),
    ] = None,
    bins: Annotated[int, typer.Option("--bins", help="Equal-width bins that are shown; ECE keeps its 15.")] = 15,
    draws: Annotated[int, typer.Option("--draws", help="Bootstrap draws of groups for 95 % intervals; 0: none.")] = 0,
    curve: Annotated[
        str | None,
        typer.Option("--curve", help="CSV of risk-coverage, euro, bins, bin-counts, densities or label-noise."),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Measure a table of confidences and outcomes from anywhere."""
    from salt_tui.commands.metrics import TableOptions, print_metrics

    options = TableOptions(
        confidence=confidence_column,
        correct=correct_column,
        group=group_column,
        weight=weight_column,
        probability=not not_probability,
        lower_is_confident=lower_is_confident,
        rewards=rewards,
        bins=bins,
        draws=draws,
    )
    return print_metrics(file, options, curve=curve, json_output=json_output)


@app.command()
def calibrate(
    method: Annotated[
        str | None,
        typer.Argument(help="z_sigmoid, minmax, binned:B, histogram:B, platt, isotonic, beta or temperature."),
    ] = None,
    training: Annotated[Path | None, typer.Option("--fit", help="CSV with score and correct; or an export.")] = None,
    target: Annotated[Path | None, typer.Option("--apply", help="CSV with score; or an export.")] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Write the fitted map to a JSON file.")] = None,
    saved: Annotated[Path | None, typer.Option("--map", help="Apply this saved map; no METHOD, no --fit.")] = None,
    score_column: Annotated[
        str | None,
        typer.Option("--score-column", help="Its name; default: confidence, score, max_probability."),
    ] = None,
    correct_column: Annotated[str, typer.Option("--correct-column", help="Its name; 0 or 1.")] = "correct",
    lower_is_confident: Annotated[
        bool, typer.Option("--lower-is-confident", help="For scores such as perplexity.")
    ] = False,
) -> int:
    """Fit a calibration map on one table and print the calibrated values of another."""
    from salt_tui.commands.calibrate import print_calibrated

    return print_calibrated(
        method,
        training,
        target,
        saved=saved,
        save=save,
        score=score_column,
        correct=correct_column,
        lower_is_confident=lower_is_confident,
    )


@app.command()
def probe(
    run: Annotated[
        str, typer.Argument(metavar="[RUN|RUN.K|latest]", help="A run, or its study of activations.")
    ] = "latest",
    unit: Annotated[UnitChoice, typer.Option("--unit", help="generation, line or atom.")] = UnitChoice.GENERATION,
    own: Annotated[
        bool, typer.Option("--own", help="Read the tokens' own states, not those that produced them.")
    ] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Keep the best layer's probe in a file.")] = None,
    apply: Annotated[Path | None, typer.Option("--apply", help="Store what a kept probe says about the run.")] = None,
    name: Annotated[str, typer.Option("--name", help="With --apply: name of the signal.")] = "probe",
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Train probes on a run's activations: does the model hold whether it is right?"""
    from salt_tui.commands.probe import apply_probe, print_probes

    if apply is not None:
        if save is not None or own or json_output:
            raise typer.BadParameter("--apply reads what the probe was trained on: leave --save, --own and --json out")
        return apply_probe(run, database, apply, name)
    positions = "own" if own else "producing"
    return print_probes(run, database, unit.value, positions, save=save, json_output=json_output)


@app.command()
def policy(
    run: Annotated[str, typer.Argument(metavar="[RUN|latest]", help="Number of the run.")] = "latest",
    risk: Annotated[
        str | None, typer.Option("--risk", help="Most wrong units among trusted ones, such as .05; .05,.2 makes bands.")
    ] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="How sure; default: .9.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Promise the mean over answers, for any number of them.")
    ] = False,
    rewards: Annotated[
        str | None, typer.Option("--rewards", help="TRUSTED_RIGHT,TRUSTED_WRONG,ABSTAINED_RIGHT,ABSTAINED_WRONG.")
    ] = None,
    unit: Annotated[
        UnitChoice, typer.Option("--unit", help="What is trusted: atom, line or generation.")
    ] = UnitChoice.ATOM,
    function: Annotated[
        str, typer.Option("--function", help="Choose among these, joined by commas; default: all.")
    ] = "",
    calibrator: Annotated[str, typer.Option("--calibrator", help="Choose among these maps, joined by commas.")] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Keep the policy in a JSON file.")] = None,
    apply: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--apply", metavar="POLICY CSV", help="Decide about each row of a table."),
    ] = None,
    score_column: Annotated[
        str | None, typer.Option("--score-column", help="Of --apply; default: named like the policy's function.")
    ] = None,
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Say which units to trust, with a promise about how many of those are wrong, or by rewards."""
    from salt_tui.commands.policy import print_decisions, print_policy

    if apply is not None:
        return print_decisions(*apply, score_column)
    return print_policy(
        run,
        database,
        unit.value,
        risk=risk,
        confidence=confidence,
        exact=exact,
        rewards=rewards,
        functions=_names(function),
        maps=_names(calibrator),
        output=output,
        json_output=json_output,
    )


@models_app.command("list")
def models_list(json_output: JsonOption = False) -> int:
    """List the models and whether their files are here."""
    from salt_tui.commands.models import list_known

    return list_known(json_output=json_output)


@models_app.command("check")
def models_check(
    model: Annotated[str, typer.Argument(help="Name from models.toml or path.")], json_output: JsonOption = False
) -> int:
    """Check one model's file without loading it."""
    from salt_tui.commands.models import check_model

    return check_model(model, json_output=json_output)


@db_app.command("check")
def db_check(
    file: Annotated[Path, typer.Argument(help="A database, yours or somebody else's.")], json_output: JsonOption = False
) -> int:
    """Compare a whole file with itself: verdicts, confidences, tokens, replies; exit code 1 if anything differs."""
    from salt_tui.commands.db import check_database

    return check_database(file, json_output=json_output)


@db_app.command("rescore")
def db_rescore(
    run: Annotated[str, typer.Argument(metavar="RUN|latest", help="Number of the run.")],
    database: Database = None,
    json_output: JsonOption = False,
) -> int:
    """Score the stored replies of a run again, without the model, and say what changed."""
    from salt_tui.commands.db import rescore_run

    return rescore_run(run, database, json_output=json_output)


@db_app.command("delete")
def db_delete(
    run: Annotated[str, typer.Argument(metavar="RUN|RUN.K", help="A run with its studies, or one study of it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: Database = None,
) -> int:
    """Delete a run with its studies, or one study."""
    from salt_tui.commands.db import delete_stored

    return delete_stored(run, database, yes=yes)


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


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
