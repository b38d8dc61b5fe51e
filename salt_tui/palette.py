"""How a verdict and a confidence look: hue says the verdict, strength the confidence, a glyph the verdict again.

Two hues only, blue for right and orange for not right; a third would merge with one of them for somebody who cannot see
red or green.  The colours were computed in CIECAM02 at hues 250 and 60 in five equal steps.  A test measures their
distances for normal and for colour-blind sight.
"""

from __future__ import annotations

from dataclasses import dataclass
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

NOT_RIGHT = frozenset({"wrong", "redundant"})
"""Verdicts that share the hue of an error; the others than these and ``correct`` have no hue."""

GROUP = 10
"""A blank after every ten units of a line keeps positions countable."""

STRENGTHS = 5
"""Steps from unsure to sure."""

HUES: dict[tuple[bool, bool], tuple[str, ...]] = {
    (False, True): ("#354458", "#4a6487", "#5d84b8", "#6fa5eb", "#9ac4fe"),
    (False, False): ("#573a22", "#82542c", "#ae6e34", "#db873b", "#ffa758"),
    (True, True): ("#eaf1ff", "#cce0ff", "#a8cdff", "#7fb5fc", "#549cf4"),
    (True, False): ("#ffecdf", "#ffd3b0", "#ffb474", "#ee9748", "#d87918"),
}
"""Backgrounds from unsure to sure, by (light ground, right)."""

SHADES: tuple[str, ...] = (
    "#00224e", "#213b6e", "#4c556c", "#6c6e72", "#8e8978", "#b1a570", "#d9c55c", "#fee838",
)  # fmt: skip
"""Cividis in eight steps, dark to light: luminance rises steadily for every kind of colour sight."""


class DrawingMode(StrEnum):
    """How many colours a terminal has."""

    COLOUR = "colour"
    ANSI = "ansi"
    PLAIN = "plain"


class Shading(StrEnum):
    """What the colour of a cell says."""

    VERDICT = "verdict and strength"
    STRENGTH = "strength alone"
    GLYPHS = "glyphs alone"


@dataclass(frozen=True, slots=True)
class Look:
    """How cells are drawn.

    Attributes:
        mode: of the terminal.
        shading: what the user wants to see.
        light: whether the ground is light.
    """

    mode: DrawingMode
    shading: Shading = Shading.VERDICT
    light: bool = False

    @property
    def steps(self) -> int:
        """How many strengths are told apart."""
        return len(SHADES) if self.shading is Shading.STRENGTH else STRENGTHS

    def step(self, confidence: float) -> int:
        """Return the step of a confidence, from 0; raises ValueError outside [0, 1]."""
        if not 0.0 <= confidence <= 1.0:
            raise ValueError(f"confidence {confidence} is outside [0, 1]")
        return min(int(confidence * self.steps), self.steps - 1)


PLAIN_DIGITS = "01234567"
"""Without colours a digit is the strength, where strength alone was asked for."""

BLOCKS = "·░▒▓█"
"""With sixteen colours a right atom is a block that fills with confidence."""

_ANSI_RIGHT = "bright_blue"
"""Read on black (4.5:1 with xterm's colours) and on white (4.6:1) alike; yellow as ink would vanish on white."""

_ANSI_NOT_RIGHT = ("bold", "bold", "bold bright_yellow on black", "bold bright_yellow on black", "bold black on yellow")
"""Unsure, between, sure: its own ground lets yellow be read on white too."""

_FIRST_SURE = STRENGTHS - 1
"""Without colours the surest step is reversed."""


def draw_cell(look: Look, status: str, step: int | None) -> tuple[str, str]:
    """Return the one character of a cell and its Rich style.

    Args:
        look: how cells are drawn.
        status: a key of `GLYPHS`.
        step: of the confidence, ``0 ≤ step < look.steps``, None without one.

    Returns:
        The glyph of the verdict and its style.  Only two cells have another character: a right atom with sixteen
        colours is a block of five fillings, and strength alone without colours is a digit.  Missing, abstained and
        streaming units have no hue.
    """
    glyph, weight = GLYPHS[status], "" if status == "correct" else "bold"
    if status not in NOT_RIGHT and status != "correct":
        return glyph, "bold" if status == "streaming" else "dim"
    if step is None or look.shading is Shading.GLYPHS:
        return glyph, weight or "none"
    if look.mode is DrawingMode.COLOUR:
        return glyph, f"{weight} {_colours(look, status, step)}".strip()
    if look.shading is Shading.STRENGTH:
        if look.mode is DrawingMode.PLAIN:
            return PLAIN_DIGITS[step], weight or "none"
        if not weight:
            return BLOCKS[step * len(BLOCKS) // look.steps], "none"
        return glyph, "bold reverse" if 2 * step >= look.steps else "bold"
    if look.mode is DrawingMode.PLAIN:
        return glyph, " ".join(filter(None, (weight, "reverse" if step >= _FIRST_SURE else ""))) or "none"
    return (BLOCKS[step], _ANSI_RIGHT) if status == "correct" else (glyph, _ANSI_NOT_RIGHT[step])


def _colours(look: Look, status: str, step: int) -> str:
    """Return ink and ground of a cell: the ink is the one of black and white that has more contrast."""
    ground = SHADES[step] if look.shading is Shading.STRENGTH else HUES[look.light, status == "correct"][step]
    return f"{'#000000' if luminance(ground) > _EQUAL_CONTRAST else '#ffffff'} on {ground}"


def luminance(colour: str) -> float:
    """Return the relative luminance, 0 to 1, of a colour ``#rrggbb`` (WCAG 2.1)."""
    red, green, blue = (_linear(int(colour[start : start + 2], 16) / 255) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


_EQUAL_CONTRAST = 0.179
"""Above this luminance black has more contrast than white: (L + .05) / .05 = 1.05 / (L + .05)."""
