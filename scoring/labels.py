"""Strict labels: one generated unit against the reference unit at the same index (SALT sections 2.1 and 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

UnitStatus: TypeAlias = Literal["correct", "wrong", "missing", "redundant", "abstained"]
"""``missing``: no generated unit; ``redundant``: no reference unit; ``abstained``: the model wrote `ABSTENTIONS`."""

UNIT_STATUSES: tuple[UnitStatus, ...] = ("correct", "wrong", "missing", "redundant", "abstained")

CONFIDENCE_STATUSES: frozenset[UnitStatus] = frozenset({"correct", "wrong", "redundant"})
"""Statuses that enter confidence metrics; ``correct`` counts as 1, the other two as 0."""

ABSTENTIONS: frozenset[str] = frozenset({"DK", "<DK>"})


def label_unit(text: str, reference: str | None) -> UnitStatus:
    """Label one generated unit; both strings are normalised (trimmed, inner white space folded).

    Args:
        text: the generated unit.
        reference: the reference unit at the same index, None when the reference has none there.

    Returns:
        ``redundant`` without a reference, whatever the text (our reading), so that the counts of the statuses always
        give the number of reference units; otherwise ``correct`` for equal strings, ``abstained`` for ``DK`` and
        ``<DK>``, ``wrong`` for the rest.
    """
    if reference is None:
        return "redundant"
    if text == reference:
        return "correct"
    return "abstained" if text in ABSTENTIONS else "wrong"


def label_units(generated: Sequence[str], reference: Sequence[str]) -> tuple[UnitStatus, ...]:
    """Label a whole answer by index; shape ``(max(generated, reference),)``, missing units last.

    Both empty gives an empty tuple.
    """
    known = len(reference)
    labels: list[UnitStatus] = [
        label_unit(text, reference[index] if index < known else None) for index, text in enumerate(generated)
    ]
    labels.extend(["missing"] * (known - len(generated)))
    return tuple(labels)
