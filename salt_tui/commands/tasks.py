"""``salt-tui tasks list``, ``show`` and ``solve``."""

from __future__ import annotations

import json
from pathlib import Path

from salt_tui.commands.failures import DONE
from salt_tui.commands.line_width import broken_lines, line_width
from salt_tui.inputs.problem_files import solve_problems
from salt_tui.runner.request import MAXIMUM_SHOTS, method_of
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.answer import split_reference
from tasks.own_problems import FILE_PREFIX
from tasks.parameters import format_parameter, level_parameters
from tasks.problems import draw_problems
from tasks.prompts import DEFAULT_SHOTS, conversation
from tasks.registry import TASKS, get_task
from tasks.task import DIFFICULTIES, RangeParameter


def list_tasks(*, json_output: bool) -> int:
    """Print the name and description of every task."""
    if json_output:
        rows = [
            {
                "name": task.name,
                "title": task.title,
                "description": task.description,
                "levels": {
                    level: {name: format_parameter(value) for name, value in task.levels[level].items()}
                    for level in DIFFICULTIES
                },
                "dependence": {
                    "inputs": task.dependence.inputs,
                    "earlier_atoms": task.dependence.earlier_atoms,
                    "intervention_caveat": task.dependence.intervention_caveat,
                },
            }
            for task in TASKS.values()
        ]
        print(json.dumps(rows, ensure_ascii=False))
        return DONE
    width = max(len(name) for name in TASKS)
    for task in TASKS.values():
        _print_broken(f"{task.name:<{width}}  {task.description}", " " * (width + 2))
    return DONE


def show_task(
    name: str,
    difficulty: str,
    seed: int,
    method_name: str,
    shots: int | None,
    parameters: tuple[str, ...],
    *,
    json_output: bool,
) -> int:
    """Print what a level sets, and prompt and reference of its problem 0 as a run with this seed asks it."""
    if name.startswith(FILE_PREFIX):
        raise UsageError(
            f"{visible(name)}: show is for built-in tasks; `tasks export FILE -o -` writes a file's prompts"
        )
    task = get_task(name)
    method = method_of(method_name)
    count = DEFAULT_SHOTS if shots is None else shots
    if not 0 <= count <= MAXIMUM_SHOTS:
        raise UsageError(f"--shots {count}: 0 to {MAXIMUM_SHOTS}")
    values = level_parameters(task, difficulty, parameters)
    problem = draw_problems(task, difficulty, values, seed, 1, count).problems[0]
    reference = split_reference(task, problem.reference)
    turns = conversation(task, problem, method, count)
    texts = {parameter: format_parameter(value) for parameter, value in values.items()}
    if json_output:
        data = {
            "task": task.name,
            "difficulty": difficulty,
            "parameters": texts,
            "problem": problem.text,
            "prompt": [{"role": turn.role, "content": turn.content} for turn in turns],
            "reference": problem.reference,
            "atoms": len(reference.atoms),
            "lines": len(reference.lines),
            "id": problem.id,
            "seed": problem.seed,
        }
        print(json.dumps(data, ensure_ascii=False))
        return DONE
    _print_broken(f"{task.title}: {task.description}", "  ")
    for parameter in task.parameters:
        bounds = (
            f"{parameter.minimum}..{parameter.maximum}"
            if isinstance(parameter, RangeParameter)
            else ",".join(parameter.choices)
        )
        value = texts[parameter.name]
        allowed = "any of these" if value == bounds else bounds
        _print_broken(f"  {parameter.name}={value}  ({parameter.description}; allowed: {allowed})", "    ")
    _print_broken(f"An atom depends on: {task.dependence.inputs}", "  ")
    if task.dependence.earlier_atoms:
        _print_broken(f"and on earlier atoms: {task.dependence.earlier_atoms}", "  ")
    for turn in turns:
        print(f"\n[{turn.role}]\n{turn.content}")
    print(f"\n[reference: {len(reference.atoms)} atoms in {len(reference.lines)} lines]\n{problem.reference}")
    return DONE


def solve_file(name: str, file: Path) -> int:
    """Print one JSON string per problem: its reference."""
    for reference in solve_problems(name, file):
        print(json.dumps(reference, ensure_ascii=False))
    return DONE


def _print_broken(text: str, indent: str) -> None:
    for line in broken_lines(text, line_width(), indent):
        print(line)
