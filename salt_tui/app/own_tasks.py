"""Files of one's own problems as tasks in Setup: read, described, and one of their problems shown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from salt_tui.app.setup_offer import OfferedTask
from salt_tui.inputs.question_files import read_questions
from salt_tui.usage_error import UsageError
from salt_tui.visible_text import visible
from tasks.own_problems import FILE_PREFIX
from tasks.task import Turn

_NAME = 22
"""Cells of a name in the list."""


def own_name(path: str) -> str:
    """Return the name of a file as a task, by its absolute path."""
    return f"{FILE_PREFIX}{Path(path.strip().removeprefix(FILE_PREFIX)).expanduser().absolute()}"


def own_task(name: str) -> OfferedTask:
    """Describe a file of problems; one that cannot be used says why, with its first bad row."""
    path = Path(name.removeprefix(FILE_PREFIX))
    shown = visible(f"{FILE_PREFIX}{path.stem}", _NAME)
    try:
        task = read_questions(path)
    except UsageError as error:
        return OfferedTask(name, shown, f"! {visible(str(error), 200)}", str(error))
    kinds = Counter(problem.kind for problem in task.problems)
    count = len(task.problems)
    words = f"{count:,} problem{'' if count == 1 else 's'} of your own: {', '.join(kinds)}"
    shots = len(task.examples)
    examples = f"; {shots} example{'' if shots == 1 else 's'}" if shots else ""
    return OfferedTask(name, shown, f"{words}{examples}")


def own_example(name: str) -> str:
    """Return the first problem of a file as the model sees it, and its right answer.

    Raises:
        UsageError: the file cannot be read, or a row is bad.
    """
    task = read_questions(Path(name.removeprefix(FILE_PREFIX)))
    problem = task.problems[0]
    asked = [line for turn in task.conversation(problem, None) for line in _turn(turn)]
    return "\n".join(
        (f"problem {visible(problem.id)}: {problem.kind}", *asked, "", "right answer", _indented(problem.reference))
    )


def _turn(turn: Turn) -> list[str]:
    return ["", turn.role, _indented(turn.content)]


def _indented(text: str) -> str:
    return "\n".join(f"  {visible(line)}" for line in text.split("\n"))
