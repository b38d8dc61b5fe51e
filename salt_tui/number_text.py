"""Numbers as every table and sentence shows them."""

from __future__ import annotations

from math import isinf

UNDEFINED = "–"
INFINITE = "∞"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number without its leading zero: ``.753``, ``-.120``, ``1.000``, ``∞``; a dash for None."""
    if value is None:
        return UNDEFINED
    if isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.removeprefix("-")  # what rounds to zero has no sign
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def percent(share: float | None) -> str:
    """Return a share as a percentage of at most three digits; a dash for None."""
    return UNDEFINED if share is None else f"{100 * share:.3g} %"
