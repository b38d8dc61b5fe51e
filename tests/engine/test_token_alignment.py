"""Where a server's tokens stand in its text, and what is said where they cannot be believed."""

from __future__ import annotations

import json
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from salt_tui.engine.reported_tokens import ReportError, read_logprobs
from salt_tui.engine.token_alignment import AlignmentError, PlacedToken, ReportedToken, TokenAligner, place_tokens

pytestmark = pytest.mark.quick

LOST = "\ufffd".encode()


def clean(*texts: bytes) -> list[ReportedToken]:
    return [ReportedToken(text, -0.5) for text in texts]


def damaged(text: bytes) -> ReportedToken:
    return ReportedToken(text, -0.25, damaged=True)


def pieces(placed: list[PlacedToken]) -> list[tuple[bytes, float | None]]:
    return [(token.piece, token.log_probability) for token in placed]


def test_tokens_as_bytes_keep_half_characters() -> None:
    placed = place_tokens("né".encode(), clean(b"n", b"\xc3", b"\xa9"))
    assert pieces(placed) == [(b"n", -0.5), (b"\xc3", -0.5), (b"\xa9", -0.5)]


@pytest.mark.parametrize("halves", [(LOST, LOST), (b"", b""), (b"", LOST)])
def test_lost_halves_of_a_character_become_one_gap(halves: tuple[bytes, bytes]) -> None:
    """As vLLM and Ollama put U+FFFD in their place, and as others leave them empty while the text is whole."""
    tokens = [*clean(b"n"), *map(damaged, halves), *clean(b" a")]
    assert pieces(place_tokens("né a".encode(), tokens)) == [(b"n", -0.5), ("é".encode(), None), (b" a", -0.5)]


def test_a_character_that_the_text_lost_too_is_a_gap_without_bytes() -> None:
    """As llama-cpp-python's server does."""
    tokens = [*clean(b"n"), damaged(b""), damaged(b""), *clean(b" a")]
    assert pieces(place_tokens(b"n a", tokens)) == [(b"n", -0.5), (b"", None), (b" a", -0.5)]


def test_what_is_known_of_a_damaged_token_must_fit() -> None:
    tokens = [damaged(b" " + LOST), damaged(LOST + b"x"), *clean(b"y")]
    assert pieces(place_tokens(" éxy".encode(), tokens)) == [(" éx".encode(), None), (b"y", -0.5)]
    with pytest.raises(AlignmentError, match=r"the tokens say .* where the text says"):
        place_tokens("-éxy".encode(), tokens)


def test_a_character_without_any_token_is_a_gap() -> None:
    assert pieces(place_tokens("a😀b".encode(), clean(b"a", b"b"))) == [
        (b"a", -0.5),
        ("😀".encode(), None),
        (b"b", -0.5),
    ]


def test_the_end_is_a_token_without_text_and_may_be_missing() -> None:
    placed = place_tokens(b"ab", clean(b"ab", b"<|im_end|>"))
    assert [(token.piece, token.end) for token in placed] == [(b"ab", False), (b"", True)]
    assert [token.end for token in place_tokens(b"ab", clean(b"ab"))] == [False]
    empty = place_tokens(b"ab", [*clean(b"ab"), damaged(b"")])
    assert [(token.end, token.log_probability) for token in empty] == [(False, -0.5), (True, -0.25)]


def test_blanks_that_a_server_cuts_off_the_text() -> None:
    assert pieces(place_tokens(b"ab", clean(b" ab"))) == [(b"ab", -0.5)]
    aligner = TokenAligner()
    placed = [*aligner.add(b"ab", clean(b"ab", b"\n")), *aligner.finish(stopped=False)]
    assert pieces(placed) == [(b"ab", -0.5), (b"\n", -0.5)]


@pytest.mark.parametrize(
    ("text", "tokens", "match"),
    [
        (b"abc", clean(b"abd"), "a token says 'abd' where the text says 'abc'"),
        (b"abc", clean(b"ab"), "no token says 'c'"),
        (b"ab", clean(b"ab", b"c", b"d"), "behind the end"),
        (b"a\x1b[2Jb", clean(b"a", b"\x1b[2K"), "'a|x1b"),
    ],
)
def test_tokens_of_another_text_are_refused_in_one_line(text: bytes, tokens: list[ReportedToken], match: str) -> None:
    with pytest.raises(AlignmentError, match=match) as error:
        place_tokens(text, tokens)
    assert "\n" not in str(error.value)
    assert str(error.value).isprintable()


WORDS = st.lists(st.sampled_from(["a", "b ", "é", "日", "😀", "\n", "x1"]), min_size=1, max_size=12)


