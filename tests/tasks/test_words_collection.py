"""Words Collection: vetted lists, a second solver, case and punctuation, texts that are no problem."""

from __future__ import annotations

import re
import string
from functools import partial
from itertools import permutations
from random import Random

import pytest

from tasks.parameters import integer_range, level_parameters
from tasks.prompts import worked_examples
from tasks.task import DIFFICULTIES, ProblemTextError
from tasks.word_lists import CATEGORIES, FILLER_SENTENCES, LIST_SENTENCES
from tasks.words_collection import WordsCollection
from tests.tasks import drawing
from tests.tasks.drawing import PROBLEMS

TASK = WordsCollection()
MEMBERS = [member for category in CATEGORIES.values() for member in category.members]
SENTENCES = [
    *FILLER_SENTENCES,
    *LIST_SENTENCES,
    *(sentence for category in CATEGORIES.values() for sentence in category.sentences),
]
AMBIGUOUS = (
    "may march orange turkey august china chile georgia jordan mercury copper lead organ drum bear seal crane date"
)

draw = partial(drawing.draw, TASK)


def collect_by_stripping(text: str) -> list[str]:
    """Solve a second way: split at spaces, strip punctuation, look the word up in the category of the heading."""
    heading, passage = text.split("\n", 1)
    members = next(c.members for c in CATEGORIES.values() if heading.startswith(f"List the {c.phrase} in "))
    stripped = (word.strip(string.punctuation).casefold() for word in passage.split(" "))
    return [word for word in stripped if word in members]


def test_there_are_at_least_eight_closed_categories_of_single_words() -> None:
    assert len(CATEGORIES) >= 8
    assert all(re.fullmatch("[a-z]{4,}", member) for member in MEMBERS)
    assert all(len(category.members) >= 7 for category in CATEGORIES.values())
    assert len({category.phrase for category in CATEGORIES.values()}) == len(CATEGORIES)


def test_no_member_is_in_two_categories_or_part_or_inflection_of_another() -> None:
    assert len(set(MEMBERS)) == len(MEMBERS)
    assert not set(AMBIGUOUS.split()) & set(MEMBERS)
    assert [(one, other) for one, other in permutations(MEMBERS, 2) if one in other] == []


def test_sentences_hold_no_member_nor_a_part_of_one() -> None:
    words = {word for sentence in SENTENCES for word in re.findall("[a-z]+", sentence.lower())}
    words |= {word for category in CATEGORIES.values() for word in category.phrase.split()}
    assert [(word, member) for word in words for member in MEMBERS if member in word] == []
    assert [(word, member) for word in words if len(word) > 3 for member in MEMBERS if word in member] == []
    assert len(words) > 200


def test_sentences_have_the_slots_they_should_and_no_asterisks() -> None:
    assert {sentence.count("{}") for sentence in FILLER_SENTENCES} == {0}
    assert {sentence.count("{}") for sentence in LIST_SENTENCES} == {2}
    assert {s.count("{}") for category in CATEGORIES.values() for s in category.sentences} == {1}
    assert not any("*" in sentence or "\n" in sentence for sentence in SENTENCES)


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_a_second_solver_agrees_and_sizes_are_in_the_ranges_of_the_level(level: str) -> None:
    words = integer_range(TASK.levels[level], "words")
    per_line = integer_range(TASK.levels[level], "words_per_line").low
    for index in range(PROBLEMS):
        problem = draw(level, index)
        assert problem.reference.split() == collect_by_stripping(problem.text)
        assert TASK.solve(problem.text) == problem.reference
        rows = [row.split() for row in problem.reference.splitlines()]
        assert words.low <= sum(map(len, rows)) <= words.high
        assert all(len(row) == per_line for row in rows[:-1])
        assert problem.text.count("\n") == 1


def test_decoys_repeats_capitals_and_every_category_occur() -> None:
    problems = [draw("medium", index) for index in range(100)]
    assert {problem.text.split(" in this", 1)[0].removeprefix("List the ") for problem in problems} == {
        category.phrase for category in CATEGORIES.values()
    }
    for problem in problems:
        found = [word for word in re.findall("[a-z]+", problem.text.split("\n")[1].lower()) if word in MEMBERS]
        assert 5 <= len(found) - len(problem.reference.split()) <= 15
    answers = [problem.reference.split() for problem in problems]
    assert sum(len(set(answer)) < len(answer) for answer in answers) > 50
    assert any(
        word.upper() in problem.text for problem, answer in zip(problems, answers, strict=True) for word in answer
    )


def test_case_and_punctuation_do_not_blur_words() -> None:
    text = 'List the animals in this text, 2 per line:\n"Lion", (TIGER)! The lion; a liontamer, ZEBRA... sheep.Goat'
    assert TASK.solve(text) == "lion tiger\nlion zebra\nsheep goat"
    one_line = text.replace("2 per line", "all on one line")
    assert TASK.solve(one_line) == "lion tiger lion zebra sheep goat"


def test_one_category_alone_has_no_decoys() -> None:
    parameters = level_parameters(TASK, "easy", ["categories=sports", "decoys=4"])
    text, reference = TASK.generate(Random(1), parameters)
    found = [word for word in re.findall("[a-z]+", text.lower()) if word in MEMBERS]
    assert found == reference.split()


def test_wrong_words_are_of_the_same_category() -> None:
    problem = draw("easy", 1)
    right = problem.reference.split()[0]
    category = next(category for category in CATEGORIES.values() if right in category.members)
    random = Random(1)
    wrong = {TASK.wrong_atom(random, problem, 0) for _ in range(500)}
    assert wrong == set(category.members) - {right}


def test_a_worked_explanation_names_the_words_in_order() -> None:
    problem = draw("easy", 2)
    named = [word for line in TASK.explain(problem).splitlines() for word in line.rsplit(" has ", 1)[1].split(" and ")]
    assert [word.rstrip(".") for word in named] == problem.reference.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roses are red", "line 1 is not"),
        ("List the birds in this text, 10 per line:\nA robin.", "no category is called 'birds'"),
        ("", "line 1 is not"),
    ],
)
def test_texts_that_are_no_problem(text: str, message: str) -> None:
    with pytest.raises(ProblemTextError, match=message):
        TASK.solve(text)


@pytest.mark.parametrize("level", DIFFICULTIES)
def test_worked_examples_ask_for_the_layout_of_their_level(level: str) -> None:
    layout = "all on one line" if level == "paper" else "10 per line"
    for example in worked_examples(TASK, level, 3):
        assert f", {layout}:\n" in example.text
        assert ("\n" in example.reference) == (layout == "10 per line" and len(example.reference.split()) > 10)
