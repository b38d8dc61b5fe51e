"""The task ``arc_grid``: find the rule behind pairs of grids and apply it (SALT section 4.2, appendix A.1).

The pairs of a problem allow one answer only: all rules of the library and all compositions of two of them that explain
the pairs give the same output for the test grid, at every level.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import ClassVar

import numpy as np

from tasks.arc_rules import COLOURS, FAMILIES, RULES, Grids, Rule
from tasks.arc_search import Explanation, ExplanationSearch, GridPair
from tasks.draws import draw_distinct, draw_integer, draw_item
from tasks.task import (
    ChoiceParameter,
    Dependence,
    IntegerRange,
    Parameter,
    ParameterError,
    Parameters,
    Problem,
    ProblemTextError,
    RangeParameter,
    Task,
)

LARGEST_SIDE = 30
"""No side of a grid is longer, as in ARC-AGI."""

MAXIMUM_PAIRS = 8
_PUZZLE_ATTEMPTS = 400
_GRID_ATTEMPTS = 30

_RULES_OF_FAMILY = {family: [rule for rule in RULES if rule.family == family] for family in FAMILIES}
_HEADER = re.compile(r"(?:Input|Output) (\d+):|Test input:")
_ROW = re.compile(r"\d( \d)*")
_SIMPLE = ("mirror", "shift", "roll", "recolour", "swap", "fall", "extend", "keep", "transpose", "rotate")


def _level(
    families: tuple[str, ...], side: tuple[int, int], colours: tuple[int, int], pairs: tuple[int, int], depth: int
) -> Parameters:
    return {
        "families": families,
        "side": IntegerRange(*side),
        "colours": IntegerRange(*colours),
        "pairs": IntegerRange(*pairs),
        "depth": IntegerRange(depth, depth),
    }


class ArcGrid(Task):
    """Induce a rule on grids; one atom per cell, one line per row."""

    name: ClassVar[str] = "arc_grid"
    title: ClassVar[str] = "ARC grids"
    description: ClassVar[str] = "find the rule behind pairs of grids and apply it to another grid"
    prompt_version: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        ChoiceParameter("families", FAMILIES, "the families that the hidden rule is drawn from"),
        RangeParameter("side", 2, 20, "height and width of an input grid, each drawn anew"),
        RangeParameter("colours", 1, 9, "different colours of the coloured cells"),
        RangeParameter(
            "pairs", 1, 6, f"pairs to begin with; more follow, up to {MAXIMUM_PAIRS}, until one answer is left"
        ),
        RangeParameter("depth", 1, 2, "rules applied one after the other; with 2 no single rule explains the pairs"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": _level(_SIMPLE, (2, 3), (1, 2), (3, 3), 1),
        "easy": _level(FAMILIES, (3, 5), (2, 3), (3, 3), 1),
        "medium": _level(FAMILIES, (5, 8), (2, 4), (3, 4), 1),
        "hard": _level(FAMILIES, (5, 9), (2, 4), (3, 4), 2),
        "paper": _level(FAMILIES, (6, 14), (3, 5), (3, 4), 2),
    }
    dependence: ClassVar[Dependence] = Dependence(
        inputs="All pairs, which show the rule, and the cells of the test grid from which the rule makes this cell.",
        earlier_atoms="",
        intervention_caveat="",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw a rule, pairs and a test grid until one answer is left.

        Raises:
            ParameterError: if the parameters allow no such puzzle, or hardly any.
        """
        for _ in range(_PUZZLE_ATTEMPTS):
            drawn = _draw_puzzle(random, parameters)
            if drawn is not None:
                pairs, test, answer = drawn
                return puzzle_text(pairs, test), format_grid(answer)
        raise ParameterError(
            f"arc_grid: no puzzle with one answer in {_PUZZLE_ATTEMPTS} draws; allow larger sides or more families"
        )

    def solve(self, text: str) -> str:
        """Infer the answer from the pairs by exhaustive search.

        Raises:
            ProblemTextError: if the text is no puzzle, no explanation in the library fits its pairs, or explanations
                disagree about the answer.
        """
        pairs, test = read_puzzle(text)
        answers = _search(pairs, test).answers(test)
        if not answers:
            raise ProblemTextError("no rule of the library, nor two in a row, explains all pairs")
        if len(answers) > 1:
            raise ProblemTextError(f"the pairs allow {len(answers)} different answers")
        return format_grid(answers[0])

    def instructions(self) -> str:
        """Ask for the output grid."""
        return (
            "One hidden rule turns each input grid into its output grid; digits are colours and 0 is empty. "
            "Apply the rule to the test input. Write the output grid row by row, one row per line, with a space "
            "between the cells."
        )

    def explain(self, problem: Problem) -> str:
        """Name the simplest explanation that the pairs allow."""
        pairs, test = read_puzzle(problem.text)
        explanation = simplest_explanation(pairs, test)
        steps = ", then ".join(rule.text for rule in explanation)
        return (
            f"In every pair the output follows from the input by this rule: {steps}. I do the same to the test input."
        )

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw another colour, of those in the problem while there are others.

        Raises:
            IndexError: if the reference has no such cell.
        """
        cells = problem.reference.split()
        if not 0 <= index < len(cells):
            raise IndexError(f"atom {index} of {len(cells)}")
        pairs, test = read_puzzle(problem.text)
        colours = {str(colour) for colour in _colours(pairs, test)} | set(cells)
        others = sorted(colours - {cells[index]}) or [str(c) for c in range(COLOURS) if str(c) != cells[index]]
        return draw_item(random, others)


def format_grid(grid: Grids) -> str:
    """Write rows as lines with a space between the cells."""
    return "\n".join(" ".join(map(str, row)) for row in grid.tolist())


def puzzle_text(pairs: list[GridPair], test: Grids) -> str:
    """Write a puzzle as the prompt shows it and as `read_puzzle` reads it."""
    parts = [
        f"Input {number}:\n{format_grid(pair.input)}\nOutput {number}:\n{format_grid(pair.output)}\n"
        for number, pair in enumerate(pairs, start=1)
    ]
    return "\n".join([*parts, f"Test input:\n{format_grid(test)}"])


def read_puzzle(text: str) -> tuple[list[GridPair], Grids]:
    """Return the pairs and the test grid of a problem text.

    Raises:
        ProblemTextError: naming the line that is wrong.
    """
    grids: list[tuple[str, list[list[int]]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped:
            continue
        if _HEADER.fullmatch(stripped):
            grids.append((stripped, []))
            continue
        if not grids:
            raise ProblemTextError(f"line {number}: an ARC problem starts with 'Input 1:', not {stripped[:40]!r}")
        if not _ROW.fullmatch(stripped):
            raise ProblemTextError(f"line {number}: not a row of digits with single spaces: {stripped[:40]!r}")
        row = [int(cell) for cell in stripped.split()]
        if grids[-1][1] and len(row) != len(grids[-1][1][0]):
            raise ProblemTextError(f"line {number}: {len(row)} cells where the row above has {len(grids[-1][1][0])}")
        grids[-1][1].append(row)
    count = (len(grids) - 1) // 2
    expected = [f"{kind} {number}:" for number in range(1, count + 1) for kind in ("Input", "Output")]
    if count < 1 or [header for header, _ in grids] != [*expected, "Test input:"]:
        raise ProblemTextError("an ARC problem has 'Input 1:', 'Output 1:' and so on, and 'Test input:' at the end")
    for header, rows in grids:
        if not 1 <= len(rows) <= LARGEST_SIDE or len(rows[0]) > LARGEST_SIDE:
            raise ProblemTextError(f"{header} a grid has 1 to {LARGEST_SIDE} rows and columns")
    arrays = [np.array(rows, dtype=np.uint8) for _, rows in grids]
    return [GridPair(arrays[2 * i], arrays[2 * i + 1]) for i in range(count)], arrays[-1]


def simplest_explanation(pairs: list[GridPair], test: Grids) -> Explanation:
    """Return the first explanation of the pairs in the order of the library, single rules before compositions.

    Raises:
        ProblemTextError: if there is none.
    """
    explanations = _search(pairs, test).explanations()
    if not explanations:
        raise ProblemTextError("no rule of the library, nor two in a row, explains all pairs")
    return explanations[0]


def _search(pairs: list[GridPair], test: Grids) -> ExplanationSearch:
    search = ExplanationSearch(_colours(pairs, test))
    for pair in pairs:
        search.add_pair(pair)
    return search


def _colours(pairs: list[GridPair], test: Grids) -> frozenset[int]:
    return frozenset().union(
        *(np.unique(g).tolist() for p in pairs for g in (p.input, p.output)), test.ravel().tolist()
    )


def _range(parameters: Parameters, name: str) -> IntegerRange:
    value = parameters[name]
    assert isinstance(value, IntegerRange)
    return value


def _draw_puzzle(random: Random, parameters: Parameters) -> tuple[list[GridPair], Grids, Grids] | None:
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
