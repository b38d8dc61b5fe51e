"""The study of samples on the scripted engine: what it stores, that it resumes exactly, and what it says."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from salt_tui.runner.events import AnswerFinished, RunEnded, RunEvent, RunStarted
from salt_tui.runner.loop import Loop, ReadyWork
from salt_tui.runner.preparation import prepare_run
from salt_tui.runner.request import RunRequest
from salt_tui.runner.studies.plan import OptionValue, StudyPlan
from salt_tui.runner.studies.preparation import (
    StudyRequest,
    prepare_study,
    prepare_study_resume,
    read_study_plan,
)
from salt_tui.runner.studies.registry import study_kind
from salt_tui.store.queries import open_queries
from salt_tui.usage_error import UsageError
from scoring.agreement import unit_agreement
from tests.conftest import ScriptedModel

TASKS = ("kronecker_product", "dna_translation")

SIGNALS = (
    'SELECT task, position, kind, signal."index", name, value, reason FROM signal'
    " JOIN generation ON generation.id = signal.generation JOIN problem ON problem.id = generation.problem"
    " ORDER BY 1, 2, 3, 4, 5"
)
TOKENS = (
    "SELECT task, problem.position, number, token.position, token.id, log_probability, entropy FROM token"
    " JOIN generation ON generation.id = token.generation JOIN problem ON problem.id = generation.problem"
    " WHERE role = 'sample' ORDER BY 1, 2, 3, 4"
)


def computed(
    prepare: Callable[[Callable[[RunEvent], None]], ReadyWork], stop_after: int | None = None
) -> list[RunEvent]:
    """Compute until so many sequences have ended; return the events."""
    events: list[RunEvent] = []
    stop = threading.Event()

    def emit(event: RunEvent) -> None:
        events.append(event)
        if sum(isinstance(item, AnswerFinished) for item in events) == stop_after:
            stop.set()

    ready = prepare(emit)
    try:
        Loop(ready, emit, stop).run()
    finally:
        ready.close()
    return events


def make_run(model: Path, database: Path) -> None:
    events = computed(lambda emit: prepare_run(RunRequest(str(model), TASKS, "trivial", 2, 1), database, emit))
    assert isinstance(events[-1], RunEnded)
    assert events[-1].state == "finished"


def make_study(database: Path, stop_after: int | None = None, **options: OptionValue) -> list[RunEvent]:
    asked = StudyRequest("samples", "1", {"samples": 3, "temperature": 1.0, **options})
    return computed(lambda emit: prepare_study(asked, database, emit), stop_after)


def resume_study(database: Path, name: str = "1.1") -> list[RunEvent]:
    with open_queries(database) as queries:
        study = queries.study_record(queries.find_work(name))
    return computed(
        lambda emit: prepare_study_resume(study, database, emit, allow_environment_change=False, threads=None)
    )


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(database) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def model(scripted_model: ScriptedModel) -> Path:
    """A model with three replies to each problem, of which a seed draws one; the third lacks its first atom."""
    path = scripted_model(*TASKS, limit=2, seconds_per_step=0.001)
    script = json.loads(path.read_text())
    for reply in list(script["replies"]):
        texts = [token[0] for token in reply["tokens"]]
        atoms = [place for place, text in enumerate(texts) if text.strip() and set(text) != {"*"}]
        other = [[texts[atoms[0]] if place == atoms[-1] else text, -0.5] for place, text in enumerate(texts)]
        shorter = [[text, -0.25] for place, text in enumerate(texts) if place != atoms[0]]
        script["replies"] += [{**reply, "tokens": other}, {**reply, "tokens": shorter}]
    path.write_text(json.dumps(script))
    return path


def test_a_study_samples_every_finished_answer_and_says_how_far_they_agree(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    before = rows(database, "SELECT * FROM unit")
    events = make_study(database, aligned=True)
    started, ended = events[1], events[-1]
    started = next(event for event in events if isinstance(event, RunStarted))
    assert isinstance(ended, RunEnded)
    assert (started.title, ended.title, ended.state) == ("study 1.1", "study 1.1", "finished")
    assert [(task.task, task.done, task.total) for task in started.tasks] == [(task, 0, 6) for task in TASKS]
    assert rows(database, "SELECT count(*), count(DISTINCT number) FROM generation WHERE role = 'sample'") == [(12, 3)]
    with open_queries(database) as queries:
        work = queries.find_work("1.1")
        assert {signal.name for signal in queries.signal_names(1) if signal.work == work} == {
            "agreement",
            "agreement_aligned",
            "cluster_entropy",
        }
        # Each value again, from the stored units.
        for answer in queries.answers(1):
            assert answer.generation is not None
            own = [unit.text for unit in queries.units(answer.generation, "atom") if unit.text is not None]
            samples = [
                [unit.text for unit in queries.units(sample.id, "atom") if unit.text is not None]
                for sample in queries.generations(work, "sample")
                if sample.problem_id == answer.problem_id
            ]
            stored = [
                record.value
                for record in queries.signals(1, "agreement", "atom")
                if record.generation == answer.generation
            ]
            assert stored == list(unit_agreement(own, samples))
        study = queries.study_record(work)
        notes = study_kind("samples").result(queries, study, read_study_plan(database, study)).notes
    assert [note.partition(":")[0] for note in notes[1:]] == ["Answers", "Lines", "Atoms"]
    # The run's own units are as they were.
    assert [row for row in rows(database, "SELECT * FROM unit") if row in before] == before


def test_stopped_and_resumed_gives_the_same_samples_and_signals(model: Path, tmp_path: Path) -> None:
    whole, halves = tmp_path / "whole.db", tmp_path / "halves.db"
    for database in (whole, halves):
        make_run(model, database)
    make_study(whole)
    events = make_study(halves, stop_after=5)
    assert isinstance(events[-1], RunEnded)
    assert events[-1].state == "interrupted"
    assert rows(halves, SIGNALS) == []
    events = resume_study(halves)
    started = next(event for event in events if isinstance(event, RunStarted))
    assert sum(task.done for task in started.tasks) >= 5
    assert rows(halves, SIGNALS) == rows(whole, SIGNALS)
    assert rows(halves, TOKENS) == rows(whole, TOKENS)
    assert len({row[5] for row in rows(whole, SIGNALS) if row[4] == "agreement"}) > 1


def test_samples_depend_on_their_seed_and_on_nothing_else(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    for options in ({}, {"samples": 5}, {"sampler_seed": 1}):
        make_study(database, **options)
    studies: dict[int, dict[tuple[object, ...], bytes]] = {}
    for study, *key, reply in rows(
        database,
        "SELECT study.number, task, position, generation.number, reply FROM generation"
        " JOIN problem ON problem.id = generation.problem JOIN study ON study.id = generation.study",
    ):
        assert isinstance(study, int)
        assert isinstance(reply, bytes)
        studies.setdefault(study, {})[tuple(key)] = reply
    assert studies[1].items() < studies[2].items()
    assert studies[3].keys() == studies[1].keys()
    assert studies[3] != studies[1]
    assert len(set(studies[2].values())) > 4  # the samples of a problem differ


def test_the_plan_names_the_answers_and_resuming_sees_that_they_are_the_same(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    make_study(database, stop_after=2)
    with open_queries(database) as queries:
        plan = StudyPlan.from_json(queries.study_record(queries.find_work("1.1")).record.plan)
    assert plan.answers == dict.fromkeys(TASKS, (0, 1))
    assert (plan.kind, plan.jobs) == ("samples", 12)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE generation SET reply = x'78' WHERE id = 1")
    with pytest.raises(UsageError, match="are no longer the same"):
        resume_study(database)


def test_answers_that_come_later_are_not_covered(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    asked = RunRequest(str(model), TASKS, "trivial", 2, 1)
    computed(lambda emit: prepare_run(asked, database, emit), stop_after=1)
    make_study(database)
    covered = rows(database, "SELECT count(*) FROM generation WHERE role = 'answer' AND stop_reason IS NOT NULL")[0][0]
    assert rows(database, "SELECT count(*) FROM generation WHERE role = 'sample'") == [(3 * int(str(covered)),)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "-k 0: 1 to 1000"),
        ({"temperature": 0.0}, "--temp 0: all samples would be equal"),
        ({"temperature": -1.0}, "--temp -1.0: a number, at least 0"),
        ({"top_p": 0.0}, "--top-p 0.0: above 0"),
        ({"colour": 1}, "no option 'colour'"),
    ],
)
def test_options_that_cannot_be_meant_are_one_line(
    tmp_path: Path, options: dict[str, OptionValue], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        prepare_study(StudyRequest("samples", "1", options), tmp_path / "x.db", lambda event: None)


def test_a_run_without_answers_and_a_context_below_the_runs_are_refused(model: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    make_run(model, database)
    with pytest.raises(UsageError, match="-c 16: a study has at least the context of its run"):
        prepare_study(StudyRequest("samples", "1", {}, context=16), database, lambda event: None)
    with pytest.raises(UsageError, match="--cache-mb -1: 0 or more"):
        prepare_study(StudyRequest("samples", "1", {}, cache_mb=-1), database, lambda event: None)
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM generation")
    with pytest.raises(UsageError, match="run 1 has no finished answer"):
        prepare_study(StudyRequest("samples", "1", {}), database, lambda event: None)
