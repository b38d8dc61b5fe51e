"""Tokens as servers report them, put where they stand in a reply, also where halves of characters were lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from salt_tui.reported_tokens import ReportedTokensError, tokens_of_logprobs, tokens_of_ranges

pytestmark = pytest.mark.quick


def chat(*tokens: tuple[str, float] | tuple[str, float, list[int]]) -> dict[str, Any]:
    return {
        "content": [
            {"token": token[0], "logprob": token[1], "bytes": token[2] if len(token) > 2 else None, "top_logprobs": []}
            for token in tokens
        ]
    }


def pieces(reply: str, logprobs: object) -> list[tuple[bytes, float | None]]:
    return [(token.piece, token.log_probability) for token in tokens_of_logprobs(reply, logprobs)]


def test_bytes_make_halves_of_characters_certain() -> None:
    said = chat(("\\xf0\\x9f", -1.0, [0xF0, 0x9F]), ("\\x98\\x80!", -2.0, [0x98, 0x80, 0x21]))
    assert pieces("😀!", said) == [(b"\xf0\x9f", -1.0), (b"\x98\x80!", -2.0)]


@pytest.mark.parametrize("lost", ["", "\ufffd"])
def test_a_character_whose_halves_are_lost_is_said_by_nobody(lost: str) -> None:
    said = chat(("a ", -0.1), (lost, -1.0), (lost, -2.0), (" b", -0.3))
    assert pieces("a 😀 b", said) == [(b"a ", -0.1), ("😀".encode(), None), (b" b", -0.3)]
    # The next certain token begins with ASCII: "é" could be the lost one or the reported one.
    said = chat(("a", -0.1), (lost, -1.0), (lost, -2.0), ("é", -0.3), ("b", -0.4))
    assert pieces("aééb", said) == [(b"a", -0.1), ("éé".encode(), None), (b"b", -0.4)]
    assert pieces("aé", chat(("a", -0.1), (lost, -1.0), (lost, -2.0))) == [(b"a", -0.1), ("é".encode(), None)]


def test_a_half_beside_a_known_character_is_found_by_it() -> None:
    said = chat(("x", -0.1), (" \ufffd", -1.0), ("\ufffd!", -2.0), ("y", -0.3))
    assert pieces("x é!y", said) == [(b"x", -0.1), (" é!".encode(), None), (b"y", -0.3)]
    # The half that was dropped from " \xc3" without a trace: only what is missing is lost.
    assert pieces("x éy", chat(("x", -0.1), (" ", -1.0), ("y", -2.0))) == [
        (b"x", -0.1), (b" ", -1.0), ("é".encode(), None), (b"y", -2.0)
    ]  # fmt: skip


def test_control_tokens_and_the_end_say_nothing() -> None:
    found = tokens_of_logprobs("ab", chat(("a", -0.1), ("", -1.0), ("b", -0.2), ("<|im_end|>", -0.5)))
    assert [(token.piece, token.log_probability, token.end) for token in found] == [
        (b"a", -0.1, False), (b"", -1.0, False), (b"b", -0.2, False), (b"", -0.5, True)
    ]  # fmt: skip
    assert pieces("Hi", chat((" Hi", -0.5))) == [(b"Hi", -0.5)]


def test_completions_and_bare_lists_are_read_alike() -> None:
    completion = {
        "tokens": ["a", "b"], "token_logprobs": [None, -0.2], "text_offset": [0, 1],
        "top_logprobs": [None, {"c": -3.0, "b": -0.2}],
    }  # fmt: skip
    first, second = tokens_of_logprobs("ab", completion)
    assert (first.log_probability, first.alternatives) == (None, ())
    assert second.alternatives == ((b"b", -0.2), (b"c", -3.0))
    assert pieces("ab", chat(("a", -0.1), ("b", 1e-9))["content"]) == [(b"a", -0.1), (b"b", 0.0)]


@pytest.mark.parametrize(
    ("logprobs", "said"),
    [
        ({}, "neither a chat's 'content' list"), ([1], "token 0 is no object"),
        ([{"token": 1}], "token 0 is no object"),
        (chat(("b", -0.1)), "token 0 is 'b', but the response has 'aé' there (byte 0)"),
        (chat(("a", -0.1)), None),
        (chat(("aé", 0.1)), "token 0 has the log-probability 0.1, above 0"),
        (chat(("aé", float("nan"))), "a number is needed"), (chat(("aé", True)), "a number is needed"),
        ([], "the tokens end at byte 0 of 3"),
        (chat(("aé", -0.1), ("b", -0.1), ("c", -0.1)), "token 1 is 'b', but the response has '' there (byte 3)"),
        (chat(("aé", -0.1, [256])), "'bytes' is no list of numbers"),
        ({"tokens": ["aé"], "token_logprobs": []}, "not lists of one length"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_reply_is_refused(logprobs: object, said: str | None) -> None:
    if said is None:
        assert pieces("aé", logprobs) == [(b"a", -0.1), ("é".encode(), None)]
        return
    with pytest.raises(ReportedTokensError) as refused:
        tokens_of_logprobs("aé", logprobs)
    assert said in str(refused.value)


def test_ranges_leave_to_nobody_what_they_do_not_cover() -> None:
    entries = [
        {"byte_start": 1, "byte_end": 2, "log_probability": -0.5, "entropy": 0.7},
        {"byte_start": 2, "byte_end": 2, "log_probability": -0.1},
    ]
    found = [(token.piece, token.log_probability, token.entropy) for token in tokens_of_ranges("abc", entries)]
    assert found == [(b"a", None, None), (b"b", -0.5, 0.7), (b"", -0.1, None), (b"c", None, None)]
    for bad in ([{"byte_start": 2, "byte_end": 1}], [{"byte_start": 0, "byte_end": 4}], [{"byte_start": "0"}], [3], 3):
        with pytest.raises(ReportedTokensError):
            tokens_of_ranges("abc", bad)


@given(
    st.lists(st.text(st.sampled_from("ab é😀\ufffd"), min_size=1, max_size=3), max_size=8),
    st.lists(st.integers(1, 11), max_size=8),
    st.sampled_from(["ignore", "replace"]),
)
@example(["aaé", "aa😀", "😀éé"], [1, 1, 1, 1, 11], "ignore")
def test_pieces_join_to_the_reply_and_no_log_probability_is_given_to_other_bytes(
    words: list[str], cuts: list[int], errors: str
) -> None:
    reply = "".join(words)
    data, tokens, place = reply.encode(), [], 0
    for length in [*cuts, len(data)]:
        if place < len(data):
            tokens.append((data[place : place + length], -float(place + 1)))
            place += length
    said = [{"token": piece.decode("utf-8", errors), "logprob": value, "bytes": None} for piece, value in tokens]
    found = tokens_of_logprobs(reply, said)
    assert b"".join(token.piece for token in found) == data
    truth, start = dict((value, piece) for piece, value in tokens), 0
    for token in found:
        if token.log_probability is not None and token.piece:
            piece = truth[token.log_probability]
            # What was lost around a token may be missing from its piece, but it says nothing that was not its own.
            assert token.piece in piece
            assert start in range(-int(token.log_probability) - 1, -int(token.log_probability) + len(piece))
        start += len(token.piece)
