"""What Setup offers, and what becomes of the choices; no drawing here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from salt_tui.app.own_tasks import own_example, own_task
from salt_tui.app.settings import NUMBER_FIELDS, Choices
from salt_tui.app.setup_offer import Offer, OfferedModel, OfferedTask, UnfinishedRun
from salt_tui.display.run_view import clock
from salt_tui.engine.errors import ContextError, ModelError
from salt_tui.engine.model_registry import ModelRegistry, usable_registry
from salt_tui.engine.models import ModelRow, list_models, resolve_model
from salt_tui.engine.options import check_width
from salt_tui.runner.cost_estimate import CostEstimate, earlier_pace, estimate_cost
from salt_tui.runner.plan import BELOW_LIMIT, WHOLE_NUMBERS
from salt_tui.runner.request import MAXIMUM_LIMIT, EngineOptions, RunRequest, check_request, method_of
from salt_tui.similar_names import message_of
from salt_tui.store.errors import StoreError
from salt_tui.store.opening import need_usable
from salt_tui.store.queries import open_queries
from salt_tui.store.records import RESUMABLE
from salt_tui.store.results import RunListing
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX
from tasks.parameters import format_parameter, level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation
from tasks.registry import TASKS, get_task
from tasks.task import ParameterError


def look_around(database: Path, files: Sequence[str] = (), own: Sequence[str] = ()) -> Offer:
    """Look for models and stored runs; may take a second with a large database.

    Args:
        database: the file; it need not exist.
        files: paths of models that ``models.toml`` need not name, shown before those that it names.
        own: files of one's own problems, as names of tasks.
    """
    registry, models_problem = usable_registry()
    extra = [name for name in dict.fromkeys(files) if name not in registry.entries]
    rows = [*(file_row(name, registry) for name in extra), *list_models(registry)]
    rows.sort(key=lambda row: not row.available)
    runs: list[RunListing] = []
    problem: str | None = None
    try:
        need_usable(database)
        if database.exists():
            with open_queries(database) as queries:
                runs = queries.list_runs()
    except StoreError as error:
        # The first line of the form names the whole path; here it would leave no room for what is wrong.
        problem = str(error).replace(str(database), database.name)
    except OSError as error:
        problem = f"{database.name}: {error.strerror or error}"
    return Offer(
        tasks=(
            *(OfferedTask(task.name, task.name, task.description) for task in TASKS.values()),
            *(own_task(name) for name in dict.fromkeys(own)),
        ),
        models=tuple(_offered(row, registry) for row in rows),
        unfinished=tuple(
            UnfinishedRun(run.run, run.answers_done, run.answers) for run in runs if run.state in RESUMABLE
        ),
        runs=len(runs),
        problem=problem,
        models_problem=models_problem,
    )


def _offered(row: ModelRow, registry: ModelRegistry) -> OfferedModel:
    """Return a model of the list with whether the hub has it."""
    entry = registry.entries.get(row.name)
    return replace(offered(row), on_hub=row.command is not None and entry is not None and entry.repository is not None)


def offered(row: ModelRow) -> OfferedModel:
    """Return a model as the list shows it."""
    return OfferedModel(
        row.name, row.title, model_line(row), model_details(row), row.available, row.command, row.problem
    )


def file_row(name: str, registry: ModelRegistry) -> ModelRow:
    """Describe the model of a path; one that cannot be used says why in its ``problem``."""
    try:
        entry = resolve_model(name, registry).entry
    except ModelError as error:
        return ModelRow(name, name, None, None, False, None, None, None, None, None, None, None, str(error), None)
    return list_models(ModelRegistry(name, {name: entry}))[0]


def model_at(name: str) -> OfferedModel:
    """Describe the model that a user named, by its absolute path, or by its name where ``models.toml`` has it.

    Raises:
        ModelError: there is none, or its file cannot be used.
    """
    registry, _ = usable_registry()
    resolved = resolve_model(name, registry)
    if name in registry.entries:
        return offered(file_row(name, ModelRegistry(name, {name: registry.entries[name]})))
    return offered(file_row(str(resolved.path), registry))


def model_line(row: ModelRow) -> str:
    """Describe a model in one line: name, size, quantisation, context, template, on disk or not."""
    if not row.available:
        where = "not here: y copies how to get it" if row.command else f"unusable: {row.problem}"
        return f"{_short_name(row):<20} {visible(row.title, 24):<24} {visible(where, 40)}"
    if row.server is not None:
        return f"{_short_name(row):<20} on a server, {visible(row.server, 34)}  {visible(row.title, 22)}"
    size = f"{row.file_bytes / 1e6:,.0f} MB" if row.file_bytes is not None else "–"
    context = f"context {row.context:,}" if row.context else "context –"
    template = "chat" if row.has_template else "no template"
    facts = "  ".join((size, visible(row.quantisation or "–", 10), context, template, "here", visible(row.title, 22)))
    return f"{_short_name(row):<20} {facts}"


def _short_name(row: ModelRow) -> str:
    return visible(Path(row.name).name, 20)


def model_details(row: ModelRow) -> str:
    """Describe a model in some lines."""
    lines = [f"{row.title} ({row.name})", row.description or "", f"licence: {row.licence or 'unknown'}"]
    if row.server is not None:
        lines.append(f"server: {row.server}" + (f"; {row.problem}" if row.problem else ""))
    else:
        lines.append(f"file: {row.path}" if row.path else f"not here: {row.problem}")
    if row.command:
        lines += ["get it with:", f"  {row.command}"]
    return "\n".join(visible(line) for line in lines if line)


def task_example(name: str, choices: Choices) -> str:
    """Return a problem of the level as the model sees it, its right answer, and the level's parameters."""
    if name.startswith(FILE_PREFIX):
        return own_example(name)
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


