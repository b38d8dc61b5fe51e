"""Read-only questions, against rows counted by hand."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from salt_tui.store.queries import open_queries
from salt_tui.store.schema import CONFIDENCE_COLUMNS, UNIT_STATUSES
from salt_tui.store.store import StoreError

VOCABULARY = tuple(bytes([value]) for value in range(256))


@pytest.fixture
def queries(path, filled):
    with open_queries(path) as opened:
        yield opened


def test_the_list_of_runs_counts_finished_answers_that_count(queries, filled, create):
    newer = create(count=1)
    listings = queries.list_runs()
    assert [listing.run for listing in listings] == [newer, filled]
    listing = listings[1]
    assert (listing.answers_done, listing.answers, listing.atoms, listing.correct) == (3, 5, 5, 2)
    assert (listing.model, listing.tasks, listing.difficulty, listing.method) == ("tiny", ("dna",), "easy", "regular")
    assert (listing.state, listing.exact) == ("running", True)


PLAN = (
    '{"seed":5,"width":4,"sampling":{"temperature":0.7,"seed":1},'
    '"tasks":[{"task":"dna","shots":3},{"task":"maze","shots":3},7]}'
)


def test_a_run_is_listed_with_what_was_asked_and_how(path, store, model, run_record, problem):
    record = run_record(PLAN)
    run = store.create_run(model(), (b"x",), replace(record, statistics="top_k"), [problem(0)])
    with open_queries(path) as queries:
        listing = queries.list_runs()[0]
    assert (listing.shots, listing.seed, listing.width, listing.statistics) == (3, 5, 4, "top_k")
    assert listing.sampling == {"temperature": 0.7, "seed": 1}
    assert (listing.plan_hash, listing.environment_hash, listing.studies) == ("plan-hash", "environment-hash", ())
    columns = "difficulty, method, shots, seed, sampling, width, statistics, plan_hash, environment_hash"
    assert view(path, f"SELECT {columns} FROM run_summary WHERE run = {run}") == [
        ("easy", "regular", 3, 5, '{"temperature":0.7,"seed":1}', 4, "top_k", "plan-hash", "environment-hash")
    ]


def test_a_plan_that_says_nothing_leaves_the_settings_undefined(queries, path, filled):
    listing = queries.list_runs()[0]
    assert (listing.shots, listing.seed, listing.width, listing.sampling) == (None, None, None, None)
    assert view(path, "SELECT shots, seed, sampling, width FROM run_summary") == [(None,) * 4]


def test_task_counts_add_up(queries, filled):
    (counts,) = queries.task_counts(filled)
    assert (counts.answers, counts.done, counts.left_out) == (5, 3, 1)
    assert (counts.correct, counts.wrong, counts.redundant, counts.abstained, counts.missing) == (2, 1, 1, 1, 1)
    assert counts.atoms == 5
    assert counts.reference_atoms == 6
    assert counts.statuses == {"complete": 1, "truncated": 1, "cancelled": 1}


def test_tasks_keep_the_order_of_the_plan(store, model, run_record, problem, path):
    problems = [problem(0, task) for task in ("words", "dna", "maze")]
    run = store.create_run(model(), (b"x",), run_record(), problems)
    with open_queries(path) as queries:
        assert [counts.task for counts in queries.task_counts(run)] == ["words", "dna", "maze"]
        assert queries.list_runs()[0].tasks == ("words", "dna", "maze")


def test_runs_are_found_by_number_and_latest(queries, filled, create):
    newer = create(count=1)
    assert (queries.find_run("latest"), queries.find_run(str(filled))) == (newer, filled)
    for name in ("99", "", "newest", "-1", "²", "1."):
        with pytest.raises(StoreError, match="it holds runs 1, 2; latest names the newest"):
            queries.find_run(name)


def test_an_empty_database_says_so(store, path):
    with open_queries(path) as queries, pytest.raises(StoreError, match="holds no runs"):
        queries.find_run("latest")


def test_a_run_comes_back_as_it_was_created(queries, filled, model, run_record):
    stored = queries.run_record(filled)
    assert (stored.model, stored.record) == (model(), run_record())
    assert queries.run_plan(filled) == {"tasks": [{"task": "dna"}]}
    with pytest.raises(StoreError, match="there is no run 99"):
        queries.run_record(99)


def test_units_and_tokens_come_back_as_they_were_stored(queries, filled, atom, token):
    generation = queries.answers(filled)[0].generation
    expected = [atom(0, "correct", 0.2), atom(1, "wrong", 0.9), atom(2, "missing")]
    assert queries.units(generation) == queries.units(generation, "atom") == expected
    assert queries.units(generation, "line") == []
    assert [queries.unit(generation, "atom", place) for place in range(len(expected))] == expected
    assert queries.unit(generation, "atom", len(expected)) is None
    tokens = queries.tokens(generation)
    assert [entry.record for entry in tokens] == [token(position) for position in range(3)]
    assert [(entry.piece, entry.alternative_pieces) for entry in tokens] == [(b"A", (b"A", b"B"))] * 3


def test_alternatives_keep_seven_digits(store, create, begin, token, path):
    generation = begin(create())
    values = (-1e-12, -0.1234567891, -12.345678912, -123456.789)
    record = token(0)
    changed = type(record)(0, 65, 0, 1, -0.1, 0.0, (65, 66, 67, 68), values, True)
    store.add_tokens(generation, [changed])
    store.flush()
    with open_queries(path) as queries:
        (read,) = queries.tokens(generation)
    assert read.record.alternative_log_probabilities == pytest.approx(values, rel=5e-7)
    assert read.record.forced is True


def test_a_token_outside_the_vocabulary_is_one_line(store, create, begin, token, path):
    generation = begin(create())
    store.add_tokens(generation, [token(0, id=4000)])
    store.flush()
    with open_queries(path) as queries, pytest.raises(StoreError, match="token 4000 of generation"):
        queries.tokens(generation)


def test_answers_include_those_not_begun(queries, filled):
    answers = queries.answers(filled)
    assert [answer.answer_status for answer in answers] == ["complete", "truncated", "cancelled", None, None]
    assert [answer.tokens for answer in answers] == [3, 3, 3, 3, 0]
    assert (answers[0].reply, answers[0].prompt_tokens, answers[4].generation) == (b"AAA", 3, None)
    assert queries.answer(answers[1].generation) == answers[1]
    assert queries.prompt(answers[0].generation) == (1, 2, 3)
    with pytest.raises(StoreError, match="no answer 99"):
        queries.answer(99)


def test_unit_columns_leave_out_what_does_not_count(queries, filled):
    columns = queries.unit_columns(filled, "atom")
    assert [UNIT_STATUSES[code] for code in columns.status] == [
        "correct", "wrong", "missing", "correct", "redundant", "abstained",
    ]  # fmt: skip
    assert columns.task_names == ("dna",)
    assert columns.task.tolist() == [0] * 6
    assert columns.position.tolist() == [0, 0, 0, 1, 1, 1]
    assert columns.index.tolist() == [0, 1, 2, 0, 1, 2]
    assert columns.line.tolist() == [0, 0, -1, 0, 0, 0]
    confidence = columns.confidences["max_probability"]
    assert math.isnan(confidence[2])
    assert np.delete(confidence, 2).tolist() == [0.2, 0.9, 1.0, 0.95, 0.99]
    assert tuple(columns.confidences) == CONFIDENCE_COLUMNS


def test_unit_columns_of_nothing_are_empty_arrays(queries, filled, create):
    empty = queries.unit_columns(create(count=1), "line", ["joint_probability"])
    assert empty.task_names == ()
    assert [len(column) for column in (empty.task, empty.status, empty.confidences["joint_probability"])] == [0, 0, 0]
    with pytest.raises(StoreError, match="unknown confidence function 'sure'; valid: perplexity"):
        queries.unit_columns(filled, "atom", ["sure"])


def test_confidently_wrong_atoms_surest_first(queries, filled):
    atoms = queries.confidently_wrong(filled, 10)
    assert [(atom.status, atom.max_probability, atom.reference) for atom in atoms] == [
        ("redundant", 0.95, None),
        ("wrong", 0.9, "C"),
    ]
    assert queries.confidently_wrong(filled, 1) == atoms[:1]
    assert queries.confidently_wrong(filled, 10, task="dna") == atoms
    assert queries.confidently_wrong(filled, 10, task="maze") == []


def view(path, query):
    connection = sqlite3.connect(path)
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def test_atom_view_has_every_atom_with_its_answer(queries, path):
    rows = view(path, 'SELECT answer_status, "index", status, correct FROM atom_view ORDER BY generation, "index"')
    assert rows == [
        ("complete", 0, "correct", 1),
        ("complete", 1, "wrong", 0),
        ("complete", 2, "missing", None),
        ("truncated", 0, "correct", 1),
        ("truncated", 1, "redundant", 0),
        ("truncated", 2, "abstained", 0),
        ("cancelled", 0, "wrong", 0),
        (None, 0, "wrong", 0),
    ]


def test_reliability_view_bins_as_the_definition_says(queries, path):
    rows = view(path, "SELECT bin, atoms, mean_confidence, accuracy FROM reliability_view ORDER BY bin")
    assert rows == [(3, 1, 0.2, 1.0), (14, 1, 0.9, 0.0), (15, 2, pytest.approx(0.975), 0.5)]


def test_edges_of_bins_belong_to_the_bin_below_and_zero_to_the_first(
    store, begin, finish, model, run_record, problem, atom, path
):
    confidences = [edge / 15 for edge in range(16)] + [math.nextafter(edge / 15, 1) for edge in range(15)]
    run = store.create_run(model(), VOCABULARY, run_record(), [problem(0)])
    finish(begin(run), [atom(index, "correct", value) for index, value in enumerate(confidences)])
    assert view(path, "SELECT bin, atoms FROM reliability_view ORDER BY bin") == [(1, 3)] + [
        (bin_number, 2) for bin_number in range(2, 16)
    ]
    assert view(path, "SELECT min(lower), max(upper) FROM reliability_view") == [(0.0, 1.0)]


def test_run_summary_rates_are_null_when_undefined(queries, path, filled, create):
    empty = create(count=1)
    rates = "SELECT precision, recall, redundancy FROM run_summary WHERE run ="
    assert view(path, f"{rates} {filled}") == [(2 / 5, 2 / 6, 1 / 5)]
    assert view(path, f"{rates} {empty}") == [(None, None, None)]


def test_a_snapshot_does_not_see_what_is_written_meanwhile(queries, filled, create):
    with queries.snapshot():
        before = queries.list_runs()
        create(count=1)
        assert queries.list_runs() == before
    assert len(queries.list_runs()) == 2


def test_rows_that_are_read_in_part_can_be_closed_after_the_database(path, filled):
    with open_queries(path) as queries:
        _, rows = queries.atom_rows(filled)
        assert next(rows)
    rows.close()  # as the collector does when an export fails


@pytest.mark.parametrize(
    ("table", "column", "read"),
    [
        ("run", "model_name", lambda queries: queries.list_runs()),
        ("problem", "task", lambda queries: queries.answers(1)),
        ("unit", "text", lambda queries: queries.units(1)),
    ],
)
def test_bytes_that_are_no_text_are_one_line_that_names_the_file(path, queries, table, column, read):
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE {table} SET {column} = CAST(x'411bff' AS TEXT) WHERE {column} IS NOT NULL")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=f"^{path} holds a text that cannot be read") as caught:
        read(queries)
    assert "\x1b" not in str(caught.value)