@given(WORDS, st.integers(0, 2**32))
def test_joined_pieces_are_the_text_at_every_cut(words: list[str], seed: int) -> None:
    """Whatever is lost and however text and tokens come apart, the same tokens stand at the same bytes."""
    random = Random(seed)
    text, tokens = "".join(words).encode(), []
    for word in words:
        whole = word.encode()
        how = random.choice(["whole", "bytes", "lost", "lost"]) if len(whole) > 1 and whole[0] > 127 else "whole"
        if how == "whole":
            tokens += clean(whole)
        elif how == "bytes":
            tokens += clean(whole[:1], whole[1:])
        else:
            tokens += [damaged(random.choice([LOST, b""])), damaged(LOST)]
    placed = place_tokens(text, tokens)
    assert b"".join(token.piece for token in placed) == text
    aligner, again = TokenAligner(), []
    text_at = token_at = 0
    while text_at < len(text) or token_at < len(tokens):
        more, others = random.randint(0, 3), random.randint(0, 2)
        again += aligner.add(text[text_at : text_at + more], tokens[token_at : token_at + others])
        text_at, token_at = text_at + more, token_at + others
    assert [*again, *aligner.finish(stopped=True)] == placed


# --- what servers report ----------------------------------------------------------------------------------------


def entry(token: str, logprob: object = -0.5, top: list[tuple[str, object]] | None = None, **more: object) -> dict:
    tops = [{"token": name, "logprob": value, "bytes": None} for name, value in top or []]
    return {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": tops, **more}


def chat(*entries: object) -> object:
    # Through JSON, as it comes: NaN and Infinity are numbers there.
    return json.loads(json.dumps({"content": list(entries)}))


def test_both_shapes_are_read_alike() -> None:
    of_chat = read_logprobs(chat(entry("a", -0.5, [("a", -0.5), ("b", -1.5)])))
    of_completion = read_logprobs(
        {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"b": -1.5, "a": -0.5}], "text_offset": [0]}
    )
    assert of_chat == of_completion == [ReportedToken(b"a", -0.5, (b"a", b"b"), (-0.5, -1.5))]
    assert read_logprobs(None) == read_logprobs({"content": None, "refusal": None}) == []


def test_an_unsorted_list_is_sorted_and_a_chosen_outlier_stands_apart() -> None:
    """VLLM puts the chosen token first, whatever its rank."""
    (token,) = read_logprobs(chat(entry("z", -7.0, [("z", -7.0), ("b", -1.5), ("a", -0.5)])))
    assert (token.alternatives, token.alternative_log_probabilities) == ((b"a", b"b"), (-0.5, -1.5))
    (token,) = read_logprobs(chat(entry("a", -0.5, [("b", -1.5)])))
    assert token.alternatives == (b"a", b"b")


def test_what_a_server_writes_for_no_probability_is_none() -> None:
    """-9999 of OpenAI and vLLM, the lowest 32-bit float of llama-server."""
    first, second = read_logprobs(chat(entry("a", -9999.0, [("b", -0.1)]), entry("a", -3.4e38, [("c", -3.4e38)])))
    assert first == ReportedToken(b"a", None, (b"b",), (-0.1,))
    assert second == ReportedToken(b"a", None)


def test_bytes_are_preferred_and_texts_with_a_replacement_are_damaged() -> None:
    known, replaced, empty, half = read_logprobs(
        chat(
            entry("", bytes=[195]),
            entry("\ufffd", bytes=[239, 191, 189]),
            entry(""),
            entry("\ud83d"),
        )
    )
    assert (known.spelled, known.damaged) == (b"\xc3", False)
    assert (replaced.damaged, empty.damaged, half.damaged) == (True, True, True)


def test_an_entry_of_llama_server_that_stands_for_two_tokens_is_damaged() -> None:
    """It holds back a half character and writes its bytes into the next entry, whose own bytes the list tells."""
    tops = [{"id": 96, "token": "", "bytes": [163], "logprob": -0.3}]
    joined = {"id": 96, "token": " 散", "bytes": [32, 230, 149, 163], "logprob": -0.3, "top_logprobs": tops}
    alone = {"id": 7, "token": "é", "bytes": [195, 169], "logprob": -0.3}
    alone["top_logprobs"] = [dict(alone)]
    first, second = read_logprobs({"content": [joined, alone]})
    assert (first.damaged, second.damaged) == (True, False)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ([], "no object"),
        ({"content": 3}, "no list"),
        (chat(3), "no token with"),
        (chat(entry("a", 0.5)), r"0\.5, above 0"),
        (chat(entry("a", math.nan)), "nan, no number"),
        (chat(entry("a", None)), "null, no number"),
        (chat(entry("a", "-1")), "'-1', no number"),
        (chat(entry("a", True)), "True, no number"),
        (chat(entry("a", 10**400)), "19 digits, above 0"),
        (chat(entry("a", -0.1, [("a", -0.1), ("b", -0.1), ("c", -0.1)])), "add up to more than 1"),
        (chat(entry("a", -0.1, [("b", math.nan)])), "nan, no number"),
        (chat({**entry("a"), "token": 5}), "a token is no text"),
        (chat({**entry("a"), "bytes": [300]}), "0 to 255"),
        (chat({**entry("a"), "top_logprobs": {}}), "no list"),
        (chat(entry("token_id:17")), "given as ids"),
        ({"tokens": ["a"], "token_logprobs": []}, "one length"),
        ({"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": []}, "of the length"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(value: object, match: str) -> None:
    with pytest.raises(ReportError, match=match) as error:
        read_logprobs(value)
    assert "\n" not in str(error.value)
