"""Functions on strings of lower-case words, and how their inputs are drawn."""

from __future__ import annotations

from random import Random

from tasks.draws import draw_integer, draw_item

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_VOCABULARY = (
    "able air along animal back basket bird bottle bread bridge bright carry castle change circle clear cloud corner "
    "country dance deep door early earth engine evening family field finger flower forest garden gentle glass green "
    "hammer harbour heavy home horse island journey kitchen ladder large letter light little market meadow minute "
    "morning mountain narrow never ocean open paper people picture plain pocket quick quiet rain river road round "
    "school second silver simple small snow song spoon station stone story street summer table tall thin thunder "
    "travel under valley village voice water wheel white window winter wonder wood yellow young"
)
VOCABULARY = tuple(_VOCABULARY.split())
"""Common words of three to eight letters, drawn for sentences."""


def reverse_words(text: str) -> str:
    """Turn each word around and keep the order of the words."""
    turned = []
    for word in text.split():
        turned.append(word[::-1])
    return " ".join(turned)


def edit_distance(first: str, second: str) -> int:
    """Return how many letters must be inserted, deleted or replaced to make the second word of the first."""
    costs = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        previous = costs
        costs = [i]
        for j, b in enumerate(second, start=1):
            if a == b:
                costs.append(previous[j - 1])
            else:
                costs.append(1 + min(previous[j - 1], previous[j], costs[j - 1]))
    return costs[-1]


def shift_letters(text: str, distance: int) -> str:
    """Replace each letter by the one some places later in the alphabet, around its end."""
    shifted = ""
    for letter in text:
        if letter == " ":
            shifted += " "
        else:
            shifted += chr((ord(letter) - ord("a") + distance) % 26 + ord("a"))
    return shifted


def sort_words(text: str) -> str:
    """Sort the words by length and those of equal length by the alphabet."""
    return " ".join(sorted(text.split(), key=lambda word: (len(word), word)))


def run_lengths(text: str) -> str:
    """Write each run of equal letters as the letter and the length of the run."""
    encoded = ""
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or text[index] != text[start]:
            encoded += text[start] + str(index - start)
            start = index
    return encoded


def _draw_sentence(random: Random, size: int) -> str:
    """Draw half as many words as ``size``, 1 to 40."""
    return " ".join(draw_item(random, VOCABULARY) for _ in range(min(max(size // 2, 1), 40)))


def draw_sentence(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw one sentence of about ``size / 2`` words; the magnitude has no part."""
    return (_draw_sentence(random, size),)


def draw_edit_distance(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a word of ``size`` letters (2 to 30) and the same word after some edits; the magnitude has no part."""
    first = "".join(draw_item(random, LETTERS) for _ in range(min(max(size, 2), 30)))
    second = first
    for _ in range(draw_integer(random, 1, max(len(first) // 2, 1))):
        place = draw_integer(random, 0, len(second) - 1)
        edit = draw_integer(random, 1, 3)
        letter = draw_item(random, LETTERS)
        if edit == 1:
            second = second[:place] + letter + second[place:]
        elif edit == 2:
            second = second[:place] + letter + second[place + 1 :]
        elif len(second) > 1:
            second = second[:place] + second[place + 1 :]
    return first, second


def draw_shift_letters(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw a sentence and a distance from 1 to 25; the magnitude has no part."""
    return _draw_sentence(random, size), draw_integer(random, 1, 25)


def draw_runs(random: Random, size: int, magnitude: int) -> tuple[object, ...]:
    """Draw runs of one to five equal letters, half as many as ``size``, 1 to 12; the magnitude has no part."""
    text = ""
    for _ in range(min(max(size // 2, 1), 12)):
        text += draw_item(random, [letter for letter in LETTERS if letter != text[-1:]]) * draw_integer(random, 1, 5)
    return (text,)
