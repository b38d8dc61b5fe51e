"""The forms of answers to problems of one's own: a choice, JSON, numbers, words, lines, or free text."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from tasks.answer_form import AnswerForm, UnitKind
from tasks.json_leaves import JsonTextError, Node, is_right_leaf, leaves, partners, read_json, written
from tasks.splitting import (
    LineSplitter,
    NoSplitter,
    Span,
    Splitter,
    WhitespaceSplitter,
    WholeSplitter,
    fold_whitespace,
)

OwnKind: TypeAlias = Literal["choice", "json", "numbers", "words", "lines", "text"]
OWN_KINDS: tuple[OwnKind, ...] = ("choice", "json", "numbers", "words", "lines", "text")

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The names of the options of a choice, in order."""

ROUGE_THRESHOLD = 0.3
"""ROUGE-L from which a free text counts as right."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER = 100
_EXACT = decimal.Context(prec=_LONGEST_NUMBER)
_ABSTENTIONS = {'"DK"': "DK", '"<DK>"': "<DK>"}


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """The letter of an option; one atom, no lines."""

    fenced: bool = False

    def splitter(self) -> Splitter:
        """The whole reply is the atom."""
        return WholeSplitter()

    def line_splitter(self) -> Splitter:
        """There are no lines."""
        return NoSplitter()

    def normalise(self, unit: str) -> str:
        """Trim; letters are compared as they are."""
        return fold_whitespace(unit)

    def is_right(self, kind: UnitKind, unit: str, reference: str) -> bool:
        """Compare letters."""
        return self.normalise(unit) == reference


@dataclass(frozen=True, slots=True)
class ListForm:
    """Numbers or words that white space separates, or lines; an atom each.

    Attributes:
        kind: ``numbers``, ``words`` or ``lines``.
    """

    kind: Literal["numbers", "words", "lines"]
    fenced: bool = True

    def splitter(self) -> Splitter:
        """Split at white space, or at line ends."""
        return LineSplitter() if self.kind == "lines" else WhitespaceSplitter()

    def line_splitter(self) -> Splitter:
        """Split into non-empty lines."""
        return LineSplitter()

    def normalise(self, unit: str) -> str:
        """Fold white space; numbers are written in one way, words in lower case, both without a comma at the end."""
        if self.kind == "lines":
            return fold_whitespace(unit)
        return " ".join(self._normalise_word(word) for word in unit.split())

    def is_right(self, kind: UnitKind, unit: str, reference: str) -> bool:
        """Compare in normalised form."""
        return self.normalise(unit) == reference

    def _normalise_word(self, word: str) -> str:
        word = word.rstrip(",;") or word
        return plain_number(word) if self.kind == "numbers" else word.casefold()


@dataclass(frozen=True, slots=True)
class TextForm:
    """Free text: the whole reply is one atom, and there are no lines.

    Attributes:
        references: the right texts, at least one.
        threshold: ROUGE-L (F measure, best over the references) from which a text is right; None: it has to equal one.
    """

    references: tuple[str, ...]
    threshold: float | None = ROUGE_THRESHOLD
    fenced: bool = False

    def splitter(self) -> Splitter:
        """The whole reply is the atom."""
        return WholeSplitter()

    def line_splitter(self) -> Splitter:
        """There are no lines."""
        return NoSplitter()

    def normalise(self, unit: str) -> str:
        """Fold white space and case."""
        return fold_whitespace(unit).casefold()

    def is_right(self, kind: UnitKind, unit: str, reference: str) -> bool:
        """Compare with every reference, whichever ``reference`` is shown."""
        if self.threshold is None:
            return self.normalise(unit) in map(self.normalise, self.references)
        return max(rouge_l(reference, unit) for reference in self.references) >= self.threshold


@dataclass(frozen=True, slots=True)
class JsonForm:
    """One JSON value between fences; an atom for each leaf, and no lines.

    A text that is no JSON value has no atoms: all its leaves are missing.

    Attributes:
        reference: the right value as JSON text.
        tolerance: how far a number may lie from the right one.
        unordered: the order of elements in lists does not count.
    """

    reference: str
    tolerance: Decimal = Decimal(0)
    unordered: bool = False
    fenced: bool = True

    def splitter(self) -> Splitter:
        """Find leaves when the answer has ended; a leaf takes the place of its partner in the reference."""
        return _JsonSplitter(self)

    def line_splitter(self) -> Splitter:
        """There are no lines: how JSON is broken into lines means nothing."""
        return NoSplitter()

    def normalise(self, unit: str) -> str:
        """Write JSON in one way, without spaces between its parts; a leaf that says ``DK`` without quotes."""
        try:
            plain = written(read_json(unit), unit)
        except JsonTextError:
            return fold_whitespace(unit)
        return _ABSTENTIONS.get(plain, plain)

    def is_right(self, kind: UnitKind, unit: str, reference: str) -> bool:
        """Compare a leaf with a leaf, and the whole answer leaf by leaf."""
        try:
            given, wanted = read_json(unit), read_json(reference)
        except JsonTextError:
            return self.normalise(unit) == reference
        paired = partners(wanted, given, unordered=self.unordered, tolerance=self.tolerance)
        count = sum(1 for _ in leaves(wanted))
        return len(paired) == count == sum(1 for _ in leaves(given)) and all(
            is_right_leaf(leaf, partner, self.tolerance) for leaf, partner in paired.items()
        )

    def places(self, text: str) -> list[Span]:
        """Return the leaves of an answer as spans with places; redundant ones come after all reference leaves."""
        try:
            given = read_json(text)
        except JsonTextError:
            return []
        wanted = _read_once(self.reference)
        order = {leaf: index for index, leaf in enumerate(leaves(wanted))}
        paired = partners(wanted, given, unordered=self.unordered, tolerance=self.tolerance)
        spans, beyond = [], len(order)
        for leaf in leaves(given):
            partner = paired.get(leaf)
            spans.append(Span(leaf.start, leaf.end, beyond if partner is None else order[partner]))
            beyond += partner is None
        return spans


class _JsonSplitter:
    """Collects the text and finds the leaves at its end: before, nobody knows which value is whole."""

    def __init__(self, form: JsonForm) -> None:
        self._form = form
        self._pieces: list[str] = []

    def feed(self, text: str) -> list[Span]:
        """Take the next piece; it completes nothing."""
        self._pieces.append(text)
        return []

    def finish(self) -> list[Span]:
        """Return all leaves, in document order."""
        return self._form.places("".join(self._pieces))

    @property
    def pending(self) -> Span | None:
        """No leaf is shown before the answer has ended."""
        return None


@lru_cache(maxsize=256)  # asked for once per answer and study; reading 1,000 leaves takes some milliseconds
def _read_once(text: str) -> Node:
    return read_json(text)


def own_form(kind: OwnKind, reference: str, choices: Sequence[str], columns: dict[str, str]) -> AnswerForm:
    """Return the form of the answer to a problem of one's own, as it is stored.

    Args:
        kind: what is asked.
        reference: the right answer as text.
        choices: for ``text`` further right texts.
        columns: of the row; ``json`` reads ``tolerance`` and ``unordered``, ``text`` reads ``match`` and
            ``threshold``, all checked when the row was read.
    """
    if kind == "choice":
        return ChoiceForm()
    if kind == "json":
        return JsonForm(reference, Decimal(columns.get("tolerance", "0")), columns.get("unordered") == "true")
    if kind == "text":
        exact = columns.get("match") == "exact"
        threshold = None if exact else float(columns.get("threshold", ROUGE_THRESHOLD))
        return TextForm((reference, *choices), threshold)
    return ListForm(kind)


def plain_number(text: str) -> str:
    """Write a number in one way: no sign plus, no needless zeros; other texts stay as they are."""
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return text
    number = Decimal(text)
    # With the usual 28 digits, normalising would make long numbers equal that differ behind them.
    return "0" if number == 0 else format(number.normalize(_EXACT), "f")


def rouge_l(reference: str, text: str) -> float:
    """Return ROUGE-L, the F measure of the longest common subsequence of words (Lin 2004), by ``rouge-score``.

    Range [0, 1], higher is more alike.  The library keeps only a–z and 0–9; a text without any gives 0.

    Raises:
        ModuleNotFoundError: the extra ``text`` is not installed.
    """
    return float(_rouge_scorer().score(reference, text)["rougeL"].fmeasure)


@lru_cache(maxsize=1)
def _rouge_scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"])
