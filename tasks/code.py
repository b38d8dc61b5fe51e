"""The task ``code``: say what a Python function returns for one call (SALT section 4.2).

References come from running the source that the prompt shows, in a process with limits; the functions stand in
`tasks.code_functions`.  A returned value is asked for as ``print`` shows it, on one line: a str without quotes, a list
of lists without line breaks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from random import Random
from typing import ClassVar

from tasks.code_execution import EXECUTOR, ExecutionError
from tasks.code_functions import LIBRARY, RELEASE_FUNCTIONS, CodeFunction
from tasks.code_functions.words import LETTERS
from tasks.code_splitting import LiteralSplitter, normalise_literal
from tasks.draws import draw_integer, draw_item
from tasks.splitting import Splitter
from tasks.task import (
    ChoiceParameter,
    Dependence,
    IntegerRange,
    Parameter,
    Parameters,
    Problem,
    ProblemTextError,
    RangeParameter,
    Task,
    quoted,
)

_INTEGER = re.compile(r"-?\d+")
_ALL = tuple(LIBRARY)
_SHORT = ("rotate_array", "move_zeroes", "running_totals", "next_permutation", "transpose", "sort_words", "two_sum")
"""Functions whose answer repeats what stands in the call or counts within it: the smallest models get some right."""


def _level(functions: tuple[str, ...], size: tuple[int, int], magnitude: int) -> Parameters:
    return {"functions": functions, "size": IntegerRange(*size), "magnitude": IntegerRange(magnitude, magnitude)}


class CodeTask(Task):
    """Predict the output of a call; one atom per element, inner list or word, one line."""

    name: ClassVar[str] = "code"
    title: ClassVar[str] = "Code"
    description: ClassVar[str] = "say what a Python function returns for one call"
    prompt_version: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        ChoiceParameter("functions", _ALL, "the functions that a problem may be drawn from"),
        RangeParameter("size", 1, 250, "elements of the input; functions whose output would explode use fewer"),
        RangeParameter("magnitude", 1, 1000, "largest absolute value of an input number"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": _level(_SHORT, (2, 4), 9),
        "easy": _level(_ALL, (3, 6), 9),
        "medium": _level(_ALL, (6, 12), 20),
        "hard": _level(_ALL, (12, 30), 50),
        "paper": _level(_ALL, (4, 120), 99),
    }
    release_names: ClassVar[tuple[str, ...]] = ("code", *RELEASE_FUNCTIONS)
    dependence: ClassVar[Dependence] = Dependence(
        inputs="The program and the part of the call that it reads for this element, which may be all of it.",
        earlier_atoms="",
        intervention_caveat="",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw a function and a call and run it.

        Raises:
            ExecutionError: if the call gave no answer within the limits; the library makes this an error to report,
                never a reason to draw again.
        """
        functions, size, magnitude = parameters["functions"], parameters["size"], parameters["magnitude"]
        assert isinstance(functions, tuple)
        assert isinstance(size, IntegerRange)
        assert isinstance(magnitude, IntegerRange)
        function = LIBRARY[draw_item(random, functions)]
        arguments = function.draw_arguments(
            random, draw_integer(random, size.low, size.high), draw_integer(random, magnitude.low, magnitude.high)
        )
        return _problem_text(function, arguments), _run(function, arguments)

    def solve(self, text: str) -> str:
        """Run the call of a problem text; only sources of the library run.

        Raises:
            ProblemTextError: if the text is not a function of the library followed by a call of it.
        """
        function, arguments = _read_problem(text)
        try:
            return _run(function, arguments)
        except ExecutionError as error:
            raise ProblemTextError(f"the call cannot be run: {error}") from error

    def instructions(self) -> str:
        """Ask for the printed value."""
        return (
            "Work out what the Python program below prints. Write exactly the text that Python prints, on one line: "
            "a list with its brackets and commas, a string without quotes."
        )

    def explain(self, problem: Problem) -> str:
        """Name the function's purpose, its arguments and its result."""
        function, arguments = _read_problem(problem.text)
        bound = ", ".join(f"{name} = {value!r}" for name, value in zip(function.argument_names, arguments, strict=True))
        return (
            f"The program calls {function.name} with {bound}. What this function does: {function.summary} "
            f"Following its steps for these values gives {problem.reference}"
        )

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Draw another integer, list or word like the reference atom.

        An integer is drawn from the span of the answer's integers, widened by nine on both sides; a list differs in
        one such integer; a word has the same length and kinds of characters.

        Raises:
            IndexError: if the reference has no such atom.
        """
        splitter = self.splitter()
        spans = [*splitter.feed(problem.reference), *splitter.finish()]
        if not 0 <= index < len(spans):
            raise IndexError(f"atom {index} of {len(spans)}")
        atom = problem.reference[spans[index].start : spans[index].end]
        if atom == "[]":
            return "[0]"
        integers = [int(match.group()) for match in _INTEGER.finditer(problem.reference)]
        places = [match for match in _INTEGER.finditer(atom)]
        if atom.startswith("[") or _INTEGER.fullmatch(atom):
            place = draw_item(random, places)
            low, high = min(integers) - 9, max(integers) + 9
            other = draw_integer(random, low, high - 1)
            other += other >= int(place.group())
            return f"{atom[: place.start()]}{other}{atom[place.end() :]}"
        return _other_word(random, atom)

    def splitter(self) -> Splitter:
        """Split by the rules of Python literals."""
        return LiteralSplitter()

    def normalise(self, unit: str) -> str:
        """Fold white space and remove the spaces that Python ignores inside lists."""
        return normalise_literal(unit)


def solve_release(name: str, arguments: str) -> str:
    """Return the reference of a row of the published release.

    Args:
        name: the row's ``task``, such as ``TwoSumProblem``.
        arguments: the row's ``input``, the arguments as a tuple literal.

    Raises:
        ProblemTextError: if the function is unknown or the arguments are not a tuple that it takes.
    """
    function = RELEASE_FUNCTIONS.get(name)
    if function is None:
        raise ProblemTextError(f"unknown function {quoted(name)}; the release has {', '.join(RELEASE_FUNCTIONS)}")
    try:
        return _run(function, _read_arguments(arguments))
    except ExecutionError as error:
        raise ProblemTextError(f"the call cannot be run: {error}") from error


def _problem_text(function: CodeFunction, arguments: tuple[object, ...]) -> str:
    return f"{function.source}\n\n\nprint({function.name}({', '.join(map(repr, arguments))}))"


def _run(function: CodeFunction, arguments: tuple[object, ...]) -> str:
    return EXECUTOR.printed(function.source, function.name, repr(arguments))


def _read_problem(text: str) -> tuple[CodeFunction, tuple[object, ...]]:
    source, _, call = text.strip().rpartition("\n")
    name = re.match(r"def (\w+)\(", source)
    function = LIBRARY.get(name.group(1)) if name else None
    if function is None:
        raise ProblemTextError("a code problem starts with 'def', the name of a library function and '('")
    if source.rstrip() != function.source:
        raise ProblemTextError(f"the source of {function.name} differs from the library's, so it is not run")
    start, end = f"print({function.name}(", "))"
    if not (call.startswith(start) and call.endswith(end)):
        raise ProblemTextError(f"the last line must be {start}...{end}")
    return function, _read_arguments(f"({call[len(start) : -len(end)]},)")


def _read_arguments(text: str) -> tuple[object, ...]:
    try:
        arguments = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ProblemTextError(f"the arguments are not Python literals: {quoted(text)}") from error
    if not isinstance(arguments, tuple):
        raise ProblemTextError(f"the arguments are not a tuple: {quoted(text)}")
    return arguments


def _other_word(random: Random, word: str) -> str:
    """Draw a different word of the same length and kinds of characters; digits and other signs stay.

    A word without letters gets one at its end.
    """
    letters = [place for place, character in enumerate(word) if character.isalpha()]
    other = [
        (draw_item(random, LETTERS).upper() if c.isupper() else draw_item(random, LETTERS)) if c.isalpha() else c
        for c in word
    ]
    if not letters:
        return word + draw_item(random, LETTERS)
    if "".join(other) in (word, "DK"):  # DK would be read as an abstention
        place = draw_item(random, letters)
        following = chr((ord(word[place].lower()) - ord("a") + 1) % 26 + ord("a"))
        other[place] = following.upper() if word[place].isupper() else following
    return "".join(other)
