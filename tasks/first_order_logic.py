"""Every variable whose truth value some formulas force (SALT section 4.2; propositional, in spite of its name)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import ClassVar, cast

from tasks.draws import draw_distinct, draw_integer, draw_item
from tasks.propositional import (
    Compound,
    Connective,
    Constant,
    ContradictionError,
    Formula,
    FormulaError,
    Variable,
    evaluate,
    forced_values,
    formula_variables,
    parse_formula,
)
from tasks.splitting import LineSplitter, Splitter
from tasks.task import (
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

_HEADING = "Initial Assignments:"
_ASSIGNMENT = re.compile(r"p([0-9]{1,9})\s*:\s*(True|False)")
_CONNECTIVES: tuple[Connective, ...] = ("∧", "∨", "¬", "→", "↔")
_BINARY: tuple[Connective, ...] = ("∧", "∨", "→", "↔")
_FACT_IN_HUNDRED = 4
"""Share of formulas without a two-place connective, as ``p3``, ``¬(p3)`` or ``True``; 3 % in the release."""
_CONSTANT_IN_HUNDRED = 1
"""Share of leaves that are ``True`` or ``False``."""
_THREE_OPERANDS_IN_HUNDRED = 10
"""Share of ``∧`` and ``∨`` that take three operands instead of two."""
_FORMULA_DRAWS = 100
"""Draws for a new formula that holds, with the outer connective fixed; of conjunctions about one in four does."""
_OPERAND_DRAWS = 10
"""Draws for an operand that differs from those before it, so that ``∨(p1, p1)`` is rare."""
_EXPLAINED_UNKNOWNS = 6
"""A worked example reasons from one formula at a time while at most so many of its variables are open."""


class FirstOrderLogic(Task):
    """Find the variables that ``n`` formulas over ``n`` variables force, given the values of some.

    A hidden assignment is drawn first and every formula holds under it, so the problem has a solution.  When nothing
    beyond the given values is forced, the last formula is replaced by an implication from a given to a new literal, so
    that generation ends after one pass and at least one more variable is forced.
    """

    name = "first_order_logic"
    title = "First-order logic"
    description = "every variable that logical formulas force, with its truth value"
    prompt_version = 2
    parameters: ClassVar[tuple[Parameter, ...]] = (
        RangeParameter("variables", 2, 200, "number of variables, and of formulas"),
        RangeParameter("connectives", 1, 8, "connectives of a formula"),
        RangeParameter("given", 1, 99, "percentage of the variables whose value is given; at least one, never all"),
    )
    levels: ClassVar[Mapping[str, Parameters]] = {
        "trivial": {"variables": IntegerRange(2, 3), "connectives": IntegerRange(1, 1), "given": IntegerRange(34, 67)},
        "easy": {"variables": IntegerRange(4, 6), "connectives": IntegerRange(1, 2), "given": IntegerRange(25, 50)},
        "medium": {"variables": IntegerRange(6, 12), "connectives": IntegerRange(1, 3), "given": IntegerRange(15, 50)},
        "hard": {"variables": IntegerRange(12, 24), "connectives": IntegerRange(1, 3), "given": IntegerRange(15, 50)},
        "paper": {"variables": IntegerRange(6, 40), "connectives": IntegerRange(1, 3), "given": IntegerRange(15, 50)},
    }
    release_names = ("LogicProblem",)
    dependence = Dependence(
        inputs="all formulas and given values; some atoms follow from a single formula",
        earlier_atoms="values that had to be established first; an omitted variable also shifts every later position",
        intervention_caveat="flipping may change the right answer: a later value can follow from an earlier one",
    )

    def generate(self, random: Random, parameters: Parameters) -> tuple[str, str]:
        """Draw the hidden assignment, the given variables and the formulas."""
        variables = cast(IntegerRange, parameters["variables"])
        connectives = cast(IntegerRange, parameters["connectives"])
        percentage = cast(IntegerRange, parameters["given"])
        count = draw_integer(random, variables.low, variables.high)
        hidden = {number: random.random() < 0.5 for number in range(1, count + 1)}
        share = draw_integer(random, percentage.low, percentage.high)
        given_count = min(max((count * share + 50) // 100, 1), count - 1)
        given_numbers = sorted(draw_distinct(random, range(1, count + 1), given_count))
        given = {number: hidden[number] for number in given_numbers}
        formulas: list[Formula] = []
        for _ in range(count):
            formulas.append(_draw_true_formula(random, hidden, connectives, formulas))
        forced = forced_values(formulas, given)
        if len(forced) == len(given):
            cause = draw_item(random, given_numbers)
            consequence = draw_item(random, [number for number in hidden if number not in given])
            formulas[-1] = Compound("→", (_literal(cause, hidden[cause]), _literal(consequence, hidden[consequence])))
            forced = forced_values(formulas, given)
        lines = [*(str(formula) for formula in formulas), "", "", _HEADING, *_assignment_lines(given)]
        return "\n".join(lines), "\n".join(_assignment_lines(forced))

    def solve(self, text: str) -> str:
        """Find the forced variables of a text of formulas, ``Initial Assignments:`` and given values.

        Raises:
            ProblemTextError: if a line is no formula or assignment, the heading is missing, a variable is given twice,
                or the lines contradict each other.
        """
        formulas, given = _read_problem(text)
        try:
            return "\n".join(_assignment_lines(forced_values(formulas, given)))
        except ContradictionError as error:
            raise ProblemTextError(f"{self.name}: {error}") from error

    def instructions(self) -> str:
        """Say what is asked and what the connectives mean."""
        return (
            "Every formula below is true: ∧(a, b, ...) says that all of its parts are true, ∨(a, b, ...) that at least "
            "one is, ¬(a) that a is false, →(a, b) that b is true if a is, ↔(a, b) that a and b have the same value; "
            "True is always true and False never, so a line True tells nothing. The values under Initial Assignments "
            "are known. List every variable whose value is certain, the known ones included, in ascending order of "
            "number, one per line in the form p1: True or p1: False. Leave out variables that could be either."
        )

    def explain(self, problem: Problem) -> str:
        """Reason from one formula at a time, then by contradiction, and name what stays open."""
        formulas, given = _read_problem(problem.text)
        forced = forced_values(formulas, given)
        known = dict(given)
        steps = [f"Known: {_list_values(known)}."]
        while True:
            steps.extend(_single_formula_steps(formulas, known))
            missing = [number for number in forced if number not in known]
            if not missing:
                break
            number = missing[0]
            known[number] = forced[number]
            steps.append(
                f"If p{number} were {not forced[number]}, the formulas could not all be true, "
                f"so p{number} is {forced[number]}."
            )
        open_numbers = sorted({number for formula in formulas for number in formula_variables(formula)} - known.keys())
        if open_numbers:
            names = ", ".join(f"p{number}" for number in open_numbers)
            steps.append(f"{names} can be either, so I leave {'it' if len(open_numbers) == 1 else 'them'} out.")
        return "\n".join(steps)

    def wrong_atom(self, random: Random, problem: Problem, index: int) -> str:
        """Return the same variable with the other value, the only wrong claim about it; nothing is drawn.

        Another variable would break the ascending order and thereby show that the atom was edited.

        Raises:
            IndexError: if the reference has no such atom.
        """
        variable, _, value = problem.reference.splitlines()[index].partition(": ")
        return f"{variable}: {value != 'True'}"

    def splitter(self) -> Splitter:
        """Split at line ends: an atom is a line."""
        return LineSplitter()


def _draw_true_formula(
    random: Random, hidden: Mapping[int, bool], connectives: IntegerRange, existing: Sequence[Formula]
) -> Formula:
    # Drawn once: redrawing the connective too would leave mostly implications and disjunctions, which force little.
    fact = draw_integer(random, 1, 100) <= _FACT_IN_HUNDRED
    connective = draw_item(random, _CONNECTIVES)
    for _ in range(_FORMULA_DRAWS):
        if fact:
            formula = _draw_fact(random, hidden)
        else:
            count = draw_integer(random, connectives.low, connectives.high)
            formula = _draw_formula(random, len(hidden), count, (connective,))
        if formula not in existing and evaluate(formula, hidden):
            return formula
    return _draw_fact(random, hidden)


def _draw_fact(random: Random, hidden: Mapping[int, bool]) -> Formula:
    if draw_integer(random, 1, 4) == 1:
        return Constant(True)
    number = draw_integer(random, 1, len(hidden))
    return _literal(number, hidden[number])


def _draw_formula(random: Random, variables: int, connectives: int, allowed: Sequence[Connective]) -> Formula:
    """Draw a formula with exactly so many connectives; ``¬`` is never applied to ``¬`` or to a constant."""
    if connectives == 0:
        if draw_integer(random, 1, 100) <= _CONSTANT_IN_HUNDRED:
            return Constant(random.random() < 0.5)
        return Variable(draw_integer(random, 1, variables))
    connective = draw_item(random, allowed)
    if connective == "¬":
        if connectives == 1:
            return Compound("¬", (Variable(draw_integer(random, 1, variables)),))
        return Compound("¬", (_draw_formula(random, variables, connectives - 1, _BINARY),))
    arity = 2
    if connective in ("∧", "∨") and draw_integer(random, 1, 100) <= _THREE_OPERANDS_IN_HUNDRED:
        arity = 3
    shares = [0] * arity
    for _ in range(connectives - 1):
        shares[draw_integer(random, 0, arity - 1)] += 1
    operands: list[Formula] = []
    for share in shares:
        for _ in range(_OPERAND_DRAWS):
            operand = _draw_formula(random, variables, share, _CONNECTIVES)
            if operand not in operands:
                break
        operands.append(operand)
    return Compound(connective, tuple(operands))


def _literal(number: int, value: bool) -> Formula:
    return Variable(number) if value else Compound("¬", (Variable(number),))


def _assignment_lines(values: Mapping[int, bool]) -> list[str]:
    return [f"p{number}: {value}" for number, value in values.items()]


def _list_values(values: Mapping[int, bool]) -> str:
    return ", ".join(f"p{number} is {value}" for number, value in sorted(values.items()))


def _single_formula_steps(formulas: Sequence[Formula], known: dict[int, bool]) -> Iterator[str]:
    """Extend ``known`` by what each formula forces alone, until none forces more; yield a sentence for each step."""
    changed = True
    while changed:
        changed = False
        for formula in formulas:
            numbers = dict.fromkeys(formula_variables(formula))
            new = _forced_by_one(formula, [number for number in numbers if number not in known], known)
            if new:
                because = {number: known[number] for number in numbers if number in known}
                known.update(new)
                changed = True
                start = f"Because {_list_values(because)}, the formula" if because else "The formula"
                yield f"{start} {formula} needs: {_list_values(new)}."


def _forced_by_one(formula: Formula, unknown: Sequence[int], known: Mapping[int, bool]) -> dict[int, bool]:
    if not 1 <= len(unknown) <= _EXPLAINED_UNKNOWNS:
        return {}
    satisfying = [
        values
        for values in product((False, True), repeat=len(unknown))
        if evaluate(formula, {**known, **dict(zip(unknown, values, strict=True))})
    ]
    return {
        number: column[0]
        for number, column in zip(unknown, zip(*satisfying, strict=True), strict=True)
        if len(set(column)) == 1
    }


def _read_problem(text: str) -> tuple[list[Formula], dict[int, bool]]:
    formulas: list[Formula] = []
    given: dict[int, bool] = {}
    heading_seen = False
    for number, line in enumerate(text.splitlines(), 1):
        content = line.strip()
        if not content:
            continue
        where = f"first_order_logic: line {number}"
        if content == _HEADING:
            if heading_seen:
                raise ProblemTextError(f"{where}: {_HEADING!r} for the second time")
            heading_seen = True
        elif heading_seen:
            match = _ASSIGNMENT.fullmatch(content)
            if match is None:
                raise ProblemTextError(f"{where}: an assignment such as 'p4: True' expected, found {quoted(content)}")
            variable = int(match[1])
            if variable in given:
                raise ProblemTextError(f"{where}: p{variable} is given for the second time")
            given[variable] = match[2] == "True"
        else:
            try:
                formulas.append(parse_formula(content))
            except FormulaError as error:
                raise ProblemTextError(f"{where}, {error}") from error
    if not formulas:
        raise ProblemTextError("first_order_logic: no formula")
    if not heading_seen:
        raise ProblemTextError(f"first_order_logic: the line {_HEADING!r} is missing after the formulas")
    return formulas, given
