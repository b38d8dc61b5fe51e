"""Which tokens end an atom."""

import pytest

from tasks.atom_endings import AtomEndings
from tasks.registry import get_task

PIECES = ["0", " 0", "\n", "\n\n", ",", ", 1", "]", "]]", "*", "****", "x", "-", ".", "\u00a0", " T", "<end>", ""]
VOCABULARY = [*(piece.encode() for piece in PIECES), "é".encode()[:1], "\u00a0".encode()[1:]]


def texts(task, reference, index):
    found = AtomEndings(VOCABULARY, [PIECES.index("<end>")]).after(get_task(task), reference, index)
    return {PIECES[number] for number in found if number < len(PIECES)}


BLANK = {" 0", "\n", "\n\n", "\u00a0", " T"}
ALWAYS = {"*", "****", "<end>"}


@pytest.mark.parametrize("task", ["dna_translation", "kronecker_product", "maze", "words_collection", "arc_grid"])
def test_white_space_ends_most_atoms(task):
    assert texts(task, "18 19\n20", 1) == BLANK | ALWAYS


def test_only_a_line_end_ends_an_assignment():
    assert texts("first_order_logic", "p1: True\np2: False", 0) == {"\n", "\n\n"} | ALWAYS


def test_within_a_list_commas_and_brackets_end_an_atom_and_spaces_do_not():
    assert texts("code", "[18, 19]", 0) == {",", ", 1", "]", "]]"} | ALWAYS
    assert texts("code", "[18, 19]", 1) == {",", ", 1", "]", "]]"} | ALWAYS
    assert texts("code", "[[1, 2], [3, 4]]", 0) == set(PIECES)
    # Words outside brackets end at white space and commas.
    assert texts("code", "ab cd", 0) >= BLANK | ALWAYS | {",", ", 1"}


def test_an_atom_that_is_not_there_is_refused():
    with pytest.raises(IndexError, match="atom 2 of 2"):
        texts("maze", "U D", 2)
