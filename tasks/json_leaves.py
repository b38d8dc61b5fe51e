"""JSON answers as atoms: every leaf with its path, its place in the text and its partner in the right answer.

A leaf is a string, a number, ``true``, ``false``, ``null``, or an empty object or list.  Leaves are compared by path,
in document order; in unordered lists each element is compared with the element it shares most right leaves with.
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

MOST_LEAVES = 1_000
"""Leaves that are compared at most; pairing 1,000 unordered ones with 1,000 others takes about a second."""

DEEPEST = 50
"""Levels of nesting that are read."""

Scalar: TypeAlias = str | Decimal | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A value without parts.

    Attributes:
        value: what it stands for; ``{}`` and ``[]`` are empty tuples of these names.
        start: its first character.
        end: the character after its last one.
    """

    value: Scalar | tuple[str]
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """An object or a list with parts.

    Attributes:
        parts: in document order; keys are texts in an object and places in a list.
        is_list: whether it is a list.
    """

    parts: dict[str | int, Node]
    is_list: bool


Node: TypeAlias = Leaf | Branch

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,6})?")
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_EMPTY = {"{": ("{}",), "[": ("[]",)}
_EXACT = decimal.Context(prec=60, traps=[])


class JsonTextError(ValueError):
    """A text that is not one JSON value; the message says what is wrong and where."""


def read_json(text: str) -> Node:
    """Read one JSON value.

    Raises:
        JsonTextError: for anything else, a key that an object holds twice, or more than `MOST_LEAVES` or `DEEPEST`.
    """
    reader = _Reader(text)
    node = reader.value(0)
    reader.end()
    return node


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves in document order."""
    if isinstance(node, Leaf):
        yield node
    else:
        for part in node.parts.values():
            yield from leaves(part)


def is_right_leaf(given: Leaf, reference: Leaf, tolerance: Decimal) -> bool:
    """Say whether two leaves are equal; numbers may differ by ``tolerance``, booleans are no numbers."""
    one, other = given.value, reference.value
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one == other or _EXACT.abs(_EXACT.subtract(one, other)) <= tolerance
    return type(one) is type(other) and one == other


def partners(reference: Node, given: Node, *, unordered: bool, tolerance: Decimal) -> dict[Leaf, Leaf]:
    """Return for each given leaf the reference leaf at its path, where there is one.

    Args:
        reference: the right answer.
        given: what was answered.
        unordered: the order of elements in lists does not count.
        tolerance: how far two equal numbers may lie apart; decides with which element an element is paired.
    """
    return dict(_pairs(reference, given, unordered, tolerance))


def _pairs(reference: Node, given: Node, unordered: bool, tolerance: Decimal) -> list[tuple[Leaf, Leaf]]:
    if isinstance(reference, Leaf) or isinstance(given, Leaf):
        return [(given, reference)] if isinstance(reference, Leaf) and isinstance(given, Leaf) else []
    if reference.is_list != given.is_list:
        return []
    if reference.is_list and unordered:
        return _pair_elements([*reference.parts.values()], [*given.parts.values()], tolerance)
    return [
        pair
        for key, part in reference.parts.items()
        if key in given.parts
        for pair in _pairs(part, given.parts[key], unordered, tolerance)
    ]


def _pair_elements(reference: list[Node], given: list[Node], tolerance: Decimal) -> list[tuple[Leaf, Leaf]]:
    """Pair the elements of two lists so that most leaves are right, then so that most have a partner."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    pairs = [[_pairs(one, other, True, tolerance) for other in given] for one in reference]
    right = [[sum(is_right_leaf(*pair, tolerance) for pair in cell) for cell in row] for row in pairs]
    shared = [[len(cell) for cell in row] for row in pairs]
    rows, columns = linear_sum_assignment(np.array(right) * (MOST_LEAVES + 1) + np.array(shared), maximize=True)
    return [pair for row, column in zip(rows, columns, strict=True) for pair in pairs[row][column]]


def written(node: Node, text: str) -> str:
    """Write a value that was read from ``text`` in one way: without spaces, numbers as they stand there."""
    if isinstance(node, Leaf):
        piece = text[node.start : node.end]
        return json.dumps(node.value, ensure_ascii=False) if isinstance(node.value, str) else "".join(piece.split())
    if node.is_list:
        return f"[{','.join(written(part, text) for part in node.parts.values())}]"
    parts = (f"{json.dumps(key, ensure_ascii=False)}:{written(part, text)}" for key, part in node.parts.items())
    return f"{{{','.join(parts)}}}"


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._leaves = 0

    def value(self, depth: int) -> Node:
        """Read the value that begins here."""
        if depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} levels")
        self._skip()
        start, sign = self._place, self._text[self._place : self._place + 1]
        if sign in ("{", "["):
            return self._branch(sign, depth)
        if sign == '"':
            return self._leaf(self._string(), start)
        for word, meaning in _WORDS.items():
            if self._text.startswith(word, start):
                self._place += len(word)
                return self._leaf(meaning, start)
        number = _NUMBER.match(self._text, start)
        if number is None:
            raise self._error("a value is wanted")
        self._place = number.end()
        return self._leaf(Decimal(number.group()), start)

    def end(self) -> None:
        """Check that nothing follows."""
        self._skip()
        if self._place < len(self._text):
            raise self._error("something follows the value")

    def _branch(self, opening: str, depth: int) -> Node:
        start, closing = self._place, "}" if opening == "{" else "]"
        self._place += 1
        parts: dict[str | int, Node] = {}
        if self._takes(closing):
            return self._leaf(_EMPTY[opening], start)
        while True:
            key = len(parts) if opening == "[" else self._key(parts)
            parts[key] = self.value(depth + 1)
            if self._takes(closing):
                return Branch(parts, opening == "[")
            if not self._takes(","):
                raise self._error(f"a comma or {closing} is wanted")

    def _key(self, parts: dict[str | int, Node]) -> str:
        self._skip()
        key = self._string()
        if key in parts:
            raise self._error("a key stands here twice")
        if not self._takes(":"):
            raise self._error("a colon is wanted")
        return key

    def _string(self) -> str:
        found = _STRING.match(self._text, self._place)
        try:
            value = json.loads(found.group()) if found is not None else None
        except ValueError:
            value = None
        if found is None or not isinstance(value, str):
            raise self._error("a text in double quotes is wanted")
        self._place = found.end()
        return value

    def _leaf(self, value: Scalar | tuple[str], start: int) -> Leaf:
        self._leaves += 1
        if self._leaves > MOST_LEAVES:
            raise self._error(f"more than {MOST_LEAVES} leaves")
        return Leaf(value, start, self._place)

    def _takes(self, sign: str) -> bool:
        self._skip()
        taken = self._text.startswith(sign, self._place)
        self._place += taken
        return taken

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._place)
        if found is not None:
            self._place = found.end()

    def _error(self, what: str) -> JsonTextError:
        return JsonTextError(f"{what} at character {self._place + 1}")
