"""A whole database compared with itself: every stored number that follows from other stored rows is made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from salt_tui.runner.difference import Difference
from salt_tui.runner.plan import Environment, RunPlan, content_hash
from salt_tui.runner.problem_check import check_problems
from salt_tui.runner.rescoring import rescored, score_differences
from salt_tui.runner.studies.plan import StudyPlan
from salt_tui.runner.study_check import check_signal_ranges, check_signals_of_run, check_study
from salt_tui.store.errors import StoreError
from salt_tui.store.queries import Queries
from salt_tui.store.records import RunRecord, StudyRecord, Work
from salt_tui.store.results import StoredReply
from salt_tui.store.stored_values import Place


@dataclass(slots=True)
class Checked:
    """How much was checked so far."""

    answers: int = 0
    units: int = 0


def check_file(queries: Queries, checked: Checked, progress: Callable[[Work], None]) -> Iterator[Difference]:
    """Yield everything in a file that does not fit together; one answer is in memory at a time.

    Args:
        queries: of the file.
        checked: is counted up.
        progress: is told of every run and study that is begun.
    """
    try:
        for what, found in queries.structure_faults():
            yield Difference(None, None, what, None, found)
    except StoreError as error:
        yield Difference(None, None, "structure", None, str(error))
    try:
        works = queries.all_works()
    except StoreError as error:
        yield Difference(None, None, "runs", None, str(error))
        return
    for work in works:
        progress(work)
        yield from _check_record(queries, work)
        try:
            generations = queries.finished_generations(work)
        except StoreError as error:
            yield Difference(work, None, "answers", None, str(error))
            continue
        for generation in generations:
            yield from _check_generation(queries, work, generation, checked)
        yield from _check_sayings(queries, work)


def _check_record(queries: Queries, work: Work) -> Iterator[Difference]:
    try:
        record: RunRecord | StudyRecord
        if work.study is None:
            stored = queries.run_record(work.run)
            record, state = stored.record, stored.state
        else:
            study = queries.study_record(work)
            record, state = study.record, study.state
        place = Place(queries.path, work.title)
        parse: Callable[[str], RunPlan | StudyPlan] = RunPlan.from_json if work.study is None else StudyPlan.from_json
        plan = place.read("plan", record.plan, parse)
        place.read("environment", record.environment, Environment.from_json)
        for name in ("plan", "environment"):
            hash_stored, found = getattr(record, f"{name}_hash"), content_hash(getattr(record, name))
            if hash_stored != found:
                yield Difference(work, None, f"{name}_hash", hash_stored, found)
        if isinstance(plan, RunPlan):
            yield from check_problems(queries, work, plan)
        if work.study is None and state == "finished":
            unanswered = queries.unanswered(work.run)
            if unanswered:
                yield Difference(work, None, "problems without an answer in a finished run", 0, unanswered)
    except StoreError as error:
        yield Difference(work, None, "record", None, str(error))


def _check_generation(queries: Queries, work: Work, generation: int, checked: Checked) -> Iterator[Difference]:
    name = f"generation {generation}"
    try:
        stored = queries.stored_reply(generation)
        name = answer_name(stored)
        checked.answers += 1
        checked.units += len(stored.units)
        for fault in stored.faults:
            yield Difference(work, name, "tokens, reply and units", None, fault)
        if stored.faults or stored.answer_status is None:
            return
        for found in score_differences(stored, rescored(stored)):
            yield Difference(work, name, found.what, found.stored, found.found)
    except StoreError as error:
        yield Difference(work, name, "rows", None, str(error))
    except Exception as error:
        # A task reads a text of somebody else's here; whatever it raises is about that text.
        yield Difference(work, name, "scoring", None, f"{type(error).__name__}: {error}")


def _check_sayings(queries: Queries, work: Work) -> Iterator[Difference]:
    """Yield what is said about answers otherwise than it follows from what is stored."""
    try:
        yield from check_signal_ranges(queries, work)
        if work.study is None:
            yield from check_signals_of_run(queries, work)
            return
        study = queries.study_record(work)
        if study.state == "finished":
            yield from check_study(queries, study)
    except StoreError as error:
        yield Difference(work, None, "what is said about answers", None, str(error))
    except Exception as error:
        # As with scoring: a value of somebody else's that no program of ours writes.
        yield Difference(work, None, "what is said about answers", None, f"{type(error).__name__}: {error}")


def answer_name(stored: StoredReply) -> str:
    """Return ``TASK:POSITION``, counted from 1, and which text of a study it is."""
    name = f"{stored.problem.task}:{stored.problem.position + 1}"
    return name if stored.role == "answer" else f"{name} {stored.role} {stored.number + 1}"
