"""The rules of the task ``arc_grid``: what may turn an input grid into an output grid.

A grid is an array of colours 0 to 9; 0 is empty.  Every rule works on a batch of grids of one shape at once, an array
``[grids, height, width]`` of unsigned bytes that it does not change, because the search for rules that explain a
pair tries hundreds of them.  A rule that is not defined for a shape has no output there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tasks.arc_families import COLOURS

Grids: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]
Shape: TypeAlias = tuple[int, int]
ShapeFunction: TypeAlias = Callable[[int, int], Shape | None]

Keeps: TypeAlias = Literal["content", "counts", "frequencies"]
"""What a rule never changes: the coloured cells, the number of cells of each colour, or these numbers but for which
colour has which."""

DIRECTIONS = ("left", "right", "up", "down")


@dataclass(frozen=True, slots=True)
class Rule:
    """One family with all its parameters set.

    Attributes:
        family: name of the family.
        text: what it does, as an imperative without a full stop.
        colours: the colours that it names.
        output_shape: shape of its output for a shape of input; None where it is not defined.
        function: maps a batch of a shape for which it is defined to the batch of outputs.
        paints: set where the rule keeps the shape and only ever writes this colour, so that every cell that it
            changes has it; the search prunes by that.
        keeps: what it never changes; the search prunes by that.
        crops: the shape of the output depends on the cells; ``output_shape`` is then an upper bound and ``function``
            returns the bounds ``[grids, 4]`` (top, bottom, left, right; half-open) of what to keep.
    """

    family: str
    text: str
    colours: tuple[int, ...]
    output_shape: ShapeFunction
    function: Callable[[Grids], Grids]
    paints: int | None = None
    keeps: Keeps | None = None
    crops: bool = False

    def apply(self, grid: Grids) -> Grids | None:
        """Return the output for one grid ``[height, width]``; None where the rule is not defined."""
        return self.apply_to_batch(grid[None])

    def apply_to_batch(self, grids: Grids) -> Grids | None:
        """Return the output for the first grid of a batch; None where the rule is not defined."""
        if self.output_shape(*grids.shape[1:]) is None:
            return None
        output: Grids = self.function(grids)[0]
        if not self.crops:
            return output
        top, bottom, left, right = output.tolist()
        return grids[0, top:bottom, left:right] if bottom > top else None


def _same(height: int, width: int) -> Shape | None:
    return height, width


def _turned(height: int, width: int) -> Shape | None:
    return width, height


def _twice_as_wide(height: int, width: int) -> Shape | None:
    return height, 2 * width


def _twice_as_tall(height: int, width: int) -> Shape | None:
    return 2 * height, width


def _half_as_wide(height: int, width: int) -> Shape | None:
    return (height, width // 2) if width >= 2 else None


def _half_as_tall(height: int, width: int) -> Shape | None:
    return (height // 2, width) if height >= 2 else None


def _left_and_right(height: int, width: int) -> Shape | None:
    return (height, width // 2) if width % 2 == 0 else None


def _top_and_bottom(height: int, width: int) -> Shape | None:
    return (height // 2, width) if height % 2 == 0 else None


def _without_edge(height: int, width: int) -> Shape | None:
    return (height - 2, width - 2) if min(height, width) >= 3 else None


def _with_edge(height: int, width: int) -> Shape | None:
    return height + 2, width + 2


def _every_second(height: int, width: int) -> Shape | None:
    return (height + 1) // 2, (width + 1) // 2


def _times(height: int, width: int, *, factor: int) -> Shape | None:
    return factor * height, factor * width


def _facing_right(grids: Grids, direction: str) -> Grids:
    """Return a view in which ``direction`` is to the right; applying it twice gives the grids back."""
    if direction in ("up", "down"):
        grids = grids.transpose(0, 2, 1)
    if direction == "left":
        return grids[:, :, ::-1]
    return grids[:, ::-1, ::-1] if direction == "up" else grids


def _directed(function: Callable[[Grids], Grids], direction: str) -> Callable[[Grids], Grids]:
    return lambda grids: _facing_right(function(_facing_right(grids, direction)), direction)


def _roll(grids: Grids) -> Grids:
    return np.concatenate((grids[:, :, -1:], grids[:, :, :-1]), axis=2)


def _shift(grids: Grids) -> Grids:
    shifted = np.zeros_like(grids)
    shifted[:, :, 1:] = grids[:, :, :-1]
    return shifted


def _fall(grids: Grids) -> Grids:
    order = np.argsort(grids != 0, axis=2, kind="stable")
    return np.take_along_axis(grids, order, axis=2)


def _extend(grids: Grids) -> Grids:
    sources = np.where(grids != 0, np.arange(grids.shape[2]), 0)
    return np.take_along_axis(grids, np.maximum.accumulate(sources, axis=2), axis=2)


def _copy_edge(grids: Grids) -> Grids:
    return np.broadcast_to(grids[:, :, -1:], grids.shape)


def _sort_rows(grids: Grids) -> Grids:
    order = np.argsort((grids != 0).sum(axis=2), axis=1, kind="stable")
    return np.take_along_axis(grids, order[:, :, None], axis=1)


def _sort_columns(grids: Grids) -> Grids:
    return _sort_rows(grids.transpose(0, 2, 1)).transpose(0, 2, 1)


def _content_bounds(grids: Grids) -> Grids:
    filled = grids != 0
    rows, columns = filled.any(axis=2), filled.any(axis=1)
    height, width = grids.shape[1:]
    bounds: Grids = np.stack(
        (
            rows.argmax(axis=1),
            height - rows[:, ::-1].argmax(axis=1),
            columns.argmax(axis=1),
            width - columns[:, ::-1].argmax(axis=1),
        ),
        axis=1,
        dtype=np.uint8,
        casting="unsafe",
    )
    bounds[~rows.any(axis=1)] = 0
    return bounds


def _with_margin(mask: Mask, value: bool) -> Mask:
    """Add a margin of one cell on all sides (`numpy.pad` takes 100 µs for what takes 3 here)."""
    count, height, width = mask.shape
    padded = np.full((count, height + 2, width + 2), value)
    padded[:, 1:-1, 1:-1] = mask
    return padded


def _enclosed(grids: Grids) -> Mask:
    """Mark empty cells from which no path of empty cells, by edges, leads to the border."""
    empty = _with_margin(grids == 0, True)
    outside = _with_margin(np.zeros(grids.shape, dtype=np.bool_), True)
    count = 0
    while True:
        reached = outside.copy()
        reached[:, 1:] |= outside[:, :-1]
        reached[:, :-1] |= outside[:, 1:]
        reached[:, :, 1:] |= outside[:, :, :-1]
        reached[:, :, :-1] |= outside[:, :, 1:]
        outside = reached & empty
        following = int(np.count_nonzero(outside))
        if following == count:
            enclosed: Mask = (empty & ~outside)[:, 1:-1, 1:-1]
            return enclosed
        count = following


def _beside_content(grids: Grids) -> Mask:
    filled = _with_margin(grids != 0, False)
    near = filled[:, :-2, 1:-1] | filled[:, 2:, 1:-1] | filled[:, 1:-1, :-2] | filled[:, 1:-1, 2:]
    beside: Mask = near & (grids == 0)
    return beside


def _inner(grids: Grids) -> Mask:
    filled = _with_margin(grids != 0, False)
    near = filled[:, :-2, 1:-1] & filled[:, 2:, 1:-1] & filled[:, 1:-1, :-2] & filled[:, 1:-1, 2:]
    inner: Mask = near & (grids != 0)
    return inner


def _edge(grids: Grids) -> Mask:
    edge = np.ones(grids.shape, dtype=np.bool_)
    edge[:, 1:-1, 1:-1] = False
    return edge


def _framed(grids: Grids, colour: int) -> Grids:
    count, height, width = grids.shape
    framed = np.full((count, height + 2, width + 2), colour, dtype=np.uint8)
    framed[:, 1:-1, 1:-1] = grids
    return framed


def colour_counts(grids: Grids) -> NDArray[np.intp]:
    """Count the cells of each colour: ``[grids, 10]``."""
    keys = grids.reshape(len(grids), -1) + COLOURS * np.arange(len(grids))[:, None]
    return np.bincount(keys.ravel(), minlength=COLOURS * len(grids)).reshape(len(grids), COLOURS)


def _keep_by_count(grids: Grids, *, rarest: bool) -> Grids:
    """Empty all cells but those of the commonest or rarest colour, of several where they are equally frequent."""
    counts = colour_counts(grids)
    counts[:, 0] = 0
    if rarest:
        counts[counts == 0] = grids[0].size + 1
        kept = counts == counts.min(axis=1, keepdims=True)
    else:
        kept = counts == counts.max(axis=1, keepdims=True)
    return np.where(kept[np.arange(len(grids))[:, None, None], grids], grids, 0).astype(np.uint8)


def _overlay(first: Grids, second: Grids) -> Grids:
    return np.where(first == 0, second, first)


def _swap(grids: Grids, first: int, second: int) -> Grids:
    table = np.arange(COLOURS, dtype=np.uint8)
    table[first], table[second] = second, first
    return table[grids]


def _enlarge(grids: Grids, factor: int) -> Grids:
    return grids.repeat(factor, axis=1).repeat(factor, axis=2)


def _invert(grids: Grids, colour: int) -> Grids:
    inverted: Grids = (grids == 0) * np.uint8(colour)
    return inverted


def _is_colour(grids: Grids, colour: int) -> Mask:
    mask: Mask = grids == colour
    return mask


def _is_other(grids: Grids, colour: int) -> Mask:
    mask: Mask = grids != colour
    return mask


def _remembering(mask: Callable[[Grids], Mask]) -> Callable[[Grids], Mask]:
    """Keep the last result, because one mask is asked for with every colour in turn."""
    last: tuple[Grids, Mask] | None = None

    def remembered(grids: Grids) -> Mask:
        nonlocal last
        known = last  # one read: another thread may replace it
        if known is None or known[0] is not grids:
            last = known = (grids, mask(grids))
        return known[1]

    return remembered


def _painting(family: str, text: str, colours: tuple[int, ...], mask: Callable[[Grids], Mask], colour: int) -> Rule:
    """Return the rule that writes one colour wherever the mask says."""
    paint = np.uint8(colour)
    return Rule(family, text, colours, _same, lambda grids: np.where(mask(grids), paint, grids), colour)


def _geometric_rules() -> Iterator[Rule]:
    yield Rule("mirror", "mirror the grid left to right", (), _same, lambda g: g[:, :, ::-1], keeps="counts")
    yield Rule("mirror", "mirror the grid top to bottom", (), _same, lambda g: g[:, ::-1], keeps="counts")
    yield Rule(
        "rotate",
        "turn the grid a quarter clockwise",
        (),
        _turned,
        lambda g: g.transpose(0, 2, 1)[:, :, ::-1],
        keeps="counts",
    )
    yield Rule("rotate", "turn the grid by half a turn", (), _same, lambda g: g[:, ::-1, ::-1], keeps="counts")
    yield Rule(
        "rotate",
        "turn the grid a quarter anticlockwise",
        (),
        _turned,
        lambda g: g.transpose(0, 2, 1)[:, ::-1],
        keeps="counts",
    )
    text = "make rows of the columns"
    yield Rule("transpose", text, (), _turned, lambda g: g.transpose(0, 2, 1), keeps="counts")
    text = "mirror the grid in the diagonal from bottom left to top right"
    yield Rule("transpose", text, (), _turned, lambda g: g.transpose(0, 2, 1)[:, ::-1, ::-1], keeps="counts")
    for direction in DIRECTIONS:
        directed: tuple[tuple[str, str, Callable[[Grids], Grids], Keeps | None], ...] = (
            ("roll", f"move everything one cell {direction}, around the edge", _roll, "counts"),
            ("shift", f"move everything one cell {direction} and empty the cells left behind", _shift, None),
            ("fall", f"let the coloured cells fall {direction}", _fall, "counts"),
            ("extend", f"extend each coloured cell {direction} over the empty cells", _extend, "content"),
            ("copy_edge", f"copy the cells of the edge to the {direction} over the whole grid", _copy_edge, None),
        )
        for family, text, function, keeps in directed:
            yield Rule(family, text, (), _same, _directed(function, direction), keeps=keeps)
    yield Rule(
        "sort", "sort the rows from the fewest coloured cells to the most", (), _same, _sort_rows, keeps="counts"
    )
    yield Rule(
        "sort", "sort the columns from the fewest coloured cells to the most", (), _same, _sort_columns, keeps="counts"
    )
    text = "fill empty cells from the left-right mirror image"
    yield Rule("complete", text, (), _same, lambda g: _overlay(g, g[:, :, ::-1]), keeps="content")
    text = "fill empty cells from the top-bottom mirror image"
    yield Rule("complete", text, (), _same, lambda g: _overlay(g, g[:, ::-1]), keeps="content")
    yield _painting("hollow", "empty the cells that have four coloured neighbours", (), _inner, 0)


def _resizing_rules() -> Iterator[Rule]:
    yield Rule("crop", "cut out the part that holds all coloured cells", (), _same, _content_bounds, crops=True)
    for factor in (2, 3):
        text = f"make each cell a block of {factor} by {factor}"
        yield Rule("enlarge", text, (), partial(_times, factor=factor), partial(_enlarge, factor=factor))
    text = "repeat the grid to the right"
    yield Rule("repeat", text, (), _twice_as_wide, lambda g: np.concatenate((g, g), axis=2))
    yield Rule("repeat", "repeat the grid below", (), _twice_as_tall, lambda g: np.concatenate((g, g), axis=1))
    text = "add the mirror image to the right"
    yield Rule("reflect", text, (), _twice_as_wide, lambda g: np.concatenate((g, g[:, :, ::-1]), axis=2))
    text = "add the mirror image below"
    yield Rule("reflect", text, (), _twice_as_tall, lambda g: np.concatenate((g, g[:, ::-1]), axis=1))
    yield Rule("half", "keep the left half", (), _half_as_wide, lambda g: g[:, :, : g.shape[2] // 2])
    yield Rule("half", "keep the right half", (), _half_as_wide, lambda g: g[:, :, -(g.shape[2] // 2) :])
    yield Rule("half", "keep the top half", (), _half_as_tall, lambda g: g[:, : g.shape[1] // 2])
    yield Rule("half", "keep the bottom half", (), _half_as_tall, lambda g: g[:, -(g.shape[1] // 2) :])
    text = "lay the left half over the right half"
    yield Rule("overlay", text, (), _left_and_right, lambda g: _overlay(*np.split(g, 2, axis=2)))
    text = "lay the top half over the bottom half"
    yield Rule("overlay", text, (), _top_and_bottom, lambda g: _overlay(*np.split(g, 2, axis=1)))
    yield Rule("trim", "remove the outermost cells", (), _without_edge, lambda g: g[:, 1:-1, 1:-1])
    text = "keep every second row and column, from the first"
    yield Rule("thin_out", text, (), _every_second, lambda g: g[:, ::2, ::2])
    for colour in range(COLOURS):
        text = f"add a frame of colour {colour}"
        yield Rule("frame", text, (colour,), _with_edge, partial(_framed, colour=colour))


def _colour_rules() -> Iterator[Rule]:
    coloured = partial(_is_other, colour=0)
    enclosed, beside_content = _remembering(_enclosed), _remembering(_beside_content)
    for first in range(COLOURS):
        for second in range(COLOURS):
            if first != second:
                text = f"turn colour {first} into {second}"
                yield _painting("recolour", text, (first, second), partial(_is_colour, colour=first), second)
    for first in range(COLOURS):
        for second in range(first + 1, COLOURS):
            text = f"exchange the colours {first} and {second}"
            yield Rule(
                "swap", text, (first, second), _same, partial(_swap, first=first, second=second), keeps="frequencies"
            )
    for colour in range(1, COLOURS):
        text = f"keep colour {colour} and empty all other cells"
        yield _painting("keep", text, (colour,), partial(_is_other, colour=colour), 0)
        yield _painting("paint", f"paint all coloured cells {colour}", (colour,), coloured, colour)
        yield _painting("fill", f"fill enclosed empty cells with {colour}", (colour,), enclosed, colour)
        text = f"paint the empty neighbours of coloured cells {colour}"
        yield _painting("surround", text, (colour,), beside_content, colour)
        text = f"paint empty cells {colour} and empty the coloured ones"
        yield Rule("invert", text, (colour,), _same, partial(_invert, colour=colour))
    for colour in range(COLOURS):
        yield _painting("edge", f"paint the outermost cells {colour}", (colour,), _edge, colour)
    for family, rarest in (("commonest", False), ("rarest", True)):
        text = f"keep the {family} colour, of equally frequent ones all, and empty all other cells"
        yield Rule(family, text, (), _same, partial(_keep_by_count, rarest=rarest), 0)


RULES: tuple[Rule, ...] = (*_geometric_rules(), *_resizing_rules(), *_colour_rules())
"""The whole library, simple rules first."""


@lru_cache(maxsize=64)
def rules_for(colours: frozenset[int]) -> tuple[Rule, ...]:
    """Return the rules that need to be tried for a puzzle whose grids hold exactly these colours, or fewer.

    Colours that no grid holds, 0 aside, are alike: exchanging two of them in an explanation gives an explanation.
    Each of two rules can usefully name one such colour (a rule that names two of them changes nothing), so two of them
    stand for all: an answer without absent colours is found with these two as well, and an answer with one is not the
    only answer, since its twin with another absent colour is found beside it.
    """
    absent = [colour for colour in range(1, COLOURS) if colour not in colours]
    tried = colours | {0, *absent[:2]}
    return tuple(rule for rule in RULES if tried.issuperset(rule.colours))
