"""What Setup offers, and what becomes of the choices; no drawing here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from salt_tui.app.live_lines import clock
from salt_tui.app.settings import Choices
from salt_tui.engine.engine import ContextError
from salt_tui.engine.models import ModelRow, list_models, load_registry
from salt_tui.runner.cost_estimate import CostEstimate, earlier_pace, estimate_cost
from salt_tui.runner.errors import UsageError
from salt_tui.runner.request import EngineOptions, RunRequest, check_request, method_of
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import open_queries
from salt_tui.store.results import RunListing
from salt_tui.visible_text import visible
from tasks.parameters import format_parameter, level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation
from tasks.registry import TASKS, UnknownTaskError, get_task
from tasks.task import ParameterError, Task


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is: tasks, models, and runs that can go on, newest first."""

    tasks: tuple[Task, ...]
    models: tuple[ModelRow, ...]
    unfinished: tuple[RunListing, ...]
    runs: int
    problem: str | None


def look_around(database: Path) -> Offer:
    """Look for models and stored runs; may take a second with a large database."""
    tasks, models = tuple(TASKS.values()), tuple(list_models(load_registry()))
    if not database.exists():
        return Offer(tasks, models, (), 0, None)
    try:
        with open_queries(database) as queries:
            runs = queries.list_runs()
    except StoreError as error:
        return Offer(tasks, models, (), 0, str(error))
    unfinished = tuple(run for run in runs if run.state in {"interrupted", "failed"})
    return Offer(tasks, models, unfinished, len(runs), None)


def model_line(row: ModelRow) -> str:
    """Describe a model in one line: name, size, quantisation, context, template, on disk or not."""
    if not row.available:
        where = "not here: e says how to get it" if row.command else f"unusable: {row.problem}"
        return f"{visible(row.name, 20):<20} {visible(row.title, 24):<24} {visible(where, 40)}"
    size = f"{row.file_bytes / 1e6:,.0f} MB" if row.file_bytes is not None else "–"
    context = f"context {row.context:,}" if row.context else "context –"
    template = "chat" if row.has_template else "no template"
    facts = "  ".join((size, visible(row.quantisation or "–", 10), context, template, "on disk"))
    return f"{visible(row.name, 20):<20} {facts}"


def model_details(row: ModelRow) -> str:
    """Describe a model in some lines."""
    lines = [f"{row.title} ({row.name})", row.description or "", f"licence: {row.licence or 'unknown'}"]
    lines.append(f"file: {row.path}" if row.path else f"not here: {row.problem}")
    if row.command:
        lines += ["get it with:", f"  {row.command}"]
    return "\n".join(visible(line) for line in lines if line)


def task_example(name: str, choices: Choices) -> str:
    """Return a problem of the level as the model sees it, its right answer, and the level's parameters."""
    task = get_task(name)
    parameters = level_parameters(task, choices.difficulty)
    problem = draw_problems(task, choices.difficulty, parameters, choices.seed, 1, DEFAULT_SHOTS).problems[0]
    turns = conversation(task, problem, method_of(choices.method), 0)
    return "\n".join(
        (
            f"{task.title} at {choices.difficulty}",
            *(f"  {key} {format_parameter(value).replace(',', ', ')}" for key, value in sorted(parameters.items())),
            "",
            "asked",
            *(_indented(turn.content) for turn in turns),
            "",
            "right answer",
            _indented(problem.reference),
            "",
            f"An atom needs {task.dependence.inputs}",
            *([f"and {task.dependence.earlier_atoms}"] if task.dependence.earlier_atoms else []),
        )
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {visible(line)}" for line in text.split("\n"))


def make_request(choices: Choices) -> RunRequest:
    """Return the run that the choices ask for; what is not on the screen has the command line's defaults."""
    return RunRequest(
        model=choices.model,
        tasks=choices.tasks,
        difficulty=choices.difficulty,
        limit=choices.limit,
        seed=choices.seed,
        method=choices.method,
        engine=EngineOptions(width=choices.width),
    )


def problem_with(choices: Choices, offer: Offer | None) -> str | None:
    """Return one line that says why the choices cannot be started, None when they can."""
    if not choices.tasks:
        return "choose at least one task: space marks it, a marks all"
    row = next((row for row in offer.models if row.name == choices.model), None) if offer else None
    if row is not None and not row.available:
        return f"{row.name} is not on this computer: e on the model says how to get it"
    try:
        check_request(make_request(choices))
    except (UsageError, ContextError, ParameterError, UnknownTaskError) as error:
        return str(error)
    return None


def estimate(choices: Choices, database: Path) -> str:
    """Say what the choices will cost, in one or two lines."""
    return estimate_line(estimate_cost(make_request(choices), earlier_pace(database, choices.model)))


def estimate_line(cost: CostEstimate) -> str:
    """Word an estimate."""
    tokens = f"{cost.answers:,} answers, about {_round(cost.answer_tokens)} to {_round(cost.most_tokens)} answer tokens"
    prompts = f"after {_round(cost.prompt_tokens)} prompt tokens"
    if cost.seconds is None or cost.most_seconds is None:
        return f"{tokens} {prompts}; time unknown before the first run of this model"
    return f"{tokens} {prompts}; {clock(cost.seconds)} to {clock(cost.most_seconds)} at the pace of its last run"


def _round(tokens: int) -> str:
    if tokens < 1_000:
        return f"{tokens}"
    return f"{tokens / 1_000:.1f} k" if tokens < 100_000 else f"{tokens / 1_000:,.0f} k"
