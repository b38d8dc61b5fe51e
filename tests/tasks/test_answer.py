"""The answer parser: extraction, units with byte offsets, and streaming equal to whole text for every cut point."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.answer import AnswerParser, AnswerUnit, ParsedAnswer, parse_answer, split_reference
from tasks.registry import TASKS
from tests.examples import examples

DNA = TASKS["dna_translation"]
LOGIC = TASKS["first_order_logic"]
F = "********"

NASTY = [
    b"",
    b"TCT CGA",
    b"********\nTCT CGA\n********",
    b"********\nTCT\n********\nNo, wait.\n********\nCGA TTC\nAAA\n********\nThat is all.",
    b"********\nTCT\n********\n********\n\n********",
    b"********\nTCT\n********\n**** ** ",
    b"****\n**TCT** *CGA ***TTC\n*****",
    b"**** a***** b ****c",
    b"<think>****\nAAA\n****</think>\n****\nTCT\n****",
    b"****\nAAA\n****</think></think>****\nTCT\n****<think>****B",
    b"****\nAAA BBB<think> no </think",
    b"****\nA <<think>B</thin k> </ <t **** **",
    b"<think></think>  \n",
    b"<think>hm",
    "****\nÄÖ 日本語 🙂🙂\n é\n****".encode(),
    b"****\n\xff\xfe \xe2\x82 \xed\xa0\x80 ok\xf0\x9f\n****\xe2",
    b"****\r\nA\r\n\r\nB C\x0bD\x85E\n****",
    b"*** * ** ***",
    b"****\nA***\n<thin",
    b"***********",
]

MARKS = [b"*", b"**", b"***", b"****", b"*****", b"<think>", b"</think>", b"<", b"</th", b"ink>"]
TEXT = [b" ", b"\n", b"\r\n", b"TCT", b"CGA ", b"x", "é".encode(), "🙂".encode(), "\u3000".encode()]
BROKEN = [b"\xf0", b"\x9f", b"\xe2\x82", b"\xff"]
pieces = st.sampled_from(MARKS + TEXT + BROKEN)
replies = st.lists(pieces, max_size=25).map(b"".join)


def stream(reply: bytes, cuts: list[int], *, cut: bool, thinking_open: bool) -> tuple[ParsedAnswer, int]:
    """Feed a reply in pieces and keep units as a store does: dropped when they are withdrawn."""
    parser = AnswerParser(DNA, thinking_open=thinking_open)
    bounds = [0, *sorted(cuts), len(reply)]
    units: list[AnswerUnit] = []
    revision = 0
    for start, end in pairwise(bounds):
        changes = parser.feed(reply[start:end])
        units = [*([] if changes.withdrawn else units), *changes.units]
        assert parser.revision >= revision + changes.withdrawn
        revision = parser.revision
    changes = parser.finish(cut=cut)
    units = [*([] if changes.withdrawn else units), *changes.units]
    return ParsedAnswer(parser.extraction, tuple(units)), parser.revision


def by_kind(answer: ParsedAnswer) -> tuple[tuple[AnswerUnit, ...], ...]:
    return answer.of_kind("atom"), answer.of_kind("line"), answer.of_kind("generation")


def answer_by_regular_expressions(reply: bytes) -> tuple[str, list[str], list[str], list[str]]:
    """Find the answer of an uncut reply a second way: on the whole text, from the rules of docs/definitions.md."""
    text = reply.decode("utf-8", "surrogateescape")
    outside = text.rpartition("</think>")[2].partition("<think>")[0]
    parts = re.split(r"\*{4,}", outside)
    regions = [(part, 2 * index + 2 < len(parts)) for index, part in enumerate(parts[1::2]) if part.strip()]
    if not regions:
        thought = "<think>" in text or "</think>" in text
        return ("thinking_only" if thought and not outside.strip() else "none"), [], [], []
    region, closed = regions[-1]
    shown = re.sub("[\udc80-\udcff]", "\ufffd", region)
    lines = [line.strip() for line in re.split(r"[\r\n]", shown) if line.strip()]
    return "fenced" if closed else "unclosed", shown.split(), lines, [shown.strip()]


@pytest.mark.parametrize("thinking_open", [False, True])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("reply", NASTY)
def test_every_cut_point_gives_the_units_of_the_whole_text(reply: bytes, cut: bool, thinking_open: bool) -> None:
    whole, revision = stream(reply, [], cut=cut, thinking_open=thinking_open)
    everywhere = list(range(1, len(reply)))
    for cuts in [[point] for point in everywhere] + [everywhere]:
        streamed, streamed_revision = stream(reply, cuts, cut=cut, thinking_open=thinking_open)
        assert (streamed.extraction, by_kind(streamed), streamed_revision) == (
            whole.extraction,
            by_kind(whole),
            revision,
        )
    assert by_kind(parse_answer(DNA, reply, cut=cut, thinking_open=thinking_open)) == by_kind(whole)


@settings(max_examples=examples(300))
@given(reply=replies, cuts=st.lists(st.integers(0, 80), max_size=8), cut=st.booleans(), thinking_open=st.booleans())
def test_streaming_equals_whole_text(reply: bytes, cuts: list[int], cut: bool, thinking_open: bool) -> None:
    inside = [point for point in cuts if point <= len(reply)]
    streamed, revision = stream(reply, inside, cut=cut, thinking_open=thinking_open)
    whole, whole_revision = stream(reply, [], cut=cut, thinking_open=thinking_open)
    assert (streamed.extraction, by_kind(streamed), revision) == (whole.extraction, by_kind(whole), whole_revision)


@settings(max_examples=examples(300))
@given(reply=replies)
@example(reply=b"****A****</think>")
@example(reply=b"****A****<think>****B****")
def test_the_rules_applied_to_the_whole_text_agree(reply: bytes) -> None:
    answer = parse_answer(DNA, reply)
    extraction, atoms, lines, generation = answer_by_regular_expressions(reply)
    assert answer.extraction == extraction
    assert [unit.text for unit in answer.of_kind("atom")] == atoms
    assert [unit.text for unit in answer.of_kind("line")] == lines
    assert [unit.text for unit in answer.of_kind("generation")] == generation


@given(reply=replies, cut=st.booleans())
def test_byte_offsets_select_the_text_and_lines_hold_their_atoms(reply: bytes, cut: bool) -> None:
    answer = parse_answer(DNA, reply, cut=cut)
    lines = answer.of_kind("line")
    for unit in answer.units:
        text = reply[unit.start : unit.end].decode("utf-8", "surrogateescape")
        assert re.sub("[\udc80-\udcff]", "\ufffd", text) == unit.text
        assert unit.text == unit.text.strip() != ""
    for atom in answer.of_kind("atom"):
        assert atom.line is not None
        if atom.line < len(lines):
            assert lines[atom.line].start <= atom.start < atom.end <= lines[atom.line].end
        else:
            assert cut
    assert [unit.index for unit in answer.of_kind("atom")] == list(range(len(answer.of_kind("atom"))))


def test_units_of_a_simple_answer() -> None:
    answer = parse_answer(DNA, b"Here:\n****\nTCT CGA\n\nTTC\n****\nDone.")
    assert answer.extraction == "fenced"
    assert answer.units == (
        AnswerUnit("atom", 0, 0, "TCT", 11, 14),
        AnswerUnit("atom", 1, 0, "CGA", 15, 18),
        AnswerUnit("atom", 2, 1, "TTC", 20, 23),
        AnswerUnit("line", 0, 0, "TCT CGA", 11, 18),
        AnswerUnit("line", 1, 1, "TTC", 20, 23),
        AnswerUnit("generation", 0, None, "TCT CGA\n\nTTC", 11, 23),
    )


def test_an_atom_is_reported_as_soon_as_it_is_complete() -> None:
    parser = AnswerParser(DNA)
    assert parser.feed(b"****\nTC").units == ()
    pending = parser.pending
    assert pending is not None
    assert (pending.text, pending.index, pending.line, pending.start, pending.end) == ("TC", 0, 0, 5, 7)
    assert [unit.text for unit in parser.feed(b"T ").units] == ["TCT"]
    assert parser.pending is None
    assert parser.extraction == "unclosed"
    assert [(unit.kind, unit.text) for unit in parser.feed(b"A\n").units] == [("atom", "A"), ("line", "TCT A")]


def test_a_later_region_withdraws_the_earlier_one_when_it_begins_to_hold_text() -> None:
    parser = AnswerParser(DNA)
    assert [unit.text for unit in parser.feed(b"****\nTCT\n****\n****\n").units] == ["TCT", "TCT"]
    assert (parser.revision, parser.extraction) == (0, "fenced")
    changes = parser.feed(b"C")
    assert (changes.withdrawn, changes.units, parser.revision, parser.extraction) == (True, (), 1, "unclosed")
    assert [unit.text for unit in parser.feed(b"GA ").units] == ["CGA"]


def test_closing_a_thought_withdraws_what_came_before_it() -> None:
    parser = AnswerParser(DNA)
    parser.feed(b"****\nTCT \n****")
    changes = parser.feed(b"</think>")
    assert (changes.withdrawn, changes.units, parser.revision) == (True, (), 1)
    assert parser.extraction == "thinking_only"
    assert parser.finish(cut=False).units == ()


def test_a_thought_opened_by_the_prompt_is_no_answer() -> None:
    assert parse_answer(DNA, b"****\nTCT\n****", thinking_open=True).units == ()
    answer = parse_answer(DNA, b"****\nTCT\n****</think>****\nCGA\n****", thinking_open=True)
    assert [unit.text for unit in answer.of_kind("atom")] == ["CGA"]


def test_a_limit_drops_the_atom_line_and_generation_in_progress() -> None:
    cut = parse_answer(DNA, b"****\nTCT CGA\nTTC AA", cut=True)
    assert [(unit.kind, unit.text, unit.line) for unit in cut.units] == [
        ("atom", "TCT", 0),
        ("atom", "CGA", 0),
        ("atom", "TTC", 1),
        ("line", "TCT CGA", 0),
    ]
    ended = parse_answer(DNA, b"****\nTCT CGA\nTTC AA", cut=False)
    assert [unit.text for unit in ended.of_kind("atom")] == ["TCT", "CGA", "TTC", "AA"]
    assert len(ended.of_kind("generation")) == 1


def test_a_limit_after_the_closing_fence_drops_nothing() -> None:
    cut = parse_answer(DNA, b"****\nTCT CGA\n****\nI hope thi", cut=True)
    assert [unit.text for unit in cut.of_kind("generation")] == ["TCT CGA"]
    assert [unit.text for unit in cut.of_kind("atom")] == ["TCT", "CGA"]


def test_a_limit_inside_a_possible_fence_begins_no_region() -> None:
    reply = b"****\nTCT\n****\n****\n**"
    assert [unit.text for unit in parse_answer(DNA, reply, cut=True).of_kind("atom")] == ["TCT"]
    assert [unit.text for unit in parse_answer(DNA, reply, cut=False).of_kind("atom")] == ["**"]


def test_a_line_per_atom_task_reports_atoms_as_lines() -> None:
    answer = parse_answer(LOGIC, f"{F}\np1: True\np3:  False \n{F}".encode())
    assert [unit.text for unit in answer.of_kind("atom")] == ["p1: True", "p3:  False"]
    assert [LOGIC.normalise(unit.text) for unit in answer.of_kind("line")] == ["p1: True", "p3: False"]


def test_a_parser_is_used_once() -> None:
    parser = AnswerParser(DNA)
    parser.finish(cut=False)
    with pytest.raises(ValueError, match="used once"):
        parser.feed(b"A")
    with pytest.raises(ValueError, match="used once"):
        parser.finish(cut=False)


def test_reference_units() -> None:
    units = split_reference(DNA, "TCT  CGA\n\n TTC")
    assert units.atoms == ("TCT", "CGA", "TTC")
    assert units.lines == ("TCT CGA", "TTC")
    assert units.generation == "TCT CGA TTC"
    assert units.atom_lines == (0, 0, 1)
    assert split_reference(DNA, " \n").atoms == ()


def test_a_long_reply_in_pieces_loses_no_unit() -> None:
    reply = b"****\n" + b"TCT CGA\n" * 10_000 + b"****"
    parser = AnswerParser(DNA)
    count = sum(len(parser.feed(reply[start : start + 7]).units) for start in range(0, len(reply), 7))
    assert count == 30_000
