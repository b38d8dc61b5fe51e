"""Untrusted text made safe to show: model output, file names and errors.

Whatever could move the cursor, change colours, reorder or hide text is spelled out, so that it is seen and does
nothing.
"""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str, limit: int | None = None) -> str:
    r"""Return ``text`` with every control, format, private, unassigned and unusual space character escaped.

    Args:
        text: anything.
        limit: characters kept; a longer text ends in ``…``.

    Returns:
        One line: line feeds are ``\n``, tabs ``\t``, others ``\x1b`` or ``\u202e``.
    """
    shown = "".join(_escape(character) for character in (text if limit is None else text[: limit + 1]))
    if limit is not None and (len(text) > limit or len(shown) > limit):
        return f"{shown[: limit - 1]}…"
    return shown


def _escape(character: str) -> str:
    if character == " ":
        return character
    category = unicodedata.category(character)
    if category in _INVISIBLE or category == "Zs":
        return character.encode("unicode_escape").decode("ascii")
    return character
