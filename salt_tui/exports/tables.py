"""A table on its way to a file: named, typed columns, and rows that are read while they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["integer", "real", "text", "bytes"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; None is undefined in every type."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and the rows below them, each as long as the columns."""

    columns: tuple[Column, ...]
    rows: Iterable[Sequence[object]]


def typed(names: str, kind: ColumnType) -> tuple[Column, ...]:
    """Return columns of one type from their names, separated by white space."""
    return tuple(Column(name, kind) for name in names.split())
