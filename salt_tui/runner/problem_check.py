"""The stored problems of a run compared with its plan, and with the answers that their own texts have."""

from __future__ import annotations

from collections.abc import Iterator

from salt_tui.runner.asked_problems import form_of
from salt_tui.runner.difference import Difference
from salt_tui.runner.plan import RunPlan, TaskPlan
from salt_tui.store.queries import Queries
from salt_tui.store.records import ProblemRecord, Work
from tasks.answer import split_reference
from tasks.registry import get_task
from tasks.task import Problem


def check_problems(queries: Queries, work: Work, plan: RunPlan) -> Iterator[Difference]:
    """Yield the problems that a plan asks and the run lacks, those that it does not ask, and those that are others now.

    A generated problem is solved again.  Of a problem from a file nothing but the file tells its right answer.

    Args:
        queries: of the file.
        work: the run.
        plan: its own.
    """
    planned = {task.task: task for task in plan.tasks}
    left = {(task.task, position) for task in plan.tasks for position in range(len(task.problem_ids))}
    for problem in queries.stored_problems(work.run):
        name = f"{problem.task}:{problem.position + 1}"
        task = planned.get(problem.task)
        if task is None or (problem.task, problem.position) not in left:
            yield Difference(work, name, "a problem that the plan does not ask", problem.content_id, None)
            continue
        left.remove((problem.task, problem.position))
        yield from _check_problem(work, name, problem, task)
    for name, position in sorted(left):
        found = planned[name].problem_ids[position]
        yield Difference(work, f"{name}:{position + 1}", "a problem that the plan asks", None, found)


def _check_problem(work: Work, name: str, problem: ProblemRecord, task: TaskPlan) -> Iterator[Difference]:
    found: dict[str, tuple[int | str, int | str]] = {
        "content_id of the problem": (problem.content_id, task.problem_ids[problem.position]),
        "difficulty of the problem": (problem.difficulty, task.difficulty),
        "method of the problem": (problem.method, task.method),
    }
    try:
        if problem.answer_kind == "generated":
            text = Problem(problem.task, problem.text, problem.reference, problem.difficulty, problem.seed)
            found["text of the problem, by its hash"] = problem.content_id, text.id
            found["reference of the problem"] = problem.reference, get_task(problem.task).solve(problem.text)
        units = split_reference(form_of(problem), problem.reference)
        found["reference_atoms"] = problem.reference_atoms, len(units.atoms)
        found["reference_lines"] = problem.reference_lines, len(units.lines)
    except Exception as error:
        # A task reads a text of somebody else's here; whatever it raises is about that text.
        yield Difference(work, name, "problem", None, f"{type(error).__name__}: {error}")
    for what, (stored, again) in found.items():
        if stored != again:
            yield Difference(work, name, what, stored, again)