def field_problems(values: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the fields ``limit``, ``seed`` and ``width``, by name; one that is right has no key."""
    found = {name: _number_problem(name, text) for name, text in values.items()}
    return {name: words for name, words in found.items() if words is not None}


def first_problem(found: Mapping[str, str]) -> str | None:
    """Return one line about the first of `field_problems`, with the title of its field; None where there is none."""
    return next((f"{NUMBER_FIELDS[name]}: {words}" for name, words in found.items()), None)


def _number_problem(name: str, text: str) -> str | None:
    number = whole_number(text)
    least = 0 if name == "seed" else 1
    if number is None:
        return "a whole number is needed"
    if number < least:
        return f"at least {least}"
    if name == "limit" and number > MAXIMUM_LIMIT:
        return f"at most {MAXIMUM_LIMIT:,}"
    if name == "seed" and number not in WHOLE_NUMBERS:
        return BELOW_LIMIT
    if name == "width":
        try:
            check_width(number)
        except ContextError:
            return "1, 2, 3 or a multiple of 4"
    return None


def whole_number(text: str) -> int | None:
    """Read a number as it was typed, with or without a sign; None where it is none."""
    try:
        return int(text)
    except ValueError:
        return None


def problem_with(choices: Choices, offer: Offer | None) -> str | None:
    """Return one line that says why the choices cannot be started, None when they can."""
    if offer is not None and offer.problem is not None:
        return offer.problem
    if not choices.tasks:
        return "choose at least one task: space marks it, a marks all"
    row = offer.model(choices.model) if offer is not None else None
    if row is not None and not row.usable:
        if row.command:
            return f"{row.name} is not on this computer: y copies the command that fetches it"
        return row.problem
    numbers = first_problem(field_problems({name: str(getattr(choices, name)) for name in NUMBER_FIELDS}))
    if numbers is not None:
        return numbers
    own = [name for name in choices.tasks if name.startswith(FILE_PREFIX)]
    generated = tuple(name for name in choices.tasks if name not in own)
    try:
        if generated:
            check_request(make_request(replace(choices, tasks=generated)))
    except (UsageError, ContextError, ParameterError) as error:
        return message_of(error)
    return _problem_with_own(own, choices, offer)


def _problem_with_own(own: Sequence[str], choices: Choices, offer: Offer | None) -> str | None:
    """Say why files cannot be asked, by what was read of them: a long one is not read again for every key."""
    if own and choices.method != "regular":
        return "problems of a file are asked directly: choose the method regular"
    repeated = [name for name, count in Counter(Path(name).stem for name in own).items() if count > 1]
    if repeated:
        return f"two files would both be file:{visible(repeated[0], 40)}: rename one"
    rows = {row.name: row for row in offer.tasks} if offer is not None else {}
    return next((rows[name].problem for name in own if name in rows and rows[name].problem is not None), None)


def estimate(choices: Choices, database: Path) -> tuple[str, ...]:
    """Say what the choices will cost, in words that get shorter."""
    return estimate_words(estimate_cost(make_request(choices), earlier_pace(database, choices.model)))


QUICK_SECONDS = 120.0
"""Of a quick check."""

_QUICK_LIMITS = (20, 15, 10, 7, 5, 4, 3, 2, 1)
_LARGE_BYTES, _MIDDLE_BYTES = 3e9, 7e8


def quick_check(choices: Choices, database: Path) -> Choices:
    """Return choices that take about two minutes: every task, at a level for the size of the model.

    The number of answers is the largest of which at least the likely half of the estimate ends in time; without an
    earlier run of the model, which would tell its pace, there are two answers a task.
    """
    registry, _ = usable_registry()
    row = file_row(choices.model, registry)
    if choices.model in registry.entries:
        row = file_row(choices.model, ModelRegistry(choices.model, {choices.model: registry.entries[choices.model]}))
    size = row.file_bytes or 0
    difficulty = "medium" if size > _LARGE_BYTES else "easy" if size > _MIDDLE_BYTES else "trivial"
    wanted = replace(choices, tasks=tuple(TASKS), difficulty=difficulty, limit=2)
    pace = earlier_pace(database, choices.model)
    if pace is None:
        return wanted
    for limit in _QUICK_LIMITS:
        tried = replace(wanted, limit=limit)
        seconds = estimate_cost(make_request(tried), pace).seconds
        if seconds is not None and seconds <= QUICK_SECONDS:
            return tried
    return replace(wanted, limit=1)


def estimate_words(cost: CostEstimate) -> tuple[str, ...]:
    """Word an estimate, the longest words first."""
    answers = f"{cost.answers:,} answer{'' if cost.answers == 1 else 's'}"
    tokens = f"about {_round(cost.answer_tokens)}, at most {_round(cost.most_tokens)} tokens"
    prompts = f"after {_round(cost.prompt_tokens)} of prompts"
    if cost.seconds is None or cost.most_seconds is None:
        unknown = f"time unknown before the first run of this model; {answers}, {tokens}"
        return f"{unknown} {prompts}", unknown
    time = f"about {clock(cost.seconds)}, at most {clock(cost.most_seconds)}"
    known = f"{time} at the pace of its last run; {answers}, {tokens}"
    return f"{known} {prompts}", known, f"{time}; {answers}, {tokens}"


def _round(tokens: int) -> str:
    if tokens < 1_000:
        return f"{tokens}"
    return f"{tokens / 1_000:.1f} k" if tokens < 100_000 else f"{tokens / 1_000:,.0f} k"
