"""All tasks by name; a new task is one import and one line here."""

from __future__ import annotations

from difflib import get_close_matches

from tasks.arc_grid import ArcGrid
from tasks.code import CodeTask
from tasks.dna_translation import DnaTranslation
from tasks.first_order_logic import FirstOrderLogic
from tasks.kronecker_product import KroneckerProduct
from tasks.matrix_multiplication import MatrixMultiplication
from tasks.maze import Maze
from tasks.task import Task, quoted
from tasks.words_collection import WordsCollection

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        ArcGrid(),
        CodeTask(),
        DnaTranslation(),
        FirstOrderLogic(),
        KroneckerProduct(),
        MatrixMultiplication(),
        Maze(),
        WordsCollection(),
    )
}
"""The tasks in the order of lists and reports."""


class UnknownTaskError(ValueError):
    """A name that no task has; the message names all, and a similar one first."""


def get_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        UnknownTaskError: naming a similar task, if there is one, and all.
    """
    if name in TASKS:
        return TASKS[name]
    raise _unknown(name)


def task_for_release_name(name: str) -> Task:
    """Return the task that the published release calls ``name``; our own names are accepted too.

    Raises:
        UnknownTaskError: naming a similar task, if there is one, and all.
    """
    if name in TASKS:
        return TASKS[name]
    for task in TASKS.values():
        if name in task.release_names:
            return task
    raise _unknown(name)


def _unknown(name: str) -> UnknownTaskError:
    nearest = get_close_matches(name, list(TASKS), n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return UnknownTaskError(f"unknown task {quoted(name)}; {hint}there are: {', '.join(TASKS)}")
