"""An answer token by token: letters, steps, and what the model nearly said; worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from salt_tui.app.answer_document import AnswerDocument, AtomSignal, raw_text
from salt_tui.app.answer_lines import atom_line, confidence_lines, first_error, flow, title_line
from salt_tui.app.problem_picture import picture
from salt_tui.app.right_tokens import RightToken, where_it_parts
from salt_tui.app.token_player import SPEEDS, TokenPlayer
from salt_tui.palette import DrawingMode, Look, draw_cell
from salt_tui.store.records import ProblemRecord, TokenRecord, UnitRecord
from salt_tui.store.results import StoredToken

pytestmark = pytest.mark.quick

NONE = (None,) * 9


def token(position: int, start: int, piece: bytes, probability: float, *others: tuple[bytes, float]) -> StoredToken:
    """Return a token with its alternatives, itself among them."""
    found = sorted([(piece, probability), *others], key=lambda entry: -entry[1])
    record = TokenRecord(
        position, position, start, start + len(piece), math.log(probability), 0.5,
        tuple(range(len(found))), tuple(math.log(value) for _, value in found), False,
    )  # fmt: skip
    return StoredToken(record, piece, tuple(text for text, _ in found))


def document() -> AnswerDocument:
    """The model said ``GA`` + ``A`` and `` GAC`` where ``GAC`` and ``GAC`` were right, after a line feed."""
    tokens = [
        token(0, 0, b"\n", 0.9),
        token(1, 1, b"GA", 0.8, (b"GAC", 0.1), (b"T", 0.05)),
        token(2, 3, b"A", 0.6, (b"C", 0.3), (b"C ", 0.05), (b"G", 0.02)),
        token(3, 4, b" GAC", 0.7, (b" TTT", 0.2)),
    ]
    atoms = [
        UnitRecord("atom", 0, 0, "GAA", "GAC", "wrong", 1, 3, 1, 4, NONE),
        UnitRecord("atom", 1, 0, "GAC", "GAC", "correct", 3, 4, 5, 8, NONE),
        UnitRecord("atom", 2, 0, None, "TTT", "missing", None, None, None, None, NONE),
    ]
    problem = ProblemRecord("dna_translation", 0, "p", "easy", 1, "regular", "text", "GAC GAC TTT", 3, 1)
    return AnswerDocument(7, problem, "complete", tokens, atoms, b"say\tit\n")


def test_every_letter_knows_its_token_and_its_atom() -> None:
    lines = [[(letter.text, letter.token, letter.atom) for letter in line] for line in document().lines]
    assert lines == [
        [("⏎", 0, None)],
        [("G", 1, 0), ("A", 1, 0), ("A", 2, 0), (" ", 3, None), ("G", 3, 1), ("A", 3, 1), ("C", 3, 1)],
    ]


def test_the_right_continuation_has_its_rank_and_its_probability() -> None:
    found = document()
    assert found.right_token(0) is None, "between atoms"
    first = found.right_token(1)
    assert first is not None
    assert (first.rank, first.listed) == (1, 3), "GA begins GAC"
    second = found.right_token(2)
    assert second is not None
    assert (second.rank, second.listed) == (2, 4)
    assert second.probability == pytest.approx(0.3)
    assert [candidate.right for candidate in found.candidates(2)] == [False, True, True, False]
    third = found.right_token(3)
    assert third is not None
    assert third.rank == 1, "the blank before the atom is part of the token"
    assert "the right token had .300, rank 2" in atom_line(found, 2, 200)
    assert "this token goes on with what is right" in atom_line(found, 3, 200)


def test_behind_a_wrong_beginning_nothing_is_right_any_more() -> None:
    tokens = [token(0, 0, b"T", 0.9), token(1, 1, b"AC", 0.9)]
    atoms = [UnitRecord("atom", 0, 0, "TAC", "GAC", "wrong", 0, 2, 0, 3, NONE)]
    problem = ProblemRecord("dna_translation", 0, "p", "easy", 1, "regular", "text", "GAC", 1, 1)
    found = AnswerDocument(1, problem, None, tokens, atoms, None)
    assert found.right_token(0) == RightToken(None, None, 1)
    assert found.right_token(1) is None
    assert "not among the 1 stored" in atom_line(found, 0, 200)
    assert atom_line(found, 0, 60).startswith("atom 1 wrong; said “TAC”, right is “GAC”; the right"), "not cut"
    assert "right 0/1 · asked 0/1" in title_line(found, 25, 60), "the scores are not cut"
    assert " of 25 · first error 1 " in title_line(found, 25, 120)
    assert found.prompt_text() == "not known"


@pytest.mark.parametrize(
    ("said", "pieces", "right", "position", "had"),
    [
        ("GAA", [b"GA", b"A"], "GAC", 1, "A"),
        ("GAA", [b"GAA"], "GAC", 0, "GAA"),
        ("18", [b"18"], "180", 1, " "),
        ("180", [b"18", b"0"], "18", 1, "0"),
    ],
)
def test_an_atom_parts_from_the_right_one_at_its_first_token_that_does_not_go_on_with_it(
    said: str, pieces: list[bytes], right: str, position: int, had: str
) -> None:
    """Wrong inside, wrong as a whole, ended too early, ended too late."""
    tokens, start = [], 0
    for number, piece in enumerate([*pieces, b" "]):
        tokens.append(token(number, start, piece, 0.75, (b"C", 0.2), (b"\n", 0.05)))
        start += len(piece)
    unit = UnitRecord("atom", 0, 0, said, right, "wrong", 0, len(pieces), 0, len(said), NONE)
    found = where_it_parts(unit, tokens)
    assert found is not None
    assert (found.position, found.said) == (position, had)
    assert found.probability == pytest.approx(0.75)
    assert where_it_parts(replace(unit, status="redundant", reference=None), tokens) is None


def test_an_error_is_opened_at_the_token_at_fault() -> None:
    found = document()
    assert (found.first_token_of(0), found.fault_of(0)) == (1, 2)
    assert (found.fault_of(1), found.fault_of(2)) == (3, None)


def test_steps_by_atom_by_error_and_by_line() -> None:
    found = document()
    assert [found.atom_of(number) for number in range(4)] == [None, 0, 0, 1]
    assert found.next_atom(0, 1) == 1
    assert found.next_atom(2, 1) == 3
    assert found.next_atom(3, 1) is None
    assert found.next_atom(3, -1) == 1
    assert found.next_atom(0, 1, wrong=True) == 1
    assert found.next_atom(1, 1, wrong=True) is None
    assert (found.token_in_line(0, 1), found.token_in_line(3, -1), found.token_in_line(3, 1)) == (1, 0, 1)
    assert first_error(found) == 0


def test_words_are_found_round_the_end() -> None:
    found = document()
    assert found.find("gac", 0) == 3
    assert found.find("GA", 0) == 1
    assert found.find("GA", 3) == 1
    assert found.find("nothing", 0) is None
    assert found.find("", 0) is None


def test_half_a_character_is_shown_as_its_bytes_and_control_characters_as_escapes() -> None:
    tokens = [token(0, 0, "é".encode()[:1], 0.9), token(1, 1, b"\x1b[31m", 0.9)]
    problem = ProblemRecord("code", 0, "p", "easy", 1, "regular", "text", "1", 1, 1)
    found = AnswerDocument(1, problem, None, tokens, [], b"\x00\n")
    text = "".join(letter.text for line in found.lines for letter in line)
    assert text.isprintable()
    assert "\\x1b[31m" in text
    assert raw_text(b"a\tb\n\xff") == "a\\tb⏎\n\\\\xff" or raw_text(b"a\tb\n\xff").startswith("a\\tb⏎\n")


def test_the_ways_through_a_maze_are_drawn_over_it() -> None:
    atoms = [
        UnitRecord("atom", number, 0, move, right, status, number, number + 1, number, number + 1, NONE)
        for number, (move, right, status) in enumerate((("L", "L", "correct"), ("L", "U", "wrong")))
    ]
    look = Look(DrawingMode.COLOUR)
    drawn = picture(look, "maze", "G.#\n#..\n..S", "L\nU U\nL L", atoms, here=1)
    assert drawn.plain.split("\n") == ["G o ██", "██o   ", "× · S ", "", "o the right way"]
    styles = [str(span.style) for span in drawn.spans if drawn.plain[span.start] in "×·"]
    assert styles == ["bold #000000 on #ffffff", draw_cell(look, "correct", look.steps - 1)[1]], "marked, and tinted"
    assert picture(look, "maze", "no maze", "L", atoms).plain == "no maze"


def test_tokens_arrive_again_at_a_speed_and_can_be_moved_through() -> None:
    player = TokenPlayer(10)
    assert (player.arrived, player.playing) == (10, False)
    player.toggle()
    assert (player.arrived, player.playing) == (0, True)
    player.pass_time(0.5)
    assert player.arrived == player.speed // 2
    player.toggle()
    player.pass_time(5.0)
    assert player.arrived == player.speed // 2, "paused"
    player.go_to(9)
    player.toggle()
    player.pass_time(1.0)
    assert (player.arrived, player.playing) == (10, False)
    for _ in range(20):
        player.change_speed(1)
    assert player.speed == SPEEDS[-1]
    for _ in range(20):
        player.change_speed(-1)
    assert player.speed == SPEEDS[0]


def test_parts_flow_into_rows() -> None:
    assert flow(["aa", "bb", "cccc"], 6) == ["aa  bb", "cccc"]


def test_every_confidence_and_signal_is_said_with_its_rank_where_that_is_known() -> None:
    found = document()
    signals = [AtomSignal("agreement", {0: 0.25, 1: None}, {0: (3, 7)}), AtomSignal("other", {1: 0.5}, {})]
    with_signals = AnswerDocument(7, found.problem, "complete", found.tokens, found.atoms, None, signals)
    first = " ".join(confidence_lines(with_signals, 0, None, 400))
    assert "max_probability –" in first
    assert "agreement .250 (3/7)" in first
    assert "other" not in first
    second = " ".join(confidence_lines(with_signals, 1, None, 400))
    assert "agreement –" in second
    assert "other .500" in second
    assert confidence_lines(with_signals, None, None, 400) == []
