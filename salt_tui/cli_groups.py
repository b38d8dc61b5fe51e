"""The groups of commands that need no model to compute: tasks, models and db.

Imports are inside the commands: importing numpy alone would double the time of ``--help``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salt_tui.commands.failures import DONE
from salt_tui.commands.options import Database, JsonOption

tasks_app = typer.Typer()
models_app = typer.Typer()
db_app = typer.Typer()


@tasks_app.callback(invoke_without_command=True)
@models_app.callback(invoke_without_command=True)
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


@models_app.command("list")
def models_list(
    context: Annotated[int, typer.Option("-c", min=1, help="Tokens per answer for which memory is told.")] = 2048,
    width: Annotated[int, typer.Option("-np", min=1, help="Answers at once for which memory is told.")] = 4,
    json_output: JsonOption = False,
) -> int:
    """List the models, whether their files are here, and what memory a run takes."""
    from salt_tui.commands.models import list_known

    return list_known(context, width, json_output=json_output)


@models_app.command("check")
def models_check(
    model: Annotated[str, typer.Argument(help="Name from models.toml or path.")], json_output: JsonOption = False
) -> int:
    """Check one model's file without loading it."""
    from salt_tui.commands.models import check_model

    return check_model(model, json_output=json_output)


@models_app.command("pull")
def models_pull(
    model: Annotated[str, typer.Argument(help="Name from models.toml, or hf:OWNER/REPOSITORY/FILE.gguf.")],
    json_output: JsonOption = False,
) -> int:
    """Fetch a model from the hub; stopped on the way, it goes on when called again."""
    from salt_tui.commands.pull import pull_model

    return pull_model(model, json_output=json_output)


@db_app.command("check")
def db_check(
    file: Annotated[Path, typer.Argument(help="A database, yours or somebody else's.")],
    recompute: Annotated[
        int, typer.Option("--recompute", metavar="N", min=0, help="Compute N answers of every run again.")
    ] = 0,
    model: Annotated[
        str | None, typer.Option("-m", "--model", help="For --recompute: the model, if it is not where it was.")
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Compare a whole file with itself: verdicts, confidences, tokens, replies; exit code 1 if anything differs."""
    from salt_tui.commands.db import check_database
    from salt_tui.commands.recompute import Recomputation

    if model is not None and not recompute:
        raise typer.BadParameter("it is for --recompute N", param_hint="-m")
    again = Recomputation(recompute, model) if recompute else None
    return check_database(file, json_output=json_output, recomputation=again)


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
