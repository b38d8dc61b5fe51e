"""Words Collection: list every word of one category in a passage, in order (SALT section 4.2, appendix K)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import ClassVar

from tasks.draws import draw_integer, draw_item, draw_shuffled
from tasks.parameters import choices, integer_range
from tasks.task import (
    ChoiceParameter,
    Dependence,
    IntegerRange,
    Parameter,
    Parameters,
    Problem,
    ProblemTextError,
    RangeParameter,
    Task,
    quoted,
)
from tasks.word_lists import CATEGORIES, FILLER_SENTENCES, LIST_SENTENCES, Category

_ALL = tuple(CATEGORIES)
_TEN = IntegerRange(10, 10)
_ONE_LINE = IntegerRange(400, 400)
_HEADING = re.compile(
    r"List the (?P<phrase>[a-z ]+) in this text, (?P<width>[1-9][0-9]{0,2} per line|all on one line):"
)
_WORD = re.compile(r"[a-z]+")
_BY_PHRASE = {category.phrase: category for category in CATEGORIES.values()}


class WordsCollection(Task):
    """Every occurrence counts, repeats included; the answer is lower case."""

    name: ClassVar[str] = "words_collection"
    title: ClassVar[str] = "Words Collection"
    description: ClassVar[str] = "list every word of one category in a passage, in order"
    prompt_version: ClassVar[int] = 2
    parameters: ClassVar[tuple[Parameter, ...]] = (
        RangeParameter("words", 1, 400, "words of the category in the passage, repeats included"),
        RangeParameter("decoys", 0, 400, "words of other categories in the passage"),
        RangeParameter("filler", 0, 400, "sentences without a word of any category"),
        RangeParameter("words_per_line", 1, 400, "words on a line of the answer; 400 asks for one line"),
        ChoiceParameter("categories", _ALL, "categories that are asked for and that decoys come from"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": {
            "words": IntegerRange(2, 3),
            "decoys": IntegerRange(0, 1),
            "filler": IntegerRange(0, 1),
            "words_per_line": _TEN,
            "categories": _ALL,
        },
        "easy": {
            "words": IntegerRange(4, 8),
            "decoys": IntegerRange(1, 4),
            "filler": IntegerRange(1, 4),
            "words_per_line": _TEN,
            "categories": _ALL,
        },
        "medium": {
            "words": IntegerRange(10, 25),
            "decoys": IntegerRange(5, 15),
            "filler": IntegerRange(5, 15),
            "words_per_line": _TEN,
            "categories": _ALL,
        },
        "hard": {
            "words": IntegerRange(25, 60),
            "decoys": IntegerRange(25, 60),
            "filler": IntegerRange(10, 30),
            "words_per_line": _TEN,
            "categories": _ALL,
        },
        "paper": {
            "words": IntegerRange(5, 155),
            "decoys": IntegerRange(5, 80),
            "filler": IntegerRange(5, 80),
            "words_per_line": _ONE_LINE,
            "categories": _ALL,
        },
    }
    release_names: ClassVar[tuple[str, ...]] = ("NeedlesInHaystackProblem", "Words Collection")
    dependence: ClassVar[Dependence] = Dependence(
        inputs="The passage from its beginning to the word itself, to know how many words of the category come before.",
        earlier_atoms="",
        intervention_caveat="Positional only: a word left out or added shifts the place of every later one.",
    )

    def example_parameters(self, difficulty: str) -> Parameters:
        """Take the length of a line from the level itself, so that the examples ask for the layout of its problems."""
        return {
            **super().example_parameters(difficulty),
            "words_per_line": self.levels[difficulty]["words_per_line"],
        }

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw a category, its words (with replacement), decoys and filler, and scatter them over sentences.

        With a single category chosen there is no other to draw decoys from, and the passage has none.
        """
        names = choices(parameters, "categories")
        name = draw_item(random, names)
        others = [other for other in names if other != name]
        mentions = [
            (CATEGORIES[name], draw_item(random, CATEGORIES[name].members))
            for _ in range(_draw(random, parameters, "words"))
        ]
        for _ in range(_draw(random, parameters, "decoys")):
            if others:
                decoy = CATEGORIES[draw_item(random, others)]
                mentions.append((decoy, draw_item(random, decoy.members)))
        filler = [draw_item(random, FILLER_SENTENCES) for _ in range(_draw(random, parameters, "filler"))]
        passage = " ".join(draw_shuffled(random, _sentences(random, draw_shuffled(random, mentions)) + filler))
        width = _draw(random, parameters, "words_per_line")
        layout = "all on one line" if width == _ONE_LINE.high else f"{width} per line"
        text = f"List the {CATEGORIES[name].phrase} in this text, {layout}:\n{passage}"
        return text, self.solve(text)

    def solve(self, text: str) -> str:
        """Read the category from the first line and collect its words from the rest.

        The release's own texts bring no category: `tasks.release.solve_release_row` takes their list of words.
        """
        heading, _, passage = text.strip().partition("\n")
        match = _HEADING.fullmatch(heading.strip())
        if match is None:
            raise ProblemTextError("line 1 is not 'List the ... in this text, ... per line:'")
        category = _BY_PHRASE.get(match["phrase"])
        if category is None:
            raise ProblemTextError(f"line 1: no category is called {quoted(match['phrase'])}")
        members = set(category.members)
        found = [word for word in _WORD.findall(passage.lower()) if word in members]
        width = _ONE_LINE.high if match["width"].startswith("all") else int(match["width"].split()[0])
        return "\n".join(" ".join(found[start : start + width]) for start in range(0, len(found), width))

    def instructions(self) -> str:
        """Say what to list and how."""
        return (
            "Read the text and list every word of the named kind that occurs in it, in the order of the text. "
            "List a word again each time it occurs. Use lower case and separate the words by spaces."
        )

    def explain(self, problem: Problem) -> str:
        """Go through the sentences that hold a word of the category."""
        words = set(problem.reference.split())
        steps = []
        for sentence in re.split(r"(?<=[.!?]) ", problem.text.partition("\n")[2]):
            found = [word for word in _WORD.findall(sentence.lower()) if word in words]
            if found:
                steps.append(f"'{sentence}' has {' and '.join(found)}.")
        return "\n".join(steps)

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw another member of the category."""
        right = problem.reference.split()[index]
        category = next(category for category in CATEGORIES.values() if right in category.members)
        return draw_item(random, [member for member in category.members if member != right])


def _draw(random: Random, parameters: Parameters, name: str) -> int:
    value = integer_range(parameters, name)
    return draw_integer(random, value.low, value.high)


def _sentences(random: Random, mentions: list[tuple[Category, str]]) -> list[str]:
    """Put the mentions into sentences: one of its category's, or one in four times two in a sentence for all."""
    sentences = []
    position = 0
    while position < len(mentions):
        pair = mentions[position : position + 2]
        if len(pair) == 2 and draw_integer(random, 1, 4) == 1:
            sentences.append(
                draw_item(random, LIST_SENTENCES).format(*(_written(random, *mention) for mention in pair))
            )
            position += 2
        else:
            category, _ = pair[0]
            sentences.append(draw_item(random, category.sentences).format(_written(random, *pair[0])))
            position += 1
    return sentences


def _written(random: Random, category: Category, word: str) -> str:
    """Write a member as passages do; one in eight times in capitals."""
    if draw_integer(random, 1, 8) == 1:
        return word.upper()
    return word.capitalize() if category.capitalised else word
