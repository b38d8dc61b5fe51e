"""Studies: made, found, computed, shown apart from answers, and deleted with everything."""

from __future__ import annotations

import sqlite3

import pytest

from salt_tui.store.queries import open_queries
from salt_tui.store.records import (
    ActivationRecord,
    GenerationStart,
    InterventionRecord,
    SignalRecord,
    StudyRecord,
    Work,
)
from salt_tui.store.store import StoreError, open_store

TABLES = ("run", "study", "problem", "generation", "token", "unit", "signal", "activation", "intervention", "model")


def counts(path):
    with sqlite3.connect(path) as connection:
        found = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    connection.close()
    return found


def plan(kind="samples", **changes):
    return StudyRecord(kind, '{"k":2}', "plan-hash", '{"threads":2}', "environment-hash", True, ("careful",), **changes)


@pytest.fixture
def answered(store, create, begin, finish, atom):
    """Store a finished run of two answers and return its number."""
    run = create(count=2)
    for _ in range(2):
        finish(begin(run), [atom(0), atom(1, "wrong")])
    store.release(Work(run), "finished")
    return run


def fill(store, work, token, atom, end, problems, samples=2):
    """Compute samples, a branch with its design, signals and activations of a claimed study."""
    for problem, answer in problems:
        for number in range(samples):
            start = GenerationStart(problem, (1, 2), 1, role="sample", number=number)
            generation = store.begin_generation(work, start)
            store.add_tokens(generation, [token(0)])
            store.add_units(generation, [atom(0)])
            store.end_generation(generation, end(reply=b"A"))
        start = GenerationStart(problem, (1, 2), 1, role="branch", parent=answer)
        branch = store.begin_generation(work, start)
        design = InterventionRecord(
            branch, answer, 1, "near", "correction", ((0, "B"),), 0.5, None, 1, 0.0, None, True, -0.25
        )
        store.add_interventions(work, [design])
        store.end_generation(branch, end())
        store.add_signals(work, [SignalRecord(answer, "atom", 0, "agreement", 0.5)])
        store.add_activations(work, [ActivationRecord(answer, "atom", 0, 3, "producing", [1.0, -2.5])])
    store.flush()


def test_a_study_comes_back_as_it_was_made_under_a_name_that_is_not_used_again(path, store, answered, model):
    first = store.create_study(answered, plan())
    second = store.create_study(answered, plan("verbalised"))
    assert [str(first), str(second)] == [f"{answered}.1", f"{answered}.2"]
    store.delete_work(second)
    third = store.create_study(answered, plan("manual"))
    assert str(third) == f"{answered}.3"
    with open_queries(path) as queries:
        assert [(study.work, study.kind, study.state) for study in queries.studies(answered)] == [
            (first, "samples", "interrupted"),
            (third, "manual", "interrupted"),
        ]
        assert [study.work for study in queries.list_runs()[0].studies] == [first, third]
        stored = queries.study_record(first)
        assert stored.model == model()
        assert stored.record == plan(model=model())
        assert queries.find_work(f"{answered}.3") == third
        assert queries.find_work(str(answered)) == queries.find_work("latest") == Work(answered)
        with pytest.raises(StoreError, match=rf"has no study {answered}\.2; it has {answered}\.1, {answered}\.3"):
            queries.find_work(f"{answered}.2")
        with pytest.raises(StoreError, match=f"{answered}.1 is a study; here a run is asked for: {answered}"):
            queries.find_run(f"{answered}.1")
        with pytest.raises(StoreError, match=rf"no study {answered}\.2"):
            queries.study_record(second)


def test_a_study_of_another_model_brings_it_and_takes_it_along(path, store, answered, model):
    other = model(sha256="b" * 64, name="other")
    work = store.create_study(answered, plan("second-model", model=other), vocabulary=[b"x"])
    with open_queries(path) as queries:
        assert queries.study_record(work).model == other
    assert counts(path)["model"] == 2
    store.delete_work(work)
    assert counts(path)["model"] == 1


def test_the_newest_unfinished_work_is_what_resume_goes_on_with(path, store, create, answered):
    with open_queries(path) as queries:
        assert queries.find_unfinished() == Work(answered)
        older = create(count=1)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE run SET created_at = '2020-01-01T00:00:00.000+00:00' WHERE id = ?", (older,))
        connection.close()
        assert queries.find_unfinished() == Work(older)
        study = store.create_study(answered, plan())
        assert queries.find_unfinished() == study
        store.claim(study)
        store.release(study, "finished")
        assert queries.find_unfinished() == Work(older)


