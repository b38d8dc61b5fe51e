"""Exhaustive search for the rules, and compositions of two, that explain input/output pairs.

The first pair prunes: all first rules are applied to its input, equal results are merged and stacked by shape, and each
second rule is applied to a whole stack at once.  Further pairs only filter what is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.arc_rules import Grids, Rule, Shape, colour_counts, rules_for
from tasks.task import ProblemTextError

Explanation = tuple[Rule, ...]
"""One rule, or two in the order in which they are applied."""


@dataclass(frozen=True, slots=True)
class GridPair:
    """An input grid and its output grid, ``[height, width]`` each."""

    input: Grids
    output: Grids


class ExplanationSearch:
    """All explanations of a growing list of pairs."""

    def __init__(self, colours: frozenset[int]) -> None:
        """Start without a pair.

        Args:
            colours: all colours that the grids of the puzzle hold, its test grid included.
        """
        self._rules = rules_for(colours)
        self._single: list[int] = []
        self._double: dict[int, list[int]] = {}
        self._started = False

    def add_pair(self, pair: GridPair) -> None:
        """Drop all explanations that the pair contradicts."""
        if self._started:
            self._filter(pair)
        else:
            self._start(pair)
            self._started = True

    def explanations(self) -> list[Explanation]:
        """Return all explanations of the pairs so far, single rules first."""
        rules = self._rules
        single: list[Explanation] = [(rules[first],) for first in self._single]
        return single + [(rules[first], rules[second]) for second, firsts in self._double.items() for first in firsts]

    @property
    def has_single_rule(self) -> bool:
        """Whether one rule alone explains all pairs so far."""
        return bool(self._single)

    def answers(self, test: Grids) -> list[Grids]:
        """Return the different outputs that the explanations give for a test grid, in order of first appearance.

        Explanations that are not defined for the test grid give none.
        """
        found: dict[tuple[Shape, bytes], Grids] = {}
        middle = self._first_results(test, self._first_rules())
        for first in self._single:
            _note(found, middle.get(first))
        for second, firsts in self._double.items():
            tried: set[tuple[Shape, bytes]] = set()
            for first in firsts:
                grid = middle.get(first)
                if grid is None or _key(grid) in tried:
                    continue
                tried.add(_key(grid))
                _note(found, self._rules[second].apply(grid))
        return list(found.values())

    def _start(self, pair: GridPair) -> None:
        results = self._first_results(pair.input, range(len(self._rules)))
        self._single = [first for first, grid in results.items() if np.array_equal(grid, pair.output)]
        every_rule = {second: results.keys() for second in range(len(self._rules))}
        self._double = _matching(self._rules, results, every_rule, pair.output)

    def _filter(self, pair: GridPair) -> None:
        results = self._first_results(pair.input, self._first_rules())
        self._single = [
            first for first in self._single if first in results and np.array_equal(results[first], pair.output)
        ]
        self._double = _matching(self._rules, results, self._double, pair.output)

    def _first_rules(self) -> list[int]:
        """Return the indices of all rules that an explanation starts with, ascending."""
        return sorted({*self._single, *(first for firsts in self._double.values() for first in firsts)})

    def _first_results(self, grid: Grids, firsts: Iterable[int]) -> dict[int, Grids]:
        batch = grid[None]
        results = ((first, self._rules[first].apply_to_batch(batch)) for first in firsts)
        return {first: result for first, result in results if result is not None}


def simplest_explanation(pairs: list[GridPair], test: Grids) -> Explanation:
    """Return the first explanation of the pairs in the order of the library, single rules before compositions.

    Raises:
        ProblemTextError: if there is none.
    """
    explanations = search_for(pairs, test).explanations()
    if not explanations:
        raise ProblemTextError("no rule of the library, nor two in a row, explains all pairs")
    return explanations[0]


def search_for(pairs: list[GridPair], test: Grids) -> ExplanationSearch:
    """Return the search that has seen all pairs of a puzzle."""
    search = ExplanationSearch(colours_of(pairs, test))
    for pair in pairs:
        search.add_pair(pair)
    return search


def colours_of(pairs: list[GridPair], test: Grids) -> frozenset[int]:
    """Return the colours of all grids of a puzzle."""
    return frozenset().union(
        *(np.unique(g).tolist() for p in pairs for g in (p.input, p.output)), test.ravel().tolist()
    )


class _Stack:
    """Different grids of one shape, each with the first rules that made it, compared with one target."""

    def __init__(self, grids: list[Grids], firsts: list[list[int]], target: Grids) -> None:
        self.grids = np.stack(grids)
        self._firsts = firsts
        self._target = target
        self._candidates: dict[object, tuple[list[int], Grids]] = {}

    def candidates(self, rule: Rule) -> tuple[list[int], Grids]:
        """Return the grids that ``rule`` may turn into the target, judged by what it cannot change."""
        key = rule.keeps, rule.paints
        if key not in self._candidates:
            if rule.keeps == "content":
                indices = _equal(np.where(self.grids == 0, self._target, self.grids), self._target)
            elif rule.keeps is not None:
                counts, wanted = colour_counts(self.grids), colour_counts(self._target[None])[0]
                if rule.keeps == "frequencies":
                    counts, wanted = np.sort(counts, axis=1), np.sort(wanted)
                indices = _equal(counts, wanted)
            elif rule.paints is not None:
                paint = np.uint8(rule.paints)
                indices = _equal(np.where(self._target == paint, paint, self.grids), self._target)
            else:
                indices = list(range(len(self.grids)))
            self._candidates[key] = indices, self.grids[indices]
        return self._candidates[key]

    def made_by(self, rule: Rule) -> list[int]:
        """Return the first rules after which ``rule``, defined for this shape, makes the target."""
        candidates, grids = self.candidates(rule)
        if rule.crops:
            found = self._cropped_to_target(rule.function(grids))
        else:
            found = _equal(rule.function(grids), self._target)
        return [first for index in found for first in self._firsts[candidates[index]]]

    def _cropped_to_target(self, bounds: Grids) -> list[int]:
        sizes = bounds[:, 1::2] - bounds[:, ::2]
        found = []
        for index in _equal(sizes, np.array(self._target.shape)):
            top, bottom, left, right = bounds[index].tolist()
            if (self.grids[index, top:bottom, left:right] == self._target).all():
                found.append(index)
        return found


def _equal(grids: NDArray[Any], target: NDArray[Any]) -> list[int]:
    """Return the indices along the first axis at which the rest equals the target."""
    indices: list[int] = (grids == target).reshape(len(grids), target.size).all(axis=1).nonzero()[0].tolist()
    return indices


def _matching(
    rules: tuple[Rule, ...], results: dict[int, Grids], candidates: Mapping[int, Collection[int]], target: Grids
) -> dict[int, list[int]]:
    """Keep, for each second rule, the first rules from whose result it makes the target."""
    members: dict[tuple[Shape, bytes], list[int]] = defaultdict(list)
    for first, grid in results.items():
        members[_key(grid)].append(first)
    by_shape: dict[Shape, list[list[int]]] = defaultdict(list)
    for (shape, _), firsts in members.items():
        by_shape[shape].append(firsts)
    stacks = {
        shape: _Stack([results[firsts[0]] for firsts in groups], groups, target) for shape, groups in by_shape.items()
    }
    fitting: dict[tuple[object, ...], list[_Stack]] = {}
    kept = {}
    for second, allowed in candidates.items():
        rule = rules[second]
        key = rule.output_shape, rule.crops, rule.keeps, rule.paints
        if key not in fitting:
            fitting[key] = [
                stack
                for shape, stack in stacks.items()
                if _fits(rule, shape, target.shape) and stack.candidates(rule)[0]
            ]
        made = {first for stack in fitting[key] for first in stack.made_by(rule)}
        if made:
            kept[second] = [first for first in allowed if first in made]
    return {second: firsts for second, firsts in kept.items() if firsts}


def _fits(rule: Rule, shape: Shape, target: Shape) -> bool:
    """Say whether the rule can make a grid of the target's shape from one of this shape."""
    output = rule.output_shape(*shape)
    if output is None or not rule.crops:
        return output == target
    return output[0] >= target[0] and output[1] >= target[1]


def _key(grid: Grids) -> tuple[Shape, bytes]:
    return grid.shape, grid.tobytes()


def _note(found: dict[tuple[Shape, bytes], Grids], grid: Grids | None) -> None:
    if grid is not None:
        found.setdefault(_key(grid), grid)
