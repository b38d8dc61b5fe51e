"""Formulas of propositional logic in prefix notation, and the values that a set of them forces.

Notation: ``∧(p1, p2, p3)`` and ``∨(p1, p2)`` with one or more operands, ``¬(p1)``, ``→(p1, p2)``, ``↔(p1, p2)``,
``True``, ``False``, and variables ``p1``, ``p2``, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

Connective = Literal["∧", "∨", "¬", "→", "↔"]

MAXIMUM_DEPTH = 100
"""Deeper nesting is refused: the functions below recurse, and Python's own limit is 1,000 frames."""


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable ``p{number}``; ``number`` is at least 0."""

    number: int

    def __str__(self) -> str:
        """Write it in the notation of the problem texts."""
        return f"p{self.number}"


@dataclass(frozen=True, slots=True)
class Constant:
    """``True`` or ``False``."""

    value: bool

    def __str__(self) -> str:
        """Write it in the notation of the problem texts."""
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Compound:
    """A connective with its operands: one for ``¬``, two for ``→`` and ``↔``, one or more for ``∧`` and ``∨``."""

    connective: Connective
    operands: tuple[Formula, ...]

    def __str__(self) -> str:
        """Write it in the notation of the problem texts."""
        return f"{self.connective}({', '.join(str(operand) for operand in self.operands)})"


Formula: TypeAlias = Variable | Constant | Compound


class FormulaError(ValueError):
    """A text that is not a formula; the message says what was expected at which column (from 1)."""


class ContradictionError(ValueError):
    """Formulas that no assignment makes true together."""


_TOKEN = re.compile(r"\s*(?:(?P<word>p[0-9]{1,9}|True|False)\b|(?P<sign>[∧∨¬→↔(),]))")
_OPERAND_COUNTS: dict[str, int | None] = {"∧": None, "∨": None, "¬": 1, "→": 2, "↔": 2}
"""How many operands a connective takes; None: any number from 1."""


def parse_formula(text: str) -> Formula:
    """Read one formula.

    Raises:
        FormulaError: if the text is not exactly one formula, or nests deeper than `MAXIMUM_DEPTH`.
    """
    reader = _Reader(text)
    formula = reader.formula(depth=0)
    reader.end()
    return formula


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._position = 0
        self._column = 1  # of the token read last

    def formula(self, depth: int) -> Formula:
        token = self._next("a formula")
        column = self._column
        if depth > MAXIMUM_DEPTH:
            raise FormulaError(f"column {column}: nested deeper than {MAXIMUM_DEPTH}")
        if token in ("True", "False"):
            return Constant(token == "True")
        if token.startswith("p"):
            return Variable(int(token[1:]))
        if token not in _OPERAND_COUNTS:
            raise FormulaError(f"column {column}: a formula expected, found {token!r}")
        self._expect("(", "'('")
        operands = [self.formula(depth + 1)]
        while self._expect(",)", "',' or ')'") == ",":
            operands.append(self.formula(depth + 1))
        count = _OPERAND_COUNTS[token]
        if count is not None and len(operands) != count:
            raise FormulaError(f"column {column}: {token} takes {count} operand(s), found {len(operands)}")
        return Compound(cast(Connective, token), tuple(operands))

    def end(self) -> None:
        rest = self._text[self._position :].strip()
        if rest:
            raise FormulaError(f"column {self._rest_column()}: end of the line expected, found {rest[:20]!r}")

    def _expect(self, signs: str, expected: str) -> str:
        token = self._next(expected)
        if token not in signs:
            raise FormulaError(f"column {self._column}: {expected} expected, found {token!r}")
        return token

    def _next(self, expected: str) -> str:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            rest = self._text[self._position :].strip()
            found = repr(rest[:20]) if rest else "the end"
            raise FormulaError(f"column {self._rest_column()}: {expected} expected, found {found}")
        token = match["word"] or match["sign"]
        self._position = match.end()
        self._column = match.end() - len(token) + 1
        return token

    def _rest_column(self) -> int:
        rest = self._text[self._position :]
        return self._position + len(rest) - len(rest.lstrip()) + 1


def formula_variables(formula: Formula) -> Iterator[int]:
    """Yield the number of every variable from left to right, repeats included."""
    if isinstance(formula, Variable):
        yield formula.number
    elif isinstance(formula, Compound):
        for operand in formula.operands:
            yield from formula_variables(operand)


def evaluate(formula: Formula, values: Mapping[int, bool]) -> bool:
    """Return the truth value of a formula.

    Raises:
        KeyError: if a variable that it needs has no value; operands that cannot change the result are not looked at.
    """
    if isinstance(formula, Variable):
        return values[formula.number]
    if isinstance(formula, Constant):
        return formula.value
    operands = formula.operands
    if formula.connective == "∧":
        return all(evaluate(operand, values) for operand in operands)
    if formula.connective == "∨":
        return any(evaluate(operand, values) for operand in operands)
    if formula.connective == "¬":
        return not evaluate(operands[0], values)
    if formula.connective == "→":
        return not evaluate(operands[0], values) or evaluate(operands[1], values)
    return evaluate(operands[0], values) == evaluate(operands[1], values)


def forced_values(formulas: Sequence[Formula], given: Mapping[int, bool]) -> dict[int, bool]:
    """Return the value of every variable that is the same in all assignments that satisfy formulas and given values.

    That is the backbone of the conjunction, found with an incremental SAT solver: one model, then one call for each
    of its literals that no later model contradicts.  The given variables belong to it, in a formula or not.

    Returns:
        Values by variable number, in ascending order; empty if nothing is forced.

    Raises:
        ContradictionError: if no assignment satisfies them.
    """
    from pysat.solvers import Solver  # type: ignore[import-untyped]

    numbers = sorted({number for formula in formulas for number in formula_variables(formula)} | given.keys())
    index = {number: position for position, number in enumerate(numbers, 1)}
    clauses = _Clauses(index)
    for formula in formulas:
        clauses.require(formula)
    for number, value in given.items():
        clauses.add([index[number] if value else -index[number]])

    forced: set[int] = set()
    with Solver(name="minisat22", bootstrap_with=clauses.clauses) as solver:
        if not solver.solve():
            raise ContradictionError("no assignment makes all formulas and given values true")
        candidates = _literals(solver.get_model(), len(numbers))
        for literal in list(candidates):
            if literal not in candidates:
                continue
            if solver.solve(assumptions=[-literal]):
                candidates &= _literals(solver.get_model(), len(numbers))
            else:
                forced.add(literal)
                solver.add_clause([literal])
    return {number: index[number] in forced for number in numbers if {index[number], -index[number]} & forced}


def _literals(model: Sequence[int], count: int) -> set[int]:
    return set(model[:count])


class _Clauses:
    """Conjunctive normal form by Tseitin's transformation: one fresh variable for each compound."""

    def __init__(self, index: Mapping[int, int]) -> None:
        self.clauses: list[list[int]] = [[variable, -variable] for variable in index.values()]
        self._index = index
        self._last = len(index)

    def add(self, clause: list[int]) -> None:
        self.clauses.append(clause)

    def require(self, formula: Formula) -> None:
        self.add([self._literal(formula)])

    def _fresh(self) -> int:
        self._last += 1
        return self._last

    def _literal(self, formula: Formula) -> int:
        """Return a literal that is true exactly when the formula is."""
        if isinstance(formula, Variable):
            return self._index[formula.number]
        if isinstance(formula, Constant):
            always = self._fresh()
            self.add([always])
            return always if formula.value else -always
        operands = [self._literal(operand) for operand in formula.operands]
        if formula.connective == "¬":
            return -operands[0]
        if formula.connective == "∧":
            return -self._any([-operand for operand in operands])
        if formula.connective == "∨":
            return self._any(operands)
        left, right = operands
        if formula.connective == "→":
            return self._any([-left, right])
        same = self._fresh()
        self.clauses += [[-same, -left, right], [-same, left, -right], [same, left, right], [same, -left, -right]]
        return same

    def _any(self, literals: list[int]) -> int:
        result = self._fresh()
        self.add([-result, *literals])
        self.clauses += [[result, -literal] for literal in literals]
        return result
