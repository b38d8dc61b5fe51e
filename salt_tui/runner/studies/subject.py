"""What a study is about: a stored run and those of its answers that are finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from salt_tui.engine.models import ResolvedModel
from salt_tui.runner.plan import Environment, RunPlan
from salt_tui.runner.prompting import EncodedProblem, asked_turns
from salt_tui.runner.request import method_of
from salt_tui.runner.studies.plan import CoveredAnswer, StudyPlan, hash_of_answers
from salt_tui.store.queries import Queries
from salt_tui.store.records import Work
from salt_tui.store.results import StoredRun
from salt_tui.store.stored_values import Place
from salt_tui.usage_error import UsageError
from scoring.answer_status import LEFT_OUT


@dataclass(frozen=True, slots=True)
class Subject:
    """The run that a study is about, with the answers that it covers; ``model`` is the run's."""

    stored: StoredRun
    plan: RunPlan
    environment: Environment
    model: ResolvedModel
    answers: tuple[CoveredAnswer, ...]

    @classmethod
    def read(cls, queries: Queries, run: int) -> Subject:
        """Read a run with its finished answers."""
        stored = queries.run_record(run)
        place = Place(queries.path, f"run {run}")
        plan = place.read("plan", stored.record.plan, RunPlan.from_json)
        return cls(
            stored=stored,
            plan=plan,
            environment=place.read("environment", stored.record.environment, Environment.from_json),
            model=place.read("model_entry", stored.model.entry, ResolvedModel.from_json),
            answers=covered_answers(queries, run, plan),
        )


def covered_answers(queries: Queries, run: int, plan: RunPlan) -> tuple[CoveredAnswer, ...]:
    """Return the finished answers of a run that count, in the order of its plan."""
    tasks = {task.task: task for task in plan.tasks}
    covered = []
    for answer in queries.answers(run):
        if answer.generation is None or answer.reply is None or answer.answer_status in {None, *LEFT_OUT}:
            continue
        prompt, task = queries.prompt(answer.generation), tasks[answer.problem.task]
        # An engine that gives no ids has no prompt, and is asked the conversation again.
        turns = () if prompt is not None else asked_turns(answer.problem, method_of(task.method), task.shots)
        covered.append(
            CoveredAnswer(
                generation=answer.generation,
                problem_id=answer.problem_id,
                problem=answer.problem,
                prompt=EncodedProblem(prompt or (), answer.preamble or 0, turns),
                reply=answer.reply,
                tokens=answer.tokens,
                max_tokens=task.max_tokens,
            )
        )
    return tuple(covered)


def still_covered(work: Work, plan: StudyPlan, answers: Sequence[CoveredAnswer]) -> tuple[CoveredAnswer, ...]:
    """Return the answers of a run that a stored study is about.

    Raises:
        UsageError: they are no longer the same.
    """
    covered = tuple(
        answer for answer in answers if answer.problem.position in plan.answers.get(answer.problem.task, ())
    )
    if hash_of_answers(covered) != plan.answers_hash:
        raise UsageError(f"{work.title} cannot be resumed: the answers that it is about are no longer the same")
    return covered
