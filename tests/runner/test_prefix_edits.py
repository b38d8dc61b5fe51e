"""Exchanging atoms in a reply's tokens, in vocabularies that share tokens between atoms, characters and spaces."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salt_tui.runner.replays.prefix_edits import ByteSpan, EditError, PrefixEditor, StoredTokens, exact_tokens

pytestmark = pytest.mark.quick

WORDS = [
    "GAC",
    " GAC",
    "GA",
    " G",
    "C",
    "TT",
    " TTA",
    "1 2",
    "-1",
    " -1",
    "\n",
    "]\n",
    ", ",
    "é",
    "é ü",
    "12",
    "3 ",
    " 4",
]
VOCABULARY = (*(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS), "é".encode()[1:] + b" ")
NUMBERS = {piece: number for number, piece in enumerate(VOCABULARY)}


def greedy(text: bytes) -> tuple[int, ...]:
    """Tokenise by the longest piece first."""
    ids = []
    while text:
        piece = max((piece for piece in VOCABULARY if text.startswith(piece)), key=len)
        ids.append(NUMBERS[piece])
        text = text[len(piece) :]
    return tuple(ids)


def spaced(text: bytes) -> tuple[int, ...]:
    """Tokenise as SentencePiece does: a space is put before every text."""
    return greedy(b" " + text)


def cut(text: bytes, places: list[int]) -> StoredTokens:
    """Cut a text into tokens anywhere, as a model may that writes no canonical tokens."""
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)} - {0})
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False) if end > start]
    return StoredTokens(tuple(1000 + number for number in range(len(pieces))), tuple(pieces))


def editor(text: str, tokens: StoredTokens | None = None, tokenise=greedy) -> PrefixEditor:
    raw = text.encode()
    atoms = [ByteSpan(*match.span()) for match in re.finditer(rb"\S+", raw)]
    if tokens is None:
        ids = greedy(raw)
        tokens = StoredTokens(ids, tuple(VOCABULARY[number] for number in ids))
    vocabulary = [*VOCABULARY, *[b""] * (1000 - len(VOCABULARY)), *tokens.pieces]
    return PrefixEditor(tokens, atoms, tokenise, vocabulary)


def test_unedited_prefix_is_the_stored_tokens():
    found = editor("GAC GAC TTA").before(2, {})
    assert [VOCABULARY[number] for number in found.ids] == [b"GAC", b" GAC"]
    assert (found.kept, found.edited, found.text) == (2, (False, False), b"GAC GAC")


def test_edit_takes_the_space_of_running_text():
    found = editor("TT GAC GAC -1").before(3, {1: "TTA"})
    assert [VOCABULARY[number] for number in found.ids] == [b"TT", b" TTA", b" GAC"]
    assert found.edited == (False, True, False)
    assert found.kept == 1


def test_first_and_last_atom_and_a_negative_number():
    made = editor("GAC -1 -1 TTA")
    assert made.before(3, {0: "-1"}).text == b"-1 -1 -1"
    assert made.before(3, {0: "-1"}).kept == 0
    assert made.before(3, {2: "GAC"}).text == b"GAC -1 GAC"
    assert made.before(3, {1: "12"}).text == b"GAC 12 -1"
    assert [VOCABULARY[number] for number in made.atom_tokens(3, "GAC")] == [b" GAC"]
    assert made.lead(3) == 1


def test_atoms_that_share_a_token_are_exchanged_together():
    made = editor("GAC 1 2 TTA")  # tokens: GAC, ␣, "1 2", ␣TTA
    assert made.before(3, {1: "7"}).text == b"GAC 7 2"
    found = made.before(3, {1: "7", 2: "GAC"})
    assert found.text == b"GAC 7 GAC"
    assert found.edited == (False, False, True, True)
    assert not made.starts_clean(2)
    with pytest.raises(EditError, match="atom 3 shares a token"):
        made.before(2, {})


def test_edit_whose_tokens_merge_with_a_neighbour():
    # The stored token "]\n" holds the separator; the line feed stays where it was.
    made = editor("[1]\nGAC TT")
    found = made.before(1, {0: "[2]"})
    assert found.text == b"[2]\n"
    assert [VOCABULARY[number] for number in found.ids] == [b"[", b"2", b"]\n"]


def test_tokens_that_hold_half_a_character_are_taken_whole():
    # "é": one token ends after its first byte, the next holds the second and the space.
    text = "aé GAC TT"
    raw = text.encode()
    half = StoredTokens((1000, 1001, 1002, 1003), (raw[:2], raw[2:4], raw[4:7], raw[7:]))
    made = editor(text, half)
    assert made.before(2, {0: "é"}).text == "é GAC".encode()
    assert made.before(2, {1: "TT"}).text == "aé TT".encode()
    assert made.through({0: "ü"}).text == "ü ".encode()


def test_white_space_behind_the_last_atom_is_kept_where_it_is_a_token_of_its_own():
    assert editor("GAC TT\n****").through({1: "TTA"}).text == b"GAC TTA\n"
    assert not editor("GAC TT\n****").through({1: "TTA"}).edited[-1]
    assert editor("GAC TT").through({1: "TTA"}).text == b"GAC TTA"
    merged = StoredTokens((1000, 1001, 1002), (b"GAC", b" TT", b"\n****"))
    assert editor("GAC TT\n****", merged).through({1: "TTA"}).text == b"GAC TTA"


def test_sentencepiece_puts_no_second_space():
    for text in (b"GAC", b" GAC", b"-1", b"\nGAC"):
        ids = exact_tokens(text, spaced, VOCABULARY)
        assert b"".join(VOCABULARY[number] for number in ids) == text


def test_what_cannot_be_written_exactly_is_refused():
    with pytest.raises(EditError, match="cannot write 'GAC' exactly"):
        exact_tokens(b"GAC", lambda text: greedy(text.lower()), VOCABULARY)


TEXT = st.lists(
    st.tuples(
        st.sampled_from(["GAC", "TTA", "-1", "12", "é", "éü", "1", "[1,2]"]), st.sampled_from([" ", "\n", " \n"])
    ),
    min_size=2,
    max_size=8,
)


@settings(deadline=None)
@given(
    TEXT,
    st.lists(st.integers(0, 200), max_size=30),
    st.dictionaries(st.integers(0, 7), st.sampled_from(["GAC", "-9", "ü", "GATTACA", "[3]"]), max_size=6),
    st.sampled_from([greedy, spaced]),
)
def test_joined_pieces_are_the_edited_bytes(parts, places, edits, tokenise):
    text = "".join(atom + separator for atom, separator in parts)
    tokens = cut(text.encode(), places)
    made = editor(text, tokens, tokenise)
    atoms = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    edits = {index: new for index, new in edits.items() if index < len(atoms) - 1}
    target = len(atoms) - 1
    try:
        found = made.before(target, edits)
    except EditError:
        shared = not made.starts_clean(target)
        assert shared or target - 1 in edits
        return
    expected, place = "", 0
    for index, (start, end) in enumerate(atoms[:target]):
        expected += text[place:start] + edits.get(index, text[start:end])
        place = end
    raw = expected.encode()
    assert found.text.startswith(raw)
    assert not found.text[len(raw) :].decode().strip()
    assert text.encode().endswith(
        found.text[len(raw) :] + text.encode()[len(text[:place].encode()) + len(found.text) - len(raw) :]
    )
    # Tokens before the first edit keep their ids, and so does everything that no edit touches.
    assert found.ids[: found.kept] == tokens.ids[: found.kept]
    kept = [number for number, edited in zip(found.ids, found.edited, strict=True) if not edited]
    assert kept == [number for number in tokens.ids if number in kept]
    assert all(number >= 1000 for number in kept)
