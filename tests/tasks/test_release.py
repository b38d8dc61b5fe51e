"""The release's extraction and rows: every reference of its six reproduced tasks is derived again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasks.registry import TASKS, get_task, task_for_release_name
from tasks.release import RELEASE_WORDS, release_answer, release_units, solve_release_row
from tasks.task import ProblemTextError, UnknownNameError

REPRODUCTION = Path(__file__).parents[3] / "shared" / "data" / "salt_reproduction"
ROWS = {
    "code": 99,
    "dna_translation": 200,
    "first_order_logic": 267,
    "kronecker_product": 200,
    "matrix_multiplication": 200,
    "words_collection": 200,
}


@pytest.mark.process  # code runs its functions in a process of its own
@pytest.mark.parametrize("name", ROWS)
def test_solvers_reproduce_every_reference_of_the_release(name: str) -> None:
    path = REPRODUCTION / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the release's problems are not beside this checkout")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == ROWS[name]
    for row in rows:
        assert task_for_release_name(row["task"]) is TASKS[name]
        assert solve_release_row(TASKS[name], row) == row["reference"]


def test_the_line_end_of_a_logic_text_is_that_of_its_reference() -> None:
    text = "p2\n\n\nInitial Assignments:\np1: True"
    logic = TASKS["first_order_logic"]
    assert solve_release_row(logic, {"input": text + "\n"}) == "p1: True\np2: True\n"
    assert solve_release_row(logic, {"input": text}) == "p1: True\np2: True"
    assert logic.solve(text + "\n") == "p1: True\np2: True"


def test_there_are_24_words_that_void_a_region() -> None:
    assert len(set(RELEASE_WORDS)) == 24
    assert release_answer("****\nTCT ENDING\n****") == ""
    assert release_answer("****\nTCT\n****\n****\nthe answer is CGA\n****").strip() == "TCT"


def test_a_complete_pair_beats_an_unclosed_fence_and_no_fence_means_all() -> None:
    assert release_answer("****\nTCT\n****\nhm\n****\nCGA").strip() == "TCT"
    assert release_answer("****\n****\n****\nCGA").strip() == "CGA"
    assert release_answer("****\nwithout\n****\n****\nCGA").strip() == "CGA"
    assert release_answer("the answer is TCT") == "the answer is TCT"
    assert release_answer("") == ""
    assert release_answer("****\n ** \n****") == ""


def test_asterisks_and_one_outer_bracket_are_removed() -> None:
    dna = TASKS["dna_translation"]
    assert release_units(dna, "[**TCT** CGA\nTTC]").atoms == ("TCT", "CGA", "TTC")
    assert release_units(dna, "[[TCT CGA]").atoms == ("[TCT", "CGA")
    assert release_units(dna, "TCT\nCGA TTC").atom_lines == (0, 1, 1)


def test_inner_spaces_are_removed_unless_atoms_are_separated_by_spaces() -> None:
    assert release_units(TASKS["first_order_logic"], "p1:  True\np2 :False").atoms == ("p1:True", "p2:False")
    assert release_units(TASKS["dna_translation"], "TC T, CGA", delimiter=",").atoms == ("TCT", "CGA")
    assert release_units(TASKS["dna_translation"], "TC T").lines == ("TC T",)


def test_rows_that_cannot_be_solved_say_why() -> None:
    words = TASKS["words_collection"]
    with pytest.raises(ProblemTextError, match="'input'"):
        solve_release_row(words, {"reference": "x"})
    with pytest.raises(ProblemTextError, match="subject_set"):
        solve_release_row(words, {"input": "x", "subject_set": "abc"})
    with pytest.raises(ProblemTextError, match="line 1"):
        solve_release_row(words, {"input": "roses are red"})


def test_word_lists_of_the_release() -> None:
    words = TASKS["words_collection"]
    row = {"input": "Roses are Red, 12 violets 3.5 BLUE", "subject_set": ["red", "blue"]}
    assert solve_release_row(words, row) == "red blue"
    assert solve_release_row(words, {**row, "subject_set": ["12", "5", "3"]}) == "12 3 5"
    assert solve_release_row(words, {**row, "subject_set": ["R", "B"]}) == "R R B"


def test_a_name_of_the_release_stands_for_our_task() -> None:
    for find in (get_task, task_for_release_name):
        with pytest.raises(UnknownNameError, match="unknown task 'dna_translatoin'; there are: arc_grid, code"):
            find("dna_translatoin")
    assert get_task("words_collection") is task_for_release_name("Words Collection")
