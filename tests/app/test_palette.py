"""The colours of the cells: told apart by everybody, legible, rising with confidence, and said again without colour."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from salt_tui.palette import GLYPHS, HUES, SHADES, DrawingMode, Look, Shading, draw_cell, luminance

pytestmark = pytest.mark.quick

DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""What a complete deficiency does to linear RGB: Machado, Oliveira and Fernandes 2009, table 1, severity 1."""

TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, deficiency: str) -> NDArray[np.float64]:
    """Return CIE L*a*b* of a colour as somebody sees it."""
    srgb = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(DEFICIENCIES[deficiency] @ linear, 0.0, 1.0)
    ratio = TO_XYZ @ seen / WHITE
    root = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def distance(first: str, second: str, deficiency: str) -> float:
    return float(np.linalg.norm(lab(first, deficiency) - lab(second, deficiency)))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("light", [False, True])
def test_blue_and_orange_are_told_apart_at_every_strength(deficiency: str, light: bool) -> None:
    pairs = zip(HUES[light, True], HUES[light, False], strict=True)
    least = min(distance(blue, orange, deficiency) for blue, orange in pairs)
    assert least > (13 if light else 24), "2.3 is just noticeable"


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("ramp", [*HUES.values(), SHADES])
def test_every_step_is_seen(deficiency: str, ramp: tuple[str, ...]) -> None:
    assert min(distance(first, second, deficiency) for first, second in pairwise(ramp)) > 6
    lightness = [lab(colour, deficiency)[0] for colour in ramp]
    assert lightness in (sorted(lightness), sorted(lightness, reverse=True)), "a ramp in grey too"


@pytest.mark.parametrize("light", [False, True])
def test_stronger_stands_out_more_from_the_ground(light: bool) -> None:
    for right in (True, False):
        levels = [luminance(colour) for colour in HUES[light, right]]
        assert levels == sorted(levels, reverse=light)


@pytest.mark.parametrize(("light", "status", "shading"), list(product([False, True], GLYPHS, Shading)))
def test_ink_is_read_on_every_colour(light: bool, status: str, shading: Shading) -> None:
    look = Look(DrawingMode.COLOUR, shading, light)
    for step in range(look.steps):
        ink, _, ground = draw_cell(look, status, step)[1].removeprefix("bold ").partition(" on ")
        if ground:
            first, second = sorted((luminance(ink), luminance(ground)))
            assert (second + 0.05) / (first + 0.05) > 4.7


@pytest.mark.parametrize(("mode", "shading"), list(product(DrawingMode, Shading)))
def test_no_mode_tells_verdicts_by_hue_alone(mode: DrawingMode, shading: Shading) -> None:
    look = Look(mode, shading)
    for step in range(look.steps):
        cells = (draw_cell(look, status, None if status == "missing" else step) for status in GLYPHS)
        looks = {(glyph, frozenset(style.split()) & {"bold", "reverse"}) for glyph, style in cells}
        digits = mode is DrawingMode.PLAIN and shading is Shading.STRENGTH
        assert len(looks) >= (5 if digits else len(GLYPHS))


@pytest.mark.parametrize("status", ["correct", "wrong", "redundant"])
def test_sure_is_told_from_unsure_in_every_mode_and_not_by_glyphs_alone(status: str) -> None:
    for mode in DrawingMode:
        look = Look(mode)
        looks = [draw_cell(look, status, step) for step in range(look.steps)]
        assert len(set(looks)) >= 2
        assert looks == sorted(looks, key=looks.index), "a look belongs to one stretch of the scale"
        assert len({draw_cell(Look(mode, Shading.GLYPHS), status, step) for step in range(5)}) == 1


def test_sixteen_colours_are_legible_on_black_and_on_white() -> None:
    for status, step in product(GLYPHS, range(5)):
        _, style = draw_cell(Look(DrawingMode.ANSI), status, step)
        words = set(style.split())
        ink_of_the_ground = not words & {"bright_yellow", "bright_blue", "yellow", "blue"}
        assert ink_of_the_ground or "on" in words or "bright_blue" in words, "yellow ink needs a ground of its own"


def test_a_confidence_outside_its_range_is_refused() -> None:
    look = Look(DrawingMode.COLOUR)
    assert [look.step(value) for value in (0.0, 0.19, 0.2, 0.99, 1.0)] == [0, 0, 1, 4, 4]
    for value in (-0.1, 1.1):
        with pytest.raises(ValueError, match="outside"):
            look.step(value)
