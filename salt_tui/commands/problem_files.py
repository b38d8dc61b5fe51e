"""``salt-tui tasks check`` and ``salt-tui tasks export``: files with problems, in and out."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from salt_tui.commands.failures import DONE, USAGE, say
from salt_tui.inputs.question_files import check_questions, read_questions
from salt_tui.paths import expanded
from salt_tui.runner.request import MAXIMUM_LIMIT, MAXIMUM_SHOTS, method_of
from salt_tui.store.placing import complete_file
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX
from tasks.parameters import level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation
from tasks.registry import get_task
from tasks.task import Turn

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class ExportedProblems:
    """Which problems are exported, as `run` would ask them."""

    task: str
    difficulty: str
    limit: int
    seed: int
    method: str
    shots: int | None
    parameters: tuple[str, ...]


def check_file(file: Path, *, json_output: bool) -> int:
    """Name every bad row of a file with problems of one's own; 2 when there is one."""
    checked = check_questions(file)
    if json_output:
        errors = [{"line": fault.line, "what": fault.what} for fault in checked.faults]
        print(json.dumps({"rows": checked.rows, "errors": errors}, ensure_ascii=False))
    else:
        for fault in checked.faults:
            print(f"{visible(str(file))}:{fault.line}: {fault.what}")
        kinds = Counter(problem.kind for problem in checked.task.problems)
        of_kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        examples = len(checked.task.examples)
        shown = f" and {examples} worked example{'s' * (examples != 1)}" if examples else ""
        bad = len(checked.faults)
        say(
            (f"{bad} bad row{'s' * (bad != 1)} of {checked.rows}" if checked.rows else "no row was read")
            if bad
            else f"{len(checked.task.problems)} problems ({of_kinds}){shown}: run --tasks {FILE_PREFIX}{file}"
        )
    return USAGE if checked.faults else DONE


def export_problems(wanted: ExportedProblems, output: str, *, overwrite: bool) -> int:
    """Write problems as JSON lines: what to ask (``messages``), the right answer and what names them.

    Raises:
        UsageError, ParameterError: as for a run.
        StoreError: the file cannot be written; nothing is left behind.
    """
    if not 1 <= wanted.limit <= MAXIMUM_LIMIT:
        raise UsageError(f"--limit {wanted.limit}: at least 1, at most {MAXIMUM_LIMIT}")
    if wanted.shots is not None and not 0 <= wanted.shots <= MAXIMUM_SHOTS:
        raise UsageError(f"--shots {wanted.shots}: 0 to {MAXIMUM_SHOTS}")
    rows = _own_rows(wanted) if wanted.task.startswith(FILE_PREFIX) else _generated_rows(wanted)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if output == STDOUT:
        sys.stdout.writelines(lines)
        return DONE
    target = expanded(output, UsageError)
    if target.exists() and not overwrite:
        raise UsageError(f"{visible(output)} exists; choose another name or overwrite it with --force")
    try:
        with complete_file(target, ("empty", "file") if overwrite else (), database=False) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{visible(output)} cannot be written ({error.strerror})") from error
    say(f"the problems are in {visible(output)}")
    return DONE


def _generated_rows(wanted: ExportedProblems) -> Iterator[dict[str, Any]]:
    task, method = get_task(wanted.task), method_of(wanted.method)
    shots = DEFAULT_SHOTS if wanted.shots is None else wanted.shots
    parameters = level_parameters(task, wanted.difficulty, wanted.parameters)
    drawn = draw_problems(task, wanted.difficulty, parameters, wanted.seed, wanted.limit, shots)
    if drawn.note:
        say(drawn.note)
    for position, problem in enumerate(drawn.problems):
        yield {
            "id": problem.id,
            "task": task.name,
            "position": position,
            "kind": "generated",
            "difficulty": problem.difficulty,
            "seed": problem.seed,
            "method": method,
            "shots": shots,
            "problem": problem.text,
            "messages": _messages(conversation(task, problem, method, shots)),
            "reference": problem.reference,
        }


def _own_rows(wanted: ExportedProblems) -> Iterator[dict[str, Any]]:
    task = read_questions(Path(wanted.task.removeprefix(FILE_PREFIX)))
    for position, problem in enumerate(task.problems[: wanted.limit]):
        yield {
            "id": problem.content_id,
            "task": task.name,
            "position": position,
            "kind": problem.kind,
            "name": problem.id,
            "problem": problem.question,
            "messages": _messages(task.conversation(problem, wanted.shots)),
            "reference": problem.reference,
            "turns": _messages(problem.turns),
            "choices": list(problem.choices),
            "columns": dict(problem.columns),
        }


def _messages(turns: tuple[Turn, ...]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.content} for turn in turns]
