"""Signals of stored tokens: computed when they are read, from the numbers that are there."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.store.queries import open_queries
from salt_tui.store.records import SignalRecord, TokenRecord, UnitRecord, Work
from salt_tui.store.schema import TOKEN_SIGNALS
from salt_tui.store.store import StoreError
from salt_tui.store.token_signals import TOO_FEW_ALTERNATIVES, _reduce, entropy_lower_bound
from scoring.signals import SIGNALS
from tests.store.conftest import NO_CONFIDENCE, make_end

LOG = math.log


def token(position, piece, log_probability, alternatives, silent=False):
    start = position
    ids, values = zip(*alternatives, strict=True) if alternatives else ((), ())
    return TokenRecord(position, ord(piece), start, start + (not silent), log_probability, 0.5, ids, values, False)


def unit(kind, index, start, end):
    return UnitRecord(kind, index, 0, "A", "A", "correct", start, end, start, end, NO_CONFIDENCE)


@pytest.fixture
def answer(store, create, begin):
    """Store an answer "AB" of two atoms and a silent end; B was second of its list, the end is not in its list."""
    generation = begin(create(count=1))
    store.add_tokens(generation, [
        token(0, "A", LOG(0.5), [(65, LOG(0.5)), (66, LOG(0.25))]),
        token(1, "B", LOG(0.25), [(67, LOG(0.625)), (66, LOG(0.25))]),
        token(2, "C", LOG(0.125), [(67, LOG(0.125))]),
        token(3, "D", LOG(0.0625), [(1, LOG(0.5)), (2, LOG(0.25))], silent=True),
    ])  # fmt: skip
    store.add_units(generation, [unit("atom", 0, 0, 2), unit("atom", 1, 2, 3), unit("generation", 0, 0, 2)])
    store.end_generation(generation, make_end(reply=b"ABC"))
    store.release(Work(1), "finished")
    return generation


def test_the_numbers_of_an_answer_by_hand(path, answer):
    with open_queries(path) as queries:
        columns = queries.unit_columns(1, "atom", TOKEN_SIGNALS)
        whole = queries.unit_columns(1, "generation", TOKEN_SIGNALS)
        undefined = queries.signals(1, "mean_margin", "atom")[1]
        names = queries.signal_names(1)
    found = {name: values.tolist() for name, values in columns.confidences.items()}
    assert found["min_probability"] == pytest.approx([0.25, 0.125])
    assert found["first_token_probability"] == pytest.approx([0.5, 0.125])
    assert found["mean_margin"] == pytest.approx([(0.25 + 0.375) / 2, math.nan], nan_ok=True)
    assert found["mean_rank"] == [1.5, 1.0]
    assert {name: values[0] for name, values in whole.confidences.items()} == pytest.approx(
        {name: values[0] for name, values in found.items()}
    )
    assert undefined == SignalRecord(answer, "atom", 1, "mean_margin", None, TOO_FEW_ALTERNATIVES)
    assert [name.shown for name in names] == list(TOKEN_SIGNALS)
    assert set(TOKEN_SIGNALS) <= set(SIGNALS)


def test_a_token_outside_its_list_ranks_behind_it_and_a_silent_one_counts_nowhere(path, store, create, begin):
    generation = begin(create(count=1))
    store.add_tokens(generation, [
        token(0, "A", LOG(0.5), [(67, LOG(0.5)), (66, LOG(0.25))]),
        token(1, "D", LOG(0.0625), [(68, LOG(0.5))], silent=True),
    ])  # fmt: skip
    store.add_units(generation, [UnitRecord("atom", 0, 0, "A", "A", "correct", 0, 2, 0, 1, NO_CONFIDENCE)])
    store.end_generation(generation, make_end(reply=b"A"))
    with open_queries(path) as queries:
        assert queries.signals(1, "mean_rank", "atom") == [SignalRecord(generation, "atom", 0, "mean_rank", 3.0)]
        assert queries.signals(1, "min_probability", "atom")[0].value == pytest.approx(0.5)
        assert queries.signals(1, "min_probability", "atom", generation + 1) == []


def test_the_names_are_taken(path, store, answer):
    for name in TOKEN_SIGNALS:
        with pytest.raises(StoreError, match="is computed from the tokens of an answer; choose another name"):
            store.add_signals(Work(1), [SignalRecord(answer, "atom", 0, name, 0.5)])


def test_a_run_without_tokens_has_none_and_a_damaged_one_is_named(path, store, answer):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM token WHERE position = 1")
    with open_queries(path) as queries, pytest.raises(StoreError, match="run 1 has units without their tokens"):
        queries.unit_columns(1, "atom", ["min_probability"])
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM token")
    with open_queries(path) as queries:
        assert queries.signal_names(1) == []


def test_without_alternatives_there_is_no_rank_and_no_margin(path, store, create, begin):
    generation = begin(create(count=1))
    store.add_tokens(generation, [token(0, "A", LOG(0.5), [])])
    store.add_units(generation, [unit("atom", 0, 0, 1)])
    store.end_generation(generation, make_end(reply=b"A"))
    with open_queries(path) as queries:
        values = queries.unit_columns(1, "atom", TOKEN_SIGNALS).confidences
    assert {name: column[0] for name, column in values.items()} == pytest.approx(
        {"min_probability": 0.5, "mean_margin": math.nan, "mean_rank": math.nan, "first_token_probability": 0.5},
        nan_ok=True,
    )


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)), min_size=1, max_size=6),
)
def test_units_may_overlap_and_come_in_any_order(tokens, spans):
    count = len(tokens)
    spans = [(start, end) for start, end in spans if start < end <= count and tokens[start][1]]
    if not spans:
        return
    values, spoken = np.array([value for value, _ in tokens]), np.array([said for _, said in tokens])
    places = np.array(spans, dtype=np.int64).ravel()
    for name, reduce in (("min_probability", min), ("mean_rank", lambda members: math.fsum(members) / len(members))):
        expected = [reduce([value for value, said in tokens[start:end] if said]) for start, end in spans]
        assert _reduce(name, values, spoken, places) == pytest.approx(expected)


@given(
    st.lists(st.floats(0.01, 5.0), min_size=2, max_size=40),
    st.integers(0, 20),
    st.integers(0, 39),
    st.booleans(),
)
def test_the_bound_is_below_the_entropy_whatever_is_listed(
    weights: list[float], listed: int, chosen: int, whole: bool
) -> None:
    """Also when a list lacks tokens of equal text, which is said by ``whole``."""
    chances = sorted((weight / math.fsum(weights) for weight in weights), reverse=True)
    entropy = -math.fsum(chance * math.log(chance) for chance in chances)
    top, rest = chances[:listed], chances[listed:]
    if not whole:
        top = top[::2]
    outside = rest[chosen % len(rest)] if rest and whole else None
    logs = [math.log(chance) for chance in top]
    bound = entropy_lower_bound(logs, None if outside is None else math.log(outside), whole=whole)
    assert bound <= entropy + 1e-9
    if listed >= len(chances) and whole:
        assert bound == pytest.approx(entropy, abs=1e-9)


def test_the_bound_by_hand() -> None:
    """Halves and quarters: .5 and .25 listed, .25 left, in parts of at most .25: ln 2/2 + ln 4/4 + ln 4/4."""
    assert entropy_lower_bound([math.log(0.5), math.log(0.25)], None, whole=True) == pytest.approx(1.5 * math.log(2))
    # A chosen token of .01 outside the list is known too; .24 are left.
    more = entropy_lower_bound([math.log(0.5), math.log(0.25)], math.log(0.01), whole=True)
    assert more == pytest.approx(math.log(2) - 0.01 * math.log(0.01) - 0.24 * math.log(0.24))
    assert entropy_lower_bound([], None, whole=True) == 0.0
