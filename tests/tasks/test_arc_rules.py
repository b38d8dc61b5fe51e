"""The rules of ``arc_grid`` and their search, against a second version in plain Python without any pruning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from tasks.arc_families import COLOURS, FAMILIES
from tasks.arc_grid import ArcGrid
from tasks.arc_rules import RULES, Grids, rules_for
from tasks.arc_search import ExplanationSearch, GridPair
from tasks.arc_text import format_grid, read_puzzle
from tasks.draws import derive_seed, draw_integer

Rows = tuple[tuple[int, ...], ...]
PlainRule = Callable[[Rows], Rows | None]


def flip(rows: Rows) -> Rows:
    return tuple(row[::-1] for row in rows)


def upside_down(rows: Rows) -> Rows:
    return rows[::-1]


def transposed(rows: Rows) -> Rows:
    return tuple(zip(*rows, strict=True))


def clockwise(rows: Rows) -> Rows:
    return flip(transposed(rows))


def by_row(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> dict[str, PlainRule]:
    """Return the rule that changes rows towards the right, in all four directions."""
    right: Callable[[Rows], Rows] = lambda rows: tuple(change(row) for row in rows)  # noqa: E731
    return {
        "right": right,
        "left": lambda rows: flip(right(flip(rows))),
        "down": lambda rows: transposed(right(transposed(rows))),
        "up": lambda rows: upside_down(transposed(right(transposed(upside_down(rows))))),
    }


def extended(row: tuple[int, ...]) -> tuple[int, ...]:
    last, cells = 0, []
    for cell in row:
        last = cell or last
        cells.append(last)
    return tuple(cells)


def fallen(row: tuple[int, ...]) -> tuple[int, ...]:
    coloured = tuple(cell for cell in row if cell)
    return (0,) * (len(row) - len(coloured)) + coloured


def over(first: Rows, second: Rows) -> Rows:
    return tuple(tuple(a or b for a, b in zip(x, y, strict=True)) for x, y in zip(first, second, strict=True))


def sorted_rows(rows: Rows) -> Rows:
    return tuple(sorted(rows, key=lambda row: sum(cell != 0 for cell in row)))


def cell_at(rows: Rows, y: int, x: int) -> int:
    return rows[y][x] if 0 <= y < len(rows) and 0 <= x < len(rows[0]) else 0


def each(rows: Rows, change: Callable[[int, int, int], int]) -> Rows:
    return tuple(tuple(change(y, x, cell) for x, cell in enumerate(row)) for y, row in enumerate(rows))


def neighbours(rows: Rows, y: int, x: int) -> list[int]:
    return [cell_at(rows, y - 1, x), cell_at(rows, y + 1, x), cell_at(rows, y, x - 1), cell_at(rows, y, x + 1)]


def escapes(rows: Rows) -> set[tuple[int, int]]:
    height, width = len(rows), len(rows[0])
    todo = [(y, x) for y in range(height) for x in range(width) if y in (0, height - 1) or x in (0, width - 1)]
    seen: set[tuple[int, int]] = set()
    while todo:
        y, x = todo.pop()
        if 0 <= y < height and 0 <= x < width and rows[y][x] == 0 and (y, x) not in seen:
            seen.add((y, x))
            todo += [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
    return seen


def filled(rows: Rows, colour: int) -> Rows:
    outside = escapes(rows)
    return each(rows, lambda y, x, c: colour if c == 0 and (y, x) not in outside else c)


def on_edge(rows: Rows, y: int, x: int) -> bool:
    return y in (0, len(rows) - 1) or x in (0, len(rows[0]) - 1)


def cropped(rows: Rows) -> Rows | None:
    places = [(y, x) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell]
    if not places:
        return None
    ys, xs = [y for y, _ in places], [x for _, x in places]
    return tuple(row[min(xs) : max(xs) + 1] for row in rows[min(ys) : max(ys) + 1])


def by_frequency(rows: Rows, choose: Callable[[list[int]], int]) -> Rows:
    counts = Counter(cell for row in rows for cell in row if cell)
    kept = {c for c, count in counts.items() if count == choose(list(counts.values()))}
    return each(rows, lambda y, x, c: c if c in kept else 0)


def framed(rows: Rows, colour: int) -> Rows:
    side = (colour,) * (len(rows[0]) + 2)
    return (side, *((colour, *row, colour) for row in rows), side)


def halved(rows: Rows) -> Rows | None:
    return tuple(row[: len(row) // 2] for row in rows) if len(rows[0]) > 1 else None


def sideways(rule: PlainRule, there: Callable[[Rows], Rows]) -> PlainRule:
    """Return the rule applied to a turned grid and turned back."""

    def turned(rows: Rows) -> Rows | None:
        result = rule(there(rows))
        return None if result is None else there(result)

    return turned


def lay(rows: Rows) -> Rows | None:
    width = len(rows[0]) // 2
    if len(rows[0]) % 2:
        return None
    return over(tuple(row[:width] for row in rows), tuple(row[width:] for row in rows))


def plain_rules() -> list[PlainRule]:
    """Return every rule with every parameter."""
    rules: list[PlainRule] = [
        flip,
        upside_down,
        clockwise,
        lambda rows: clockwise(clockwise(rows)),
        lambda rows: clockwise(clockwise(clockwise(rows))),
        transposed,
        lambda rows: upside_down(flip(transposed(rows))),
        sorted_rows,
        lambda rows: transposed(sorted_rows(transposed(rows))),
        lambda rows: over(rows, flip(rows)),
        lambda rows: over(rows, upside_down(rows)),
        lambda rows: each(rows, lambda y, x, c: 0 if all(neighbours(rows, y, x)) else c),
        cropped,
        lambda rows: tuple(row + row for row in rows),
        lambda rows: rows + rows,
        lambda rows: tuple(row + row[::-1] for row in rows),
        lambda rows: rows + rows[::-1],
        halved,
        sideways(halved, flip),
        sideways(halved, transposed),
        sideways(sideways(halved, transposed), upside_down),
        lay,
        sideways(lay, transposed),
        lambda rows: tuple(row[1:-1] for row in rows[1:-1]) if min(len(rows), len(rows[0])) > 2 else None,
        lambda rows: tuple(row[::2] for row in rows[::2]),
        lambda rows: by_frequency(rows, max),
        lambda rows: by_frequency(rows, min),
    ]
    for change in (
        lambda row: row[-1:] + row[:-1],
        lambda row: (0, *row[:-1]),
        fallen,
        extended,
        lambda row: row[-1:] * len(row),
    ):
        rules += by_row(change).values()
    for n in (2, 3):
        rules.append(lambda rows, n=n: tuple(tuple(c for c in row for _ in range(n)) for row in rows for _ in range(n)))
    for a in range(10):
        rules.append(lambda rows, a=a: framed(rows, a))
        rules.append(lambda rows, a=a: each(rows, lambda y, x, c: a if on_edge(rows, y, x) else c))
        for b in range(10):
            if a != b:
                rules.append(lambda rows, a=a, b=b: each(rows, lambda y, x, c: b if c == a else c))
            if a < b:
                rules.append(lambda rows, a=a, b=b: each(rows, lambda y, x, c: {a: b, b: a}.get(c, c)))
    for a in range(1, 10):
        rules += [
            lambda rows, a=a: each(rows, lambda y, x, c: c if c == a else 0),
            lambda rows, a=a: each(rows, lambda y, x, c: a if c else 0),
            lambda rows, a=a: each(rows, lambda y, x, c: 0 if c else a),
            lambda rows, a=a: filled(rows, a),
            lambda rows, a=a: each(rows, lambda y, x, c: a if c == 0 and any(neighbours(rows, y, x)) else c),
        ]
    return rules


def plain_answers(pairs: list[tuple[Rows, Rows]], test: Rows) -> set[Rows]:
    """Return every output that a rule, or two in a row, that explain all pairs give for the test grid."""
    rules = plain_rules()
    answers: set[Rows] = set()
    groups: dict[tuple[Rows | None, ...], list[PlainRule]] = {}
    inputs = [source for source, _ in pairs]
    for rule in rules:
        groups.setdefault(tuple(rule(rows) for rows in [*inputs, test]), []).append(rule)
    wanted = tuple(target for _, target in pairs)
    for results in groups:
        if results[:-1] == wanted and results[-1] is not None:
            answers.add(results[-1])
        if None in results:
            continue
        for second in rules:
            if all(second(rows) == target for rows, target in zip(results[:-1], wanted, strict=True)):  # type: ignore[arg-type]
                last = second(results[-1])  # type: ignore[arg-type]
                if last is not None:
                    answers.add(last)
    return answers


def rows_of(grid: Grids) -> Rows:
    return tuple(tuple(row) for row in grid.tolist())


def grid_of(text: str) -> Grids:
    return np.array([[int(cell) for cell in row] for row in text.split()], dtype=np.uint8)


def random_grids(count: int) -> list[Grids]:
    grids = []
    for index in range(count):
        random = Random(derive_seed("grid", index))
        shape = draw_integer(random, 1, 7), draw_integer(random, 1, 7)
        cells = [max(0, draw_integer(random, -3, 4)) for _ in range(shape[0] * shape[1])]
        grids.append(np.array(cells, dtype=np.uint8).reshape(shape))
    return [*grids, np.zeros((3, 3), dtype=np.uint8)]


def test_the_library_is_the_plain_one() -> None:
    grids = random_grids(80)
    ours = [tuple(None if (o := rule.apply(grid)) is None else rows_of(o) for grid in grids) for rule in RULES]
    plain = [tuple(rule(rows_of(grid)) for grid in grids) for rule in plain_rules()]
    assert len(FAMILIES) >= 20
    assert sorted(map(repr, ours)) == sorted(map(repr, plain))


def test_outputs_have_the_shape_and_colours_that_the_search_prunes_by() -> None:
    for grid in random_grids(40):
        for rule in RULES:
            before = grid.copy()
            output = rule.apply(grid)
            assert (grid == before).all()
            if output is None:
                continue
            assert output.dtype == np.uint8
            shape = rule.output_shape(*grid.shape)
            assert shape is not None
            assert output.shape == shape or (rule.crops and output.shape <= shape)
            if rule.paints is not None:
                assert set(output[output != grid].tolist()) <= {rule.paints}
            counts = [sorted(np.bincount(g.ravel(), minlength=COLOURS).tolist()) for g in (grid, output)]
            assert rule.keeps in (None, "content") or counts[0] == counts[1]
            if rule.keeps == "content":
                assert (output[grid != 0] == grid[grid != 0]).all()
            if rule.keeps == "counts":
                assert sorted(grid.ravel().tolist()) == sorted(output.ravel().tolist())


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("let the coloured cells fall down", "12 00 30", "00 10 32"),
        ("let the coloured cells fall left", "012 300", "120 300"),
        ("extend each coloured cell up over the empty cells", "00 10 02", "12 12 02"),
        ("fill enclosed empty cells with 4", "110 101 010", "110 141 010"),
        ("cut out the part that holds all coloured cells", "0000 0120 0030", "12 03"),
        ("turn the grid a quarter clockwise", "12 34", "31 42"),
        ("lay the left half over the right half", "1023", "13"),
        ("keep the commonest colour, of equally frequent ones all, and empty all other cells", "112 233", "112 233"),
        ("paint the empty neighbours of coloured cells 7", "000 010 000", "070 717 070"),
    ],
)
def test_rules_by_example(text: str, before: str, after: str) -> None:
    rule = next(rule for rule in RULES if rule.text == text)
    output = rule.apply(grid_of(before))
    assert output is not None
    assert rows_of(output) == rows_of(grid_of(after))


@pytest.mark.parametrize(("level", "count"), [("trivial", 4), ("easy", 2), ("medium", 1), ("hard", 1), ("paper", 1)])
def test_the_answer_is_unique_in_the_whole_library(level: str, count: int) -> None:
    task = ArcGrid()
    for index in range(count):
        text, reference = task.generate(Random(derive_seed(level, index)), task.levels[level])
        pairs, test = read_puzzle(text)
        answers = plain_answers([(rows_of(pair.input), rows_of(pair.output)) for pair in pairs], rows_of(test))
        assert answers == {tuple(tuple(map(int, row.split())) for row in reference.splitlines())}


def test_pruned_and_plain_search_find_the_same_answers() -> None:
    for index in range(6):
        random = Random(derive_seed("search", index))
        cells = [[draw_integer(random, 0, 2) for _ in range(9)] for _ in range(3)]
        first, second, test = (np.array(c, dtype=np.uint8).reshape(3, 3) for c in cells)
        rule = RULES[draw_integer(random, 0, 26)]
        outputs = [rule.apply(grid) for grid in (first, second)]
        pairs = [GridPair(g, o) for g, o in zip((first, second), outputs, strict=True) if o is not None]
        colours = frozenset(range(3))
        search = ExplanationSearch(colours)
        for pair in pairs:
            search.add_pair(pair)
        plain = plain_answers([(rows_of(pair.input), rows_of(pair.output)) for pair in pairs], rows_of(test))
        ours = {rows_of(answer) for answer in search.answers(test)}
        assert ours <= plain
        assert {a for a in plain if set().union(*a) <= colours} <= ours
        assert (len(ours) == 1) == (len(plain) == 1)


def test_a_pair_only_removes_explanations() -> None:
    grid, other = grid_of("12 12"), grid_of("01 23")
    search = ExplanationSearch(frozenset({0, 1, 2, 3}))
    search.add_pair(GridPair(grid, grid[:, ::-1]))
    before = {tuple(rule.text for rule in found) for found in search.explanations()}
    search.add_pair(GridPair(other, other[:, ::-1]))
    after = {tuple(rule.text for rule in found) for found in search.explanations()}
    assert ("mirror the grid left to right",) in after
    assert after < before
    assert search.has_single_rule
    assert [format_grid(answer) for answer in search.answers(grid_of("12"))] == ["2 1"]
    search.add_pair(GridPair(other, grid_of("9")))
    assert search.explanations() == []
    assert search.answers(other) == []


def test_two_absent_colours_stand_for_all() -> None:
    named = {colour for rule in rules_for(frozenset({3})) for colour in rule.colours}
    assert named == {0, 3, 1, 2}
    assert rules_for(frozenset(range(COLOURS))) == RULES


def test_the_families_named_for_the_task_are_those_of_the_rules() -> None:
    assert tuple(dict.fromkeys(rule.family for rule in RULES)) == FAMILIES
