"""Rows with problems of one's own: what they become, what is refused and why, and how they are asked."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.own_problems import OwnTask, RowError, read_problem, right_reply
from tasks.task import ParameterError, Turn

CHOICE = {"id": 1, "kind": "choice", "prompt": "Which is even?", "choices": ["7", "12"], "reference": "B"}
JSON = {"id": "j", "kind": "json", "prompt": "Call a tool.", "reference": {"tool": "add", "a": [1, 2.5]}}
NUMBERS = {"id": "n", "kind": "numbers", "prompt": "Count.", "reference": [1, 2.5, -3]}
TEXT = {"id": "t", "kind": "text", "prompt": "Say hello.", "reference": ["Hello there", "Hi"]}


@pytest.mark.parametrize("reference", ["B", "12"])
def test_a_choice_is_named_by_its_letter_or_its_text(reference: str) -> None:
    problem = read_problem({**CHOICE, "reference": reference, "level": 3, "tags": ["a"], "empty": None, "sure": True})
    assert (problem.id, problem.reference, problem.choices) == ("1", "B", ("7", "12"))
    assert problem.question == "Which is even?\n\nA. 7\nB. 12"
    assert problem.columns == (("level", "3"), ("tags", '["a"]'), ("sure", "true"))
    assert right_reply(problem) == "B"


def test_a_whole_number_of_any_length_is_a_number() -> None:
    assert read_problem({**NUMBERS, "reference": [10**400, -1]}).reference == f"{10**400} -1"


def test_references_become_texts() -> None:
    assert read_problem(JSON).reference == '{"tool": "add", "a": [1, 2.5]}'
    assert read_problem(NUMBERS).reference == "1 2.5 -3"
    assert read_problem({**NUMBERS, "kind": "lines", "reference": ["New York", "Rome"]}).reference == "New York\nRome"
    text = read_problem(TEXT)
    assert (text.reference, text.choices) == ("Hello there", ("Hi",))
    assert right_reply(read_problem(NUMBERS)) == "********\n1 2.5 -3\n********"


def test_equal_questions_have_equal_ids_and_everything_asked_or_judged_counts() -> None:
    one = read_problem(JSON).content_id
    assert read_problem({**JSON, "id": "another"}).content_id == one
    changes: list[dict[str, Any]] = [{"prompt": "Call."}, {"reference": {"tool": "add"}}, {"tolerance": 0.1}]
    assert len({one, *(read_problem({**JSON, **change}).content_id for change in changes)}) == 4


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({**CHOICE, "id": None}, "'id' is wanted"),
        ({**CHOICE, "id": True}, "'id' is wanted"),
        ({**CHOICE, "kind": "quiz"}, "'kind' is 'quiz'; there are choice, json, numbers"),
        ({**CHOICE, "kind": None}, "'kind' is missing"),
        ({**CHOICE, "prompt": " "}, "'prompt' is wanted, a text that is not blank"),
        ({**CHOICE, "messages": []}, "either 'prompt' or 'messages'"),
        ({**CHOICE, "choices": ["7"]}, "'choices' is a list of 2 to 26 texts"),
        ({**CHOICE, "choices": ["7", " 7 "]}, "holds a text twice"),
        ({**CHOICE, "choices": ["7", 12]}, "'choices', 2 is wanted, a text"),
        ({**CHOICE, "reference": "C"}, "'C' is neither a letter from A to B nor a choice"),
        ({**CHOICE, "choices": ["B", "x"], "reference": "B"}, "write its letter"),
        ({**CHOICE, "example": "yes"}, "'example' is true or false"),
        ({**NUMBERS, "choices": ["1", "2"]}, "'choices' is for kind choice, not numbers"),
        ({**NUMBERS, "reference": []}, "'reference' is a list of numbers"),
        ({**NUMBERS, "reference": [True]}, "'True' is no number"),
        ({**NUMBERS, "reference": [float("inf")]}, "'inf' is no number"),
        ({**NUMBERS, "kind": "words", "reference": ["two words"]}, "'two words' is more than one of words"),
        ({**NUMBERS, "kind": "lines", "reference": ["a\nb"]}, "is more than one of lines"),
        ({**NUMBERS, "kind": "words", "reference": ["a****b"]}, "holds ****"),
        ({"id": 1, "kind": "json", "prompt": "x"}, "'reference' is wanted, a JSON value"),
        ({**JSON, "reference": [0] * 1001}, "more than 1000 leaves"),
        ({**JSON, "tolerance": -1}, "'tolerance' is a number of at least 0"),
        ({**JSON, "tolerance": "near"}, "'tolerance' is a number"),
        ({**JSON, "unordered": "perhaps"}, "'unordered' is true or false"),
        ({**TEXT, "threshold": 1.5}, "'threshold' is a number from 0 to 1"),
        ({**TEXT, "match": "bleu"}, "'match' is rouge_l or exact"),
        ({**TEXT, "reference": "Grüße"}, "ROUGE-L reads a–z and 0–9 only"),
        ({**TEXT, "reference": []}, "'reference' is a text or a list"),
        ({**TEXT, "note": "x" * 1001}, "a column has at most 1,000 characters"),
        ({**TEXT, **{f"c{i}": 1 for i in range(51)}}, "51 columns; at most 50"),
        ({**TEXT, "prompt": "x" * 200_001}, "longer than 200,000 characters"),
        ({**TEXT, "reference": "x" * 200_001}, "longer than 200,000 characters"),
    ],
)
def test_a_row_that_is_no_problem_says_why(row: dict[str, Any], what: str) -> None:
    with pytest.raises(RowError) as caught:
        read_problem(row)
    assert what in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ([], "a list of objects"),
        (["hello"], "'messages', 1: an object with a role of system, user, assistant"),
        ([{"role": "tool", "content": "x"}], "an object with a role"),
        ([{"role": "user", "content": ""}], "'messages', 1: content is wanted"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}], "user and assistant in turns"),
        ([{"role": "user", "content": "x"}, {"role": "system", "content": "y"}], "a system turn first"),
        ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "the last one is the user's"),
        ([{"role": "system", "content": "x"}], "the last one is the user's"),
    ],
)
def test_a_conversation_has_turns(messages: list[Any], what: str) -> None:
    with pytest.raises(RowError) as caught:
        read_problem({"id": 1, "kind": "text", "messages": messages, "reference": "x"})
    assert what in str(caught.value)


def test_other_scripts_are_compared_exactly() -> None:
    assert read_problem({**TEXT, "reference": "Grüße", "match": "exact"}).form.is_right("atom", "grüße", "")


def test_a_conversation_asks_shows_examples_of_the_kind_and_ends_with_the_question() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And 4?"}]
    asked = read_problem({**NUMBERS, "id": 9})
    example = read_problem({**NUMBERS, "id": "e", "prompt": "Count down.", "reference": [2, 1], "example": True})
    other = read_problem({**CHOICE, "id": "c", "example": True})
    task = OwnTask("file:x", (asked,), (other, example))
    turns = task.conversation(asked, None)
    assert turns[0].content.startswith("Answer with numbers, separated by spaces. Write only the answer, between two")
    assert turns[1:] == (
        Turn("user", "Count down."),
        Turn("assistant", "********\n2 1\n********"),
        Turn("user", "Count."),
    )
    assert len(task.conversation(asked, 0)) == 2
    with pytest.raises(ParameterError, match="file:x: 2 worked examples asked for, the file has 1 of kind numbers"):
        task.conversation(asked, 2)
    row = {key: value for key, value in CHOICE.items() if key != "prompt"} | {"messages": messages}
    spoken = task.conversation(read_problem(row), 0)
    assert spoken[0] == Turn("system", "Be brief.\n\nAnswer with the letter of the right option, and nothing else.")
    assert spoken[-1] == Turn("user", "And 4?\n\nA. 7\nB. 12")
