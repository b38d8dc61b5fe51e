"""Units finer than an atom, tokens and characters, and whether they are right (SALT appendix J)."""

from __future__ import annotations

from collections.abc import Sequence


def character_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the half-open byte range of every character of the text in UTF-8; empty text gives none."""
    spans = []
    start = 0
    for character in text:
        end = start + len(character.encode("utf-8", "surrogatepass"))
        spans.append((start, end))
        start = end
    return tuple(spans)


def correct_parts(text: str, reference: str | None, spans: Sequence[tuple[int, int]]) -> tuple[bool, ...]:
    """Return for each part of a unit whether it holds the same bytes as the reference unit at the same place.

    Parts are compared inside their unit, so that separators, which belong to no unit, and earlier units shift
    nothing; this is our reading.  Every part of a redundant unit (no reference) is wrong.  ``1`` and ``3`` of ``134``
    are right against ``135``: the partial credit that makes atoms the better unit (SALT section 2.1).

    Args:
        text: the generated unit.
        reference: the reference unit at the same index, None for a redundant one.
        spans: half-open byte ranges in the unit's UTF-8, of its tokens (cut to the unit) or its characters.

    Raises:
        ValueError: for an empty range or one outside the unit.
    """
    given = text.encode("utf-8", "surrogatepass")
    wanted = None if reference is None else reference.encode("utf-8", "surrogatepass")
    for start, end in spans:
        if not 0 <= start < end <= len(given):
            raise ValueError(f"a part of a unit of {len(given)} bytes is inside it, not {start} to {end}")
    return tuple(wanted is not None and given[start:end] == wanted[start:end] for start, end in spans)
