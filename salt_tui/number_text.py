"""Numbers as every table and sentence shows them."""

from __future__ import annotations

from math import isinf

UNDEFINED = "–"
INFINITE = "∞"
MINUS = "−"
"""Before every negative number that people read; files for programs have the hyphen."""


def number(value: float | None, digits: int = 3) -> str:
    """Return a number without its leading zero: ``.753``, ``−.120``, ``1.000``, ``∞``; a dash for None."""
    if value is None:
        return UNDEFINED
    if isinf(value):
        return INFINITE if value > 0 else f"{MINUS}{INFINITE}"
    text = f"{abs(value):.{digits}f}"
    sign = MINUS if value < 0.0 and float(text) else ""  # what rounds to zero has no sign
    return sign + (text[1:] if text.startswith("0.") else text)


def signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign: ``+.031``, ``−.120``; none where it rounds to zero."""
    text = number(value, digits)
    return f"+{text}" if value is not None and value > 0.0 and float(f"{value:.{digits}f}") else text


def significant(value: float, digits: int) -> str:
    """Return a number with so many significant digits: ``−1.204``."""
    return f"{value:.{digits}g}".replace("-", MINUS)


def confidence_text(value: float) -> str:
    """Return a number with as many digits as tell it from 1: .9997 is not 1."""
    if isinf(value):
        return number(value)
    if not 0.0 <= value <= 1.0:
        return significant(value, 6 if 1.0 < value < 1.001 else 4)
    if value in {0.0, 1.0}:
        return f"{value:.0f}"
    if value > 0.9999:
        return ">.9999"
    if value < 0.0001:
        return "<.0001"
    return f"{value:.4f}"[1:] if value >= 0.99 or value < 0.01 else f"{value:.3f}"[1:]


def percent(share: float | None) -> str:
    """Return a share as a percentage of at most three digits; a dash for None."""
    return UNDEFINED if share is None else f"{100 * share:.3g} %"
