"""The forms of answers to problems of one's own: units, places and what is right, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.answer import AnswerParser, AnswerUnit, parse_answer, split_reference
from tasks.answer_form import AnswerForm
from tasks.own_forms import OwnKind, own_form, plain_number, rouge_l
from tasks.prompts import fenced

TOOL_CALL = '{"tool": "add", "arguments": {"a": 2, "b": 3.0}}'


def form(kind: OwnKind, reference: str, choices: Sequence[str] = (), **columns: str) -> AnswerForm:
    return own_form(kind, reference, choices, columns)


def verdicts(wanted: AnswerForm, reference: str, reply: str) -> dict[int, bool | None]:
    """Return for each atom of a reply by its place whether it is right; None where the reference has none."""
    units = split_reference(wanted, reference)
    found: dict[int, bool | None] = {}
    for unit in parse_answer(wanted, reply.encode()).of_kind("atom"):
        known = unit.index < len(units.atoms)
        found[unit.index] = wanted.is_right("atom", unit.text, units.atoms[unit.index]) if known else None
    return found


def whole_is_right(wanted: AnswerForm, reference: str, reply: str) -> bool:
    (unit,) = parse_answer(wanted, reply.encode()).of_kind("generation")
    return wanted.is_right("generation", unit.text, split_reference(wanted, reference).generation)


def test_every_leaf_of_a_tool_call_is_an_atom_at_the_place_of_its_path() -> None:
    wanted = form("json", TOOL_CALL)
    assert split_reference(wanted, TOOL_CALL).atoms == ('"add"', "2", "3.0")
    assert split_reference(wanted, TOOL_CALL).lines == ()
    reply = "I call it.\n" + fenced('{"arguments": {"b": 3, "a": 5, "c": []}, "tool": "add"}')
    assert verdicts(wanted, TOOL_CALL, reply) == {0: True, 1: False, 2: True, 3: None}
    assert not whole_is_right(wanted, TOOL_CALL, reply)
    missing = fenced('{"tool": "add"}')
    assert verdicts(wanted, TOOL_CALL, missing) == {0: True}
    assert not whole_is_right(wanted, TOOL_CALL, missing)
    right = fenced('{"arguments":{"b":3,"a":2},\n "tool":"add"}')
    assert whole_is_right(wanted, TOOL_CALL, right)
    assert not parse_answer(wanted, right.encode()).of_kind("line")


@pytest.mark.parametrize(
    ("reference", "given_leaf", "right"),
    [
        ("1", "1.0", True),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "false", False),
        ('"a"', '"\\u0061"', True),
        ('"a b"', '"a  b"', False),
        ("[]", "{}", False),
        ("{}", "{ }", True),
        ("100000000000000000001", "100000000000000000002", False),
        ("0", "9." + "9" * 40 + "e999999", False),
    ],
)
def test_leaves_are_equal_as_json_values(reference: str, given_leaf: str, right: bool) -> None:
    wanted = form("json", reference)
    assert verdicts(wanted, reference, fenced(given_leaf)) == {0: right}
    assert whole_is_right(wanted, reference, fenced(given_leaf)) == right


def test_a_tolerance_is_inclusive_and_for_numbers_alone() -> None:
    wanted = form("json", "[1, 2]", tolerance="0.1")
    assert verdicts(wanted, "[1, 2]", fenced("[1.1, 2.11]")) == {0: True, 1: False}
    assert whole_is_right(wanted, "[1, 2]", fenced("[0.9, 2.05]"))


def test_unordered_lists_are_right_in_any_order() -> None:
    assert verdicts(form("json", "[1, 2]", unordered="true"), "[1, 2]", fenced("[2, 1]")) == {1: True, 0: True}
    assert whole_is_right(form("json", "[1, 2]", unordered="true"), "[1, 2]", fenced("[2, 1]"))
    assert verdicts(form("json", "[1, 2]"), "[1, 2]", fenced("[2, 1]")) == {0: False, 1: False}


@pytest.mark.parametrize("answer", ["{'a': 1}", '{"a": 1, "a": 1}', '{"a": 1', "the answer is 1", ""])
def test_what_is_no_json_has_no_leaves(answer: str) -> None:
    assert verdicts(form("json", '{"a": 1}'), '{"a": 1}', fenced(answer)) == {}


def test_a_leaf_that_says_dk_abstains() -> None:
    assert form("json", "[1]").normalise('"DK"') == "DK"


def test_numbers_are_compared_as_numbers_and_words_without_case() -> None:
    assert verdicts(form("numbers", "1 2.5 300"), "1 2.5 300", fenced("1.0, +2.50; 3e2 7")) == {
        0: True,
        1: True,
        2: True,
        3: None,
    }
    assert verdicts(form("words", "Friday Sunday"), "Friday Sunday", fenced("friday, SUNDAYS")) == {0: True, 1: False}
    assert verdicts(form("lines", "New York\nRome"), "New York\nRome", fenced("new york\nRome")) == {0: False, 1: True}
    assert whole_is_right(form("numbers", "1 2"), "1 2", fenced("1.0\n2"))
    one, other = "123456789012345678901234567890", "123456789012345678901234567891"
    assert verdicts(form("numbers", one), one, fenced(other)) == {0: False}


@pytest.mark.parametrize(
    ("text", "plain"),
    [("1.50", "1.5"), ("-0", "0"), ("+7", "7"), (".5", "0.5"), ("1e3", "1000"), ("1,000", "1,000"), ("٤", "٤"),
     ("1" * 101, "1" * 101), ("1" * 50 + ".0", "1" * 50), ("0." + "1" * 50, "0." + "1" * 50), ("abc", "abc"),
     ("1e999", "1" + "0" * 999)],
)  # fmt: skip
def test_numbers_are_written_in_one_way(text: str, plain: str) -> None:
    assert plain_number(text) == plain


def test_a_choice_is_the_letter_without_a_fence() -> None:
    wanted = form("choice", "B", ["x", "y"])
    for reply, right in ((" B", True), ("B\n", True), ("A", False), ("b", False)):
        assert verdicts(wanted, "B", reply) == {0: right}
        assert whole_is_right(wanted, "B", reply) == right
    assert parse_answer(wanted, b" B").extraction == "fenced"


def test_free_text_is_all_that_is_not_thinking() -> None:
    wanted = form("text", "Bees make honey.", ["They make honey"])
    answer = parse_answer(wanted, b"<think>\n****Wax?</think>\nBees **** make\n honey. ")
    assert [unit.text for unit in answer.of_kind("atom")] == ["Bees **** make\n honey."]
    assert [unit.text for unit in answer.of_kind("generation")] == ["Bees **** make\n honey."]
    assert answer.of_kind("line") == ()
    assert parse_answer(wanted, b"<think>all of it").extraction == "thinking_only"
    assert parse_answer(wanted, b" \n").extraction == "none"
    assert parse_answer(wanted, b"Bees ma", cut=True).of_kind("atom") == ()


def test_free_text_is_right_by_its_best_reference() -> None:
    wanted = form("text", "Bees make honey.", ["Insects collect nectar"], threshold="0.75")
    # Longest common subsequences: "bees make honey" of 3 and 4 words, 2·(3/4)·1/(3/4+1) = 6/7; "collect nectar" 2 of 3.
    assert rouge_l("Bees make honey.", "bees make HONEY quickly") == pytest.approx(6 / 7)
    assert verdicts(wanted, "Bees make honey.", "bees make HONEY quickly") == {0: True}
    assert verdicts(wanted, "Bees make honey.", "you collect nectar") == {0: False}
    assert verdicts(form("text", "x", ["Insects collect nectar"], threshold="0.6"), "x", "you collect nectar") == {
        0: True
    }
    exact = form("text", "Paris", ["Paris, France"], match="exact")
    assert verdicts(exact, "Paris", "paris,  FRANCE") == {0: True}
    assert verdicts(exact, "Paris", "Paris it is") == {0: False}


KINDS: dict[OwnKind, str] = {
    "choice": "B",
    "json": TOOL_CALL,
    "numbers": "1 2",
    "words": "a b",
    "lines": "a\nb",
    "text": "Bees make honey.",
}


@pytest.mark.parametrize("kind", KINDS)
@given(
    reply=st.lists(
        st.sampled_from(["****", "*", "<think>", "</think>", "\n", " ", "B", "1", '{"a":2}', "é"]), max_size=12
    ),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_any_pieces_give_the_units_of_the_whole_reply(kind: OwnKind, reply: list[str], cuts: list[int]) -> None:
    wanted, data = form(kind, KINDS[kind]), "".join(reply).encode()
    parser, units = AnswerParser(wanted), list[AnswerUnit]()
    places = sorted({0, *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:end] for start, end in pairwise([*places, len(data)])]
    for changes in (*map(parser.feed, pieces), parser.finish(cut=False)):
        units = [*(() if changes.withdrawn else units), *changes.units]
    whole = parse_answer(wanted, data)
    assert sorted(map(repr, units)) == sorted(map(repr, whole.units))
    assert parser.extraction == whole.extraction


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_reply_is_right_in_every_unit(kind: OwnKind) -> None:
    wanted, reference = form(kind, KINDS[kind]), KINDS[kind]
    reply = fenced(reference) if wanted.fenced else reference
    found = verdicts(wanted, reference, reply)
    assert set(found) == set(range(len(split_reference(wanted, reference).atoms)))
    assert all(found.values())
    assert whole_is_right(wanted, reference, reply)
