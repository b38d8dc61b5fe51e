"""Signals, activations and interventions: written, replaced, found by name and read beside the units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.store.queries import open_queries
from salt_tui.store.records import (
    ActivationRecord,
    GenerationStart,
    InterventionRecord,
    SignalRecord,
    StudyRecord,
    Work,
)
from salt_tui.store.rows import activation_row, activation_vector
from salt_tui.store.schema import TOKEN_SIGNALS
from salt_tui.store.store import StoreError, StoreFailure, open_store


def plan(kind="samples"):
    return StudyRecord(kind, "{}", "plan", "{}", "environment", True, ())


@pytest.fixture
def answers(store, create, begin, finish, atom):
    """Store a finished run with two answers of two atoms each and return the numbers of the answers."""
    run = create(count=2)
    found = []
    for _ in range(2):
        found.append(begin(run))
        finish(found[-1], [atom(0, confidence=0.5), atom(1, confidence=0.25)])
    store.release(Work(run), "finished")
    return found


@pytest.fixture
def study(store, answers):
    """Give a claimed study of that run."""
    work = store.create_study(1, plan())
    store.claim(work)
    yield work
    if work in store._claimed:
        store.release(work, "finished")


def signal(generation, index, value, name="agreement", kind="atom", reason=None):
    return SignalRecord(generation, kind, index, name, value, reason)


def test_a_signal_stands_beside_the_units_it_is_about(path, store, answers, study):
    first, second = answers
    store.add_signals(study, [signal(second, 0, 0.75), signal(first, 1, 0.0), signal(first, 0, None, reason="no text")])
    store.add_signals(study, [signal(first, 0, 0.125, kind="generation"), signal(first, 9, 1.0)])
    store.flush()
    with open_queries(path) as queries:
        columns = queries.unit_columns(1, "atom", ["agreement", "max_probability"])
        assert list(columns.confidences) == ["agreement", "max_probability"]
        np.testing.assert_array_equal(columns.confidences["agreement"], [np.nan, 0.0, 0.75, np.nan])
        np.testing.assert_array_equal(columns.confidences["max_probability"], [0.5, 0.25, 0.5, 0.25])
        assert len(queries.unit_columns(1, "line", ["agreement"]).confidences["agreement"]) == 0
        assert queries.signals(1, "agreement", "atom") == [
            signal(first, 0, None, reason="no text"), signal(first, 1, 0.0), signal(first, 9, 1.0),
            signal(second, 0, 0.75),
        ]  # fmt: skip


def test_a_signal_that_is_said_again_is_replaced(path, store, answers, study):
    for value in (0.5, 0.25):
        store.add_signals(study, [signal(answers[0], 0, value)])
        store.flush()
    with open_queries(path) as queries:
        assert queries.signals(1, "agreement", "atom") == [signal(answers[0], 0, 0.25)]


def test_names_say_who_gives_a_signal_only_where_they_must(path, store, answers, study):
    store.add_signals(study, [signal(answers[0], 0, 0.5), signal(answers[0], 0, 1.0, kind="line")])
    store.release(study, "finished")
    store.add_signals(Work(1), [signal(answers[0], 0, 0.5, "mine"), signal(answers[0], 0, 0.5, "max_probability")])
    with open_queries(path) as queries:
        assert [(name.shown, name.kinds) for name in queries.signal_names(1)][len(TOKEN_SIGNALS) :] == [
            ("max_probability@1", ("atom",)), ("mine", ("atom",)), ("agreement", ("atom", "line")),
        ]  # fmt: skip
        second = store.create_study(1, plan())
        store.claim(second)
        store.add_signals(second, [signal(answers[0], 0, 0.75)])
        store.release(second, "finished")
        assert [name.shown for name in queries.signal_names(1)][len(TOKEN_SIGNALS) + 2 :] == [
            "agreement@1.1",
            "agreement@1.2",
        ]
        values = queries.unit_columns(1, "atom", ["agreement@1.1", "agreement@1.2", "max_probability@1"]).confidences
        assert [column[0] for column in values.values()] == [0.5, 0.75, 0.5]
        for name in ("agreement", "sure", "agreement@1.3"):
            with pytest.raises(StoreError, match=rf"unknown .*{name}.*valid: perplexity, .*mine, agreement@1\.1"):
                queries.unit_columns(1, "atom", [name])
        assert queries.unit_columns(1, "atom", ["mine@1"]).confidences["mine@1"][0] == 0.5
        store.delete_work(second)
        assert [name.shown for name in queries.signal_names(1)][len(TOKEN_SIGNALS) + 2 :] == ["agreement"]


def test_a_runs_own_signals_are_written_at_once_or_not_at_all(path, store, answers):
    rows = [signal(answer, index, 0.5, "mine") for answer in answers for index in (0, 1)]
    for wrong, expected in (
        ([*rows, signal(99, 0, 0.5, "mine")], "not of run 1"),
        ([*rows, rows[0]], "refused a row"),
        ([*rows, signal(answers[0], 0, float("nan"), "mine")], "is nan"),
        ([*rows, signal(answers[0], 0, None, "mine")], "neither a value nor a reason"),
    ):
        with pytest.raises(StoreError, match=expected):
            store.add_signals(Work(1), wrong)
    store.add_signals(Work(1), rows)
    with open_queries(path) as queries:
        assert queries.signals(1, "mine", "atom") == rows
        with pytest.raises(StoreError, match="has a signal 'mine' already; remove that or choose another name"):
            store.add_signals(Work(1), rows)
        store.remove_signals(1, "mine")
        assert [name.name for name in queries.signal_names(1)] == list(TOKEN_SIGNALS)
    with pytest.raises(StoreError, match="no signal 'mine' of its own"):
        store.remove_signals(1, "mine")
    with pytest.raises(StoreError, match="no run 99"):
        store.remove_signals(99, "mine")


def test_a_run_that_is_being_computed_takes_no_signals_from_elsewhere(path, store, answers):
    store.claim(Work(1))
    with open_store(path) as second:
        with pytest.raises(StoreError, match="is being computed by"):
            second.add_signals(Work(1), [signal(answers[0], 0, 0.5)])
        with pytest.raises(StoreError, match="is being computed by"):
            second.remove_signals(1, "mine")
    store.release(Work(1), "finished")


WIDE = st.floats(-1e30, 1e30, allow_subnormal=False).filter(lambda value: value == 0 or abs(value) > 1e-20)


@given(st.lists(WIDE, min_size=1, max_size=8))
def test_activations_keep_eleven_bits_of_the_largest_values_however_large(values):
    vector = np.array(values, dtype=np.float32)
    row = activation_row(1, ActivationRecord(1, "atom", 0, 3, "producing", vector))
    read = activation_vector(row[6], row[7])
    assert np.log2(row[6]) % 1 == 0
    assert len(row[7]) == 2 * len(values)
    # Half of the last of eleven bits, and the smallest 16-bit step for values a billion times below the largest.
    np.testing.assert_allclose(read, vector, rtol=2.0**-11, atol=np.abs(vector).max() * 2.0**-38)


def test_activations_are_read_in_order_layer_by_layer(path, store, answers, study):
    def activation(generation, index, layer, value, positions="producing"):
        return ActivationRecord(generation, "atom", index, layer, positions, np.array([value, 2 * value], np.float32))

    store.add_activations(
        study,
        [
            activation(answers[1], 0, 3, 70_000.0), activation(answers[0], 1, 3, 2.0),
            activation(answers[0], 0, 3, 1.0), activation(answers[0], 0, 9, 4.0),
            activation(answers[0], 0, 3, 8.0, "own"),
        ],
    )  # fmt: skip
    store.flush()
    store.add_activations(study, [activation(answers[0], 1, 3, 3.0)])
    store.flush()
    with open_queries(path) as queries:
        read = list(queries.activations(study, "atom", 3))
        assert [(entry.generation, entry.index, entry.vector.tolist()) for entry in read] == [
            (answers[0], 0, [1.0, 2.0]), (answers[0], 1, [3.0, 6.0]),
            (answers[1], 0, [pytest.approx(70_000, rel=1e-3), pytest.approx(140_000, rel=1e-3)]),
        ]  # fmt: skip
        assert [entry.vector[0] for entry in queries.activations(study, "atom", 3, "own")] == [8.0]
        assert queries.activation_layers(study) == [3, 9]
    for broken in ([np.nan], [np.inf], []):
        with pytest.raises(StoreFailure, match="empty or not finite"):
            store.add_activations(study, [ActivationRecord(answers[0], "atom", 0, 3, "own", np.array(broken))])
    with pytest.raises(StoreError, match="run 1 is not held"):
        store.add_activations(Work(1), [])


def test_the_design_of_branches_comes_back(path, store, answers, study, end):
    branches = []
    for number, outcome in enumerate((True, None)):
        start = GenerationStart(1, None, 0, role="branch", parent=answers[0], number=number)
        branch = store.begin_generation(study, start)
        branches.append(
            InterventionRecord(
                branch, answers[0], 1, "far", "corruption" if number else "baseline",
                ((0, "ü"),) if number else (), -0.5, None, 1, 1.0, None, outcome, -1.5,
                None if outcome else "no atom there",
            )
        )  # fmt: skip
        store.add_interventions(study, branches[-1:])
        store.end_generation(branch, end())
    with open_queries(path) as queries:
        assert queries.interventions(study) == branches
