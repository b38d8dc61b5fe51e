"""Every form of answers, fed with anything, cut anywhere: the same units, inside the reply, in time not squared."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.answer import AnswerParser, AnswerUnit, parse_answer, split_reference
from tasks.answer_form import AnswerForm
from tasks.own_forms import ChoiceForm, JsonForm, ListForm, TextForm
from tasks.registry import TASKS

REFERENCE = json.dumps({"a": [1, "x", None], "b": {"c": True}})
FORMS: dict[str, AnswerForm] = {
    **TASKS,
    "choice": ChoiceForm(),
    "numbers": ListForm("numbers"),
    "words": ListForm("words"),
    "lines": ListForm("lines"),
    "text": TextForm(("a b c",), None),
    "json": JsonForm(REFERENCE),
    "unordered json": JsonForm(REFERENCE, Decimal("0.1"), unordered=True),
}
"""A new task is among them; a new kind of own problems is added here."""

FENCES = ["*" * length for length in range(1, 10)]
SIGNS = [
    "<think>",
    "</think>",
    "<",
    "</thi",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\u2028",
    "\x00",
    "\x1b",
    "\ufeff",
    "é",
    "🙂",
]
WORDS = [
    "ATG",
    "12",
    "-3.5",
    "p1: True",
    "def f(x):",
    "    return x",
    "[1, 2]",
    "DK",
    ",",
    ";",
    "|",
    "{",
    "}",
    '"',
    "'''",
    "#",
]
PIECES = st.one_of(
    st.sampled_from([text.encode() for text in (*FENCES, *SIGNS, *WORDS, REFERENCE, '{"a": [1,', "```python", "`")]),
    st.sampled_from([b"\xff", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc3", b"\xe2\x82"]),
    st.binary(max_size=6),
)
REPLIES = st.lists(PIECES, max_size=30).map(b"".join)


def streamed(
    form: AnswerForm, reply: bytes, cuts: list[int], *, cut: bool, thinking: bool
) -> tuple[str, set[AnswerUnit]]:
    parser = AnswerParser(form, thinking_open=thinking)
    bounds = [0, *sorted(place % (len(reply) + 1) for place in cuts), len(reply)]
    units: list[AnswerUnit] = []
    for start, end in pairwise(bounds):
        changes = parser.feed(reply[start:end])
        units = [*([] if changes.withdrawn else units), *changes.units]
    changes = parser.finish(cut=cut)
    units = [*([] if changes.withdrawn else units), *changes.units]
    assert len(set(units)) == len(units)
    return parser.extraction, set(units)


@pytest.mark.parametrize("name", FORMS)
@given(reply=REPLIES, cuts=st.lists(st.integers(0, 10**6), max_size=8), cut=st.booleans(), thinking=st.booleans())
def test_any_bytes_cut_anywhere_are_the_units_of_the_whole(
    name: str, reply: bytes, cuts: list[int], cut: bool, thinking: bool
) -> None:
    form = FORMS[name]
    whole = parse_answer(form, reply, thinking_open=thinking, cut=cut)
    found = streamed(form, reply, cuts, cut=cut, thinking=thinking)
    assert found == (whole.extraction, set(whole.units))
    assert streamed(form, reply, [*range(len(reply))], cut=cut, thinking=thinking) == found
    places = set()
    for unit in whole.units:
        assert 0 <= unit.start < unit.end <= len(reply)
        assert unit.index >= 0
        assert unit.text
        assert (unit.kind, unit.index) not in places
        places.add((unit.kind, unit.index))
        form.normalise(unit.text).encode()


@given(reply=REPLIES)
def test_what_a_reply_holds_may_be_a_reference(reply: bytes) -> None:
    text = reply.decode("utf-8", "replace")
    for form in FORMS.values():
        units = split_reference(form, text)
        assert len(units.atoms) == len(units.atom_lines)


def worst(pattern: str) -> Callable[[int], bytes]:
    return lambda size: (pattern * (size // len(pattern) + 1))[:size].encode()


LONG = {
    "fences": worst("**** "),
    "one fence": worst("*"),
    "thoughts": worst("</think>"),
    "half tags": worst("</thin"),
    "one atom": lambda size: b"****\n" + b"A" * size,
    "atoms": lambda size: b"****\n" + b"A " * (size // 2),
    "lines": lambda size: b"****\n" + b"A\n" * (size // 2),
    "wide": lambda size: b"****\n" + "é ".encode() * (size // 3),
    "broken": lambda size: b"****\n" + b"\xff " * (size // 2),
    "open JSON": lambda size: b"****\n" + b'{"a":' * (size // 5),
    "open brackets": lambda size: b"****\n" + b"[" * size,
    "open quotes": lambda size: b"****\n" + b"'\"" * (size // 2),
}


@pytest.mark.soak
@pytest.mark.parametrize("pattern", LONG)
@pytest.mark.parametrize("name", ["dna_translation", "code", "arc_grid", "first_order_logic", "json", "numbers"])
def test_the_time_a_reply_takes_is_not_squared(name: str, pattern: str) -> None:
    form = FORMS[name]

    def seconds(size: int) -> float:
        reply = LONG[pattern](size)
        pieces = [reply[start : start + 64] for start in range(0, size, 64)]
        parser = AnswerParser(form)
        before = time.thread_time()
        for piece in pieces:
            parser.feed(piece)
        parser.finish(cut=False)
        return time.thread_time() - before

    small, large = seconds(16_000), seconds(64_000)
    # Four times the text, sixteen times the work if it were squared; short times are noise.
    assert large < 0.05 or large < 10 * small, (small, large)
