"""All tasks by name; a new task is one import and one line here."""

from __future__ import annotations

from tasks.arc_grid import ArcGrid
from tasks.code import CodeTask
from tasks.dna_translation import DnaTranslation
from tasks.first_order_logic import FirstOrderLogic
from tasks.kronecker_product import KroneckerProduct
from tasks.matrix_multiplication import MatrixMultiplication
from tasks.maze import Maze
from tasks.task import Task, UnknownNameError
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


def get_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        UnknownNameError: there is no such task.
    """
    if name in TASKS:
        return TASKS[name]
    raise UnknownNameError("task", name, TASKS)


def task_for_release_name(name: str) -> Task:
    """Return the task that the published release calls ``name``; our own names are accepted too.

    Raises:
        UnknownNameError: there is no such task.
    """
    if name not in TASKS:
        for task in TASKS.values():
            if name in task.release_names:
                return task
    return get_task(name)
