"""Drawing puzzles of grids until their pairs allow one answer only."""

from __future__ import annotations

from random import Random

import numpy as np

from tasks.arc_families import COLOURS, FAMILIES, LARGEST_SIDE, MAXIMUM_PAIRS
from tasks.arc_rules import RULES, Grids, Rule
from tasks.arc_search import ExplanationSearch, GridPair
from tasks.draws import draw_distinct, draw_integer, draw_item
from tasks.task import IntegerRange, Parameters

_GRID_ATTEMPTS = 30

_RULES_OF_FAMILY = {family: [rule for rule in RULES if rule.family == family] for family in FAMILIES}


def _range(parameters: Parameters, name: str) -> IntegerRange:
    value = parameters[name]
    assert isinstance(value, IntegerRange)
    return value


def draw_puzzle(random: Random, parameters: Parameters) -> tuple[list[GridPair], Grids, Grids] | None:
    """Draw one rule, up to the largest number of pairs and a test grid; None if more than one answer is left."""
    families, depth, begin = parameters["families"], _range(parameters, "depth"), _range(parameters, "pairs")
    assert isinstance(families, tuple)
    colour_count = _range(parameters, "colours")
    palette = draw_distinct(random, range(1, COLOURS), draw_integer(random, colour_count.low, colour_count.high))
    rules = [_draw_rule(random, families, palette) for _ in range(draw_integer(random, depth.low, depth.high))]
    begin_count = draw_integer(random, begin.low, begin.high)
    side = _range(parameters, "side")
    pairs = [_draw_pair(random, rules, palette, side) for _ in range(begin_count + 1)]
    if any(pair is None for pair in pairs):
        return None
    drawn = [pair for pair in pairs if pair is not None]
    test = drawn.pop()
    if len(np.unique(test.output)) < 2:
        return None
    search = ExplanationSearch(frozenset({*palette, *(colour for rule in rules for colour in rule.colours)}))
    for pair in drawn:
        search.add_pair(pair)
    if len(rules) == 2 and search.has_single_rule:
        return None
    while len(search.answers(test.input)) > 1:
        following = _draw_pair(random, rules, palette, side) if len(drawn) < MAXIMUM_PAIRS else None
        if following is None:
            return None
        drawn.append(following)
        search.add_pair(following)
    return drawn, test.input, test.output


def _draw_rule(random: Random, families: tuple[str, ...], palette: list[int]) -> Rule:
    """Draw a family and one of its rules; a rule that looks for a colour looks for one of the palette."""
    rules = _RULES_OF_FAMILY[draw_item(random, families)]
    if rules[0].family in ("recolour", "keep"):
        rules = [rule for rule in rules if rule.colours[0] in palette]
    elif rules[0].family == "swap":
        rules = [rule for rule in rules if not {*rule.colours}.isdisjoint(palette)]
    return draw_item(random, rules)


def _draw_pair(random: Random, rules: list[Rule], palette: list[int], side: IntegerRange) -> GridPair | None:
    """Draw an input that the rules change to a grid within the size limit; None if the attempts run out."""
    for _ in range(_GRID_ATTEMPTS):
        grid = _draw_grid(random, palette, side)
        output: Grids | None = grid
        for rule in rules:
            output = None if output is None else rule.apply(output)
        if output is not None and max(output.shape) <= LARGEST_SIDE and not np.array_equal(grid, output):
            return GridPair(grid, output)
    return None


def _draw_grid(random: Random, palette: list[int], side: IntegerRange) -> Grids:
    """Draw a grid of scattered cells and, where there is room, rectangles, with an empty margin now and then."""
    height, width = draw_integer(random, side.low, side.high), draw_integer(random, side.low, side.high)
    share = draw_integer(random, 15, 60)
    cells = [draw_item(random, palette) if draw_integer(random, 1, 100) <= share else 0 for _ in range(height * width)]
    grid = np.array(cells, dtype=np.uint8).reshape(height, width)
    if min(height, width) >= 4:
        for _ in range(draw_integer(random, 0, 3)):
            _draw_rectangle(random, grid, draw_item(random, palette))
        margin = draw_integer(random, 0, 3)
        if margin == 1:
            grid[0], grid[-1] = 0, 0
        elif margin == 2:
            grid[:, 0], grid[:, -1] = 0, 0
    return grid


def _draw_rectangle(random: Random, grid: Grids, colour: int) -> None:
    """Paint a rectangle with sides of at least three cells, or only its outline, into the grid."""
    height, width = (draw_integer(random, 3, size) for size in grid.shape)
    top = draw_integer(random, 0, grid.shape[0] - height)
    left = draw_integer(random, 0, grid.shape[1] - width)
    grid[top : top + height, left : left + width] = colour
    if draw_integer(random, 1, 3) > 1:
        grid[top + 1 : top + height - 1, left + 1 : left + width - 1] = 0
