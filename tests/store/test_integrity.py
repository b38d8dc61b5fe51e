"""Tokens, reply and units of a generation belong together, or it is not done."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.store.integrity import TokenBytes, UnitRange, generation_faults
from salt_tui.store.queries import open_queries
from salt_tui.store.records import GenerationStart, StudyRecord, Work
from salt_tui.store.store import StoreFailure


def joined(pieces):
    tokens, end = [], 0
    for position, piece in enumerate(pieces):
        tokens.append(TokenBytes(position, end, end + len(piece), piece))
        end += len(piece)
    return b"".join(pieces), tokens


@given(st.lists(st.binary(min_size=1, max_size=4), max_size=6), st.booleans())
def test_what_belongs_together_has_no_faults(pieces, silent_end):
    reply, tokens = joined(pieces)
    if silent_end:
        tokens.append(TokenBytes(len(tokens), len(reply), len(reply), b"<|end|>"))
    units = [UnitRange("generation", 0, 0, len(tokens), 0, len(reply)), UnitRange("atom", 3, None, None, None, None)]
    assert generation_faults(reply, tokens, units) == []


@given(st.lists(st.binary(min_size=1, max_size=4), min_size=2, max_size=6), st.data())
def test_any_missing_token_is_a_fault(pieces, data):
    reply, tokens = joined(pieces)
    lost = data.draw(st.integers(0, len(tokens) - 1))
    assert generation_faults(reply, tokens[:lost] + tokens[lost + 1 :], [])


@pytest.mark.parametrize(
    ("reply", "change", "fault"),
    [
        (b"abc", lambda tokens: tokens[1:], "token 0 is missing"),
        (b"abc", lambda tokens: [tokens[0], replace(tokens[1], start=0)], "token 1 begins at byte 0, not 1"),
        (b"abx", lambda tokens: tokens, "token 1 is not what the reply holds at its bytes 1 to 3"),
        (b"abcd", lambda tokens: tokens, "the tokens hold 3 bytes and the reply 4"),
        (b"abc", lambda tokens: [replace(tokens[0], piece=None), tokens[1]], "token 0 has no bytes in the vocabulary"),
        (b"abc", lambda tokens: [replace(tokens[0], end=0), replace(tokens[1], start=0)], "token 0 is not what"),
    ],
)
def test_each_kind_of_fault_is_named(reply, change, fault):
    _, tokens = joined([b"a", b"bc"])
    assert generation_faults(reply, change(tokens), [])[0].startswith(fault)


def test_units_outside_the_reply_are_faults():
    reply, tokens = joined([b"a", b"bc"])
    units = [UnitRange("atom", 0, 0, 2, 0, 3), UnitRange("line", 1, 0, 3, 0, 4)]
    assert generation_faults(reply, tokens, units) == ["line 1 ends at token 3 of 2", "line 1 ends at byte 4 of 3"]
    assert generation_faults(b"imported", [], [UnitRange("atom", 0, None, None, 0, 8)]) == []


def test_an_answer_that_does_not_fit_together_is_not_done(path, store, create, begin, token, atom, end):
    run = create()
    generation = begin(run)
    store.add_tokens(generation, [token(0), token(2)])
    with pytest.raises(StoreFailure, match=r"does not fit together \(token 1 is missing\); it was not marked as done"):
        store.end_generation(generation, end(reply=b"AAA"))
    assert begin(run, attempt=2) == generation
    store.add_tokens(generation, [token(0), token(1)])
    store.add_units(generation, [atom(2)])
    with pytest.raises(StoreFailure, match="atom 2 ends at token 3 of 2"):
        store.end_generation(generation, end(reply=b"AA"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(reply) FROM generation").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM token").fetchone() == (0,)
    connection.close()


def test_tokens_without_ids_bring_their_bytes_and_other_models_their_vocabulary(
    path, store, create, model, token, begin, finish, atom, end
):
    run = create(count=1)
    finish(begin(run), [atom(0)])
    store.release(Work(run), "finished")
    problem = GenerationStart(1, None, 0, role="sample")
    other = replace(model(), identity="https://example.org|served", sha256=None, name="served")
    study = StudyRecord("second-model", "{}", "plan", "{}", "environment", False, (), "top_k", other)
    work = store.create_study(run, study, vocabulary=[b"zz"])
    store.claim(work)
    generation = store.begin_generation(work, problem)
    given_bytes = replace(token(0), id=None, piece="é".encode(), end=2, alternatives=(b"\xff", b"x"), entropy=None)
    store.add_tokens(generation, [given_bytes, replace(token(1), id=0, start=2, end=4, alternatives=(0, 0))])
    store.end_generation(generation, end(reply="ézz".encode()))
    store.release(work, "finished")
    with open_queries(path) as queries:
        first, second = queries.tokens(generation)
        assert queries.prompt(generation) is None
    assert (first.piece, first.alternative_pieces, first.record) == ("é".encode(), (b"\xff", b"x"), given_bytes)
    assert (second.piece, second.alternative_pieces) == (b"zz", (b"zz", b"zz"))