def test_a_study_resumes_by_its_keys_and_views_show_answers_only(path, store, answered, token, atom, end):
    with open_queries(path) as queries:
        before = (queries.list_runs()[0].atoms, queries.task_counts(answered), queries.answers(answered))
        columns = queries.unit_columns(answered, "atom", ["max_probability"])
        with sqlite3.connect(path) as connection:
            views = [
                connection.execute(f"SELECT * FROM {view}").fetchall() for view in ("atom_view", "reliability_view")
            ]
        problems = [(answer.problem_id, answer.generation) for answer in before[2]]
        work = store.create_study(answered, plan())
        store.claim(work)
        fill(store, work, token, atom, end, problems)
        open_start = GenerationStart(problems[0][0], None, 0, role="sample", number=9)
        unfinished = store.begin_generation(work, open_start)
        keys = store.finished_keys(work)
        assert keys == {(problem, None, "sample", number) for problem, _ in problems for number in (0, 1)} | {
            (problem, answer, "branch", 0) for problem, answer in problems
        }
        assert store.finished_keys(Work(answered)) == {(problem, None, "answer", 0) for problem, _ in problems}
        store.release(work, "interrupted")

        assert (queries.list_runs()[0].atoms, queries.task_counts(answered), queries.answers(answered)) == before
        again = queries.unit_columns(answered, "atom", ["max_probability"])
        assert again.generation.tolist() == columns.generation.tolist()
        with sqlite3.connect(path) as connection:
            assert views == [
                connection.execute(f"SELECT * FROM {view}").fetchall() for view in ("atom_view", "reliability_view")
            ]
        assert store.pending_problems(answered) == []
        samples = queries.generations(work, "sample")
        assert [(sample.problem_id, sample.number, sample.reply) for sample in samples] == [
            (problems[0][0], 0, b"A"), (problems[0][0], 1, b"A"), (problems[0][0], 9, None),
            (problems[1][0], 0, b"A"), (problems[1][0], 1, b"A"),
        ]  # fmt: skip
        assert len(queries.generations(work)) == 7
        assert [entry.id for entry in queries.generations(Work(answered))] == [answer for _, answer in problems]

    store.claim(work)
    assert store.begin_generation(work, open_start) == unfinished
    store.release(work, "finished")


def test_deleting_a_study_leaves_the_run_and_deleting_the_run_leaves_nothing(path, store, answered, token, atom, end):
    before = counts(path)
    with open_queries(path) as queries:
        problems = [(answer.problem_id, answer.generation) for answer in queries.answers(answered)]
    works = [store.create_study(answered, plan()), store.create_study(answered, plan("interventions"))]
    for work in works:
        store.claim(work)
        fill(store, work, token, atom, end, problems)
        store.release(work, "finished")
    assert counts(path)["signal"] == counts(path)["activation"] == counts(path)["intervention"] == 4
    store.delete_work(works[0])
    assert counts(path)["signal"] == counts(path)["activation"] == counts(path)["intervention"] == 2
    store.delete_work(works[1])
    assert counts(path) == before
    work = store.create_study(answered, plan())
    store.claim(work)
    fill(store, work, token, atom, end, problems)
    with open_store(path) as second, pytest.raises(StoreError, match=f"study {work} is being computed by"):
        second.delete_work(Work(answered))
    store.release(work, "interrupted")
    store.delete_work(Work(answered))
    assert set(counts(path).values()) == {0}


def test_what_does_not_belong_to_a_study_is_refused(store, create, answered, begin, token):
    other = create(count=1)
    foreign = store.pending_problems(other)[0].id
    work = store.create_study(answered, plan())
    with pytest.raises(StoreError, match=rf"study {work} is not held"):
        store.begin_generation(work, GenerationStart(1, None, 0, role="sample"))
    store.claim(work)
    with pytest.raises(StoreError, match=f"problem {foreign} with parent None is not one of study {work}"):
        store.begin_generation(work, GenerationStart(foreign, None, 0, role="sample"))
    with pytest.raises(StoreError, match="with parent 77 is not one of"):
        store.begin_generation(work, GenerationStart(1, None, 0, role="branch", parent=77))
    with pytest.raises(StoreError, match="refused a row"):
        store.begin_generation(work, GenerationStart(1, None, 0, role="answer", number=3))
    with pytest.raises(StoreError, match="no run 99"):
        store.create_study(99, plan())
    store.release(work, "interrupted")


def test_a_note_is_kept_and_an_empty_one_is_none(path, store, answered):
    with open_queries(path) as queries:
        for note, expected in (("hot day", "hot day"), ("", None)):
            store.set_note(answered, note)
            assert queries.list_runs()[0].note == queries.run_record(answered).note == expected
    with pytest.raises(StoreError, match="no run 99"):
        store.set_note(99, "x")


def test_an_exported_database_holds_the_studies_of_its_run(path, store, answered, create, token, atom, end, tmp_path):
    from salt_tui.exports.export import export_work

    with open_queries(path) as queries:
        problems = [(answer.problem_id, answer.generation) for answer in queries.answers(answered)]
    work = store.create_study(answered, plan())
    store.claim(work)
    fill(store, work, token, atom, end, problems)
    create(count=1)
    expected = counts(path) | {"run": 1, "problem": 2}
    export_work(path, Work(answered), tmp_path / "y.db")
    assert counts(tmp_path / "y.db") == expected
    with open_queries(path) as before, open_queries(tmp_path / "y.db") as after:
        assert after.studies(answered)[0].state == "interrupted"
        assert after.generations(work) == before.generations(work)
        assert after.interventions(work) == before.interventions(work)
        assert after.signal_names(answered) == before.signal_names(answered)
    with sqlite3.connect(tmp_path / "y.db") as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    with open_store(tmp_path / "y.db") as opened:
        opened.claim(work)
        assert len(opened.finished_keys(work)) == 6
        opened.release(work, "finished")
    store.release(work, "interrupted")
