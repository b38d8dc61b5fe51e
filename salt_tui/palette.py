"""How a verdict and a confidence look: a glyph and a shade, never a hue alone (screens.md)."""

from __future__ import annotations

from enum import StrEnum

GLYPHS: dict[str, str] = {
    "correct": "·",
    "wrong": "×",
    "redundant": "+",
    "missing": "-",
    "abstained": "?",
    "streaming": "~",
}
"""One cell each; a right atom is the quietest mark, so that errors stand out without colour."""

SHADES: tuple[str, ...] = (
    "#00224e", "#213b6e", "#4c556c", "#6c6e72", "#8e8978", "#b1a570", "#d9c55c", "#fee838",
)  # fmt: skip
"""Cividis in eight steps, dark to light: luminance rises steadily for every kind of colour sight."""

_FIRST_DARK_INK = 4
"""From this step on black ink has the higher contrast (4.7 at least); below it, white (5.4 at least)."""


def shade_step(confidence: float) -> int:
    """Return the step 0..7 of a confidence in [0, 1]; raises ValueError outside."""
    if not 0.0 <= confidence <= 1.0:
        raise ValueError(f"confidence {confidence} is outside [0, 1]")
    return min(int(confidence * len(SHADES)), len(SHADES) - 1)


def cell_style(status: str, confidence: float | None) -> str:
    """Return the Rich style of one cell: background from confidence, bold unless right, none without confidence."""
    weight = "" if status == "correct" else "bold "
    if confidence is None:
        return weight.strip() or "none"
    step = shade_step(confidence)
    ink = "black" if step >= _FIRST_DARK_INK else "white"
    return f"{weight}{ink} on {SHADES[step]}"


GROUP = 10
"""A blank after every ten units of a line keeps positions countable."""


class DrawingMode(StrEnum):
    """How a cell is drawn: with how many colours a terminal has, none included."""

    COLOUR = "colour"
    ANSI = "ansi"
    PLAIN = "plain"


ANSI_SHADES = "·░▒▓█"
"""With sixteen colours cividis collapses to four, so a right atom is drawn as a block that fills with confidence."""

_ANSI_WEIGHTS = ("yellow", "bold bright_yellow", "bold reverse bright_yellow")
"""Of an atom that is not right, unsure to sure: its glyph is the verdict, so weight and reversal carry the shade."""


def draw_cell(mode: DrawingMode, status: str, step: int | None) -> tuple[str, str]:
    """Return the one character of a cell and its Rich style.

    Args:
        mode: of the terminal.
        status: a key of `GLYPHS`.
        step: shade 0..7 of the confidence, None without one.

    Returns:
        `COLOUR`: the verdict's glyph on a cividis background.  `ANSI`: for a right atom a block of five fillings, for
        another its glyph, thin, bold or reversed, thin without a confidence.  `PLAIN`: the step as a digit, reversed
        unless right, underlined where atom and reference have no partner; the glyph without a confidence and for an
        abstention.
    """
    right = status == "correct"
    if mode is DrawingMode.COLOUR:
        return GLYPHS[status], cell_style(status, None if step is None else (step + 0.5) / len(SHADES))
    if mode is DrawingMode.ANSI:
        if not right:
            weight = 0 if step is None else step * len(_ANSI_WEIGHTS) // len(SHADES)
            return GLYPHS[status], _ANSI_WEIGHTS[weight]
        return ANSI_SHADES[0 if step is None else step * len(ANSI_SHADES) // len(SHADES)], "bright_blue"
    words = [] if right else ["bold" if status == "streaming" else "reverse"]
    if status in {"missing", "redundant"}:
        words.append("underline")
    # What was abstained from has a confidence that no metric counts.
    return GLYPHS[status] if step is None or status == "abstained" else str(step), " ".join(words) or "none"
