"""Reading what a column holds as text: JSON and times that another program may have written.

A database travels and may have been edited.  Whatever stands in a column becomes a value or a `StoreError` that names
the file and the row; no other place parses a stored column.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from salt_tui.store.errors import StoreError
from salt_tui.visible_text import visible

Value = TypeVar("Value")

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError)
"""What parsing and taking apart a foreign value may raise."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was read, for the message when it cannot be.

    Attributes:
        path: the database.
        row: which row, in words: ``run 3``.
    """

    path: Path
    row: str

    def read(self, column: str, text: str, parse: Callable[[str], Value]) -> Value:
        """Parse the text of a column.

        Raises:
            StoreError: the text is not what ``parse`` expects.
        """
        try:
            return parse(text)
        except UNREADABLE as error:
            raise StoreError(
                f"{self.path}: {column} of {self.row} cannot be read ({' '.join(str(error).split())[:100]});"
                " restore a copy of the file, or delete what it belongs to"
            ) from error

    def number(self, column: str, value: float | None) -> float | None:
        """Return a number that is stored as one.

        Raises:
            StoreError: it is infinite.
        """
        if value is not None and not isfinite(value):
            raise self.foreign(column, value)
        return value

    def foreign(self, column: str, value: object) -> StoreError:
        """Return the error of a value that no program of ours writes."""
        return StoreError(
            f"{self.path}: {column} of {self.row} is {visible(str(value), 40)}, which cannot be; restore a copy of the"
            " file, or delete what it belongs to"
        )

    def json_object(self, column: str, text: str) -> dict[str, Any]:
        """Return a JSON object."""
        return self.read(column, text, _object)

    def json_list(self, column: str, text: str) -> list[Any]:
        """Return a JSON array."""
        return self.read(column, text, _list)

    def texts(self, column: str, text: str) -> tuple[str, ...]:
        """Return a JSON array of texts."""
        return self.read(column, text, _texts)

    def time(self, column: str, text: str) -> datetime:
        """Return an ISO 8601 time, taken as UTC where it names no zone."""
        return self.read(column, text, _time)


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _list(text: str) -> list[Any]:
    value = json.loads(text)
    if not isinstance(value, list):
        raise ValueError("it is no JSON array")
    return value


def _texts(text: str) -> tuple[str, ...]:
    value = _list(text)
    if not all(isinstance(item, str) for item in value):
        raise ValueError("it is no JSON array of texts")
    return tuple(value)


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
