"""The task ``arc_grid``: find the rule behind pairs of grids and apply it (SALT section 4.2, appendix A.1).

The pairs of a problem allow one answer only: all rules of the library and all compositions of two of them that explain
the pairs give the same output for the test grid, at every level.

The rules, the search and numpy are loaded by the first problem: together they take longer than all other tasks, and
the list of tasks needs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import ClassVar

from tasks.arc_families import COLLECTIONS, COLOURS, FAMILIES, GENERATED, MAXIMUM_PAIRS
from tasks.draws import draw_item
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

_PUZZLE_ATTEMPTS = 400
_SIMPLE = ("mirror", "shift", "roll", "recolour", "swap", "fall", "extend", "keep", "transpose", "rotate")


def _level(
    families: tuple[str, ...], side: tuple[int, int], colours: tuple[int, int], pairs: tuple[int, int], depth: int
) -> Parameters:
    return {
        "puzzles": (GENERATED,),
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
    answer_is_grid = True
    description: ClassVar[str] = "find the rule behind pairs of grids and apply it to another grid"
    prompt_version: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        ChoiceParameter(
            "puzzles",
            (GENERATED, *COLLECTIONS),
            "drawn here, or the original ARC-AGI puzzles (extra arc), to which the other parameters do not apply",
        ),
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
        """Draw a rule, pairs and a test grid until one answer is left, or draw one of the original puzzles.

        Raises:
            ParameterError: if the parameters allow no such puzzle, or hardly any, or the originals are not installed.
        """
        puzzles = parameters["puzzles"]
        assert isinstance(puzzles, tuple)
        source = puzzles[0] if len(puzzles) == 1 else draw_item(random, puzzles)
        if source != GENERATED:
            from tasks.arc_puzzles import load_arc_puzzles

            problem = draw_item(random, load_arc_puzzles(source)).problem
            return problem.text, problem.reference
        from tasks.arc_drawing import draw_puzzle
        from tasks.arc_text import format_grid, puzzle_text

        for _ in range(_PUZZLE_ATTEMPTS):
            drawn = draw_puzzle(random, parameters)
            if drawn is not None:
                pairs, test, answer = drawn
                return puzzle_text(pairs, test), format_grid(answer)
        raise ParameterError(
            f"arc_grid: no puzzle with one answer in {_PUZZLE_ATTEMPTS} draws; allow larger sides or more families"
        )

    def solve(self, text: str) -> str:
        """Infer the answer from the pairs by exhaustive search; that of an original puzzle is looked up.

        Raises:
            ProblemTextError: if the text is no puzzle, no explanation in the library fits its pairs, or explanations
                disagree about the answer.
        """
        from tasks.arc_puzzles import original_answer
        from tasks.arc_search import search_for
        from tasks.arc_text import format_grid, read_puzzle

        pairs, test = read_puzzle(text)
        original = original_answer(text)
        if original is not None:
            return original
        answers = search_for(pairs, test).answers(test)
        if not answers:
            raise ProblemTextError("no rule of the library, nor two in a row, explains all pairs")
        if len(answers) > 1:
            raise ProblemTextError(f"the pairs allow {len(answers)} different answers")
        return format_grid(answers[0])

    def caveat(self, parameters: Parameters) -> str:
        """Say that nobody proved the original puzzles to have one answer only."""
        puzzles = parameters["puzzles"]
        assert isinstance(puzzles, tuple)
        originals = [name for name in puzzles if name in COLLECTIONS]
        return f"{', '.join(originals)} puzzles are not proven unique" if originals else ""

    def instructions(self) -> str:
        """Ask for the output grid."""
        return (
            "One hidden rule turns each input grid into its output grid; digits are colours and 0 is empty. "
            "Apply the rule to the test input. Write the output grid row by row, one row per line, with a space "
            "between the cells."
        )

    def explain(self, problem: Problem) -> str:
        """Name the simplest explanation that the pairs allow; an original puzzle may have none in the library."""
        from tasks.arc_search import simplest_explanation
        from tasks.arc_text import read_puzzle

        pairs, test = read_puzzle(problem.text)
        try:
            explanation = simplest_explanation(pairs, test)
        except ProblemTextError:
            return "In every pair the output follows from the input by one rule. I do the same to the test input."
        steps = ", then ".join(rule.text for rule in explanation)
        return (
            f"In every pair the output follows from the input by this rule: {steps}. I do the same to the test input."
        )

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw another colour, of those in the problem while there are others.

        Raises:
            IndexError: if the reference has no such cell.
        """
        from tasks.arc_search import colours_of
        from tasks.arc_text import read_puzzle

        cells = problem.reference.split()
        if not 0 <= index < len(cells):
            raise IndexError(f"atom {index} of {len(cells)}")
        pairs, test = read_puzzle(problem.text)
        colours = {str(colour) for colour in colours_of(pairs, test)} | set(cells)
        others = sorted(colours - {cells[index]}) or [str(c) for c in range(COLOURS) if str(c) != cells[index]]
        return draw_item(random, others)
