"""What one unit of a stored answer says, what is right there, and where the two part."""

from __future__ import annotations

from dataclasses import dataclass

from salt_tui.app.right_tokens import Parting, where_it_parts
from salt_tui.store.queries import Queries
from salt_tui.store.records import UnitKind


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a unit.

    Attributes:
        text: what the model said, None for nothing or where it is not known.
        reference: what is right, None where nothing is or where it is not known.
        parting: where an atom parts from what is right, None where that is not known.
    """

    text: str | None = None
    reference: str | None = None
    parting: Parting | None = None


def read_said(queries: Queries, generation: int, kind: UnitKind, place: int) -> Said:
    """Read the unit at a place among those of its kind, and the tokens of an atom.

    Raises:
        StoreError: it cannot be read.
    """
    unit = queries.unit(generation, kind, place)
    if unit is None:
        return Said()
    parting = None
    if kind == "atom" and unit.status == "wrong" and unit.token_start is not None and unit.token_end is not None:
        # One token more: the atom may have ended too early.
        parting = where_it_parts(unit, queries.tokens(generation, range(unit.token_start, unit.token_end + 1)))
    return Said(unit.text, unit.reference, parting)
